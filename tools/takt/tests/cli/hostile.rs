//! `takt run` against each fault of `takt mock --mode hostile`, over real sockets, streamed and whole: what the
//! list of cases says must come of it. Times are held in the simulation, where they are exact.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bench::{Bench, Mock};
use crate::tls::file;

/// What must come of every request of a run.
#[derive(Clone, Copy, Debug)]
struct Want {
    /// Kind, stage, blame and status of the failure.
    failure: Option<(&'static str, &'static str, &'static str, Option<u16>)>,
    /// Words that the error has.
    says: &'static str,
    /// Events with text, of a stream.
    events: u64,
    /// Events with text, where a whole answer was asked for.
    whole_events: u64,
    tokens: Option<u64>,
    source: &'static str,
    /// The second and third request go on the connection of the first.
    reused: bool,
}

/// All is as from a good server.
const GOOD: Want = Want {
    failure: None,
    says: "",
    events: TOKENS,
    whole_events: 0,
    tokens: Some(TOKENS),
    source: "usage",
    reused: true,
};

/// The server's fault, and the connection can be used again.
const fn fails(kind: &'static str, stage: &'static str, status: u16, says: &'static str) -> Want {
    Want { failure: Some((kind, stage, "server", Some(status))), says, ..GOOD }
}

/// A new connection for each.
const fn fresh(want: Want) -> Want {
    Want { reused: false, ..want }
}

/// The connection was lost.
const fn lost(kind: &'static str, stage: &'static str, status: Option<u16>) -> Want {
    Want { failure: Some((kind, stage, "network", status)), ..fresh(GOOD) }
}

/// No head was read.
const fn headless(kind: &'static str, stage: &'static str) -> Want {
    Want { failure: Some((kind, stage, "server", None)), ..fresh(GOOD) }
}

/// Holds three requests in each form, one after the other, to what is wanted; and once more over TLS, where the
/// same bytes are the same answer.
#[track_caller]
fn check(fault: &str, stream: Want, whole: Want) {
    let bench = Bench::new();
    let hostile = ["--mode", "hostile", "--ttft", "2ms", "--tpot", "1ms", "--tokens", "12"];
    let hostile = [&hostile[..], &["--fault", fault]].concat();
    let (cert, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let plain = Mock::start(&bench, &hostile);
    let tls = [&hostile[..], &["--tls-cert", &cert, "--tls-key", &key]].concat();
    let tls = Mock::start(&bench, &tls);
    let secure = format!("https://localhost:{}", tls.address.port());
    for (url, form, want, out) in [
        (plain.url(), "--stream", stream, "stream"),
        (plain.url(), "--no-stream", whole, "whole"),
        (secure, "--stream", stream, "tls"),
    ] {
        let mut args = vec!["run", "--model", "m", "--concurrency", "1", "--requests", "3", form];
        args.extend(["--url", &url, "--out", out, "--request-timeout", "2s", "--quiet"]);
        if out == "tls" {
            args.extend(["--cacert", &ca]);
        }
        let done = bench.takt(&args);
        let context = format!("{fault} {out}: {}", done.stderr);
        assert_eq!(done.code, if want.failure.is_some() { 4 } else { 0 }, "{context}");
        let events = bench.takt(&["events", out]).exits(0).stdout;
        let lines: Vec<Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        hold(&lines, want, form == "--stream", &context);
    }
}

#[track_caller]
fn hold(lines: &[Value], want: Want, stream: bool, context: &str) {
    let ends: Vec<&Value> = of_type(lines, "sample.complete");
    assert_eq!(ends.len(), 3, "{context}");
    for (nth, end) in ends.iter().enumerate() {
        let takt = &end["takt"];
        let outcome = if want.failure.is_some() { "failed" } else { "ok" };
        assert_eq!(takt["outcome"], outcome, "{context}\n{end}");
        assert_eq!(takt["reused"], nth > 0 && want.reused, "{context}\n{end}");
        assert_eq!(takt["attempts"], 1, "{context}\n{end}");
        if want.failure.is_none() {
            let tokens = &takt["tokens"];
            let events = if stream { want.events } else { want.whole_events };
            let source = want.tokens.map(|_| want.source);
            assert_eq!(tokens["events"], events, "{context}\n{end}");
            assert_eq!(tokens["output"], json!(want.tokens), "{context}\n{end}");
            assert_eq!(tokens["source"], json!(source), "{context}\n{end}");
        }
    }
    let errors: Vec<&Value> = lines
        .iter()
        .filter(|line| line["event_type"].as_str().unwrap().starts_with("error"))
        .collect();
    let Some((kind, stage, blame, status)) = want.failure else {
        assert!(errors.is_empty(), "{context}\n{errors:?}");
        return;
    };
    assert_eq!(errors.len(), 3, "{context}");
    for error in errors {
        assert_eq!(error["data"][1], kind, "{context}\n{error}");
        let expect = json!({"blame": blame, "stage": stage, "status": status});
        assert_eq!(error["takt"], expect, "{context}\n{error}");
        assert!(error["data"][2].as_str().unwrap().contains(want.says), "{context}\n{error}");
    }
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event_type"] == kind).collect()
}

#[test]
fn f1_large_events_torn_events_and_torn_characters_are_whole() {
    check("big-event", GOOD, GOOD);
    check("split-reads", GOOD, GOOD);
    check("split-utf8", GOOD, GOOD);
}

#[test]
fn f2_line_ends_reads_and_gateways_make_no_difference() {
    check("crlf", GOOD, GOOD);
    check("cr", GOOD, GOOD);
    check("two-events-a-read", GOOD, GOOD);
    check("reframed", GOOD, GOOD);
}

#[test]
fn f3_every_spelling_of_an_event_is_read() {
    check("no-space", GOOD, GOOD);
    check("comments", GOOD, GOOD);
    check("sse-fields", GOOD, GOOD);
    check("data-lines", GOOD, GOOD);
}

#[test]
fn f4_f5_f11_what_has_no_text_is_no_token() {
    check("role-first=5ms", GOOD, GOOD);
    check("empty-content", GOOD, GOOD);
    check("after-done", GOOD, GOOD);
    check("null-content", GOOD, GOOD);
    check("no-content", GOOD, GOOD);
    check("empty-choices", GOOD, GOOD);
}

#[test]
fn f5_f12_counts_are_used_as_far_as_they_go() {
    check("usage-between", GOOD, GOOD);
    check("usage-with-choices", GOOD, GOOD);
    // Whole, nobody counted: absent, not zero.
    check("usage-partial", Want { source: "events", ..GOOD }, Want { tokens: None, ..GOOD });
}

#[test]
fn f6_f7_reasoning_and_calls_are_tokens_too() {
    check("reasoning-first", GOOD, GOOD);
    check("reasoning-key", GOOD, GOOD);
    check("mixed-delta", GOOD, GOOD);
    check("tool-call", GOOD, GOOD);
}

#[test]
fn f8_an_error_in_a_good_answer_is_a_failure_with_its_words() {
    let stream = fails("api_error", "stream", 200, "out of memory");
    let whole = fails("api_error", "body", 200, "out of memory");
    check("error-in-stream", stream, whole);
    check("error-event", stream, whole);
}

#[test]
fn f9_what_is_cut_short_is_truncated() {
    let reset = lost("truncated", "stream", Some(200));
    let whole = lost("truncated", "body", Some(200));
    check("cut-after-tokens", reset, whole);
    check("close-after-tokens", reset, whole);
    check("no-end", fails("truncated", "stream", 200, "neither"), GOOD);
    check("no-done", GOOD, GOOD);
    // The stream has said that it is done.
    check("wrong-content-length", fresh(GOOD), whole);
    check("half-head", lost("truncated", "head", None), lost("truncated", "head", None));
}

#[test]
fn f10_other_answers_fail_by_kind_and_status_and_leave_the_connection() {
    let html = fails("content_type", "body", 200, "HTML");
    check("html-200", html, html);
    let status = |status, says| fails("http_status", "body", status, says);
    check("html-502", status(502, "nginx"), status(502, "nginx"));
    check("json-429", status(429, "retry after 1"), status(429, "too many requests"));
    check("json-500", status(500, "out of memory"), status(500, "out of memory"));
    let not_asked = fails("content_type", "body", 200, "where a stream was asked for");
    check("other-form", not_asked, Want { source: "events", whole_events: TOKENS, ..GOOD });
}

#[test]
fn a_stream_that_nobody_asked_for_is_a_reason_of_the_verdict() {
    let bench = Bench::new();
    let mut all = vec!["--mode", "hostile", "--ttft", "2ms", "--tpot", "1ms", "--tokens", "12"];
    all.extend(["--fault", "other-form"]);
    let mock = Mock::start(&bench, &all);
    let run = ["--concurrency", "1", "--requests", "3", "--no-stream"];
    let done = bench.run(&mock.url(), &run).exits(0);
    assert!(done.stdout.contains("3 of 3 answers were streams though whole"), "{}", done.stdout);
    assert_eq!(bench.result()["phases"][0]["tokens"]["unasked"], 3);
}

#[test]
fn f10_what_is_no_http_is_bad_framing_and_costs_its_connection() {
    check("not-http", headless("bad_framing", "head"), headless("bad_framing", "head"));
    check("huge-head", headless("too_large", "head"), headless("too_large", "head"));
    let (stream, body) = ("stream", "body");
    let bad = |stage| fresh(fails("bad_framing", stage, 200, "hexadecimal"));
    check("bad-chunk", bad(stream), bad(body));
}

#[test]
fn f13_an_event_that_is_no_json_fails_its_request_with_the_text() {
    let bad = |stage| fails("bad_json", stage, 200, "<not json>");
    check("bad-json", bad("stream"), bad("body"));
}

#[test]
fn f14_an_answer_that_ends_with_its_connection_is_whole() {
    check("close-delimited", fresh(GOOD), fresh(GOOD));
    check("both-lengths", fresh(GOOD), fresh(GOOD));
}

#[test]
fn f15_early_hints_and_trailers_are_skipped() {
    check("early-hints", GOOD, GOOD);
    check("trailers", GOOD, GOOD);
}

#[test]
fn t1_t2_tokens_are_counted_and_events_apart() {
    check("four-tokens-a-chunk", Want { events: 3, ..GOOD }, GOOD);
    let one = Want { events: 1, tokens: Some(1), ..GOOD };
    check("one-token", one, one);
}

#[test]
fn t4_t5_the_servers_counts_are_named_as_its_own_whenever_they_come() {
    let short = Want { tokens: Some(10), ..GOOD };
    check("usage-short", short, short);
    check("late-usage=5ms", GOOD, GOOD);
}

#[test]
fn c3_bytes_behind_an_answer_cost_the_connection_and_not_the_answer() {
    check("garbage-after-answer", fresh(GOOD), fresh(GOOD));
}

#[test]
fn c7_r2_r3_slow_servers_are_waited_for() {
    check("no-nodelay=5ms", GOOD, GOOD);
    check("stall=5ms", GOOD, GOOD);
    check("slow-head=5ms", GOOD, GOOD);
}

#[test]
fn c9_redirects_are_failures_that_name_the_place() {
    let failed = |status| fails("http_status", "body", status, "127.0.0.1:9/elsewhere");
    check("redirect", failed(307), failed(307));
    check("redirect=302", failed(302), failed(302));
}

#[test]
fn c4_a_reset_instead_of_an_answer_is_a_failure_on_a_fresh_connection() {
    let reset = lost("reset", "wait", None);
    check("reset-before-answer", reset, reset);
}

/// A run against a fault, and its one phase.
fn phase(bench: &Bench, mock: &[&str], run: &[&str], code: i32) -> Value {
    let mut all = vec!["--mode", "hostile", "--ttft", "2ms", "--tpot", "1ms", "--tokens", "12"];
    all.extend(mock);
    let mock = Mock::start(bench, &all);
    bench.run(&mock.url(), run).exits(code);
    bench.result()["phases"][0].clone()
}

#[test]
fn e2_a_server_that_never_answers_is_left_after_the_time_given() {
    for fault in ["never-answers", "hang-after-tokens"] {
        let bench = Bench::new();
        let run = ["--concurrency", "2", "--requests", "4", "--request-timeout", "100ms"];
        let phase = phase(&bench, &["--fault", fault], &run, 4);
        assert_eq!(phase["errors"], json!({"request_timeout": 4}), "{fault}");
        for series in ["ttft_ms", "latency_ms"] {
            assert_eq!(phase[series]["from_send"], Value::Null, "{fault} {series}");
        }
    }
}

#[test]
fn c3_connections_that_are_closed_when_idle_cost_no_request() {
    let bench = Bench::new();
    let run = ["--rate", "5", "--arrivals", "constant", "--requests", "6"];
    let phase = phase(&bench, &["--fault", "idle-close=20ms"], &run, 0);
    assert_eq!((&phase["succeeded"], &phase["retried"]), (&json!(6), &json!(0)), "{phase}");
}

#[test]
fn c4_connections_that_close_behind_each_answer_cost_no_request() {
    let bench = Bench::new();
    let run = ["--concurrency", "4", "--requests", "100"];
    let phase = phase(&bench, &["--fault", "close-after-answer"], &run, 0);
    assert_eq!(phase["succeeded"], 100);
    // Until the endpoint is known for it: four are under way then, and four may be on their way.
    assert!(phase["retried"].as_u64().unwrap() <= 8, "{}", phase["retried"]);
    let once = &phase["instrument"]["used_once"];
    assert!(once.as_u64() > Some(0), "{once}");
    let report = bench.takt(&["report", "out"]).exits(0).stdout;
    assert!(report.contains("used_once"), "{report}");
}

#[test]
fn c6_a_server_that_goes_away_is_refused_connections_from_then_on() {
    let bench = Bench::new();
    let run = ["--concurrency", "1", "--requests", "8"];
    let phase = phase(&bench, &["--fault", "refuse-later=4"], &run, 0);
    assert_eq!((&phase["succeeded"], &phase["failed"]), (&json!(3), &json!(5)));
    assert_eq!(phase["errors"], json!({"connect_refused": 5}));
}

#[test]
fn a_share_of_the_requests_meets_the_fault_and_always_the_same_one() {
    let met = || {
        let bench = Bench::new();
        let faults = ["--fault", "json-500", "--fault", "html-502", "--fault-share", "0.3"];
        let mock = [&faults[..], &["--seed", "7"]].concat();
        let phase = phase(&bench, &mock, &["--concurrency", "1", "--requests", "60"], 0);
        let samples = phase["error_samples"].as_array().unwrap().clone();
        let count = |sample: &Value| (sample["status"].to_string(), sample["count"].to_string());
        (phase["succeeded"].as_u64().unwrap(), samples.iter().map(count).collect::<BTreeSet<_>>())
    };
    let (succeeded, samples) = met();
    // Four deviations of a binomial of 60 and 0.7 are 14.
    assert!((28..57).contains(&succeeded), "{succeeded}");
    assert_eq!(samples.len(), 2, "{samples:?}");
}

#[test]
fn faults_are_listed_and_a_wrong_name_is_told_the_nearest() {
    let bench = Bench::new();
    let list = bench.takt(&["mock", "--fault", "list"]).exits(0).stdout;
    assert!(
        list.lines().any(|line| line.starts_with("cut-after-tokens=10") && line.contains(" F9 "))
    );
    let hostile = ["mock", "--listen", "127.0.0.1:0", "--mode", "hostile"];
    for (args, says) in [
        (&["--fault", "splitutf8"][..], "split-utf8"),
        (&["--fault", "entirely-else"], "--fault list"),
        (&["--fault", "stall=soon"], "such as stall=2s"),
        (&["--fault", "crlf=1"], "takes no setting"),
        (&["--fault", "crlf", "--fault-share", "2"], "0 to 1"),
        (&[], "needs --fault"),
    ] {
        bench.takt(&[&hostile[..], args].concat()).exits(2).says(says);
    }
    let timed = ["mock", "--listen", "127.0.0.1:0", "--fault", "crlf"];
    bench.takt(&timed).exits(2).says("no effect without --mode hostile");
}

#[test]
fn every_fault_is_held_here() {
    let here = include_str!("hostile.rs");
    let list = Bench::new().takt(&["mock", "--fault", "list"]).exits(0).stdout;
    let names = list.lines().map(|line| line.split([' ', '=']).next().unwrap());
    let missing: Vec<_> = names
        .filter(|name| !["\"", "="].iter().any(|end| here.contains(&format!("\"{name}{end}"))))
        .collect();
    assert!(missing.is_empty(), "without a test: {missing:?}");
}

/// Tokens of each answer.
const TOKENS: u64 = 12;
