//! Accuracy phases: answers kept, scored, written down, and scored again from the journal.
//!
//! The server says what the prompt says (`takt mock --echo`), so a dataset holds its own answers.

use serde_json::Value;

use crate::bench::{Bench, Done, Mock, Running};

/// Rows in the manner of gsm8k: what the model will say, and the worked answer.
const ROWS: &str = r#####"{"question": "9 eggs at $2.\n#### 18", "answer": "9 * 2 = <<9*2=18>>18\n#### 18"}
{"question": "So she has $1,250.00 left.", "answer": "#### 1250"}
{"question": "#### 17", "answer": "2 + 16 = 18\n#### 18"}
{"question": "I cannot say.", "answer": "#### 5"}
"#####;

/// A file with one accuracy phase over the rows.
fn config(bench: &Bench, url: &str, phase: &str, more: &str) {
    let text = format!(
        "endpoint: {{url: '{url}', model: m{more}}}\ndataset: {{path: rows.jsonl, prompt: question}}\nphases:\n  \
         - {{name: math, type: accuracy, load: {{pattern: concurrency, target_concurrency: 2}}, {phase}}}\n"
    );
    bench.file("math.yaml", &text);
}

const NUMERIC: &str = "score: {by: numeric, truth: answer, after: '####'}";

fn run(bench: &Bench) -> Done {
    bench.takt(&["run", "math.yaml", "--out", "out"])
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn score(result: &Value) -> &Value {
    &result["phases"][0]["score"]
}

/// The counts of a score add up to what was issued.
fn adds_up(score: &Value) {
    let of = |key: &str| score[key].as_u64().unwrap();
    assert_eq!(of("issued"), of("scored") + of("empty") + of("failed") + of("missing"), "{score}");
}

#[test]
fn answers_are_kept_and_scored_streamed_or_not() {
    for stream in ["", ", stream: false"] {
        let bench = Bench::new();
        bench.file("rows.jsonl", ROWS);
        let mock = Mock::start(&bench, &["--echo", "--ttft", "1ms", "--tpot", "1ms"]);
        config(&bench, &mock.url(), &format!("repeats: 3, {NUMERIC}"), stream);
        let done = run(&bench).exits(0);
        assert!(done.stdout.contains("score 0.5000 by numeric of content"), "{}", done.stdout);
        let result = bench.result();
        let score = score(&result);
        assert_eq!((&score["value"], &score["sum"]), (&0.5.into(), &6.0.into()));
        assert_eq!((&score["issued"], &score["unextracted"]), (&12.into(), &3.into()));
        assert_eq!(score["repeats"].as_array().unwrap().len(), 3);
        assert_eq!(score["spread"]["stddev"], 0.0);
        adds_up(score);
        assert_eq!(result["phases"][0]["ended_by"], "dataset");

        let responses = lines(&bench.read("out/responses.jsonl"));
        assert_eq!(responses.len(), 12);
        let map: Value = serde_json::from_str(&bench.read("out/sample_idx_map.json")).unwrap();
        assert_eq!(map["math"].as_object().unwrap().len(), 12);
        let rows = lines(ROWS);
        let mut askings = vec![Vec::new(); rows.len()];
        for line in &responses {
            let sample = line["sample"].as_u64().unwrap() as usize;
            askings[sample].push(line["repeat"].as_u64().unwrap());
            assert_eq!(map["math"][line["id"].as_str().unwrap()], sample);
            assert_eq!(
                (&line["text"], &line["truth"]),
                (&rows[sample]["question"], &rows[sample]["answer"])
            );
            assert_eq!((&line["outcome"], &line["finish_reason"]), (&"ok".into(), &"stop".into()));
            let expected = [("18", 1.0), ("$1,250.00", 1.0), ("17", 0.0), ("", 0.0)][sample];
            let extracted = line["extracted"].as_str().unwrap_or("");
            let expected = (expected.0.trim_start_matches('$'), expected.1);
            assert_eq!((extracted, line["score"].as_f64().unwrap()), expected);
        }
        for mut asked in askings {
            asked.sort_unstable();
            assert_eq!(asked, [0, 1, 2], "every row three times");
        }
    }
}

#[test]
fn what_failed_scores_nothing_and_is_counted() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    let errors = ["--echo", "--ttft", "1ms", "--tpot", "1ms", "--errors", "500:0.4"];
    let mock = Mock::start(&bench, &errors);
    config(&bench, &mock.url(), &format!("repeats: 20, {NUMERIC}"), "");
    let done = run(&bench).exits(0);
    let result = bench.result();
    let (phase, score) = (&result["phases"][0], score(&result));
    assert_eq!(score["failed"], phase["failed"]);
    // Of 80 requests at a share of 0.4, none failing has a chance of 1e-18.
    assert!(score["failed"].as_u64().unwrap() > 0);
    adds_up(score);
    let lines = lines(&bench.read("out/responses.jsonl"));
    let marks: f64 = lines.iter().map(|line| line["score"].as_f64().unwrap()).sum();
    assert_eq!(score["value"].as_f64().unwrap(), marks / 80.0);
    for line in lines.iter().filter(|line| line["outcome"] == "failed") {
        assert_eq!((&line["error"], &line["score"]), (&"http_status".into(), &0.0.into()));
        assert_eq!((&line["text"], &line["extracted"]), (&Value::Null, &Value::Null));
    }
    // The journal alone leads to the same.
    assert_eq!(bench.takt(&["report", "out"]).exits(0).stdout, done.stdout);
    let json = bench.takt(&["report", "out", "--format", "json"]).exits(0).stdout;
    assert!(json == bench.read("out/result.json"), "{json}");
}

