//! `takt mock` as a program.

use crate::bench::{Bench, Mock};

#[test]
fn a_signal_ends_it_with_0_and_its_truth_is_whole() {
    let bench = Bench::new();
    let mock = Mock::start(
        &bench,
        &[
            "--ttft",
            "1ms",
            "--tpot",
            "1ms",
            "--tokens",
            "3",
            "--truth",
            "truth.jsonl",
            "--truth-events",
        ],
    );
    bench.run(&mock.url(), &["--concurrency", "4", "--requests", "40"]).exits(0);
    assert_eq!(mock.stop(), 0);
    let truth = bench.read("truth.jsonl");
    let lines: Vec<serde_json::Value> =
        truth.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let generated = lines.iter().filter(|line| line["tokens"] == 3);
    assert_eq!(generated.clone().count(), 40, "{truth}");
    for line in generated {
        assert_eq!(line["event_stamps"].as_array().unwrap().len(), 3, "{line}");
    }
}

#[test]
fn what_the_mode_does_not_use_is_refused() {
    let bench = Bench::new();
    let mock = ["mock", "--listen", "127.0.0.1:0"];
    for (args, says) in [
        (&["--mode", "instant", "--ttft", "5ms"][..], "--ttft: has no effect with --mode instant"),
        (&["--mode", "scheduler", "--ttft", "5ms"], "--ttft: has no effect with --mode scheduler"),
        (&["--kv-blocks", "5"], "--kv-blocks: has an effect with --mode scheduler only"),
        (&["--mode", "scheduler", "--cost", "stop=1ms"], "there is no part `stop`"),
        (
            &["--mode", "scheduler", "--kv-blocks", "5", "--context-max", "81"],
            "the cache holds 80 tokens, fewer than the longest context of 81",
        ),
        (&["--mode", "instant", "--tokens", "uniform:1..3"], "answers of one length"),
        (&["--errors", "500:0.9", "--errors", "429:0.9"], "must lie in 0 to 1"),
        (&["--ttft", "soon"], "--ttft"),
        (&["--truth-events"], "--truth"),
        (&["--mode", "unfriendly"], "hostile"),
    ] {
        bench.takt(&[&mock[..], args].concat()).exits(2).says(says);
    }
}

#[test]
fn a_port_that_is_taken_is_a_failed_set_up() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let taken = mock.address.to_string();
    bench.takt(&["mock", "--listen", &taken]).exits(3).says(&taken);
}
