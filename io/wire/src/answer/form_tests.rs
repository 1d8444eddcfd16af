//! Facts about whole answers, forms that nobody asked for, limits, and answers one after another.

use super::tests::{A, Close, DONE, ROLE, STOP, ask, check, chunk_of, feed_all, ms, plain, stream};
use super::*;
use crate::Framing;
use crate::outcome::{FailKind, Form};
use crate::reply::write_head;

#[test]
fn whole_answer_in_one_read() {
    let body = r#"{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"length"}],"usage":{"completion_tokens":1}}"#;
    let keep = Ask { keep_text: true, ..ask(false) };
    let seen = check(keep, &plain(200, "application/json", body), Close::Open);
    assert_eq!(seen.told("Text(Content(\"hi\"))"), 1);
    let outcome = seen.ok();
    assert_eq!((outcome.form, outcome.finish), (Form::Whole, Some(FinishReason::Length)));
    assert_eq!((outcome.first_token, outcome.token_events), (None, 0));
    assert_eq!(outcome.usage.and_then(|u| u.completion), Some(1));
    assert!(seen.reusable && outcome.kinds.content);
}

#[test]
fn whole_answer_that_is_no_answer() {
    for (body, says, kind) in [
        ("", "not JSON", FailKind::BadJson),
        ("{\"choices\":", "not JSON", FailKind::BadJson),
        ("{\"choices\":[]}", "no choices", FailKind::ApiError),
        ("{\"error\":{\"message\":\"busy\"}}", "busy", FailKind::ApiError),
    ] {
        let seen = check(ask(false), &plain(200, "application/json", body), Close::Open);
        assert_eq!(seen.fails(says), kind, "{body}");
        assert!(seen.reusable);
    }
    let cut = plain(200, "application/json", "{\"choices\":[]}");
    let seen = check(ask(false), &cut[..cut.len() - 1], Close::Eof);
    assert_eq!(seen.fails("before the end of the body"), FailKind::Truncated);
}

#[test]
fn other_form_than_asked_for() {
    let json = r#"{"choices":[{"message":{"content":"hi"}}]}"#;
    let seen = check(ask(true), &plain(200, "application/json", json), Close::Open);
    assert_eq!(seen.fails("whole JSON came"), FailKind::ContentType);
    let error = r#"{"error":{"message":"busy"}}"#;
    let seen = check(ask(true), &plain(200, "application/json", error), Close::Open);
    assert_eq!(seen.fails("busy"), FailKind::ApiError);
    let seen = check(ask(false), &stream(&[A, DONE], true), Close::Open);
    assert!(seen.ok().unasked_form && seen.ok().form == Form::Stream);
    let seen = check(ask(true), &plain(200, "text/plain", "hello"), Close::Open);
    assert_eq!(seen.fails("no event stream came: hello"), FailKind::ContentType);
    let body = format!("data: {A}\n\ndata: [DONE]\n\n");
    check(ask(true), &plain(200, "text/plain", &body), Close::Open).ok();
}

#[test]
fn compressed_body_is_refused() {
    let mut wire = Vec::new();
    let gzip = [("Content-Encoding", "gzip")];
    write_head(&mut wire, 200, "application/json", Framing::Length(3), true, &gzip);
    wire.extend_from_slice(&[0x1f, 0x8b, 0]);
    let seen = check(ask(false), &wire, Close::Open);
    assert_eq!(seen.fails("compressed"), FailKind::ContentType);
}

#[test]
fn limits_fail_the_request() {
    let limits = Limits { head: 200, body: 2000, event: 100 };
    let long = chunk_of(&format!(r#"{{"content":"{}"}}"#, "x".repeat(100)));
    let endless = [A; 40];
    for (wire, says) in [
        (stream(&[A, &long, DONE], true), "an event of the stream"),
        (stream(&endless, true), "the body is larger"),
        (plain(200, "application/json", &"[".repeat(101)), "the answer is larger"),
        (format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(200)).into_bytes(), "the head is larger"),
    ] {
        let reads = [(1, wire.as_slice())];
        let seen = feed_all(&mut Answer::new(ask(true), limits), reads, Close::Open);
        assert_eq!(seen.fails(says), FailKind::TooLarge);
    }
}

#[test]
fn bad_framing_is_told_from_truncation() {
    let seen = check(ask(true), b"SMTP ready\r\n", Close::Eof);
    assert_eq!(seen.fails("not valid HTTP/1"), FailKind::BadFraming);
    let mut wire = stream(&[A, STOP], false);
    wire.extend_from_slice(b"zz\r\n");
    let seen = check(ask(true), &wire, Close::Open);
    assert_eq!(seen.fails("chunked"), FailKind::BadFraming);
}

#[test]
fn bytes_left_over_are_counted_by_the_caller() {
    let mut wire = stream(&[A, DONE], true);
    let len = wire.len();
    wire.extend_from_slice(b"HTTP/1.1 200");
    let seen = check(ask(true), &wire, Close::Open);
    assert_eq!(seen.used, len);
    seen.ok();
}

#[test]
fn raw_api_takes_any_success_and_counts_bytes() {
    let raw = Ask { api: Api::Raw, ..ask(false) };
    let seen = check(raw, &plain(201, "text/html", "hello"), Close::Open);
    assert_eq!((seen.ok().form, seen.ok().body_bytes), (Form::Bytes, 5));
    assert_eq!(seen.ok().first_event, Some(ms(1)));
    let seen = check(raw, &plain(404, "", "gone"), Close::Open);
    assert_eq!(seen.fails("HTTP 404: gone"), FailKind::HttpStatus);
    let head = Ask { no_body: true, ..raw };
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    assert!(check(head, wire, Close::Open).reusable);
}

#[test]
fn comments_are_no_progress() {
    let mut answer = Answer::new(ask(true), Limits::default());
    let body = format!("data: {A}\n\n: ping\n\n");
    let wire = plain(200, "text/event-stream", &body);
    let ping = wire.len() - ": ping\n\n".len();
    let head = ping - format!("data: {A}\n\n").len();
    let mut progress = |bytes: &[u8]| answer.feed(bytes, ms(1), &mut |_| {}).progress;
    assert!(progress(&wire[..head]));
    assert!(progress(&wire[head..ping]));
    assert!(!progress(&wire[ping..wire.len() - 1]));
}

#[test]
fn answers_follow_one_another_in_the_same_memory() {
    let mut answer = Answer::new(ask(true), Limits::default());
    let wires = [
        (ask(true), stream(&[ROLE, A, "half"], true)),
        (ask(true), stream(&[ROLE, A, STOP, DONE], true)),
        (ask(false), plain(200, "application/json", r#"{"choices":[{"message":{}}]}"#)),
        (ask(true), plain(503, "text/plain", "busy")),
    ];
    for (ask, wire) in wires.iter().cycle().take(9) {
        answer.begin(*ask);
        assert!(answer.is_untouched() && !answer.is_ended());
        let again = feed_all(&mut answer, [(1, wire.as_slice())], Close::Open);
        assert_eq!(again, check(*ask, wire, Close::Open));
    }
}
