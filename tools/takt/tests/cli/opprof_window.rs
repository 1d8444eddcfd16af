//! `takt opprof window` on the simulated scheduler, and what is made of the traces.

use std::time::Duration;

use serde_json::Value;

use crate::bench::{Bench, Mock, Running};

/// A simulated scheduler with records and a profiler.
fn scheduler(bench: &Bench, more: &[&str]) -> Mock {
    let (records, traces) = (bench.path("records"), bench.path("kineto"));
    let (records, traces) = (records.display().to_string(), traces.display().to_string());
    let mut args = vec!["--mode", "scheduler", "--tokens", "uniform:8..40"];
    args.extend(["--opprof-dir", &records, "--profile-dir", &traces]);
    args.extend(more);
    Mock::start(bench, &args)
}

/// A load that goes on until it is killed.
fn load(bench: &Bench, mock: &Mock) -> Running {
    let url = mock.url();
    let args = ["run", "--url", &url, "--model", "m", "--out", "out", "--concurrency", "12"];
    let running = Running::start(bench, &[&args[..], &["--duration", "600s"]].concat());
    // Until steps are recorded, there is nothing to take a window of.
    let recorded = || {
        let records = std::fs::read_dir(bench.path("records")).into_iter().flatten();
        records.flatten().any(|entry| entry.metadata().is_ok_and(|found| found.len() > 10_000))
    };
    while !recorded() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running
}

fn window(bench: &Bench, mock: &Mock, more: &[&str]) -> crate::bench::Done {
    let url = mock.url();
    let args = ["opprof", "window", "--url", &url, "--traces", "kineto", "--records", "records"];
    bench.takt(&[&args[..], more].concat())
}

#[test]
fn windows_are_taken_when_the_batch_is_as_asked_and_calibrate_within_5_percent() {
    let bench = Bench::new();
    let mock = scheduler(&bench, &[]);
    let running = load(&bench, &mock);
    let done =
        window(&bench, &mock, &["--decode", "4..12", "--windows", "9", "--apart", "10ms"]).exits(0);
    assert!(
        done.stdout.contains("window 9: ") && done.stdout.contains("  rank 1: "),
        "{}",
        done.stdout
    );
    running.kill();
    assert_eq!(mock.stop(), 0);
    let manifest: Value = serde_json::from_str(&bench.read("kineto/windows.json")).unwrap();
    let windows = manifest["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 9);
    for window in windows {
        assert_eq!(
            (&window["seen"]["steps"], &window["problems"]),
            (&8.into(), &Value::Array(vec![]))
        );
        assert_eq!(window["server"]["info"]["config"]["tensor_parallel_size"], 2);
        assert_eq!(window["asked"]["decode"], serde_json::json!([4, 12]));
    }
    let json = ["--records", "records", "--format", "json"];
    let done = bench.takt(&[&["opprof", "attribute", "kineto"][..], &json].concat()).exits(0);
    let attributed: Value = serde_json::from_str(&done.stdout).unwrap();
    for window in attributed["windows"].as_array().unwrap() {
        assert_eq!(
            (&window["coverage"], &window["contradictions"]),
            (&1.0.into(), &Value::Array(vec![]))
        );
        assert_eq!(window["ranks"][1]["unclassified_share"], 0.0);
    }
    let done = bench.takt(&[&["opprof", "calibrate", "kineto"][..], &json].concat()).exits(0);
    let calibrated: Value = serde_json::from_str(&done.stdout).unwrap();
    let mape = calibrated["held_out"]["union"]["mape"].as_f64().unwrap();
    assert!(mape < 0.05, "{mape}");
    // The same windows, marked as those of a server without graphs.
    let taxonomy = bench.read("kineto/windows.json").replace("\"timing\"", "\"taxonomy\"");
    bench.file("kineto/windows.json", &taxonomy);
    bench
        .takt(&["opprof", "calibrate", "kineto", "--records", "records"])
        .exits(2)
        .says("of a taxonomy window");
    bench.takt(&["opprof", "attribute", "kineto", "--records", "records"]).exits(0);
}

#[test]
fn a_window_that_wrote_nothing_fails_with_the_remedy() {
    let bench = Bench::new();
    let mock = scheduler(&bench, &["--profile-warmup", "2"]);
    let running = load(&bench, &mock);
    let args = ["--windows", "2", "--apart", "10ms", "--written-within", "200ms"];
    let done = window(&bench, &mock, &args).exits(4);
    assert!(
        done.stdout.contains("window 2: ") && done.stdout.contains(", 0 traces"),
        "{}",
        done.stdout
    );
    let done = done.says("warning: the server's profiler has warmup_iterations above 0");
    done.says("window 2 does not count: the window wrote no trace").says("warmup_iterations 0");
    running.kill();
}

#[test]
fn a_window_over_no_step_does_not_count_and_neither_does_a_server_without_a_profiler() {
    let bench = Bench::new();
    let mock = scheduler(&bench, &[]);
    window(&bench, &mock, &["--steps-within", "10ms"]).exits(4).says("marks no step");
    bench.takt(&["opprof", "attribute", "kineto"]).exits(2).says("its window does not count");
    let plain = Mock::quick(&bench);
    window(&bench, &plain, &[]).exits(4).says("status 404: the server has no profiler");
    let args = ["--decode", "5..6", "--within", "10ms"];
    window(&bench, &mock, &args).exits(4).says("such steps did not come within 10ms");
    window(&bench, &mock, &["--decode", "6..5"])
        .exits(2)
        .says("the second number is the smaller one");
}

#[test]
fn an_interrupted_window_is_stopped_all_the_same() {
    let bench = Bench::new();
    // Windows that go on until they are stopped.
    let mock = scheduler(&bench, &["--profile-steps", "0"]);
    let running = load(&bench, &mock);
    let url = mock.url();
    let args = ["opprof", "window", "--url", &url, "--traces", "kineto", "--records", "records"];
    let mut long = Running::start(&bench, &[&args[..], &["--steps", "1000000"]].concat());
    long.wait_for("windows are to be taken");
    long.signal("INT");
    long.wait_for("the profiler is being stopped");
    let done = long.done();
    assert_eq!(done.code, 130, "{}", done.stderr);
    // It was stopped: the next one writes.
    window(&bench, &mock, &["--steps", "5"]).exits(0);
    running.kill();
}
