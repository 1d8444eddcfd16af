//! Each exit code, through the binary.
//!
//! | code | when | tests |
//! | --- | --- | --- |
//! | 0 | done | `code_0_…` |
//! | 1 | internal: the disk or the terminal at the end of a run | `code_1_…` |
//! | 2 | wrong input | `code_2_…` |
//! | 3 | endpoint unreachable, or set-up failed | `code_3_…` |
//! | 4 | the run failed: nothing succeeded | `code_4_…` |
//! | 5 | not valid, or an objective missed, with `--strict` | `code_5_…` |
//! | 130 | interrupted | `code_130_…` |

use std::fs::OpenOptions;

use crate::bench::{Bench, Done, Mock, Running};

#[test]
fn code_0_all_done() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    bench.run(&mock.url(), &["--concurrency", "2", "--requests", "20"]).exits(0);
    assert_eq!(bench.result()["phases"][0]["succeeded"], 20);
}

#[test]
fn code_1_the_report_cannot_be_printed_and_is_in_the_folder_all_the_same() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "2", "--requests", "9", "--out", "out"];
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = bench.command(&args).stdout(full).output().unwrap();
    Done::from(output).exits(1).says("stdout cannot be written to");
    assert_eq!(bench.result()["state"], "complete");
}

#[test]
fn code_1_the_folder_is_gone_at_the_end_and_the_report_is_printed_all_the_same() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "400ms", "--tokens", "1"]);
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "2", "--requests", "4", "--out", "out"];
    let mut running = Running::start(&bench, &args);
    running.wait_for("phase performance");
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let done = running.done().exits(1).says("result.json");
    assert!(done.stdout.contains("succeeded 4"), "{}", done.stdout);
}

#[test]
fn code_2_wrong_input_and_nothing_is_sent() {
    let bench = Bench::new();
    bench.file("bad.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": 7}\n");
    bench.file("empty.jsonl", "");
    let url = "http://127.0.0.1:1";
    for (args, says) in [
        (&["--rate", "5", "--concurrency", "3"][..], "cannot be used with"),
        (&["--requests", "5"], "one of them is required"),
        (&[], "--rate, --replay, --concurrency or --max-throughput"),
        (&["--rate", "5"], "says not when to stop"),
        (&["--rate=0", "--requests", "1"], "must be a number above 0"),
        (&["--rate=nan", "--requests", "1"], "must be a number"),
        (&["--rate", "5", "--duration", "5"], "needs a unit"),
        (&["--rate", "5", "--dataset", "none.jsonl"], "none.jsonl: cannot be opened"),
        (&["--rate", "5", "--dataset", "bad.jsonl"], "bad.jsonl:2: "),
        (&["--rate", "5", "--dataset", "empty.jsonl"], "empty"),
        (&["--rate", "5", "--requests", "1", "--api", "grpc"], "`grpc` is not known"),
        (&["--rate", "5", "--requests", "1", "--header", "X"], "NAME: VALUE"),
        (&["--rate", "5", "--requests", "1", "--header", "Content-Length: 3"], "set by takt"),
        (&["--rate", "5", "--requests", "1", "--extra-body", "{"], "no JSON object"),
        (&["--rate", "5", "--requests", "1", "--extra-body", "{\"stream\": false}"], "--no-stream"),
        (&["--rate", "5", "--requests", "1", "--api-key-env", "TAKT_NO_SUCH"], "is not set"),
        (&["--rate", "5", "--requests", "1", "--set", "engine.wiat=spin"], "did you mean `wait`?"),
        (&["--concurrency", "5", "--arrivals", "constant"], "--rate"),
        (&["none.yaml"], "none.yaml: cannot be read"),
        (&["--sol", "x"], "unexpected argument"),
        (&["--rate", "5", "--requests", "1", "--slo", "ttft_ms"], "METRIC=MS"),
        (&["--rate", "-1", "--requests", "1"], "--rate: -1 is below zero"),
        (&["--rate=-1", "--requests", "1"], "must be a number above 0"),
        (&["--rate", "5", "--requests", "1", "--slo", "tfft_ms=5"], "did you mean `ttft_ms`?"),
        (&["--rate", "5", "--requests", "1", "--slo", "ttft_ms.p98=5"], "slo.ttft_ms.p98"),
        (&["--rate", "5", "--requests", "1", "--no-stream", "--slo", "ttft_ms=5"], "has no effect"),
    ] {
        bench.run(url, args).exits(2).says(says);
    }
    assert!(!bench.path("out").exists(), "nothing is made for what cannot run");
}

