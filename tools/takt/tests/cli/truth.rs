//! What a run reports, held against what the built-in server wrote down of itself: both processes stamp by
//! the machine's one monotonic clock, so causes must come before effects, request by request.

use std::collections::BTreeMap;

use serde_json::Value;
use takt_record::{Completed, Fold, Outcome, Record, RequestId, fold_journal};

use crate::bench::{Bench, Mock};

/// The completions of a journal.
#[derive(Default)]
struct Completions(Vec<Completed>);

impl Fold for Completions {
    fn fold(&mut self, record: &Record<'_>) {
        if let Record::Completed(completed) = record {
            self.0.push(*completed);
        }
    }
}

/// The server's lines by request id.
pub(crate) fn truth(bench: &Bench) -> BTreeMap<String, Value> {
    let text = bench.read("truth.jsonl");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| Some((line["id"].as_str()?.to_owned(), line))).collect()
}

fn check(stream: &str) {
    let bench = Bench::new();
    let timed = ["--ttft", "exp:4ms", "--tpot", "uniform:1ms..3ms", "--tokens", "uniform:1..9"];
    let mut args = timed.to_vec();
    args.extend(["--truth", "truth.jsonl"]);
    let mock = Mock::start(&bench, &args);
    bench.run(&mock.url(), &["--rate", "200", "--requests", "150", stream]).exits(0);
    assert_eq!(mock.stop(), 0);

    let result = bench.result();
    let session = u128::from_str_radix(result["session_id"].as_str().unwrap(), 16).unwrap();
    let truth = truth(&bench);
    let mut completions = Completions::default();
    let journal = bench.path("out/journal/000000.takt");
    fold_journal(&mut takt_recorder::open_journal(&journal).unwrap(), &mut completions).unwrap();
    assert_eq!(completions.0.len(), 150);
    let mut ttft_ns = Vec::new();
    for done in &completions.0 {
        assert_eq!(done.outcome, Outcome::Ok);
        // A session's ids are keyed by the low half of its number.
        let id = RequestId::new(session as u64, done.key).to_string();
        let server = &truth[&id];
        let at = |key: &str| server[key].as_u64().unwrap_or_else(|| panic!("{key} of {server}"));
        let sent = done.times.sent.unwrap().as_nanos();
        assert!(sent <= at("arrived_ns"), "{id} came before it was sent");
        assert_eq!(u64::from(done.tokens.output.unwrap()), at("tokens"), "{id}");
        let (first, last) = (done.times.first_token, done.times.last_token);
        if let (Some(first), Some(last)) = (first, last) {
            assert!(at("first_planned_ns") <= at("first_written_ns"), "{server}");
            assert!(at("first_written_ns") <= first.as_nanos(), "{id}: read before written");
            assert!(at("last_written_ns") <= last.as_nanos(), "{id}: read before written");
            ttft_ns.push(first.as_nanos() - sent);
        }
        assert!(at("ended_ns") <= done.times.end.as_nanos(), "{id} ended before its end");
    }
    // The report says of these requests what their records say.
    let reported = &result["phases"][0]["ttft_ms"]["from_send"];
    if stream == "--stream" {
        assert_eq!(ttft_ns.len(), 150);
        let mean_ms = ttft_ns.iter().sum::<u64>() as f64 / 150.0 / 1e6;
        assert!(
            (reported["mean"].as_f64().unwrap() - mean_ms).abs() < 1e-6,
            "{reported}, {mean_ms}"
        );
    } else {
        assert!(ttft_ns.is_empty() && reported.is_null(), "a whole answer has no first token");
    }
}

#[test]
fn a_streamed_run_agrees_with_the_server_request_by_request() {
    check("--stream");
}

#[test]
fn a_run_that_does_not_stream_agrees_with_the_server_request_by_request() {
    check("--no-stream");
}
