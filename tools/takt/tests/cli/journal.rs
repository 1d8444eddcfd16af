//! What the journal keeps, and that the report from it is the one that was given live.

use serde_json::Value;
use takt_record::{Completed, Fold, Outcome, Record, fold_journal};

use crate::bench::{Bench, Mock, Running};

/// Where two documents differ, as paths with both values.
fn differences(path: &str, live: &Value, again: &Value, found: &mut Vec<String>) {
    match (live, again) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for (key, value) in a {
                differences(&format!("{path}.{key}"), value, &b[key], found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{place}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: {a} live, {b} from the journal")),
    }
}

fn report(bench: &Bench, rest: &[&str]) -> Value {
    let args = [&["report", "out", "--format", "json"], rest].concat();
    serde_json::from_str(&bench.takt(&args).exits(0).stdout).unwrap()
}

/// Holds the live result and the one from the journal alone against each other.
#[track_caller]
fn same_from_the_journal_alone(bench: &Bench) -> Value {
    let live = bench.result();
    std::fs::remove_file(bench.path("out/result.json")).unwrap();
    std::fs::remove_dir_all(bench.path("out/metrics")).unwrap();
    let mut found = Vec::new();
    differences("", &live, &report(bench, &[]), &mut found);
    assert!(found.is_empty(), "{}", found.join("\n"));
    live
}

/// A sweep of three levels, each after a warm-up that is not drained.
fn sweep(url: &str, requests: u32) -> String {
    let mut text = format!("endpoint: {{url: '{url}', model: m}}\nphases:\n");
    for level in [2, 4, 8] {
        let load = format!("{{pattern: concurrency, target_concurrency: {level}}}");
        text.push_str(&format!(
            "  - {{name: w{level}, type: warmup, load: {load}, requests: 20}}\n"
        ));
        text.push_str(&format!("  - {{name: p{level}, load: {load}, requests: {requests}}}\n"));
    }
    text.push_str(
        "  - {name: open, load: {pattern: poisson, rate: 333.3333333333333}, duration: 300ms}\n",
    );
    text
}

const TIMED: [&str; 6] =
    ["--ttft", "exp:3ms", "--tpot", "uniform:1ms..2ms", "--tokens", "uniform:1..9"];

#[test]
fn the_journal_alone_gives_the_result_of_a_run_with_failures() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &[&TIMED[..], &["--errors", "429:0.1"]].concat());
    let args = ["--rate", "333.3333333333333", "--requests", "150", "--warmup-requests", "9"];
    bench.run(&mock.url(), &args).exits(0);
    let live = same_from_the_journal_alone(&bench);
    assert!(live["phases"][1]["failed"].as_u64() > Some(0), "some requests were to fail");
    assert!(live["journal"]["records"].as_u64() > Some(300));
}

#[test]
fn the_journal_alone_gives_the_result_of_a_sweep() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &TIMED);
    bench.file("sweep.yaml", &sweep(&mock.url(), 60));
    bench.takt(&["run", "sweep.yaml", "--out", "out"]).exits(0);
    let live = same_from_the_journal_alone(&bench);
    assert_eq!(live["phases"].as_array().unwrap().len(), 7);
}

#[test]
fn the_journal_alone_gives_the_result_of_an_interrupted_run() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &TIMED);
    bench.file("sweep.yaml", &sweep(&mock.url(), 100_000));
    let mut running = Running::start(&bench, &["run", "sweep.yaml", "--out", "out"]);
    running.wait_for("phase p2");
    running.signal("INT");
    running.done().exits(130);
    let live = same_from_the_journal_alone(&bench);
    assert_eq!(live["state"], "interrupted");
}

