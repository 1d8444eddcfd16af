//! `takt opprof …` and `takt compare` on files of real servers.

use std::path::{Path, PathBuf};

use crate::bench::{Bench, Mock};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../opprof/tests/fixtures");
    folder.join(name).display().to_string()
}

#[test]
fn real_records_pass_the_check_and_broken_ones_are_named() {
    let bench = Bench::new();
    let real = fixture("vllm_cpu_310_steps.jsonl.gz");
    let done = bench.takt(&["opprof", "check", &real]).exits(0);
    assert!(done.stdout.contains("310 steps (309 ran the model)"), "{}", done.stdout);
    assert!(
        done.stdout.ends_with("OK: 310 steps in 1 files, every check holds\n"),
        "{}",
        done.stdout
    );
    let records = bench.path("records");
    std::fs::create_dir(&records).unwrap();
    std::fs::copy(&real, records.join("opprof-v1-dp0-pid1-1.jsonl.gz")).unwrap();
    bench.takt(&["opprof", "check", "records"]).exits(0);
    bench.file("records/broken.jsonl", "{\"schema\":1}\n");
    let done = bench.takt(&["opprof", "check", "records"]).exits(5);
    let says = "records/broken.jsonl: line 1: engine_id: missing, expected a value";
    assert!(done.stdout.contains(says), "{}", done.stdout);
    assert!(done.stdout.contains("BROKEN: 1 failed checks in 1 of 2 files"), "{}", done.stdout);
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.takt(&["opprof", "check", "empty"]).exits(2).says("holds no file that ends in .jsonl");
}

#[test]
fn noisy_runs_are_inconclusive() {
    let bench = Bench::new();
    let done = bench.takt(&["opprof", "gate", &fixture("gate_runs.jsonl")]).exits(6);
    assert!(done.stdout.starts_with("INCONCLUSIVE: 6 pairs"), "{}", done.stdout);
    bench.file(
        "few.jsonl",
        "{\"pair\":1,\"arm\":\"off\",\"thr\":1}\n{\"pair\":1,\"arm\":\"on\",\"thr\":1}\n",
    );
    bench.takt(&["opprof", "gate", "few.jsonl"]).exits(2).says("1 pairs: too few to judge by");
}

#[test]
fn a_trace_is_attributed_and_one_of_a_cpu_says_what_is_missing() {
    let bench = Bench::new();
    let real = fixture("tracelens_vllm_decode_full_graph.json.gz");
    let done = bench.takt(&["opprof", "attribute", &real]).exits(0);
    for says in
        ["1 steps on 1 ranks (0)", "expert GEMM", "attention", "covered (union)", "0 of no step"]
    {
        assert!(done.stdout.contains(says), "{says} is not in:\n{}", done.stdout);
    }
    let cpu = fixture("vllm_cpu_window_1.pt.trace.json.gz");
    let done = bench.takt(&["opprof", "attribute", &cpu]).exits(2).says("no kernels to attribute");
    assert!(done.stdout.contains("Attribution needs a trace of a GPU"), "{}", done.stdout);
    bench.takt(&["opprof", "calibrate", &real]).exits(2).says("--records DIR");
}

#[test]
fn routes_are_counted() {
    let bench = Bench::new();
    let answer = fixture("routed_experts_response.json");
    let done = bench.takt(&["opprof", "experts", &answer, "--experts", "8"]).exits(0);
    assert!(done.stdout.starts_with("1 requests, 14 tokens, 2 layers"), "{}", done.stdout);
    let npy = fixture("routes_tiny.npy");
    bench.takt(&["opprof", "experts", &npy, "--experts", "4"]).exits(2).says("expert 7 in layer 0");
}

/// A run of the built-in server in a folder of its own.
fn run(bench: &Bench, mock: &Mock, name: &str) -> PathBuf {
    let url = mock.url();
    let load = ["--concurrency", "2", "--requests", "40", "--quiet"];
    let mut args = vec!["run", "--url", &url, "--model", "m", "--out", name];
    args.extend(load);
    bench.takt(&args).exits(0);
    bench.path(name)
}

#[test]
fn runs_are_compared_gated_and_joined() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    for name in ["a", "b"] {
        run(&bench, &mock, name);
    }
    let done = bench.takt(&["compare", "a", "b"]).exits(0);
    for says in ["A: a", "performance: B against A", "throughput", "TTFT p95"] {
        assert!(done.stdout.contains(says), "{says} is not in:\n{}", done.stdout);
    }
    bench.takt(&["compare", "a", "b", "a"]).exits(2).says("each A needs its B");
    bench
        .takt(&["opprof", "gate", "--off", "a", "--on", "b"])
        .exits(2)
        .says("1 pairs: too few to judge by");
    let steps = fixture("vllm_cpu_310_steps.jsonl.gz");
    bench
        .takt(&["opprof", "join", "a", "--records", &steps])
        .exits(2)
        .says("no step record lies within the time of the run");
    bench.takt(&["opprof", "join", "a"]).exits(2).says("has no records of its own");
}