#[test]
fn what_is_given_up_scores_nothing_and_its_words_are_kept() {
    let bench = Bench::new();
    // Some 40 s of an answer; the others take a tenth of a second.
    let endless =
        format!("{{\"question\": \"{}18\", \"answer\": \"#### 18\"}}\n", "on and ".repeat(1_000));
    bench.file("rows.jsonl", &format!("{ROWS}{endless}"));
    let mock = Mock::start(&bench, &["--echo", "--ttft", "1ms", "--tpot", "20ms"]);
    config(&bench, &mock.url(), &format!("drain_timeout: 3s, {NUMERIC}"), "");
    run(&bench).exits(0);
    let result = bench.result();
    assert_eq!((&score(&result)["missing"], &score(&result)["value"]), (&1.into(), &0.4.into()));
    adds_up(score(&result));
    let lines = lines(&bench.read("out/responses.jsonl"));
    let given_up = lines.iter().find(|line| line["outcome"] == "unanswered").unwrap();
    assert!(given_up["text"].as_str().unwrap().starts_with("on and on"), "{given_up}");
    assert_eq!((&given_up["score"], &given_up["sample"]), (&0.0.into(), &4.into()));
}

#[test]
fn a_killed_run_is_scored_from_its_journal_and_a_finished_one_again_to_the_byte() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    let mock = Mock::start(&bench, &["--echo", "--ttft", "2ms", "--tpot", "1ms"]);
    config(&bench, &mock.url(), &format!("repeats: 5, {NUMERIC}"), "");
    run(&bench).exits(0);
    let (result, responses) = (bench.result(), bench.read("out/responses.jsonl"));
    let map = bench.read("out/sample_idx_map.json");
    for name in ["result.json", "responses.jsonl", "sample_idx_map.json"] {
        std::fs::remove_file(bench.path("out").join(name)).unwrap();
    }
    std::fs::remove_file(bench.path("rows.jsonl")).unwrap();
    let again = bench.takt(&["report", "out", "--format", "json"]).exits(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), result);
    assert_eq!(bench.read("out/responses.jsonl"), responses);
    assert_eq!(bench.read("out/sample_idx_map.json"), map);

    bench.file("rows.jsonl", ROWS);
    config(&bench, &mock.url(), &format!("repeats: 100000, {NUMERIC}"), "");
    let mut running = Running::start(&bench, &["run", "math.yaml", "--out", "killed"]);
    running.wait_for("phase math: accuracy");
    let journal = bench.path("killed/journal/000000.takt");
    while std::fs::metadata(&journal).unwrap().len() < 20_000 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.signal("KILL");
    running.done().exits(-1);
    let first = bench.takt(&["report", "killed", "--format", "json"]).exits(0).stdout;
    let result: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(result["state"], "killed");
    adds_up(score(&result));
    assert!(score(&result)["scored"].as_u64().unwrap() > 0);
    let written = lines(&bench.read("killed/responses.jsonl"));
    assert_eq!(written.len() as u64, score(&result)["issued"].as_u64().unwrap());
    let ended = |line: &&Value| !line["outcome"].is_null();
    let missing = score(&result)["missing"].as_u64().unwrap();
    assert_eq!(written.iter().filter(ended).count() as u64 + missing, written.len() as u64);
    assert_eq!(bench.takt(&["report", "killed", "--format", "json"]).exits(0).stdout, first);
}