#[test]
fn a_sampled_journal_does_not_pass_for_the_whole() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = ["--concurrency", "4", "--requests", "100", "--set", "journal=sampled 10"];
    let run = bench.run(&mock.url(), &args).exits(0);
    assert!(run.stdout.contains("journal: holds a part of the requests (sampled 10)"));
    let live = bench.result();
    assert_eq!(
        (&live["phases"][0]["issued"], &live["journal"]["sampled"]),
        (&100.into(), &true.into())
    );
    assert_eq!(live["verdict"]["status"], report(&bench, &[])["verdict"]["status"]);
    assert_eq!(report(&bench, &[]), live, "the result that the run wrote is the better witness");
    // Without it there is the sample, and it says so.
    std::fs::remove_file(bench.path("out/result.json")).unwrap();
    let part = report(&bench, &[]);
    let phase = &part["phases"][0];
    assert_eq!((&phase["issued"], &phase["succeeded"]), (&10.into(), &10.into()));
    assert_eq!(phase["latency_ms"]["from_send"]["count"], 10);
    for absent in ["requests_per_s", "successful_per_s", "steady", "in_flight", "series"] {
        assert!(phase[absent].is_null(), "{absent}: {}", phase[absent]);
    }
    let reasons = part["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["name"] == "partial_records"), "{reasons:?}");
    assert_ne!(part["verdict"]["status"], "valid");
    bench.takt(&["events", "out", "--type", "session"]).exits(0).says("these are not all");
}

#[test]
fn a_journal_at_its_size_cap_says_so() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let cap = "journal_size_cap=64KiB";
    let args = ["--concurrency", "16", "--requests", "1500", "--set", cap];
    let run = bench.run(&mock.url(), &args).exits(0);
    assert!(run.stdout.contains("journal: reached its size cap"), "{}", run.stdout);
    assert_eq!(bench.result()["journal"]["capped"], true);
    let size = std::fs::metadata(bench.path("out/journal/000000.takt")).unwrap().len();
    assert!(size < 96 << 10, "{size} bytes");
    std::fs::remove_file(bench.path("out/result.json")).unwrap();
    let part = report(&bench, &[]);
    assert_eq!(part["state"], "complete", "that the session ended is always kept");
    assert!(part["phases"][0]["issued"].as_u64() < Some(1500));
    assert!(part["phases"][0]["successful_per_s"].is_null());
}

/// Latencies from send of the successes of a journal, ascending.
#[derive(Default)]
struct Latencies(Vec<u64>);

impl Fold for Latencies {
    fn fold(&mut self, record: &Record<'_>) {
        if let Record::Completed(Completed { outcome: Outcome::Ok, times, .. }) = record {
            self.0.push(times.end.as_nanos() - times.sent.unwrap().as_nanos());
        }
    }
}

#[test]
fn exact_percentiles_are_order_statistics_of_the_records() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &TIMED);
    bench.run(&mock.url(), &["--concurrency", "8", "--requests", "333"]).exits(0);
    let mut latencies = Latencies::default();
    let path = bench.path("out/journal/000000.takt");
    fold_journal(&mut takt_recorder::open_journal(&path).unwrap(), &mut latencies).unwrap();
    latencies.0.sort_unstable();
    let exact = report(&bench, &["--exact"]);
    let from_send = &exact["phases"][0]["latency_ms"]["from_send"];
    for (key, permille) in [("1", 10), ("50", 500), ("99", 990), ("99.9", 999)] {
        let rank = (333 * permille as usize).div_ceil(1000);
        let want = latencies.0[rank - 1] as f64 / 1e6;
        assert_eq!(from_send["p"][key].as_f64(), Some(want), "p{key}");
    }
    assert_eq!(exact["counted"], "values");
    // What is no percentile stays what it was.
    let live = bench.result();
    assert_eq!(exact["phases"][0]["issued"], live["phases"][0]["issued"]);
    assert_eq!(from_send["mean"], live["phases"][0]["latency_ms"]["from_send"]["mean"]);
    let text = bench.takt(&["report", "out", "--exact"]).exits(0).stdout;
    assert!(text.contains("percentiles: exact"), "{text}");
    std::fs::remove_dir_all(bench.path("out/journal")).unwrap();
    bench
        .takt(&["report", "out", "--exact"])
        .exits(2)
        .says("journal/000000.takt: the file is missing");
}