#[test]
fn a_run_is_joined_with_records_of_its_time() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    run(&bench, &mock, "a");
    let result = std::fs::read_to_string(bench.path("a/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    let (start, end) =
        (result["start_time_ns"].as_u64().unwrap(), result["end_time_ns"].as_u64().unwrap());
    let anchor = takt_net::anchor();
    let wall_minus_mono = anchor.wall_ns - anchor.mono.as_nanos();
    // Steps of 1 ms from before the run to after it, written as a server's recorder would.
    let mut text = Vec::new();
    let first = include_str!("../../../opprof/tests/fixtures/one_step.jsonl");
    let takt_record::StepLine::Record(model) =
        takt_record::step_line(first.trim_end().as_bytes()).unwrap()
    else {
        panic!("a record")
    };
    let mut at = start.saturating_sub(50_000_000);
    let mut index = 0;
    while at < end {
        let mut step = model.clone();
        step.step_index = index;
        step.submit_mono_ns = at;
        step.complete_mono_ns = at + 900_000;
        step.submit_wall_ns = at + wall_minus_mono;
        step.write_line(&mut text);
        index += 1;
        at += 1_000_000;
    }
    std::fs::create_dir(bench.path("a/opprof")).unwrap();
    std::fs::write(bench.path("a/opprof/opprof-v1-dp0-pid1-1.jsonl"), &text).unwrap();
    bench.takt(&["opprof", "check", "a/opprof"]).exits(0);
    let done = bench.takt(&["opprof", "join", "a", "--slice", "50ms"]).exits(0);
    for says in ["by the monotonic clock of the one machine", "slowest to the first token", "90 %"]
    {
        assert!(done.stdout.contains(says), "{says} is not in:\n{}", done.stdout);
    }
}

#[test]
fn a_gate_runs_its_pairs_against_servers_that_it_starts_and_stops() {
    let bench = Bench::new();
    // The port must be known beforehand: one that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let takt = env!("CARGO_BIN_EXE_takt");
    let server = format!(
        "exec {takt} mock --listen 127.0.0.1:{port} --ttft 2ms --tpot uniform:500us..1ms --tokens 3"
    );
    bench.file(
        "load.yaml",
        &format!(
            "endpoint: {{url: 'http://127.0.0.1:{port}', model: m}}\n\
             phases:\n  - {{name: p, type: performance, requests: 40, \
             load: {{pattern: concurrency, target_concurrency: 2}}}}\n"
        ),
    );
    let mut args = vec!["opprof", "gate", "--run", "load.yaml", "--out", "gate"];
    args.extend(["--off-server", &server, "--on-server", &server, "--limit", "100"]);
    let done = bench.takt(&args);
    // What the verdict is depends on the machine; that there is one does not.
    assert!([0, 5, 6].contains(&done.code), "{}\n{}", done.stdout, done.stderr);
    assert!(done.stdout.contains(": 6 pairs, limit 100.000 %"), "{}", done.stdout);
    assert!(done.stdout.contains("CPU s a run"), "{}", done.stdout);
    for name in ["pair1-off", "pair1-on", "pair6-on", "pair6-off"] {
        assert!(bench.path("gate").join(name).join("result.json").is_file(), "{name}");
    }
    bench.takt(&args).exits(2).says("pair1-off: is there already");
    let args = ["opprof", "gate", "--run", "load.yaml", "--out", "other", "--off-server", "exit 7"];
    bench
        .takt(&[&args[..], &["--on-server", "true"]].concat())
        .exits(2)
        .says("the server ended with exit status: 7 before it was ready");
}

#[test]
fn a_simulated_scheduler_writes_records_that_hold_and_join_with_a_run() {
    let bench = Bench::new();
    let records = bench.path("records").display().to_string();
    let args =
        ["--mode", "scheduler", "--tokens", "8", "--kv-blocks", "256", "--opprof-dir", &records];
    let mock = Mock::start(&bench, &args);
    bench.run(&mock.url(), &["--concurrency", "8", "--requests", "64"]).exits(0);
    assert_eq!(mock.stop(), 0);
    let done = bench.takt(&["opprof", "check", "records"]).exits(0);
    assert!(done.stdout.contains("ends with its footer\nOK:"), "{}", done.stdout);
    let done = bench.takt(&["opprof", "join", "out", "--records", "records"]).exits(0);
    assert!(done.stdout.contains("joined by the monotonic clock"), "{}", done.stdout);
    let relative = ["mock", "--mode", "scheduler", "--opprof-dir", "records"];
    bench.takt(&relative).exits(3).says("records: is relative; give an absolute path");
}

#[test]
fn a_run_records_the_turns_of_its_own_reactor_when_it_is_asked_to() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let turns = bench.path("turns").display().to_string();
    let load = ["--concurrency", "4", "--requests", "100"];
    bench.run(&mock.url(), &[&load[..], &["--turn-records", &turns]].concat()).exits(0);
    let done = bench.takt(&["opprof", "check", "turns"]).exits(0);
    assert!(done.stdout.contains("ends with its footer\nOK:"), "{}", done.stdout);
    let done = bench.takt(&["opprof", "join", "out", "--records", "turns"]).exits(0);
    assert!(done.stdout.contains("joined by the monotonic clock"), "{}", done.stdout);
    let url = mock.url();
    let args = ["run", "--url", &url, "--requests", "1", "--out", "b", "--concurrency", "1"];
    let args = [&args[..], &["--model", "m", "--turn-records", "turns"]].concat();
    bench.takt(&args).exits(3).says("--turn-records: turns: is relative");
    assert!(!bench.path("b").exists());
}

#[test]
fn the_demo_shows_the_chain_from_the_load_to_the_gate() {
    let bench = Bench::new();
    let done = bench.takt(&["opprof", "demo", "--small", "--out", "demo"]).exits(0);
    for says in [
        "window 6: ",
        "every check holds",
        "on the slowest rank",
        "steps lie within the run",
        "6 pairs, limit 3.000 %",
    ] {
        assert!(done.stdout.contains(says), "`{says}` is not in:\n{}", done.stdout);
    }
    // Each command is shown as it was given, and the gate's answers were the same.
    assert!(done.stdout.contains("$ takt opprof calibrate kineto --records records"));
    assert!(!done.stdout.contains("not checked: same outputs"), "{}", done.stdout);
    bench.takt(&["opprof", "demo", "--out", "demo"]).exits(3).says("is there already");
}
