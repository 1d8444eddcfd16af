//! `takt run --opprof`: windows within a run, records collected, the page of the report.

use serde_json::Value;

use crate::bench::{Bench, Mock, Running};

fn scheduler(bench: &Bench, more: &[&str]) -> Mock {
    std::fs::create_dir_all(bench.path("kineto")).unwrap();
    let folder = |name: &str| bench.path(name).display().to_string();
    let (records, traces) = (folder("records"), folder("kineto"));
    let args = ["--mode", "scheduler", "--tokens", "uniform:4..16"];
    let dirs = ["--opprof-dir", &records, "--profile-dir", &traces];
    Mock::start(bench, &[&args[..], &dirs, more].concat())
}

const RECORDS: [&str; 2] = ["--opprof", "records"];
const TRACES: [&str; 2] = ["--opprof-traces", "kineto"];

/// A run with windows 20 ms apart that goes on.
fn started(bench: &Bench, mock: &Mock, more: &[&str]) -> Running {
    let url = mock.url();
    let load = ["run", "--url", &url, "--model", "m", "--out", "out", "--concurrency", "4"];
    let apart = ["--set", "opprof.apart=20ms"];
    Running::start(bench, &[&load[..], &apart, more, &RECORDS, &TRACES].concat())
}

#[test]
fn windows_are_taken_while_it_runs_and_what_overlaps_them_is_in_no_series() {
    let bench = Bench::new();
    let mock = scheduler(&bench, &[]);
    // Steps of an earlier load are none of this run's.
    let args = ["run", "--url", &mock.url(), "--model", "m", "--out", "before"];
    bench.takt(&[&args[..], &["--concurrency", "2", "--requests", "20"]].concat()).exits(0);
    let load = ["--concurrency", "8", "--duration", "4s", "--warmup-requests", "8"];
    let wish = ["--opprof-windows", "2", "--set", "opprof.decode=2..8"];
    let set = ["--set", "opprof.apart=200ms", "--set", "opprof.margin=20ms"];
    let run =
        bench.run(&mock.url(), &[&load[..], &RECORDS, &TRACES, &wish, &set].concat()).exits(0);
    assert_eq!(mock.stop(), 0);
    let result = bench.result();
    let side = &result["opprof"];
    assert_eq!(side["problems"], Value::Array(vec![]), "{side}");
    let windows = side["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 2);
    for window in windows {
        assert_eq!((&window["phase"], &window["steps"]), (&"performance".into(), &8.into()));
        assert_eq!(window["problems"], Value::Array(vec![]));
        assert_eq!(window["files"].as_array().unwrap().len(), 2, "one a rank");
        assert!(window["opened_ns"].as_u64() < window["closed_ns"].as_u64());
    }
    assert_eq!(side["server"]["info"]["config"]["tensor_parallel_size"], 2);
    let phase = &result["phases"][1];
    let count = |key: &str| phase[key].as_u64().unwrap();
    assert!(count("profiled") > 0, "{phase}");
    let latencies = phase["latency_ms"]["from_send"]["count"].as_u64().unwrap();
    assert!(latencies >= count("succeeded") - count("profiled") && latencies < count("succeeded"));
    // No request of the earlier run, and all of this one.
    let joined = &side["joined"];
    assert_eq!(joined["clocks"], "same");
    assert!(joined["steps"].as_u64().unwrap() <= joined["recorded"].as_u64().unwrap());
    assert!(joined["slices"].as_array().unwrap().iter().any(|row| row["profiled"] != 0.0));
    assert!(run.stdout.contains("what the server was doing"), "{}", run.stdout);
    assert!(run.stdout.contains("slowest to the first token"), "{}", run.stdout);
    assert!(run.stdout.contains(&format!("profiled {}", count("profiled"))), "{}", run.stdout);
    // The page is made from the folder again.
    assert_eq!(bench.takt(&["report", "out"]).exits(0).stdout, run.stdout);
    let json = bench.takt(&["report", "out", "--format", "json"]).exits(0).stdout;
    assert!(json == bench.read("out/result.json"), "{json}");
    // What was collected is sound and joins by itself; the manifest beside the traces has the windows.
    bench.takt(&["opprof", "check", "--part", "out/opprof"]).exits(0);
    bench.takt(&["opprof", "join", "out"]).exits(0);
    bench.takt(&["opprof", "attribute", "kineto", "--records", "out/opprof"]).exits(0);
    let events = bench.takt(&["events", "out", "--type", "window.opened"]).exits(0).stdout;
    assert_eq!(events.lines().count(), 2, "{events}");
}

#[test]
fn a_server_without_a_profiler_or_records_loses_nothing_but_the_page() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("records")).unwrap();
    std::fs::create_dir_all(bench.path("kineto")).unwrap();
    let mock = Mock::quick(&bench);
    let load = ["--concurrency", "2", "--requests", "30"];
    let run = bench.run(&mock.url(), &[&load[..], &RECORDS, &TRACES].concat()).exits(0);
    run.says("windows: /stop_profile: status 404: the server has no profiler")
        .says("records: the server wrote none");
    let result = bench.result();
    let problems = result["opprof"]["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(result["phases"][0]["succeeded"], 30);
    assert_eq!(result["phases"][0]["profiled"], 0);
    let reasons = result["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(|reason| reason["name"] != "profiled"), "{reasons:?}");
    assert!(result["phases"][0]["requests_per_s"].is_f64());
}

#[test]
fn windows_that_write_nothing_are_said_and_the_run_goes_on() {
    let bench = Bench::new();
    let mock = scheduler(&bench, &["--profile-warmup", "2"]);
    let load = ["--concurrency", "4", "--duration", "3s"];
    let set = ["--set", "opprof.apart=50ms", "--set", "opprof.written_within=200ms"];
    let windows = ["--opprof-windows", "2"];
    let run = bench.run(&mock.url(), &[&load[..], &RECORDS, &TRACES, &set, &windows].concat());
    run.exits(0)
        .says("warmup_iterations above 0")
        .says("does not count: the window wrote no trace");
    let result = bench.result();
    let second = &result["opprof"]["windows"][1];
    assert!(second["problems"][0].as_str().unwrap().contains("wrote no trace"), "{second}");
    assert!(result["phases"][0]["profiled"].as_u64().unwrap() > 0);
}

#[test]
fn a_run_that_ends_within_a_window_closes_the_profiler_and_keeps_what_it_has() {
    let bench = Bench::new();
    // Windows that go on until they are stopped, and a load that ends before.
    let mock = scheduler(&bench, &["--profile-steps", "0"]);
    let load = ["--concurrency", "4", "--duration", "600ms"];
    let set = ["--set", "opprof.apart=20ms", "--set", "opprof.steps=1000000"];
    bench.run(&mock.url(), &[&load[..], &RECORDS, &TRACES, &set].concat()).exits(0);
    let result = bench.result();
    let window = &result["opprof"]["windows"][0];
    assert!(window["opened_ns"].is_u64(), "{window}");
    assert!(window["files"].as_array().is_some_and(|files| files.len() == 2), "{window}");
    // The profiler was stopped: another window writes.
    let set = ["--set", "opprof.apart=20ms", "--set", "opprof.steps=3"];
    let args = ["run", "--url", &mock.url(), "--model", "m", "--out", "again"];
    let load = ["--concurrency", "4", "--duration", "2s"];
    bench.takt(&[&args[..], &load, &RECORDS, &TRACES, &set].concat()).exits(0);
    let again: Value = serde_json::from_str(&bench.read("again/result.json")).unwrap();
    assert_eq!(again["opprof"]["windows"][0]["problems"], Value::Array(vec![]));
}

#[test]
fn windows_that_a_phase_was_too_short_for_are_counted() {
    let bench = Bench::new();
    let mock = scheduler(&bench, &[]);
    let load = ["--concurrency", "4", "--duration", "1s", "--opprof-windows", "50"];
    bench
        .run(
            &mock.url(),
            &[&load[..], &RECORDS, &TRACES, &["--set", "opprof.apart=400ms"]].concat(),
        )
        .exits(0)
        .says("of 50 windows were begun while it sent requests");
    let side = &bench.result()["opprof"];
    let (windows, problems) = (side["windows"].as_array().unwrap(), side["problems"].to_string());
    let says = format!("phase performance: {} of 50 windows", windows.len());
    assert!(problems.contains(&says), "{problems}");
}

#[test]
fn e1_a_stop_ends_the_wait_for_traces_and_the_report_is_there() {
    let bench = Bench::new();
    // A profiler that writes in its first window alone.
    let mock = scheduler(&bench, &["--profile-warmup", "2"]);
    let more = ["--duration", "2s", "--opprof-windows", "2", "--set", "opprof.steps=4"];
    let mut running = started(&bench, &mock, &more);
    running.wait_for("waiting for the server's profiler");
    running.signal("INT");
    running.done().exits(0).says("waiting no longer");
    let result = bench.result();
    assert_eq!(result["state"], "complete");
    let problems = result["opprof"]["problems"].to_string();
    assert!(problems.contains("was not over when the report was written"), "{problems}");
    assert!(bench.path("out/report.txt").exists());
}

#[test]
fn e4_a_run_killed_within_a_window_reports_the_window() {
    let bench = Bench::new();
    let mock = scheduler(&bench, &["--profile-steps", "0"]);
    let more = ["--duration", "60s", "--set", "opprof.steps=1000000"];
    let running = started(&bench, &mock, &more);
    let saved =
        || std::fs::read_to_string(bench.path("out/opprof/server.json")).unwrap_or_default();
    while !saved().contains("\"phase\": \"performance\"") {
        std::thread::yield_now();
    }
    running.kill();
    let json = bench.takt(&["report", "out", "--format", "json"]).stdout;
    let side = &serde_json::from_str::<Value>(&json).unwrap()["opprof"];
    assert!(side["windows"][0]["opened_ns"].is_u64(), "{side}");
    assert_eq!(side["windows"][0]["closed_ns"], Value::Null);
    assert!(side["problems"].to_string().contains("was killed before its records"), "{side}");
}

#[test]
fn what_would_do_nothing_is_refused() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("records")).unwrap();
    let load = ["--requests", "1", "--concurrency", "1"];
    for (args, says) in [
        (&["--opprof", "none"][..], "none: cannot be read"),
        (&["--opprof", "records", "--opprof-traces", "none"], "none"),
        (&["--opprof-windows", "2"], "there are no windows without `traces`"),
        (&["--opprof-traces", ".", "--set", "opprof.decode=1..2"], "`records`, which is not given"),
        (
            &["--opprof", "records", "--opprof-traces", ".", "--set", "opprof.steady=2"],
            "begins at once",
        ),
        (
            &["--opprof", "records", "--opprof-traces", ".", "--set", "opprof.decode=4..2"],
            "smaller one",
        ),
        (&["--opprof", "records", "--set", "opprof.window=2"], "did you mean `windows`?"),
        (&["--opprof", "records", "--set", "journal=off"], "needs every request in the journal"),
        (&["--opprof", "records", "--url", "http://127.0.0.1:2"], "is of one server"),
        (&["--set", "opprof={}"], "needs `records`, `traces` or both"),
    ] {
        let mock = Mock::quick(&bench);
        bench.run(&mock.url(), &[&load[..], args].concat()).exits(2).says(says);
    }
}
