//! Several reactors: one run in every respect, held against what the server saw.

use std::collections::BTreeMap;

use serde_json::Value;
use takt_record::{Completed, Fold, Issued, Record, RequestId, RequestKey, fold_journal};
use takt_recorder::{journal_files, open_journal};

use crate::bench::{Bench, Mock, Running};
use crate::truth::truth;

/// The requests of all journals of a run.
#[derive(Default)]
struct Requests {
    issued: BTreeMap<RequestKey, Issued>,
    ended: BTreeMap<RequestKey, Completed>,
}

impl Fold for Requests {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Issued(issued) => {
                assert!(self.issued.insert(issued.key, *issued).is_none(), "issued twice");
            }
            Record::Completed(done) => {
                assert!(self.ended.insert(done.key, *done).is_none(), "ended twice");
            }
            _ => {}
        }
    }
}

/// Pattern, its settings, and the requests of a phase.
const PHASES: [(&str, &str, u64); 6] = [
    ("warm", "pattern: concurrency, target_concurrency: 7", 40),
    ("closed", "pattern: concurrency, target_concurrency: 7", 200),
    ("narrow", "pattern: concurrency, target_concurrency: 2", 20),
    ("open", "pattern: poisson, rate: 400", 150),
    ("few", "pattern: constant, rate: 20", 2),
    ("burst", "pattern: max_throughput, max_in_flight: 10", 200),
];

fn config(url: &str, reactors: u32) -> String {
    let mut text = format!(
        "endpoint: {{url: '{url}', model: m}}\nengine: {{reactors: {reactors}, wait: park}}\nphases:\n"
    );
    for (name, load, requests) in PHASES {
        let kind = if name == "warm" { "type: warmup, drain_after: false, " } else { "" };
        text += &format!("  - {{name: {name}, {kind}requests: {requests}, load: {{{load}}}}}\n");
    }
    text
}

fn run(reactors: u32) -> (Bench, Requests, BTreeMap<String, Value>) {
    let bench = Bench::new();
    let timed = ["--ttft", "exp:5ms", "--tpot", "1ms", "--tokens", "uniform:1..5"];
    let mut args = timed.to_vec();
    args.extend(["--truth", "truth.jsonl"]);
    let mock = Mock::start(&bench, &args);
    bench.file("run.yaml", &config(&mock.url(), reactors));
    bench.takt(&["run", "run.yaml", "--out", "out"]).exits(0);
    assert_eq!(mock.stop(), 0);
    let mut requests = Requests::default();
    let files = journal_files(&bench.path("out")).unwrap();
    assert_eq!(files.len(), reactors as usize, "a journal for each");
    for file in files {
        fold_journal(&mut open_journal(&file).unwrap(), &mut requests).unwrap();
    }
    let truth = truth(&bench);
    (bench, requests, truth)
}

#[test]
fn c1_three_reactors_are_one_run_request_by_request() {
    let (bench, seen, truth) = run(3);
    let result = bench.result();
    let session = u128::from_str_radix(result["session_id"].as_str().unwrap(), 16).unwrap();
    assert_eq!(truth.len(), seen.issued.len(), "the server saw each once");
    for (place, (name, load, requests)) in PHASES.iter().enumerate() {
        let of = |key: &&RequestKey| usize::from(key.phase.0) == place;
        let ordinals: Vec<u64> = seen.issued.keys().filter(of).map(|key| key.ordinal).collect();
        assert_eq!(ordinals, (0..*requests).collect::<Vec<_>>(), "{name}");
        let phase = &result["phases"][place];
        assert_eq!(phase["issued"], *requests, "{name}");
        let count = |key: &str| phase[key].as_u64().unwrap();
        assert_eq!(count("succeeded") + count("late"), *requests, "{name}");
        let most = load.rsplit("concurrency: ").next().and_then(|most| most.parse().ok());
        let most = most.or(load.contains("max_in_flight").then_some(10));
        if let Some(most) = most {
            // Those that the warm-up left running count, too.
            let spans: Vec<_> = seen
                .ended
                .iter()
                .filter(|(key, _)| of(key) || (place == 1 && key.phase.0 == 0))
                .map(|(_, done)| (done.times.issued, done.times.end))
                .collect();
            let at_once = |at| spans.iter().filter(|(from, to)| *from <= at && at < *to).count();
            let peak = spans.iter().map(|(from, _)| at_once(*from)).max();
            assert!(peak.unwrap() <= most, "{name}: {peak:?} at once, {most} allowed");
        }
    }
    for (key, done) in &seen.ended {
        let id = RequestId::new(session as u64, *key).to_string();
        let tokens = done.tokens.output.map(u64::from);
        assert_eq!(tokens, truth[&id]["tokens"].as_u64(), "{key:?}");
    }
    // What the run said is what its journals say.
    let again = bench.takt(&["report", "out"]).exits(0);
    assert_eq!(again.stdout, bench.read("out/report.txt"));
    assert!(again.stdout.contains("3 reactors"), "{}", again.stdout);
    assert_eq!(result["phases"][1]["in_flight"], Value::Null, "what does not add up is left out");
    // Without one of them it is not all of the run.
    std::fs::remove_file(bench.path("out/journal/000001.takt")).unwrap();
    let part =
        bench.takt(&["report", "out"]).exits(0).says("journal/000001.takt: the file is missing");
    assert!(part.stdout.contains("issued 200   succeeded 200"), "{}", part.stdout);
}

