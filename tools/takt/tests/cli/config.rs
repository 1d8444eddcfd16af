//! Configuration files through the binary; what they may hold is tested where they are read.

use crate::bench::{Bench, Mock};

#[test]
fn k1_an_error_names_file_line_key_and_the_nearest_right_key() {
    let bench = Bench::new();
    bench.file("a.yaml", "endpoint:\n  url: http://127.0.0.1:1\n  modle: x\n");
    let done = bench.takt(&["run", "a.yaml"]).exits(2);
    let expected = "error: a.yaml:3: endpoint.modle: is not known; did you mean `model`?\n";
    assert_eq!(done.stderr, expected);
    assert_eq!(done.stdout, "");
}

#[test]
fn a_sweep_of_phases_gives_independent_results_and_flags_go_before_the_file() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    bench.file("q.csv", "question,answer\n00123,1\n\"a, b\",2\n");
    let phases = [1, 2, 4].map(|n| {
        let load = format!("load: {{pattern: concurrency, target_concurrency: {n}}}");
        format!(
            "  - {{name: warm_{n}, type: warmup, requests: 3, {load}}}\n  - {{name: perf_{n}, \
             requests: 1{n}, {load}}}\n"
        )
    });
    bench.file(
        "sweep.yaml",
        &format!(
            "name: sweep\nendpoint: {{url: '${{URL}}', model: wrong, stream: false}}\ndataset: \
             {{path: q.csv}}\nphases:\n{}",
            phases.concat()
        ),
    );
    let args = [
        "run",
        "sweep.yaml",
        "--model",
        "right",
        "--out",
        "out",
        "--set",
        "phases.perf_2.requests=7",
    ];
    let output = bench.command(&args).env("URL", mock.url()).output().unwrap();
    crate::bench::Done::from(output).exits(0);
    let result = bench.result();
    let counts: Vec<_> = result["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| (phase["name"].as_str().unwrap(), phase["issued"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        counts,
        [
            ("warm_1", 3),
            ("perf_1", 11),
            ("warm_2", 3),
            ("perf_2", 7),
            ("warm_4", 3),
            ("perf_4", 14)
        ]
    );
    assert_eq!(result["config"]["endpoint"]["model"], "right");
    assert_eq!(result["config"]["endpoint"]["stream"], false);
    assert_eq!(result["config"]["phases"][1]["dataset"]["format"], "csv");
}

#[test]
fn the_configuration_that_a_run_writes_runs_again() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = ["--concurrency", "2", "--requests", "5", "--extra-body", "{\"stop\": \"${x} $\"}"];
    bench.run(&mock.url(), &args).exits(0);
    bench.takt(&["run", "out/config.yaml", "--out", "again"]).exits(0);
    let again: serde_json::Value = serde_json::from_str(&bench.read("again/result.json")).unwrap();
    assert_eq!(bench.result()["config"], again["config"]);
    assert_eq!(again["config"]["endpoint"]["extra_body"]["stop"], "${x} $");
}

#[test]
fn load_flags_do_not_mix_with_the_phases_of_a_file() {
    let bench = Bench::new();
    bench.file(
        "a.yaml",
        "endpoint: {url: http://127.0.0.1:1}\nphases: [{name: a, requests: 1, load: \
         {pattern: max_throughput}}]\n",
    );
    for args in [["--rate", "5"], ["--requests", "5"], ["--warmup-requests", "5"]] {
        let all = [&["run", "a.yaml"][..], &args].concat();
        bench.takt(&all).exits(2).says("the file has phases of its own");
    }
}