#[test]
fn a_program_scores_and_its_failure_leaves_no_score() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    let mock = Mock::start(&bench, &["--echo", "--ttft", "1ms", "--tpot", "1ms"]);
    // A mark of one half for every row that knows its prompt, its truth and its answer.
    bench.file(
        "judge.sh",
        "grep '\"phase\":\"math\"' | grep '\"prompt\":\"' | grep '\"truth\":\"' | grep '\"text\":\"' \
         | sed 's/.*/{\"score\": 0.5, \"extracted\": \"half\"}/'\n",
    );
    let by =
        |script: &str| format!("score: {{by: command, command: [sh, {script}], truth: answer}}");
    config(&bench, &mock.url(), &by("judge.sh"), "");
    let done = run(&bench).exits(0);
    let result = bench.result();
    assert_eq!((&score(&result)["value"], &score(&result)["scored"]), (&0.5.into(), &4.into()));
    let responses = lines(&bench.read("out/responses.jsonl"));
    assert!(responses.iter().all(|line| line["extracted"] == "half" && line["score"] == 0.5));
    // Its marks are read again; it is not run.
    bench.file("judge.sh", "exit 9\n");
    assert_eq!(bench.takt(&["report", "out"]).exits(0).stdout, done.stdout);

    // Marks that cannot be read are not marks that were never made.
    let responses = bench.path("out/responses.jsonl");
    let kept = std::fs::read(&responses).unwrap();
    std::fs::write(&responses, [&kept[..40], &[0xff], &kept[40..]].concat()).unwrap();
    bench.takt(&["report", "out"]).says("responses.jsonl cannot be read: stream did not contain");
    std::fs::remove_file(&responses).unwrap();
    std::fs::create_dir(&responses).unwrap();
    bench.takt(&["report", "out"]).says("responses.jsonl cannot be read: Is a directory");
    std::fs::remove_dir(&responses).unwrap();
    bench.takt(&["report", "out"]).says("the program has not run");

    bench.file("broken.sh", "echo no such model >&2; exit 7\n");
    config(&bench, &mock.url(), &by("broken.sh"), "");
    let args = ["run", "math.yaml", "--out", "broken"];
    let done = bench.takt(&args).exits(4).says("`sh` failed (exit status: 7): no such model");
    assert!(done.stdout.contains("score none by command: `sh` failed"), "{}", done.stdout);
    let result: Value = serde_json::from_str(&bench.read("broken/result.json")).unwrap();
    assert_eq!(
        (&score(&result)["value"], &result["phases"][0]["succeeded"]),
        (&Value::Null, &4.into())
    );
    let left = std::fs::read_dir(bench.path("broken")).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with(".score")), "{names:?}");
    // Mended, it is asked again.
    bench.file("broken.sh", "sed 's/.*/1/'\n");
    bench.takt(&["report", "broken", "--run-programs"]).exits(0);
    let again = bench.takt(&["report", "broken", "--format", "json"]).exits(0).stdout;
    assert_eq!(score(&serde_json::from_str(&again).unwrap())["value"], 1.0);
}

#[test]
fn a_truth_that_no_answer_could_equal_is_refused_before_anything_is_sent() {
    let bench = Bench::new();
    bench.file("rows.jsonl", &ROWS.replace("#### 1250", "twelve hundred"));
    config(&bench, "http://127.0.0.1:9", NUMERIC, "");
    run(&bench).exits(2).says("row at line 2: the truth has no `####`");
    bench.file("rows.jsonl", &ROWS.replace("\"answer\"", "\"solution\""));
    run(&bench).exits(2).says("`answer`");
    assert!(!bench.path("out").exists());
}

#[test]
fn a_performance_phase_with_a_score_is_measured_and_scored() {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    let mock = Mock::start(&bench, &["--echo", "--ttft", "1ms", "--tpot", "1ms"]);
    config(&bench, &mock.url(), NUMERIC, "");
    let both = bench.read("math.yaml").replace("type: accuracy", "type: performance");
    let own = "  - {name: kept, type: accuracy, load: {pattern: max_throughput}}\n";
    bench.file("math.yaml", &(both + own));
    run(&bench).exits(0);
    let result = bench.result();
    assert_eq!(score(&result)["value"], 0.5);
    assert!(!result["phases"][0]["latency_ms"]["from_send"].is_null());
    assert_eq!(result["phases"][1]["score"], Value::Null, "kept, not scored");
    let map: Value = serde_json::from_str(&bench.read("out/sample_idx_map.json")).unwrap();
    let sizes = ["math", "kept"].map(|name| map[name].as_object().unwrap().len());
    assert_eq!(sizes, [4, 4]);
    assert_eq!(lines(&bench.read("out/responses.jsonl")).len(), 8);
}
