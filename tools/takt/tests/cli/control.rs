//! The control socket of a run.

use serde_json::Value;

use crate::bench::{Bench, Mock, Running};

#[test]
fn the_status_of_several_reactors_has_the_latencies_of_all() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let url = mock.url();
    let args = ["run", "--url", &url, "--out", "out", "--concurrency", "4", "--duration", "600s"];
    let more = ["--set", "control=c.sock", "--set", "engine.reactors=2", "--model", "m"];
    let mut running = Running::start(&bench, &[&args[..], &more].concat());
    running.wait_for("phase performance");
    let status = loop {
        let status = bench.takt(&["stop", "c.sock", "--status"]).exits(0).stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        // With four requests in flight or just ended, both have begun.
        if status["completed"].as_u64() > Some(20) && status["in_flight"].as_u64() > Some(2) {
            break status;
        }
    };
    let (p50, p99) = (&status["latency_p50_ms"], &status["latency_p99_ms"]);
    assert!(p50.as_f64() >= Some(2.0) && p99.as_f64() >= p50.as_f64(), "{status}");
    running.kill();
}

#[test]
fn a_run_is_stopped_and_asked_how_it_stands_over_its_control_socket() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let url = mock.url();
    let args = ["run", "--url", &url, "--out", "out", "--concurrency", "2", "--duration", "600s"];
    let mut running = Running::start(&bench, &[&args[..], &["--set", "control=c.sock"]].concat());
    running.wait_for("phase performance");
    let issued = || {
        let status = bench.takt(&["stop", "c.sock", "--status"]).exits(0).stdout;
        let status: Value = serde_json::from_str(&status).unwrap();
        status["issued"].as_u64().unwrap_or(0)
    };
    while issued() < 10 {}
    assert_eq!(bench.takt(&["stop", "c.sock"]).exits(0).stdout, "stopping\n");
    running.done().exits(130).says("asked to stop");
    let result = bench.result();
    assert_eq!(result["state"], "interrupted");
    let phase = &result["phases"][0];
    assert_eq!(phase["issued"], phase["succeeded"], "what was in flight was waited for");
    assert!(!bench.path("c.sock").exists());
    bench.takt(&["stop", "c.sock"]).exits(3).says("is a run with `control: c.sock` going on?");
}
