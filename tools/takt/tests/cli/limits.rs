//! Runs whose limits of time run out, each with its own words, and endpoints that die.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;

use crate::bench::{Bench, Done, Mock, Running, full};

const IDLE: &str = "limits.endpoint_response_idle_timeout=300ms";

/// Ten requests, two at a time, of which none succeeds; the phase of the result.
fn fails(bench: &Bench, url: &str, set: &[&str]) -> (Done, Value) {
    let mut args = vec!["--concurrency", "2", "--requests", "10"];
    for set in set {
        args.extend(["--set", set]);
    }
    let done = bench.run(url, &args).exits(4);
    let result = bench.result();
    (done, result)
}

#[test]
fn a_silent_endpoint_fails_the_run_and_it_says_what_it_waited_for() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    let (done, result) = fails(&bench, &mock.url(), &[IDLE]);
    let done = done.says("nothing came from the endpoint for 300ms");
    done.says("2 of phase performance");
    assert_eq!(
        (&result["state"], &result["failed_by"]),
        (&"failed".into(), &"endpoint_idle".into())
    );
    let phase = &result["phases"][0];
    assert_eq!((&phase["state"], &phase["ended_by"]), (&"failed".into(), &"failure".into()));
    assert_eq!((&phase["issued"], &phase["unanswered"]), (&2.into(), &2.into()));
    assert!(bench.read("out/config.yaml").contains("300ms"));
}

#[test]
fn comments_of_a_stream_are_no_progress() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = [0; 65_536];
                // The preflight's connection asks nothing.
                if stream.read(&mut request).unwrap_or(0) == 0 {
                    return;
                }
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                let mut sent = stream.write_all(head.as_bytes());
                while sent.is_ok() {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    sent = stream.write_all(b": ping\n\n");
                }
            });
        }
    });
    let (_, result) = fails(&bench, &url, &[IDLE]);
    assert_eq!(result["failed_by"], "endpoint_idle");
    assert_eq!(result["phases"][0]["unanswered"], 2);
}

#[test]
fn a_run_that_is_not_over_in_its_time_fails_with_its_figures() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "5ms", "--tokens", "1"]);
    let args = ["--concurrency", "2", "--requests", "1000000", "--set", "limits.run_timeout=700ms"];
    bench.run(&mock.url(), &args).exits(4).says("it was not over within 700ms");
    let result = bench.result();
    assert_eq!((&result["state"], &result["failed_by"]), (&"failed".into(), &"run_timeout".into()));
    let phase = &result["phases"][0];
    assert!(phase["succeeded"].as_u64().unwrap() > 0, "{phase}");
    assert!(phase["unanswered"].as_u64().unwrap() <= 2, "{phase}");
    let reasons = result["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(|reason| reason["name"] != "survivors"), "{reasons:?}");
}

#[test]
fn each_limit_of_a_request_is_a_failure_of_its_own_kind() {
    let silent = &["--ttft", "600s"][..];
    let stuck = &["--ttft", "1ms", "--tpot", "600s", "--tokens", "5"][..];
    for (server, limit, kind) in [
        (silent, "limits.first_byte_timeout=100ms", "first_byte_timeout"),
        (silent, "limits.request_timeout=100ms", "request_timeout"),
        (stuck, "limits.request_timeout=100ms", "request_timeout"),
    ] {
        let bench = Bench::new();
        let mock = Mock::start(&bench, server);
        // A stream would begin with the role at once.
        let stream = format!("endpoint.stream={}", server == stuck);
        let (_, result) = fails(&bench, &mock.url(), &[limit, &stream]);
        let phase = &result["phases"][0];
        assert_eq!(phase["errors"], serde_json::json!({ kind: 10 }), "{limit}");
        assert_eq!(result["state"], "complete");
    }
    let bench = Bench::new();
    // Somebody is there, and then nobody answers the door.
    let (url, _held, _listener) = full(1);
    let (_, result) = fails(&bench, &url, &["limits.connect_timeout=300ms"]);
    assert_eq!(result["phases"][0]["errors"], serde_json::json!({"connect_timeout": 10}));
}

/// A run under way against a server that dies then; gives its end.
fn server_dies(bench: &Bench, load: &[&str]) -> Done {
    let mock = Mock::quick(bench);
    let url = mock.url();
    let args = ["run", "--url", &url, "--out", "out", "--log-level", "info"];
    let mut running = Running::start(bench, &[&args[..], load].concat());
    running.wait_for("phase performance");
    // Until the journal holds answers.
    let journal = bench.path("out/journal/000000.takt");
    while std::fs::metadata(&journal).unwrap().len() < 8_000 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(mock);
    running.wait_for("first ");
    running.done()
}

#[test]
fn c6_a_closed_loop_whose_server_goes_away_ends_by_the_watchdog_without_a_storm() {
    let bench = Bench::new();
    let load = ["--concurrency", "4", "--requests", "1000000", "--set", IDLE];
    server_dies(&bench, &load).exits(4).says("nothing came from the endpoint");
    let phase = &bench.result()["phases"][0];
    // One attempt each 100 ms at the most often, after 1, 2, 4 … ms: of four who wait, and those under way.
    let refused = phase["errors"]["connect_refused"].as_u64().unwrap();
    assert!(refused <= 4 * 60, "{phase}");
    assert!(phase["succeeded"].as_u64().unwrap() > 0);
}

#[test]
fn c6_an_open_loop_whose_server_goes_away_keeps_its_schedule_and_ends_with_it() {
    let bench = Bench::new();
    let load = ["--rate", "200", "--arrivals", "constant", "--duration", "4s"];
    server_dies(&bench, &load).exits(0);
    let result = bench.result();
    let phase = &result["phases"][0];
    assert_eq!(phase["issued"], 799, "the arrival of 4 s belongs to the time after");
    let count = |key: &str| phase[key].as_u64().unwrap();
    assert_eq!(count("issued"), count("succeeded") + count("failed"));
    assert_eq!(result["verdict"]["status"], "invalid");
}

#[test]
fn e3_nothing_succeeds_although_somebody_was_there_at_first() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It takes the preflight's connection, and is gone.
    std::thread::spawn(move || drop(listener.accept()));
    let (done, result) = fails(&bench, &url, &[]);
    done.says("no request succeeded");
    let phase = &result["phases"][0];
    assert_eq!((&phase["failed"], &phase["succeeded"]), (&10.into(), &0.into()));
    assert!(phase["successful_per_s"].is_null());
}
