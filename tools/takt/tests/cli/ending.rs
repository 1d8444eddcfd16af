//! Runs that end before their time: signals, drains that run out, a process that is killed.

use crate::bench::{Bench, Mock, Running};

/// A run of many slow requests, when its first phase has begun.
fn slow(bench: &Bench, mock: &Mock, rest: &[&str]) -> Running {
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "4", "--requests", "100000", "--out", "out"];
    let mut running = Running::start(bench, &[&args[..], rest].concat());
    running.wait_for("phase performance");
    running
}

#[test]
fn e1_one_signal_drains_writes_the_report_and_exits_130() {
    for name in ["INT", "TERM"] {
        let bench = Bench::new();
        let mock = Mock::start(&bench, &["--ttft", "20ms", "--tpot", "1ms", "--tokens", "4"]);
        let running = slow(&bench, &mock, &[]);
        std::thread::sleep(std::time::Duration::from_millis(300));
        running.signal(name);
        let done = running.done().exits(130).says("stopping");
        assert!(done.stdout.contains("INCOMPLETE: interrupted"), "{}", done.stdout);
        let result = bench.result();
        assert_eq!((&result["state"], &result["complete"]), (&"interrupted".into(), &false.into()));
        let phase = &result["phases"][0];
        assert_eq!(phase["state"], "interrupted");
        assert_eq!(phase["issued"], phase["succeeded"], "what was in flight was waited for");
    }
}

#[test]
fn e1_a_second_signal_gives_up_what_is_in_flight() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    let mut running = slow(&bench, &mock, &[]);
    running.signal("INT");
    running.wait_for("stopping");
    running.signal("INT");
    running.done().exits(130).says("giving up what is in flight");
    let phase = &bench.result()["phases"][0];
    assert_eq!((&phase["issued"], &phase["unanswered"]), (&4.into(), &4.into()));
}

#[test]
fn e2_a_request_that_is_never_answered_ends_with_the_drain() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    bench.file(
        "drain.yaml",
        &format!(
            "endpoint: {{url: '{}', model: m}}\nphases:\n  - {{name: p, requests: 2, \
             drain_timeout: 100ms, load: {{pattern: concurrency, target_concurrency: 2}}}}\n",
            mock.url()
        ),
    );
    bench.takt(&["run", "drain.yaml", "--out", "out"]).exits(4);
    let phase = &bench.result()["phases"][0];
    assert_eq!((&phase["issued"], &phase["unanswered"]), (&2.into(), &2.into()));
    assert_eq!((&phase["succeeded"], &phase["failed"]), (&0.into(), &0.into()));
}

#[test]
fn e4_a_run_that_was_killed_is_reported_from_its_journal() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let running = slow(&bench, &mock, &[]);
    // Until the journal holds more than its head and the first few requests.
    let journal = bench.path("out/journal/000000.takt");
    while std::fs::metadata(&journal).unwrap().len() < 30_000 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running.signal("KILL");
    running.done().exits(-1);
    assert!(bench.path("out/config.yaml").exists() && !bench.path("out/result.json").exists());
    let done = bench.takt(&["report", "out", "--format", "json"]).exits(0);
    let result: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&result["state"], &result["complete"]), (&"killed".into(), &false.into()));
    assert!(result["phases"][0]["succeeded"].as_u64().unwrap() > 0);

    // At any byte after the head: what is whole is reported, and what is left out is said.
    let bytes = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &bytes[..bytes.len() - 3]).unwrap();
    bench.takt(&["report", "out"]).exits(0).says("the file ends inside a block");
}
