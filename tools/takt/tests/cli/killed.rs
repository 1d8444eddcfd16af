//! Runs that are killed at any moment: `takt report` gives what was recorded, and nothing else.
//!
//! The moment is a size of the journal, drawn between nothing and that of a whole run, so that a slow machine
//! tries the same as a fast one. `takt mock` writes down what it served: whatever is reported as answered
//! must be there.
//!
//! The long variant takes a minute or two: `cargo test -p takt --test cli -- --ignored e4_`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::bench::{Bench, Mock, Running};

const SERVER: [&str; 8] =
    ["--ttft", "exp:2ms", "--tpot", "200us", "--tokens", "uniform:1..4", "--truth", "truth.jsonl"];

/// A number drawn from `state` (SplitMix64).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(events: &[Value], word: &str) -> BTreeSet<String> {
    let of_type = events.iter().filter(|event| event["event_type"] == word);
    of_type.map(|event| event["sample_uuid"].as_str().unwrap().to_owned()).collect()
}

/// A run that was killed.
struct Killed {
    /// Completed requests that were recorded, all sessions have ids of their own.
    completed: BTreeSet<String>,
    issued: BTreeSet<String>,
    /// When the signal was sent, on the machine's monotonic clock.
    at_ns: u64,
}

/// Runs `requests` requests, kills the run when its journal has `bytes` bytes, and checks its report. The
/// run may have ended by itself before.
fn kill(bench: &Bench, url: &str, requests: &str, bytes: u64) -> Killed {
    let _ = std::fs::remove_dir_all(bench.path("out"));
    let args = ["run", "--url", url, "--concurrency", "64", "--requests", requests, "--out", "out"];
    let mut running = Running::start(bench, &[&args[..], &["--model", "m", "--quiet"]].concat());
    let journal = bench.path("out/journal/000000.takt");
    let large = || std::fs::metadata(&journal).is_ok_and(|file| file.len() >= bytes);
    while !large() && !running.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let at_ns = takt_net::now().as_nanos();
    running.kill();

    let report = bench.takt(&["report", "out", "--format", "json"]).exits(0);
    let result: Value = serde_json::from_str(&report.stdout).unwrap();
    let ended = bench.path("out/result.json").exists();
    assert!(ended || result["state"] == "killed" || result["state"] == "complete", "{result}");
    let events = lines(&bench.takt(&["events", "out"]).exits(0).stdout);
    let (issued, completed) = (ids(&events, "sample.issued"), ids(&events, "sample.complete"));
    let phase = &result["phases"][0];
    assert_eq!(phase["issued"].as_u64(), Some(issued.len() as u64), "reported is what is recorded");
    let done = ["succeeded", "failed", "unanswered"].map(|key| phase[key].as_u64().unwrap());
    assert_eq!(done.iter().sum::<u64>(), completed.len() as u64);
    assert!(completed.is_subset(&issued));
    Killed { completed, issued, at_ns }
}

/// Kills `kills` runs at random sizes of the journal. With `patience_ns`, what the server ended so long before
/// the kill must be recorded.
fn kills(kills: u64, requests: &str, seed: u64, patience_ns: Option<u64>) {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &SERVER);
    let whole = kill(&bench, &mock.url(), requests, u64::MAX);
    assert_eq!(whole.issued.len().to_string(), requests);
    let size = std::fs::metadata(bench.path("out/journal/000000.takt")).unwrap().len();
    let mut state = seed;
    let killed: Vec<Killed> =
        (0..kills).map(|_| kill(&bench, &mock.url(), requests, draw(&mut state) % size)).collect();
    assert!(killed.iter().any(|killed| killed.issued.len() < whole.issued.len()), "none was hit");
    assert_eq!(mock.stop(), 0);
    let truth: BTreeMap<String, u64> = lines(&bench.read("truth.jsonl"))
        .iter()
        .filter_map(|line| {
            Some((line["id"].as_str()?.to_owned(), line["ended_ns"].as_u64().unwrap_or(u64::MAX)))
        })
        .collect();
    for (place, killed) in killed.iter().enumerate() {
        for id in &killed.completed {
            assert!(truth.contains_key(id), "kill {place}: {id} was never served");
        }
        let Some(patience_ns) = patience_ns else { continue };
        let before = killed.at_ns.saturating_sub(patience_ns);
        let missing = killed
            .issued
            .iter()
            .filter(|id| !killed.completed.contains(*id))
            .filter(|id| truth.get(*id).is_some_and(|&ended| ended < before));
        assert_eq!(missing.count(), 0, "kill {place}: more than the last second is missing");
    }
}

#[test]
fn e4_a_run_killed_at_any_moment_is_reported_as_it_was_recorded() {
    kills(4, "2000", 7, None);
}

#[test]
#[ignore = "fifty runs of 20,000 requests: a minute or two of both cores"]
fn e4_fifty_kills_lose_at_most_the_last_second() {
    kills(50, "20000", 2026, Some(1_000_000_000));
}
