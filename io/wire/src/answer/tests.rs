//! Facts about answers, by the rows of the case list where they have one.

use super::*;
use crate::outcome::{FailKind, Form, Stage};
use crate::reply::{write_chunk, write_event, write_head, write_last_chunk};
use crate::{CountedBy, FinishReason, Framing};

/// What an answer told, in order, as text (the end apart), and its outcome.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    told: Vec<String>,
    pub(super) outcome: Option<Outcome>,
    pub(super) used: usize,
    pub(super) reusable: bool,
}

impl Seen {
    #[track_caller]
    pub(super) fn outcome(&self) -> &Outcome {
        self.outcome.as_ref().expect("the answer has ended")
    }

    #[track_caller]
    pub(super) fn ok(&self) -> &Outcome {
        let outcome = self.outcome();
        assert_eq!(outcome.failure, None);
        outcome
    }

    /// Kind of the failure; its message must hold `says`.
    #[track_caller]
    pub(super) fn fails(&self, says: &str) -> FailKind {
        let failure = self.outcome().failure.as_ref().expect("a failure");
        assert!(failure.message.contains(says), "{:?} does not say {says:?}", failure.message);
        failure.kind
    }

    pub(super) fn told(&self, what: &str) -> usize {
        self.told.iter().filter(|event| event.starts_with(what)).count()
    }
}

pub(super) fn ask(stream: bool) -> Ask {
    Ask { api: Api::OpenaiChat, stream, keep_text: false, no_body: false }
}

pub(super) fn ms(ms: u64) -> Nanos {
    Nanos::from_nanos(ms * 1_000_000)
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Close {
    Open,
    Eof,
    Cut,
}

pub(super) fn feed_all<'a>(
    answer: &mut Answer,
    reads: impl IntoIterator<Item = (u64, &'a [u8])>,
    close: Close,
) -> Seen {
    let mut seen = Seen { told: Vec::new(), outcome: None, used: 0, reusable: false };
    let mut used = 0;
    let mut sink = |event: AnswerEvent<'_>| {
        assert!(seen.outcome.is_none(), "nothing follows the end, yet {event:?}");
        match event {
            AnswerEvent::End(outcome) => seen.outcome = Some(outcome.clone()),
            other => seen.told.push(format!("{other:?}")),
        }
    };
    for (at, bytes) in reads {
        used += answer.feed(bytes, ms(at), &mut sink).used;
    }
    match close {
        Close::Open => {}
        Close::Eof => answer.eof(&mut sink),
        Close::Cut => answer.cut("connection reset by peer", &mut sink),
    }
    seen.reusable = answer.is_reusable();
    // Where an answer broke off, it is of no account how much of the last read was looked at.
    seen.used = if seen.reusable { used } else { 0 };
    seen
}

/// Reads of given times; nothing is closed.
fn timed(ask: Ask, reads: &[(u64, &[u8])]) -> Seen {
    feed_all(&mut Answer::new(ask, Limits::default()), reads.iter().copied(), Close::Open)
}

/// The whole at one time; byte by byte it must be the same.
pub(super) fn check(ask: Ask, wire: &[u8], close: Close) -> Seen {
    check_within(ask, wire, close, Limits::default())
}

pub(super) fn check_within(ask: Ask, wire: &[u8], close: Close, limits: Limits) -> Seen {
    let seen = feed_all(&mut Answer::new(ask, limits), [(1, wire)], close);
    let bytes = wire.chunks(1).map(|byte| (1, byte));
    assert_eq!(feed_all(&mut Answer::new(ask, limits), bytes, close), seen, "byte by byte");
    seen
}

/// A chunked stream of these events, each a chunk; `end` adds the last chunk.
pub(super) fn stream(events: &[&str], end: bool) -> Vec<u8> {
    let mut wire = Vec::new();
    write_head(&mut wire, 200, "text/event-stream", Framing::Chunked, true, &[]);
    for event in events {
        let mut chunk = Vec::new();
        write_event(&mut chunk, event.as_bytes());
        write_chunk(&mut wire, &chunk);
    }
    if end {
        write_last_chunk(&mut wire);
    }
    wire
}

