//! Clocks outside the reactor: the same schedule, the same figures, and no process left over.

use serde_json::Value;

use crate::bench::{Bench, Mock};

/// When each request of the run in `out` was due, from the start of its phase.
fn schedule(bench: &Bench, out: &str) -> Vec<u64> {
    let printed = bench.takt(&["events", out]).exits(0).stdout;
    let events: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let start = events.iter().find(|event| event["event_type"] == "phase.started").unwrap();
    let start = start["timestamp_ns"].as_u64().unwrap();
    let issued = events.iter().filter(|event| event["event_type"] == "sample.issued");
    issued.map(|event| event["takt"]["scheduled_ns"].as_u64().unwrap() - start).collect()
}

/// A paced run into `out`.
fn paced(bench: &Bench, mock: &Mock, pacer: &str) -> Vec<u64> {
    let (url, set) = (mock.url(), format!("engine.pacer={pacer}"));
    let args = ["run", "--url", &url, "--out", pacer, "--rate", "500", "--requests", "300"];
    bench.takt(&[&args[..], &["--seed", "7", "--set", &set]].concat()).exits(0);
    let result: Value = serde_json::from_str(&bench.read(&format!("{pacer}/result.json"))).unwrap();
    let phase = &result["phases"][0];
    assert_eq!((&phase["succeeded"], &phase["ended_by"]), (&300.into(), &"requests".into()));
    assert_eq!(phase["lateness_us"]["count"], 300, "lateness is recorded whoever waits");
    schedule(bench, pacer)
}

#[test]
fn a_pacer_thread_sends_at_the_moments_that_the_reactor_would() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    assert_eq!(paced(&bench, &mock, "thread"), paced(&bench, &mock, "inline"));
}

#[test]
fn a_closed_loop_refuses_a_clock_that_cannot_see_completions() {
    let bench = Bench::new();
    let args = ["run", "--url", "http://127.0.0.1:1", "--concurrency", "2", "--requests", "5"];
    let done = bench.takt(&[&args[..], &["--set", "engine.pacer=thread"]].concat());
    done.exits(2).says("pattern `concurrency` sends when the reactor sees a completion");
}

#[cfg(feature = "zmq")]
mod process {
    use super::*;
    use crate::bench::Running;

    #[test]
    fn a_pacer_process_sends_at_the_moments_that_the_reactor_would() {
        let bench = Bench::new();
        let mock = Mock::start(&bench, &["--mode", "instant"]);
        assert_eq!(paced(&bench, &mock, "process"), paced(&bench, &mock, "inline"));
    }

    /// A long run and its pacer's process id.
    fn long(bench: &Bench, mock: &Mock) -> (Running, u32) {
        let url = mock.url();
        let args = ["run", "--url", &url, "--out", "out", "--rate", "50", "--duration", "600s"];
        let set = ["--set", "engine.pacer=process"];
        let mut running = Running::start(bench, &[&args[..], &set].concat());
        running.wait_for("phase performance");
        let [pacer] = running.children()[..] else { panic!("one process of its own") };
        (running, pacer)
    }

    #[test]
    fn a_run_whose_pacer_is_killed_fails_with_a_report() {
        let bench = Bench::new();
        let mock = Mock::quick(&bench);
        let (running, pacer) = long(&bench, &mock);
        crate::bench::kill(pacer);
        let done = running.done().exits(4).says("the pacer has ended").says("the pacer has gone");
        let result = bench.result();
        assert_eq!((&result["state"], &result["failed_by"]), (&"failed".into(), &"pacer".into()));
        // Nothing was wrong with the server or the way to it, and nothing says so.
        let report = bench.read("out/report.txt");
        for text in [&done.stderr, &done.stdout, &report] {
            assert!(!text.contains("connections gave up"), "{text}");
        }
    }

    #[test]
    fn a_pacer_ends_with_its_run_also_when_that_is_killed_or_stopped() {
        for (signal, code) in [("KILL", -1), ("INT", 130)] {
            let bench = Bench::new();
            let mock = Mock::quick(&bench);
            let (running, pacer) = long(&bench, &mock);
            running.signal(signal);
            running.done().exits(code);
            while std::fs::read_to_string(format!("/proc/{pacer}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z "))
            {
                std::thread::yield_now();
            }
        }
    }
}
