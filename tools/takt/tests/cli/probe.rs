//! `takt probe`: what it sees of servers of every kind, and how it ends.

use serde_json::Value;

use crate::bench::{Bench, Done, Mock, answer, serve};

const KEY: &str = "sk-hunter2-0123456789";

#[test]
fn a_probe_lists_models_asks_for_whole_and_streamed_answers_and_keeps_the_connection() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let done = bench.takt(&["probe", "--url", &mock.url(), "--requests", "2"]).exits(0);
    for says in [
        "models: mock; mock is used",
        "whole",
        "streamed",
        "4 out",
        "kept, used again 3 times",
        "3 of 3",
    ] {
        assert!(done.stdout.contains(says), "`{says}` is not in:\n{}", done.stdout);
    }
}

#[test]
fn the_json_of_a_probe_has_what_was_seen_and_null_for_what_was_not() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args =
        ["probe", "--url", &mock.url(), "--model", "m", "--requests", "1", "--format", "json"];
    let done = bench.takt(&args).exits(0);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let endpoint = &json["endpoints"][0];
    assert!(endpoint["models"].is_null(), "nobody asked: {endpoint}");
    let [whole, streamed] = &endpoint["requests"].as_array().unwrap()[..] else { panic!("{json}") };
    assert!(whole["first_token_ms"].is_null() && whole["output_tokens"] == 4, "{whole}");
    assert!(streamed["first_token_ms"].as_f64().unwrap() > 0.0, "{streamed}");
    assert_eq!((&streamed["reused"], &streamed["status"]), (&true.into(), &200.into()));
}

#[test]
fn code_4_a_request_that_fails_is_told_in_the_server_s_words_without_the_key() {
    let bench = Bench::new();
    let url = serve(|request| {
        answer("401 Unauthorized", "Content-Type: text/plain\r\n", &format!("no: {request}"))
    });
    let args = ["probe", "--url", &url, "--model", "m", "--api-key-env", "KEY"];
    let done = Done::from(bench.command(&args).env("KEY", KEY).output().unwrap()).exits(4);
    assert!(done.stdout.contains("401") && done.stdout.contains("<redacted>"), "{}", done.stdout);
    assert!(!done.stdout.contains(KEY) && !done.stderr.contains(KEY), "{}", done.stderr);
    done.says("4 of 4 requests failed");
}

#[test]
fn code_3_nobody_is_there_and_code_2_no_model_is_known() {
    let bench = Bench::new();
    bench.takt(&["probe", "--url", "http://127.0.0.1:1"]).exits(3).says("cannot be reached");
    let empty = serve(|_| answer("200 OK", "", "{\"data\": []}"));
    bench.takt(&["probe", "--url", &empty]).exits(2).says("give --model");
    let none = serve(|_| answer("404 Not Found", "", "no such page"));
    bench.takt(&["probe", "--url", &none]).exits(4).says("status 404");
    bench.takt(&["probe"]).exits(2).says("--url");
}

#[test]
fn a_server_that_closes_after_its_answers_is_told_as_such() {
    let bench = Bench::new();
    let url = serve(|_| answer("200 OK", "", "fine"));
    let args = ["probe", "--url", &url, "--api", "raw", "--requests", "1"];
    let done = bench.takt(&args).exits(0);
    assert!(done.stdout.contains("not kept by the server"), "{}", done.stdout);
}