pub(super) fn plain(status: u16, content_type: &str, body: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    let length = Framing::Length(body.len() as u64);
    write_head(&mut wire, status, content_type, length, true, &[]);
    wire.extend_from_slice(body.as_bytes());
    wire
}

pub(super) fn chunk_of(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

pub(super) const ROLE: &str =
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
pub(super) const A: &str =
    r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
pub(super) const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
pub(super) const USAGE: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9}}"#;
pub(super) const DONE: &str = "[DONE]";

#[test]
fn whole_stream_is_told_in_order() {
    let seen = check(ask(true), &stream(&[ROLE, A, A, STOP, USAGE, DONE], true), Close::Open);
    let starts: Vec<&str> =
        seen.told.iter().map(|event| event.split([' ', '(', '{']).next().unwrap_or("")).collect();
    assert_eq!(starts, ["Head", "FirstEvent", "Token", "Token", "Finish", "Usage"]);
    let outcome = seen.ok();
    assert_eq!((outcome.status, outcome.form, outcome.done), (Some(200), Form::Stream, true));
    assert_eq!((outcome.finish, outcome.token_events), (Some(FinishReason::Stop), 2));
    assert_eq!(outcome.usage.and_then(|u| u.completion), Some(9));
    assert!(seen.reusable && !outcome.closed_early && !outcome.unasked_form);
}

