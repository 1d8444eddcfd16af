//! `takt init` and `takt validate`, and what the command line says of itself.

use serde_json::Value;

use crate::bench::{Bench, Done, Mock};

const TEMPLATES: [&str; 6] = ["online", "concurrency", "sweep", "offline", "accuracy", "raw"];

#[test]
fn every_template_is_valid_and_is_written_over_nothing() {
    let bench = Bench::new();
    bench.file("gsm8k_test.jsonl", "{\"question\": \"9 * 2?\", \"answer\": \"#### 18\"}\n");
    for template in TEMPLATES {
        let file = format!("{template}.yaml");
        bench.takt(&["init", template, &file]).exits(0).says("is written");
        let done = bench.takt(&["validate", &file]).exits(0);
        assert!(done.stdout.starts_with(&format!("{file}: valid")), "{}", done.stdout);
        let printed = bench.takt(&["init", template]).exits(0).stdout;
        assert_eq!(printed, bench.read(&file));
        bench.file(&file, "mine");
        bench.takt(&["init", template, &file]).exits(2).says("is there already");
        assert_eq!(bench.read(&file), "mine");
        bench.takt(&["init", template, &file, "--force"]).exits(0);
        assert_eq!(bench.read(&file), printed);
    }
}

#[test]
fn a_template_runs() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    bench.takt(&["init", "concurrency", "c.yaml"]).exits(0);
    let set = ["--set", "phases.warmup.requests=4", "--set", "phases.c16.duration=200ms"];
    let args = [&["run", "c.yaml", "--out", "out"], &set[..]].concat();
    Done::from(bench.command(&args).env("URL", mock.url()).output().unwrap()).exits(0);
    assert_eq!(bench.result()["phases"][0]["issued"], 4);
}

#[test]
fn validate_says_what_each_phase_will_do_and_sends_nothing() {
    let bench = Bench::new();
    bench.file("q.jsonl", &"{\"prompt\": \"a\"}\n".repeat(7));
    bench.file(
        "a.yaml",
        "endpoint: {url: 'http://127.0.0.1:1', model: m}\ndataset: {path: q.jsonl}\nphases:\n\
         - {name: warm, type: warmup, load: {pattern: concurrency, target_concurrency: 2}}\n\
         - {name: q50, load: {pattern: poisson, rate: 50}, duration: 60s}\n\
         - {name: q5, load: {pattern: constant, rate: 5}, duration: 60s, requests: 30}\n",
    );
    let done = bench.takt(&["validate", "a.yaml"]).exits(0);
    for says in [
        "7 requests for as long as the server takes, from 7 samples",
        "about 3000 requests in 60s",
        "30 requests in 6s",
        "takes about 66s, and what the server needs for warm",
    ] {
        assert!(done.stdout.contains(says), "`{says}` is not in:\n{}", done.stdout);
    }
    let done = bench.takt(&["validate", "a.yaml", "--format", "json"]).exits(0);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&json["phases"][1]["requests"], &json["phases"][1]["time_s"]),
        (&3000.into(), &60.0.into())
    );
    assert!(json["phases"][0]["time_s"].is_null());
}

#[test]
fn k4_validate_names_the_row_that_is_wrong() {
    let bench = Bench::new();
    bench.file("q.csv", "prompt\r\n00123\r\n\"left open\r\n");
    bench.file("e.jsonl", "");
    let phases = "phases: [{name: p, load: {pattern: concurrency, target_concurrency: 1}}]\n";
    for (file, says) in
        [("q.csv", "q.csv:3"), ("e.jsonl", "e.jsonl"), ("gone.csv", "cannot be opened")]
    {
        bench.file(
            "a.yaml",
            &format!(
                "endpoint: {{url: 'http://h', model: m}}\ndataset: {{path: {file}}}\n{phases}"
            ),
        );
        bench.takt(&["validate", "a.yaml"]).exits(2).says(says);
    }
    bench.takt(&["validate", "gone.yaml"]).exits(2).says("gone.yaml: cannot be read");
}

#[test]
fn a_variable_that_is_not_set_is_named_with_file_line_and_key() {
    let bench = Bench::new();
    bench.file("a.yaml", "endpoint:\n  url: http://h\n  api_key: ${TAKT_NO_SUCH}\n");
    bench
        .takt(&["validate", "a.yaml"])
        .exits(2)
        .says("a.yaml:3: endpoint.api_key: the variable TAKT_NO_SUCH is not set");
}

#[test]
fn the_reference_has_every_level() {
    let done = Bench::new().takt(&["validate", "--keys"]).exits(0);
    for level in ["top level", "endpoint", "dataset", "slo", "phases[]", "phases[].load"] {
        assert!(done.stdout.contains(&format!("## {level}\n")), "{level}");
    }
}

#[test]
fn a_word_that_is_not_known_is_answered_with_the_nearest() {
    let bench = Bench::new();
    for (args, near) in [
        (&["rnu"][..], "'run'"),
        (&["validat", "a.yaml"], "'validate'"),
        (&["run", "--dataste", "x"], "'--dataset'"),
        (&["init", "swep"], "'sweep'"),
        (&["probe", "--modle", "x"], "'--model'"),
    ] {
        bench.takt(args).exits(2).says(near);
    }
}

#[test]
fn the_help_of_every_command_has_examples() {
    let bench = Bench::new();
    let mut waiting = vec![Vec::new()];
    let mut seen = Vec::new();
    while let Some(words) = waiting.pop() {
        let args: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = bench.takt(&args).exits(0).stdout;
        let name = words.join(" ");
        assert!(help.contains("Examples:") && help.contains(&format!("  takt {name}")), "{name}");
        let under = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let under = under.take_while(|line| !line.is_empty());
        let under = under.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        for word in under.filter_map(|line| line.split_whitespace().next()) {
            if word != "help" {
                waiting.push([words.as_slice(), &[word.to_owned()]].concat());
            }
        }
        seen.push(name);
    }
    for name in ["run", "probe", "opprof check"] {
        assert!(seen.iter().any(|seen| seen == name), "{name} of {seen:?}");
    }
}