#[test]
fn code_2_a_core_that_is_not_there() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let reactor = ["--concurrency", "1", "--requests", "1", "--core", "4000"];
    let pacer = ["--set", "engine.pacer=thread", "--set", "engine.pacer_core=4000"];
    let pacer = [&["--rate", "5", "--requests", "1"][..], &pacer].concat();
    for (args, key) in [(&reactor[..], "engine.core"), (&pacer[..], "engine.pacer_core")] {
        let says = format!("{key}: core 4000 is not available");
        bench.run(&mock.url(), args).exits(2).says(&says);
        assert!(!bench.path("out").exists(), "nothing is made for what cannot run");
    }
}

#[test]
fn code_3_nobody_listens() {
    let bench = Bench::new();
    let args = ["--concurrency", "1", "--requests", "1"];
    bench.run("http://127.0.0.1:1", &args).exits(3).says("cannot be reached").says("127.0.0.1:1");
    bench.run("http://no-such-host.invalid", &args).exits(3).says("no-such-host.invalid");
    bench.run("unix:/no/such/socket", &args).exits(3).says("cannot be reached");
}

#[test]
fn e3_code_4_every_request_fails() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--errors", "503:1"]);
    let args = ["--concurrency", "2", "--requests", "10"];
    bench.run(&mock.url(), &args).exits(4).says("no request succeeded").says("first http_status");
    let phase = &bench.result()["phases"][0];
    assert_eq!((&phase["failed"], &phase["errors"]["http_status"]), (&10.into(), &10.into()));
    assert!(phase["successful_per_s"].is_null(), "no rate of success: {phase}");
}

#[test]
fn code_5_a_run_that_is_not_valid_with_strict_and_0_without() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "1ms", "--tokens", "1", "--errors", "503:0.5"]);
    let args = ["--concurrency", "2", "--requests", "100"];
    bench.run(&mock.url(), &args).exits(0);
    assert_eq!(bench.result()["verdict"]["status"], "invalid");
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let strict = [&args[..], &["--strict"]].concat();
    let done = bench.run(&mock.url(), &strict).exits(5);
    assert!(done.stdout.contains("verdict: invalid"));
}

#[test]
fn code_5_an_objective_that_is_missed_with_strict_and_0_without() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "30ms", "--tokens", "1"]);
    let args = ["--concurrency", "2", "--requests", "8", "--slo", "ttft_ms.p99=1"];
    let done = bench.run(&mock.url(), &args).exits(0).says("SLO missed: ttft_ms p99");
    assert!(done.stdout.contains("MISSED"), "{}", done.stdout);
    let goodput = &bench.result()["phases"][0]["goodput"];
    assert_eq!((&goodput["share"], &goodput["gates"][0]["met"]), (&0.0.into(), &false.into()));
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let strict = [&args[..], &["--strict"]].concat();
    bench.run(&mock.url(), &strict).exits(5);
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let lenient = ["--concurrency", "2", "--requests", "8", "--slo", "ttft_ms.p99=60000"];
    let done = bench.run(&mock.url(), &lenient).exits(0);
    assert!(done.stdout.contains("kept") && !done.stderr.contains("missed"), "{}", done.stderr);
}

#[test]
fn code_130_a_signal_stops_the_run() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "2", "--duration", "600s", "--out", "out"];
    let mut running = Running::start(&bench, &args);
    running.wait_for("phase performance");
    running.signal("INT");
    running.done().exits(130);
    assert_eq!(bench.result()["state"], "interrupted");
}