#[test]
fn f1_large_events_and_split_characters_give_the_same_text() {
    let text = "ü€😀".repeat(30_000);
    let event = chunk_of(&format!(r#"{{"content":"{text}"}}"#));
    let wire = stream(&[&event, DONE], true);
    let keep = Ask { keep_text: true, ..ask(true) };
    for size in [wire.len(), 4096, 1021] {
        let reads = wire.chunks(size).map(|bytes| (1, bytes));
        let seen = feed_all(&mut Answer::new(keep, Limits::default()), reads, Close::Open);
        assert_eq!(seen.ok().token_events, 1);
        assert!(seen.told.contains(&format!("{:?}", AnswerEvent::Text(Text::Content(&text)))));
    }
}

#[test]
fn f2_other_line_ends_and_another_framing_make_no_difference() {
    let unix = check(ask(true), &stream(&[ROLE, A, STOP, DONE], true), Close::Open);
    for end in ["\r\n", "\r"] {
        let body: String =
            [ROLE, A, STOP, DONE].iter().map(|event| format!("data: {event}{end}{end}")).collect();
        let seen = check(ask(true), &plain(200, "text/event-stream", &body), Close::Open);
        assert_eq!(seen.told, unix.told, "{end:?}");
        seen.ok();
    }
}

#[test]
fn f3_comments_names_and_several_data_lines() {
    let body = format!(
        ": ping\n\nevent: message\nid: 1\nretry: 5\ndata:{ROLE}\n\ndata: {{\"choices\":\n\
         data: [{{\"delta\":{{\"content\":\"a\"}}}}]}}\n\ndata: [DONE]\n\n"
    );
    let seen = check(ask(true), &plain(200, "text/event-stream", &body), Close::Open);
    assert_eq!(seen.ok().token_events, 1);
}

#[test]
fn f4_role_chunk_is_not_the_first_token() {
    let wire = stream(&[ROLE], false);
    let rest = stream(&[A, DONE], true);
    let rest = &rest[stream(&[], false).len()..];
    let seen = timed(ask(true), &[(10, &wire), (1310, rest)]);
    let outcome = seen.ok();
    assert_eq!((outcome.first_event, outcome.first_token), (Some(ms(10)), Some(ms(1310))));
}

#[test]
fn f5_empty_content_usage_and_done_are_no_tokens() {
    let empty = chunk_of(r#"{"content":""}"#);
    let seen = check(ask(true), &stream(&[A, &empty, A, USAGE, STOP, DONE], true), Close::Open);
    assert_eq!((seen.ok().token_events, seen.told("Token")), (2, 2));
}

#[test]
fn f6_first_token_is_the_first_reasoning() {
    let (head, tail) = (stream(&[], false), stream(&[A, DONE], true));
    let thought = stream(&[&chunk_of(r#"{"reasoning_content":"hm"}"#)], false);
    let seen = timed(ask(true), &[(1, &thought), (10_001, &tail[head.len()..])]);
    let outcome = seen.ok();
    assert_eq!(outcome.first_token, Some(ms(1)));
    assert_eq!(outcome.first_content, Some(ms(10_001)));
    assert_eq!((outcome.kinds.content, outcome.kinds.reasoning), (true, true));
}

#[test]
fn f7_content_reasoning_and_call_in_a_delta_are_one_event_and_all_kept() {
    let all = chunk_of(
        r#"{"content":"c","reasoning":"r","tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":"{}"}}]}"#,
    );
    let keep = Ask { keep_text: true, ..ask(true) };
    let seen = check(keep, &stream(&[&all, STOP, DONE], true), Close::Open);
    assert_eq!((seen.ok().token_events, seen.told("Text")), (1, 3));
    let kinds = seen.ok().kinds;
    assert!(kinds.content && kinds.reasoning && kinds.tool_call);
}

#[test]
fn f8_error_in_a_stream_fails_with_the_servers_message() {
    let error = r#"{"error":{"message":"out of memory","code":500}}"#;
    for events in [vec![error, DONE], vec![A, A, error, DONE], vec![A, error]] {
        let seen = check(ask(true), &stream(&events, true), Close::Open);
        assert_eq!(seen.fails("out of memory"), FailKind::ApiError);
        assert!(seen.reusable, "the rest was read");
    }
    let named = format!("data: {A}\n\nevent: error\ndata: boom\n\ndata: {A}\n\n");
    let seen = check(ask(true), &plain(200, "text/event-stream", &named), Close::Open);
    assert_eq!((seen.fails("boom"), seen.told("Token")), (FailKind::ApiError, 1));
    assert_eq!(seen.outcome().failure.as_ref().map(|f| f.stage), Some(Stage::Tokens));
}

#[test]
fn f9_stream_that_is_cut_is_truncated_and_what_came_is_kept() {
    let ten = stream(&[A; 10], false);
    let ended = stream(&[A; 10], true);
    for (wire, close, says) in [
        (&ten, Close::Eof, "closed before the end"),
        (&ten, Close::Cut, "connection reset by peer"),
        (&ended, Close::Open, "the body ended after 10 events"),
    ] {
        let seen = check(ask(true), wire, close);
        assert_eq!(seen.fails(says), FailKind::Truncated);
        assert_eq!(seen.outcome().token_events, 10);
        assert_eq!(seen.outcome().failure.as_ref().map(|f| f.stage), Some(Stage::Tokens));
    }
    let half = &ten[..ten.len() - 9];
    assert_eq!(check(ask(true), half, Close::Eof).fails("9 events"), FailKind::Truncated);
}

#[test]
fn done_without_the_last_chunk_is_ok_and_not_reusable() {
    for events in [&[A, DONE][..], &[A, STOP]] {
        let wire = stream(events, false);
        assert_eq!(check(ask(true), &wire, Close::Open).outcome, None, "it may still come");
        for close in [Close::Eof, Close::Cut] {
            let seen = check(ask(true), &wire, close);
            assert!(seen.ok().closed_early && !seen.reusable);
        }
    }
}

#[test]
fn what_follows_done_is_ignored() {
    let error = r#"{"error":{"message":"late"}}"#;
    let seen = check(ask(true), &stream(&[A, DONE, A, error, "rubbish"], true), Close::Open);
    assert_eq!(seen.ok().token_events, 1);
    assert!(seen.reusable);
    let mut wire = stream(&[A, DONE], false);
    wire.extend_from_slice(b"not a chunk");
    let seen = check(ask(true), &wire, Close::Open);
    assert!(seen.ok().closed_early && !seen.reusable);
}

#[test]
fn last_blank_line_may_be_missing() {
    for tail in ["data: [DONE]", "data: [DONE]\n", "data:[DONE]\r\n"] {
        let body = format!("data: {A}\n\n{tail}");
        let seen = check(ask(true), &plain(200, "text/event-stream", &body), Close::Open);
        assert!(seen.ok().done, "{tail:?}");
    }
    let body = format!("data: {A}\n\ndata: {STOP}");
    check(ask(true), &plain(200, "text/event-stream", &body), Close::Open).ok();
}

#[test]
fn f10_other_answers_are_counted_by_status_and_the_connection_is_kept() {
    let html = "<html> <b>Bad\nGateway</b></html>";
    let seen = check(ask(true), &plain(502, "text/html", html), Close::Open);
    assert_eq!(seen.fails("HTTP 502: <html> <b>Bad Gateway</b></html>"), FailKind::HttpStatus);
    assert_eq!((seen.outcome().status, seen.reusable), (Some(502), true));
    let seen = check(ask(true), &plain(200, "text/html", html), Close::Open);
    assert_eq!(seen.fails("HTML: <html>"), FailKind::ContentType);
    assert!(seen.reusable);
    let seen = check(ask(false), &plain(429, "application/json", "{\"error\":1}"), Close::Open);
    assert_eq!(seen.fails("HTTP 429: {\"error\":1}"), FailKind::HttpStatus);
    let cut = &plain(500, "text/plain", "oh no")[..];
    let seen = check(ask(false), &cut[..cut.len() - 2], Close::Eof);
    assert_eq!(seen.fails("HTTP 500: oh"), FailKind::HttpStatus);
    assert!(!seen.reusable);
}

#[test]
fn sample_of_a_body_is_bounded() {
    let seen = check(ask(true), &plain(500, "text/plain", &"x".repeat(5000)), Close::Open);
    assert_eq!(seen.fails("HTTP 500: xxx"), FailKind::HttpStatus);
    assert!(seen.outcome().failure.as_ref().is_some_and(|f| f.message.len() < 600));
}

#[test]
fn c9_redirects_are_reported_and_not_followed() {
    let mut wire = Vec::new();
    let to = [("Location", "http://other/")];
    write_head(&mut wire, 307, "", Framing::Length(0), true, &to);
    let seen = check(ask(true), &wire, Close::Open);
    assert_eq!(
        seen.fails("HTTP 307 to http://other/, which is not followed"),
        FailKind::HttpStatus
    );
    assert!(seen.reusable);
}

#[test]
fn f11_null_and_missing_fields_are_absent() {
    let null = chunk_of(r#"{"content":null}"#);
    let events = [A, &null, r#"{"choices":[]}"#, r#"{"choices":[{"delta":{}}]}"#, "{}", STOP, DONE];
    let seen = check(ask(true), &stream(&events, true), Close::Open);
    assert_eq!((seen.ok().token_events, seen.ok().usage), (1, None));
}

#[test]
fn f12_usage_with_choices_and_partial_usage_are_used() {
    let both = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5}}"#;
    let seen = check(ask(true), &stream(&[A, both, DONE], true), Close::Open);
    let outcome = seen.ok();
    assert_eq!((outcome.token_events, outcome.finish), (2, Some(FinishReason::Stop)));
    let usage = outcome.usage.expect("usage");
    assert_eq!((usage.prompt, usage.completion), (Some(5), None));
    assert_eq!(outcome.output, Some((2, CountedBy::Events)));
}

#[test]
fn f13_non_json_fails_with_the_text_and_the_rest_is_read() {
    let seen = check(ask(true), &stream(&[A, "no json", A, DONE], true), Close::Open);
    assert_eq!(seen.fails("no json"), FailKind::BadJson);
    assert_eq!(seen.told("Token"), 1);
    assert!(seen.reusable);
}

#[test]
fn f14_close_delimited_answers_succeed() {
    let whole = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}",
        r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#
    );
    let seen = check(ask(false), whole.as_bytes(), Close::Eof);
    assert_eq!((seen.ok().form, seen.reusable), (Form::Whole, false));
    let seen = check(ask(false), whole.as_bytes(), Close::Cut);
    assert_eq!(seen.fails("connection reset by peer"), FailKind::Truncated);
}

#[test]
fn f15_informational_heads_and_trailers_are_skipped() {
    let mut wire = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec();
    wire.extend(stream(&[A, DONE], false));
    wire.extend_from_slice(b"0\r\nX-Time: 3\r\n\r\n");
    let seen = check(ask(true), &wire, Close::Open);
    assert_eq!((seen.ok().token_events, seen.told("Head"), seen.reusable), (1, 1, true));
}

#[test]
fn t1_running_counts_tell_the_tokens_of_each_event() {
    let with = |n: u64| {
        format!(
            r#"{{"choices":[{{"delta":{{"content":"x"}}}}],"usage":{{"completion_tokens":{n}}}}}"#
        )
    };
    let seen = check(ask(true), &stream(&[&with(4), &with(9), DONE], true), Close::Open);
    let tokens: Vec<_> = seen.told.iter().filter(|t| t.starts_with("Token")).collect();
    assert!(tokens[0].contains("tokens: Some(4)") && tokens[1].contains("tokens: Some(5)"));
    assert_eq!(seen.ok().output, Some((9, CountedBy::ContinuousUsage)));
    // A count that comes with the last text alone is of the whole answer, not of that event.
    let seen = check(ask(true), &stream(&[A, &with(9), DONE], true), Close::Open);
    assert!(
        seen.told.iter().filter(|t| t.starts_with("Token")).all(|t| t.contains("tokens: None"))
    );
    assert_eq!(seen.ok().output, Some((9, CountedBy::Usage)));
}

#[test]
fn t3_failed_answer_has_no_times_that_did_not_happen() {
    let seen = check(ask(true), &plain(500, "", ""), Close::Open);
    let o = seen.outcome();
    assert_eq!((o.first_event, o.first_token, o.last_token), (None, None, None));
    let seen = check(ask(true), b"", Close::Eof);
    assert_eq!(seen.fails("before the first byte"), FailKind::Truncated);
    assert_eq!((seen.outcome().status, seen.outcome().last_byte), (None, None));
}

#[test]
fn t5_last_token_and_last_byte_are_kept_apart() {
    let (head, usage) = (stream(&[], false).len(), stream(&[USAGE, DONE], false));
    let tail = stream(&[], true);
    let seen = timed(
        ask(true),
        &[(5, &stream(&[A, STOP], false)), (25, &usage[head..]), (30, &tail[head..])],
    );
    let outcome = seen.ok();
    assert_eq!((outcome.last_token, outcome.last_byte), (Some(ms(5)), Some(ms(30))));
}

#[test]
fn t6_two_events_in_one_read_are_marked() {
    let two = stream(&[A, A], false);
    let rest = stream(&[A, DONE], true);
    let rest = &rest[stream(&[], false).len()..];
    let seen = timed(ask(true), &[(1, &two), (2, rest)]);
    assert_eq!((seen.ok().coalesced, seen.ok().token_events), (1, 3));
    let marked: Vec<bool> = seen
        .told
        .iter()
        .filter(|t| t.starts_with("Token"))
        .map(|t| t.contains("coalesced: true"))
        .collect();
    assert_eq!(marked, [false, true, false]);
}