#[test]
fn the_same_is_sent_whatever_the_number_of_reactors() {
    let sent = |reactors| {
        let (_bench, seen, _) = run(reactors);
        let start = |key: RequestKey| {
            let of = seen.issued.values().filter(|other| other.key.phase == key.phase);
            of.filter_map(|other| other.scheduled).min()
        };
        let of = |issued: &Issued| {
            let due = issued.scheduled.zip(start(issued.key));
            (issued.key, issued.sample, due.map(|(due, start)| due.saturating_since(start)))
        };
        seen.issued.values().map(of).collect::<Vec<_>>()
    };
    assert_eq!(sent(2), sent(1));
}

#[test]
fn progress_tells_of_each_phase_once_in_order_and_of_all_reactors() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    bench.file("run.yaml", &config(&mock.url(), 2));
    let run = bench.takt(&["run", "run.yaml", "--out", "out"]).exits(0);
    let told: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("phase ")).collect();
    assert_eq!(told.len(), 2 * PHASES.len(), "{told:#?}");
    for ((name, load, requests), lines) in PHASES.iter().zip(told.chunks(2)) {
        let pattern = load.split([' ', ',']).nth(1).unwrap();
        assert!(lines[0].starts_with(&format!("phase {name}: ")), "{told:#?}");
        assert!(lines[0].contains(pattern), "{told:#?}");
        assert!(lines[1].starts_with(&format!("phase {name}: complete after ")), "{told:#?}");
        assert!(lines[1].contains(&format!(" s: {requests} issued, ")), "{told:#?}");
    }
}

#[test]
fn a_stop_reaches_every_reactor_and_what_they_saw_is_kept() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    bench.file(
        "run.yaml",
        &format!(
            "endpoint: {{url: '{}', model: m}}\nengine: {{reactors: 2}}\nphases:\n  - {{name: p, \
             requests: 100, load: {{pattern: concurrency, target_concurrency: 5}}}}\n",
            mock.url()
        ),
    );
    let mut running = Running::start(&bench, &["run", "run.yaml", "--out", "out"]);
    running.wait_for("phase p");
    running.signal("INT");
    running.wait_for("stopping");
    running.signal("INT");
    running.done().exits(130);
    let result = bench.result();
    assert_eq!(result["state"], "interrupted");
    let phase = &result["phases"][0];
    // The other reactor may not have had its first turn.
    assert!((3..=5).contains(&phase["issued"].as_u64().unwrap()), "{phase}");
    assert_eq!(phase["issued"], phase["unanswered"]);
    assert_eq!(bench.takt(&["report", "out"]).stdout, bench.read("out/report.txt"));
}

#[test]
fn e4_a_killed_run_is_incomplete_though_a_reactor_had_nothing_to_do() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "1ms", "--tpot", "1ms", "--tokens", "2"]);
    let url = mock.url();
    let config = format!(
        "endpoint: {{url: '{url}', model: m}}\nengine: {{reactors: 2}}\nphases:\n  - {{name: p, requests: \
         1000000, load: {{pattern: concurrency, target_concurrency: 1}}}}\n"
    );
    bench.file("run.yaml", &config);
    let running = Running::start(&bench, &["run", "run.yaml", "--out", "out"]);
    let written =
        || std::fs::metadata(bench.path("out/journal/000000.takt")).map_or(0, |m| m.len());
    while written() < 20_000 {
        std::thread::yield_now();
    }
    running.kill();
    let report = bench.takt(&["report", "out"]);
    assert!(report.stdout.contains("INCOMPLETE: killed"), "{}", report.stdout);
    assert!(!report.stdout.contains("verdict: valid"), "{}", report.stdout);
}

#[test]
fn a_reactor_that_fails_ends_the_run_of_all() {
    // Nothing comes for half a second: each notices it, and whoever is first ends the other.
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    let url = mock.url();
    let limit = "limits.endpoint_response_idle_timeout=300ms";
    let args =
        ["--concurrency", "4", "--requests", "50", "--set", "engine.reactors=2", "--set", limit];
    bench.run(&url, &args).exits(4);
    let result = bench.result();
    assert_eq!(
        (&result["state"], &result["failed_by"]),
        (&"failed".into(), &"endpoint_idle".into())
    );
    assert_eq!(result["phases"][0]["unanswered"], 4);
}

#[test]
fn what_only_one_reactor_can_do_is_refused() {
    let bench = Bench::new();
    for (reactors, args, says) in [
        ("2", vec!["--set", "engine.pacer=thread"], "each reactor waits for itself"),
        ("2", vec!["--set", "publish.events=ipc:///tmp/x"], "with `publish`"),
        ("2", vec!["--set", "opprof.records=steps.jsonl"], "`opprof`"),
        ("2", vec!["--turn-records", "turns"], "records of one reactor"),
        ("200", vec!["--set", "engine.core=0"], "engine.core"),
        ("3", vec!["--set", "connections.max=2"], "each needs a connection"),
        ("0", vec![], "engine.reactors"),
    ] {
        let reactors = format!("engine.reactors={reactors}");
        let mut all = vec!["--requests", "5", "--rate", "10", "--set", &reactors];
        all.extend(args);
        bench.run("http://127.0.0.1:9", &all).exits(2).says(says);
    }
}
