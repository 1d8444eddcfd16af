//! Facts about the server as its clients see it, on a clock and sockets that are variables.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use takt_engine::Close;
use takt_time::{Nanos, Span};
use takt_wire::Limits;

use crate::config::{ErrorShare, ServerConfig};
use crate::distribution::CountDistribution;
use crate::server::Server;
use crate::testing::{CHAT, MS, Read, Rig, STREAM, instant, post, post_as_is, rig, timed};

/// A server of `config`, one connection to it that sends `wire` at 1 ms, and a second of time.
fn ask(config: ServerConfig, wire: impl AsRef<[u8]>) -> Rig {
    let mut rig = rig(config);
    rig.run_to(MS);
    rig.connect();
    rig.send(0, wire);
    rig.run_to(1_000 * MS);
    rig
}

/// When something was written, in milliseconds since the request, and how many events with tokens.
fn writes(rig: &Rig, number: usize) -> Vec<(u64, usize)> {
    rig.with(number, |pipe| {
        let line = |(at, bytes): &(Nanos, Vec<u8>)| {
            let since = at.as_nanos() - MS;
            assert_eq!(since % MS, 0, "a write at {at:?} is not at a planned instant");
            let text = String::from_utf8_lossy(bytes);
            (since / MS, text.matches("\"content\":\" ").count())
        };
        pipe.writes.iter().map(line).collect()
    })
}

fn only(mut answers: Vec<Read>) -> Read {
    assert_eq!(answers.len(), 1);
    let answer = answers.remove(0);
    assert!(answer.complete);
    answer
}

#[test]
fn tokens_leave_at_the_planned_instants_and_the_role_before_them() {
    let rig = ask(timed(|_| ()), post(CHAT, "", STREAM));
    assert_eq!(writes(&rig, 0), [(0, 0), (20, 1), (25, 1), (30, 1)]);
    let events = only(rig.answers(0)).events();
    assert_eq!(events.len(), 6);
    assert!(
        events[0].contains(r#""delta":{"role":"assistant","content":""},"finish_reason":null"#)
    );
    assert!(events[3].contains(r#""delta":{"content":" to"},"finish_reason":null"#));
    assert!(events[4].contains(r#""delta":{},"finish_reason":"stop""#));
    assert_eq!(events[5], "[DONE]");
    assert_eq!((rig.counts.with_status(200), rig.counts.tokens()), (1, 3));
}

#[test]
fn without_a_role_chunk_the_head_leaves_with_the_first_token() {
    let rig = ask(timed(|t| t.role_first = false), post(CHAT, "", STREAM));
    assert_eq!(writes(&rig, 0), [(20, 1), (25, 1), (30, 1)]);
    let events = only(rig.answers(0)).events();
    assert!(
        events[0].contains(r#""delta":{"role":"assistant","content":" the"}"#),
        "{}",
        events[0]
    );
}

#[test]
fn an_event_carries_as_many_tokens_as_it_was_told() {
    let config = timed(|t| {
        t.tokens_per_event = NonZeroU32::new(4).unwrap();
        t.tokens = CountDistribution::fixed(9);
    });
    let rig = ask(config, post(CHAT, "", STREAM));
    // Four at once, four after four gaps, the ninth one gap later.
    assert_eq!(writes(&rig, 0), [(0, 0), (20, 1), (40, 1), (45, 1)]);
    assert!(only(rig.answers(0)).body.contains("\" a question is known\""));
}

#[test]
fn the_tail_comes_when_it_was_told() {
    let rig = ask(timed(|t| t.tail = Span::from_millis(20)), post(CHAT, "", STREAM));
    assert_eq!(writes(&rig, 0), [(0, 0), (20, 1), (25, 1), (30, 1), (50, 0)]);
}

#[test]
fn usage_is_sent_when_asked_and_limits_cap_the_length() {
    let body =
        r#"{"messages":[],"stream":true,"stream_options":{"include_usage":true},"max_tokens":2}"#;
    let rig = ask(timed(|_| ()), post(CHAT, "", body));
    let events = only(rig.answers(0)).events();
    assert!(events[3].contains(r#""finish_reason":"length""#));
    let prompt = body.len() / 4;
    let total = prompt + 2;
    let usage = format!(
        r#""choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":2,"total_tokens":{total}}}"#
    );
    assert!(events[4].contains(&usage), "{}", events[4]);
}

#[test]
fn an_answer_that_does_not_stream_comes_with_its_last_token() {
    for (path, text) in [
        (CHAT, r#""message":{"role":"assistant","content":" the time to"},"finish_reason":"stop""#),
        ("/v1/completions", r#""text":" the time to","finish_reason":"stop""#),
    ] {
        let rig = ask(timed(|_| ()), post(path, "", "{}"));
        assert_eq!(writes(&rig, 0)[0].0, 30);
        let body = only(rig.answers(0)).body;
        assert!(body.contains(text) && body.contains(r#""completion_tokens":3"#), "{body}");
    }
}

#[test]
fn completions_stream_their_text() {
    let rig = ask(timed(|_| ()), post("/v1/completions", "X-Request-Id: ab\r\n", STREAM));
    let events = only(rig.answers(0)).events();
    assert_eq!(events.len(), 5);
    assert!(events[0].starts_with(r#"{"id":"cmpl-ab","object":"text_completion""#));
    assert!(events[0].contains(r#""choices":[{"index":0,"text":" the","finish_reason":null}]"#));
}

#[test]
fn sglang_streams_all_its_text_in_each_frame() {
    let body = r#"{"stream":true,"sampling_params":{"max_new_tokens":2}}"#;
    let rig = ask(timed(|_| ()), post("/generate", "", body));
    let at: Vec<u64> = writes(&rig, 0).iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [20, 25]);
    let events = only(rig.answers(0)).events();
    assert_eq!(events.len(), 3);
    assert!(events[0].contains(r#""text":" the","#) && events[0].contains(r#""e2e_latency":0.02"#));
    assert!(events[0].contains(r#""finish_reason":null"#));
    assert!(events[1].contains(r#""text":" the time","#));
    assert!(events[1].contains(r#""finish_reason":{"type":"length","length":2}"#));
    assert_eq!(events[2], "[DONE]");
}

#[test]
fn responses_are_events_named_by_what_they_say() {
    let body = r#"{"stream":true,"max_output_tokens":2}"#;
    let rig = ask(timed(|_| ()), post("/v1/responses", "X-Request-Id: ab\r\n", body));
    let events = only(rig.answers(0)).events();
    let parsed: Vec<serde_json::Value> =
        events.iter().map(|event| serde_json::from_str(event).expect("JSON")).collect();
    let kinds: Vec<_> = parsed.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.incomplete",
        ]
    );
    let numbers = parsed.iter().map(|event| event["sequence_number"].as_u64().unwrap());
    assert!(numbers.eq(0..10));
    assert_eq!(parsed[4]["delta"], " the");
    let end = &parsed[9]["response"];
    assert_eq!(end["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!((&end["id"], &end["usage"]["output_tokens"]), (&"resp_ab".into(), &2.into()));
    assert_eq!(end["output"][0]["content"][0]["text"], " the time");
}

#[test]
fn whole_responses_and_embeddings_are_one_object() {
    let rig = ask(timed(|_| ()), post("/v1/responses", "", "{}"));
    let body: serde_json::Value = serde_json::from_str(&only(rig.answers(0)).body).expect("JSON");
    assert_eq!((&body["object"], &body["status"]), (&"response".into(), &"completed".into()));
    // Asked to stream, too: there is no stream of embeddings.
    let rig = ask(timed(|_| ()), post("/v1/embeddings", "", r#"{"input":"x","stream":true}"#));
    assert_eq!(writes(&rig, 0)[0].0, 20, "at the time of a first token");
    let body: serde_json::Value = serde_json::from_str(&only(rig.answers(0)).body).expect("JSON");
    assert_eq!(body["data"][0]["embedding"].as_array().map(Vec::len), Some(64));
    assert!(body["usage"]["prompt_tokens"].as_u64() > Some(0));
}

#[test]
fn counts_and_ids_come_with_each_chunk_when_asked_for() {
    let body = r#"{"stream":true,"stream_options":{"continuous_usage_stats":true},"return_token_ids":true}"#;
    let rig = ask(timed(|_| ()), post("/v1/completions", "", body));
    let events = only(rig.answers(0)).events();
    assert!(events[1].contains(r#""text":" time","finish_reason":null,"token_ids":[1001]}]"#));
    assert!(events[1].contains(r#""completion_tokens":2"#), "{}", events[1]);
}

#[test]
fn slots_are_given_first_come_first_served() {
    let mut rig = rig(timed(|t| t.slots = NonZeroU32::new(1)));
    rig.run_to(MS);
    for number in 0..3 {
        rig.connect();
        rig.send(number, post(CHAT, "", "{}"));
    }
    rig.run_to(MS);
    assert_eq!((rig.counts.running(), rig.counts.waiting()), (1, 2));
    rig.run_to(1_000 * MS);
    for number in 0..3 {
        assert_eq!(writes(&rig, number)[0].0, 30 * (number as u64 + 1));
    }
    assert_eq!((rig.counts.running(), rig.counts.waiting()), (0, 0));
}

#[test]
fn a_client_that_resets_gives_its_slot_or_its_place_to_the_next() {
    for gone in [0, 1] {
        let mut rig = rig(timed(|t| t.slots = NonZeroU32::new(1)));
        for number in 0..3 {
            rig.connect();
            rig.send(number, post(CHAT, "", "{}"));
        }
        rig.run_to(10 * MS);
        rig.reset(gone);
        rig.run_to(1_000 * MS);
        let at = rig.with(2, |pipe| pipe.writes[0].0.as_nanos());
        // Served right after the reset, with one before it; or after the first, without the second.
        assert_eq!(at, if gone == 0 { 70 * MS } else { 60 * MS });
        assert_eq!((rig.counts.gone(), rig.counts.with_status(200)), (1, 2));
        assert_eq!((rig.counts.open(), rig.counts.running()), (2, 0));
    }
}

#[test]
fn planned_errors_are_sent_at_once_and_keep_the_connection() {
    let errors = vec![ErrorShare { status: 429, share: 1.0 }];
    let wire = post(CHAT, "", STREAM).repeat(2);
    let rig = ask(timed(|t| t.errors = errors), wire);
    let answers = rig.answers(0);
    assert_eq!(answers.len(), 2);
    for answer in answers {
        assert_eq!((answer.status, answer.keep_alive), (429, true));
        assert!(answer.body.contains(r#""type":"rate_limit_error","code":429"#));
    }
    let text = String::from_utf8(rig.received(0)).unwrap();
    assert!(text.contains("\r\nRetry-After: 1\r\n"));
    assert_eq!(rig.counts.with_status(429), 2);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let wire =
        [post(CHAT, "", STREAM), post(CHAT, "", "{}"), "GET /health HTTP/1.1\r\n\r\n".into()];
    let rig = ask(timed(|_| ()), wire.concat());
    let answers = rig.answers(0);
    assert_eq!(answers.iter().map(|a| a.streamed).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(answers[2].body, r#"{"status":"ok"}"#);
    // Service of the second begins when the first is done.
    assert_eq!(writes(&rig, 0).last().unwrap().0, 60);
}

#[test]
fn what_is_asked_in_one_read_is_answered_in_one_write() {
    let rig = ask(instant(), post("/x", "", "{}").repeat(5));
    assert_eq!(rig.answers(0).len(), 5);
    assert_eq!(rig.with(0, |pipe| pipe.writes.len()), 1);
}

#[test]
fn of_many_that_are_ready_at_once_each_gets_its_answers() {
    let mut rig = rig(instant());
    let many = 100;
    for number in 0..many {
        rig.connect();
        rig.send(number, post("/x", "", "{}"));
        match number % 4 {
            1 => rig.end(number),
            2 => rig.send(number, post("/x", "", "{}").repeat(2)),
            3 => rig.give_room(number, 10),
            _ => {}
        }
    }
    rig.run_to(MS);
    (3..many).step_by(4).for_each(|number| rig.give_room(number, usize::MAX));
    rig.run_to(2 * MS);
    for number in 0..many {
        let (answers, closed) = (rig.answers(number), rig.with(number, |pipe| pipe.closed));
        assert_eq!(answers.len(), if number % 4 == 2 { 3 } else { 1 }, "{number}");
        assert!(answers.iter().all(|answer| answer.complete), "{number}");
        assert_eq!(closed.is_some(), number % 4 == 1, "{number}");
    }
    assert_eq!(rig.counts.requests(), 150);
}

#[test]
fn small_answers_wait_until_their_batch_is_read() {
    let get = "GET / HTTP/1.1\r\n\r\n";
    let large = get.repeat(10);
    let leaving = post("/x", "Connection: close\r\n", "{}");
    for (asked, together) in [(get, true), (large.as_str(), false), (leaving.as_str(), false)] {
        let mut rig = rig(instant());
        for _ in 0..20 {
            rig.connect();
        }
        rig.run_to(0);
        (0..20).for_each(|number| rig.send(number, asked));
        rig.run_to(MS);
        let expect =
            if together { [[false; 20], [true; 20]].concat() } else { [false, true].repeat(20) };
        assert_eq!(rig.calls(), expect, "{asked}");
    }
}

#[test]
fn a_client_that_goes_before_its_answer_is_written_costs_no_other_its_own() {
    let mut rig = rig(instant());
    for number in 0..3 {
        rig.connect();
        rig.send(number, post("/x", "", "{}"));
    }
    rig.reset_when_read(1);
    rig.run_to(MS);
    let outcome = |number| (rig.answers(number).len(), rig.with(number, |pipe| pipe.closed));
    let gone = Some((Nanos::ZERO, Close::Reset));
    assert_eq!([0, 1, 2].map(outcome), [(1, None), (0, gone), (1, None)]);
    assert_eq!(rig.counts.open(), 2);
}

#[test]
fn any_number_of_pipelined_requests_is_answered() {
    let rig = ask(instant(), "GET / HTTP/1.1\r\n\r\n".repeat(50_000));
    assert_eq!(rig.answers(0).len(), 50_000);
    assert_eq!(rig.counts.requests(), 50_000);
}

#[test]
fn a_request_byte_by_byte_is_the_same_request() {
    for mode in [instant(), timed(|_| ())] {
        let whole = ask(mode.clone(), post(CHAT, "X-Request-Id: 1\r\n", STREAM)).received(0);
        let mut rig = rig(mode);
        rig.connect();
        for byte in post(CHAT, "X-Request-Id: 1\r\n", STREAM).bytes() {
            rig.send(0, [byte]);
            rig.run_to(0);
        }
        rig.run_to(1_000 * MS);
        assert_eq!(rig.received(0), whole);
    }
}

#[test]
fn a_full_socket_delays_bytes_and_changes_none() {
    for mode in [instant(), timed(|t| t.tokens = CountDistribution::fixed(9_000))] {
        let wire = post(CHAT, "X-Request-Id: 1\r\n", STREAM).repeat(3);
        let mut free = rig(mode.clone());
        free.connect();
        free.send(0, &wire);
        free.run_to(1_000_000 * MS);
        let mut held = rig(mode);
        held.connect();
        held.give_room(0, 10);
        held.send(0, &wire);
        held.run_to(100_000 * MS);
        assert_eq!(held.received(0).len(), 10);
        for step in 1..200 {
            held.give_room(0, 4_999);
            held.run_to((100_000 + step * 1_000) * MS);
        }
        held.give_room(0, usize::MAX);
        held.run_to(1_000_000 * MS);
        // The one field that goes by the clock, and not by the plan, is left out.
        let timeless = |rig: &Rig| -> Vec<String> {
            let events = |read: &Read| -> Vec<String> {
                read.events().iter().map(|e| e.split("\"model\"").last().unwrap().into()).collect()
            };
            rig.answers(0).iter().flat_map(events).collect()
        };
        assert_eq!(free.answers(0).len(), 3);
        assert!(timeless(&held) == timeless(&free));
    }
}

#[test]
fn a_client_that_ends_its_side_gets_its_answer() {
    for mode in [instant(), timed(|_| ())] {
        let mut rig = rig(mode);
        rig.connect();
        rig.send(0, post(CHAT, "", "{}").repeat(2));
        rig.end(0);
        rig.run_to(1_000 * MS);
        assert_eq!(rig.answers(0).len(), 2);
        assert_eq!(rig.with(0, |pipe| pipe.closed.unwrap().1), Close::Orderly);
        assert_eq!((rig.counts.open(), rig.counts.connections()), (0, 1));
    }
}

#[test]
fn a_connection_that_is_not_to_be_kept_is_closed_behind_its_answer() {
    for mode in [instant(), timed(|_| ())] {
        let wire = post(CHAT, "Connection: close\r\n", STREAM) + &post(CHAT, "", STREAM);
        let rig = ask(mode, wire);
        let answer = only(rig.answers(0));
        assert!(!answer.keep_alive);
        assert_eq!(rig.with(0, |pipe| pipe.closed.unwrap().1), Close::Orderly);
    }
}

#[test]
fn a_server_can_promise_to_keep_a_connection_and_close_it() {
    for (delay, mode) in [(0, instant()), (3, instant()), (3, timed(|_| ()))] {
        let config = ServerConfig { close_after: Some(Span::from_millis(delay)), ..mode };
        let rig = ask(config, post(CHAT, "", STREAM).repeat(2));
        assert!(only(rig.answers(0)).keep_alive);
        let last = writes(&rig, 0).last().unwrap().0;
        let closed = rig.with(0, |pipe| pipe.closed.unwrap());
        assert_eq!(closed, (Nanos::from_nanos((1 + last + delay) * MS), Close::Orderly));
    }
}

#[test]
fn what_is_no_request_is_refused_and_the_connection_closed() {
    let limits = Limits { head: 200, body: 50, event: 50 };
    for (wire, status) in [
        ("hello\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(300)), 431),
        ("POST / HTTP/1.1\r\nContent-Length: 51\r\n\r\n".to_owned(), 413),
    ] {
        let rig = ask(ServerConfig { limits, ..instant() }, wire);
        let answer = only(rig.answers(0));
        assert_eq!((answer.status, answer.keep_alive), (status, false));
        assert!(rig.with(0, |pipe| pipe.closed.is_some()));
        assert_eq!(rig.counts.with_status(status), 1);
    }
}

#[test]
fn one_connection_too_many_is_reset() {
    let mut rig = rig(ServerConfig { connections_max: 2, ..instant() });
    for _ in 0..3 {
        rig.connect();
    }
    rig.run_to(MS);
    assert_eq!(rig.with(2, |pipe| pipe.closed.unwrap().1), Close::Reset);
    assert_eq!((rig.counts.open(), rig.counts.reset()), (2, 1));
}

#[test]
fn routes_are_what_they_say() {
    for (request, status, text) in [
        ("GET /health", 200, r#"{"status":"ok"}"#),
        ("GET /v1/models", 200, r#"{"object":"list","data":[{"id":"mock","object":"model""#),
        ("GET /metrics", 200, "takt_mock_connections_open 1\n"),
        ("POST /health", 405, "this route takes GET"),
        ("GET /v1/chat/completions", 405, "this route takes POST"),
        (
            "GET /v2",
            404,
            r#"{"error":{"message":"there is no such route","type":"not_found_error""#,
        ),
    ] {
        let rig = ask(timed(|_| ()), format!("{request} HTTP/1.1\r\n\r\n"));
        let answer = only(rig.answers(0));
        assert_eq!(answer.status, status, "{request}");
        assert!(answer.body.contains(text), "{request}: {}", answer.body);
        assert!(answer.keep_alive);
    }
    let rig = ask(timed(|_| ()), "HEAD /health HTTP/1.1\r\n\r\n");
    assert!(rig.received(0).ends_with(b"Content-Length: 15\r\n\r\n"));
    let head = ask(instant(), "HEAD /metrics HTTP/1.1\r\n\r\n").received(0);
    assert!(String::from_utf8(head).unwrap().contains("text/plain"));
    let rig = ask(instant(), "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(only(rig.answers(0)).body.contains("takt_mock_connections_total 1\n"));
}

#[test]
fn a_client_that_waits_is_told_to_continue() {
    let mut rig = rig(instant());
    rig.connect();
    rig.send(0, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    rig.run_to(MS);
    assert_eq!(rig.received(0), b"HTTP/1.1 100 Continue\r\n\r\n");
    rig.send(0, "{}");
    rig.run_to(2 * MS);
    assert_eq!(rig.answers(0).len(), 1);
}

#[test]
fn a_server_that_cannot_listen_says_so_and_stops() {
    let told = Arc::new(Mutex::new(None));
    for deaf in [false, true] {
        let heard = told.clone();
        let server = Server::new(instant()).unwrap();
        let server = server.on_listening(move |at| *heard.lock().unwrap() = Some(at.is_ok()));
        let rig = if deaf { Rig::deaf(server) } else { Rig::new(server) };
        assert_eq!((rig.is_stopped(), *told.lock().unwrap()), (deaf, Some(!deaf)));
    }
}

#[test]
fn a_large_body_does_not_cost_the_request_behind_it() {
    let large = post("/x", "", &"y".repeat(100_000));
    for cut in [1, 50_000, large.len() + 20] {
        let wire = large.repeat(3);
        let mut rig = rig(instant());
        rig.connect();
        for part in [&wire[..cut], &wire[cut..]] {
            rig.send(0, part);
            rig.run_to(MS);
        }
        assert_eq!(rig.answers(0).len(), 3, "cut at {cut}");
    }
}

#[test]
fn a_body_without_what_its_route_needs_is_refused_in_the_words_of_real_servers() {
    for (path, given, says) in [
        (CHAT, r#""messages":[]"#, "Missing required parameter: 'messages'."),
        ("/v1/completions", r#""prompt":"x""#, "Missing required parameter: 'prompt'."),
        ("/v1/responses", r#""input":"x""#, "Missing required parameter: 'input'."),
        ("/v1/embeddings", r#""input":"x""#, "Missing required parameter: 'input'."),
        ("/generate", r#""input_ids":[1]"#, "Either text, input_ids or input_embeds"),
    ] {
        let name = given.split(':').next().unwrap();
        for body in ["{}", "", "not JSON", STREAM, &format!("{{{name}:null}}")] {
            let rig = ask(timed(|_| ()), post_as_is(path, "", body));
            let refused = only(rig.answers(0));
            assert_eq!(refused.status, 400, "{path} {body}");
            assert!(refused.body.contains(says), "{path} {body}: {}", refused.body);
            assert!(refused.body.contains(r#""type":"invalid_request_error""#), "{}", refused.body);
        }
        let rig = ask(timed(|_| ()), post_as_is(path, "", &format!("{{{given}}}")));
        assert_eq!(only(rig.answers(0)).status, 200, "{path}");
    }
}
