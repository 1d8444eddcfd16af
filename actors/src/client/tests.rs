//! The client against a scripted network.

use std::io::ErrorKind as Io;

use proptest::prelude::*;
use takt_engine::Close;
use takt_record::{Blame, Completed, ErrorKind, Outcome, PhaseId, Stage, TokenSource};
use takt_time::{Nanos, Span};
use takt_wire::{write_chunk, write_event_chunk, write_last_chunk};

use super::testing::*;
use super::*;
use crate::api::SampleIssuer;

fn us(us: u64) -> Span {
    Span::from_micros(us)
}

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// One line per answer: ordinal, outcome, attempts, whether the connection had been used.
fn told(rig: &Rig) -> Vec<String> {
    rig.answers().iter().map(|answer| tell(&answer.completed)).collect()
}

fn tell(done: &Completed) -> String {
    let how = match done.outcome {
        Outcome::Ok => "ok".to_owned(),
        Outcome::Unanswered => "unanswered".to_owned(),
        Outcome::Failed(f) => format!("{} {} {}", f.kind, f.blame, f.stage),
    };
    let reused = if done.reused { " reused" } else { "" };
    let again = if done.attempts == 2 { " again" } else { "" };
    format!("{} {how}{reused}{again}", done.key.ordinal)
}

/// Issues one request, waits for what comes of it, and checks that.
#[track_caller]
fn check(rig: &mut Rig, expect: &str) -> Completed {
    rig.issue();
    rig.run(ms(5));
    let done = rig.answers().last().expect("an answer").completed;
    assert_eq!(tell(&done), format!("{} {expect}", rig.issued() - 1));
    done
}

fn send(bytes: impl Into<Vec<u8>>) -> Act {
    Act::Send(us(50), bytes.into())
}

#[test]
fn connection_is_kept_and_used_again() {
    let mut rig = Rig::new(|_| {});
    let first = check(&mut rig, "ok");
    let second = check(&mut rig, "ok reused");
    assert_eq!(rig.net().dials.len(), 1);
    assert_eq!(rig.client.counters().connections, 1);
    assert_eq!(first.times.connect, Some(CONNECT_TAKES));
    assert_eq!(second.times.connect, None);
    assert_eq!(second.body_bytes, ANSWER_BODY.len() as u64);
    assert_eq!(second.status, Some(200));
}

#[test]
fn times_are_those_of_the_wire() {
    let mut rig = Rig::new(|_| {});
    let issued = rig.now();
    let times = check(&mut rig, "ok").times;
    let sent = issued + CONNECT_TAKES;
    let written = sent + WRITE_TAKES;
    // The server sees the request as the write returns.
    let end = written + us(50);
    assert_eq!((times.issued, times.acquired, times.sent), (issued, Some(sent), Some(sent)));
    assert_eq!((times.written, times.first_byte, times.end), (Some(written), Some(end), end));
}

#[test]
fn idle_connections_are_taken_last_in_first_out() {
    // Later requests are answered earlier.
    let mut rig = Rig::new(|_| {})
        .serve(|asked| vec![Act::Send(us(500 - 100 * asked.connection as u64), answer())]);
    for _ in 0..3 {
        rig.issue();
    }
    rig.run(ms(5));
    assert_eq!(rig.net().dials.len(), 3);
    rig.issue();
    rig.run(ms(5));
    // Connection 0 was answered last.
    assert_eq!(rig.net().asked.last().expect("asked").connection, 0);
}

#[test]
fn c3_dead_idle_connection_is_noticed_before_use() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    rig.net().act(0, Act::End(ms(1)));
    rig.run(ms(5));
    assert_eq!(rig.net().open(), 0, "closed as soon as it is seen");
    check(&mut rig, "ok");
}

#[test]
fn close_that_no_event_has_told_yet_is_found_by_a_look() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    // It arrives while the turn that issues is under way: no readiness comes before the write.
    rig.net().act(0, Act::End(Span::ZERO));
    rig.issue();
    rig.net().pass_silently();
    rig.run(ms(5));
    assert_eq!(told(&rig), ["0 ok", "1 ok"]);
    assert_eq!(rig.net().asked.len(), 2);
}

#[test]
fn bytes_on_an_idle_connection_close_it() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    rig.net().act(0, send("HTTP/1.1 408 Request Timeout\r\n\r\n"));
    rig.run(ms(1));
    assert_eq!(rig.net().open(), 0);
    assert_eq!(rig.client.counters().leftover, 1);
    check(&mut rig, "ok");
}

/// A server that closes each connection without an answer to the second request on it.
fn closes_on_second(end: fn(Span) -> Act) -> impl FnMut(&Asked) -> Vec<Act> {
    move |asked| if asked.nth == 0 { vec![send(answer())] } else { vec![end(us(20))] }
}

#[test]
fn request_that_dies_on_a_used_connection_is_sent_once_more() {
    for end in [Act::End, Act::Reset] {
        let mut rig = Rig::new(|_| {}).serve(closes_on_second(end));
        check(&mut rig, "ok");
        let issued = rig.now();
        let times = check(&mut rig, "ok again").times;
        // Its time runs from the first send, the rest is that of the second attempt.
        let died = issued + WRITE_TAKES + us(20);
        let acquired = died + CONNECT_TAKES;
        assert_eq!((times.sent, times.acquired), (Some(issued), Some(acquired)));
        assert_eq!(times.connect, Some(CONNECT_TAKES));
        assert_eq!(times.end, acquired + WRITE_TAKES + us(50));
        assert_eq!(rig.net().asked.len(), 3);
    }
}

#[test]
fn write_error_on_a_used_connection_is_a_stale_connection() {
    let mut rig = Rig::new(|_| {});
    rig.issue();
    rig.then_issue(1);
    // The reset is there when the next request is written, in the turn of the answer.
    rig.net().server = Box::new(|asked| {
        let reset = (asked.nth == 0 && asked.connection == 0).then(|| Act::Reset(us(50)));
        [send(answer())].into_iter().chain(reset).collect()
    });
    rig.net().break_silently = true;
    rig.run(ms(5));
    assert_eq!(told(&rig), ["0 ok", "1 ok again"]);
}

#[test]
fn second_attempt_is_the_last() {
    let mut rig = Rig::new(|_| {}).serve(|asked| {
        if asked.connection == 0 && asked.nth == 0 {
            vec![send(answer())]
        } else {
            vec![Act::Reset(us(20))]
        }
    });
    check(&mut rig, "ok");
    check(&mut rig, "reset network wait again");
    assert_eq!(rig.net().asked.len(), 3);
}

#[test]
fn nothing_is_sent_twice_when_retries_are_off() {
    let off = |config: &mut ClientConfig| config.retry_stale = false;
    let mut rig = Rig::new(off).serve(closes_on_second(Act::End));
    check(&mut rig, "ok");
    check(&mut rig, "reset network wait reused");
    assert_eq!(rig.net().asked.len(), 2);
}

#[test]
fn fresh_connection_that_dies_is_no_stale_one() {
    let mut rig = Rig::new(|_| {}).serve(|_| vec![Act::Reset(us(20))]);
    let done = check(&mut rig, "reset network wait");
    assert_eq!(done.status, None);
    assert_eq!(rig.net().asked.len(), 1);
}

#[test]
fn c4_server_that_closes_after_each_answer_is_pooled_no_more() {
    for delay in [12, 56] {
        // It reads no second request.
        let mut rig = Rig::new(|_| {}).serve(move |asked| match asked.nth {
            0 => vec![send(answer()), Act::End(us(50 + delay))],
            _ => Vec::new(),
        });
        rig.issue();
        rig.then_issue(9);
        rig.run(ms(10));
        let retried = rig.answers().iter().filter(|a| a.completed.attempts == 2).count();
        assert!(rig.answers().iter().all(|a| a.completed.outcome == Outcome::Ok));
        assert_eq!(rig.answers().len(), 10);
        // Two closes make the habit; the second falls to the retried request itself.
        assert!(retried <= 2, "{:?}", told(&rig));
        let pooled = rig.net().asked.iter().filter(|asked| asked.nth > 0).count();
        assert!(pooled <= 2);
    }
}

#[test]
fn end_that_comes_with_the_answer_keeps_the_connection_out_of_the_pool() {
    let mut rig = Rig::new(|_| {}).serve(|_| vec![send(answer()), Act::End(us(50))]);
    for _ in 0..5 {
        check(&mut rig, "ok");
        assert_eq!(rig.net().open(), 0);
    }
}

#[test]
fn announced_close_is_honoured() {
    let text = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(text)]);
    check(&mut rig, "ok");
    assert_eq!(rig.net().closed(0), Some(Close::Orderly));
    check(&mut rig, "ok");
}

#[test]
fn f14_answer_that_ends_with_its_connection_is_whole() {
    let text = "HTTP/1.1 200 OK\r\n\r\nuntil the end";
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(text), Act::End(us(90))]);
    let issued = rig.now();
    let done = check(&mut rig, "ok");
    assert_eq!(done.body_bytes, 13);
    // The last byte, not the close that tells so.
    assert_eq!(done.times.end, issued + CONNECT_TAKES + WRITE_TAKES + us(50));
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(text), Act::Reset(us(90))]);
    check(&mut rig, "truncated network body");
}

#[test]
fn f15_interim_answers_are_skipped() {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec();
    bytes.extend(answer());
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(bytes.clone())]);
    check(&mut rig, "ok");
    check(&mut rig, "ok reused");
}

#[test]
fn bytes_left_over_close_the_connection_and_the_answer_stands() {
    let mut bytes = answer();
    bytes.extend_from_slice(b"and more");
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(bytes.clone())]);
    check(&mut rig, "ok");
    assert_eq!((rig.net().open(), rig.client.counters().leftover), (0, 1));
    check(&mut rig, "ok");
}

#[test]
fn f10_failures_by_status_leave_the_connection_usable() {
    let text = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nslow";
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(text)]);
    let done = check(&mut rig, "http_status server body");
    let Outcome::Failed(failure) = done.outcome else { panic!("{done:?}") };
    assert_eq!((done.status, failure.status), (Some(429), Some(429)));
    check(&mut rig, "http_status server body reused");
    let said = rig.answers()[0].error.clone().expect("words");
    assert!(said.contains("429") && said.contains("slow"), "{said}");
}

#[test]
fn what_is_not_http_fails_and_closes() {
    let mut rig = Rig::new(|_| {}).serve(|_| vec![send("SSH-2.0-OpenSSH_9.6\r\n")]);
    check(&mut rig, "bad_framing server head");
    assert_eq!(rig.net().open(), 0);
}

/// A stream of three tokens and its end, as separate sends.
fn stream() -> Vec<Vec<u8>> {
    let mut head = Vec::new();
    head.extend_from_slice(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let role = r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#;
    write_event_chunk(&mut head, role.as_bytes());
    let mut pieces = vec![head];
    for word in ["six", " times", " seven"] {
        let mut piece = Vec::new();
        let delta = format!(r#"{{"choices":[{{"delta":{{"content":"{word}"}}}}]}}"#);
        write_event_chunk(&mut piece, delta.as_bytes());
        pieces.push(piece);
    }
    let mut end = Vec::new();
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
    write_event_chunk(&mut end, stop.as_bytes());
    write_chunk(&mut end, b"data: [DONE]\n\n");
    write_last_chunk(&mut end);
    pieces.push(end);
    pieces
}

/// The first `count` pieces, one every 100 us.
fn pieces(count: usize) -> Vec<Act> {
    let at = |n: usize| us(100 * (n as u64 + 1));
    stream().into_iter().take(count).enumerate().map(|(n, b)| Act::Send(at(n), b)).collect()
}

#[test]
fn tokens_of_a_stream_are_stamped_as_they_come() {
    let mut rig = Rig::chat(|config| config.phases[0].keep_text = true).serve(|_| pieces(5));
    let issued = rig.now();
    let done = check(&mut rig, "ok");
    let at = |n: u64| issued + CONNECT_TAKES + WRITE_TAKES + us(100 * n);
    let times = done.times;
    assert_eq!((times.first_byte, times.first_event), (Some(at(1)), Some(at(1))));
    assert_eq!((times.first_token, times.first_content), (Some(at(2)), Some(at(2))));
    assert_eq!((times.last_token, times.end), (Some(at(4)), at(5)));
    assert_eq!((done.tokens.input, done.tokens.output), (Some(5), Some(3)));
    assert_eq!((done.tokens.source, done.tokens.events), (Some(TokenSource::Usage), 3));
    assert_eq!(done.tokens.first_event, Some(1));
    assert_eq!(rig.published().text, "six times seven");
    let stamps: Vec<_> = rig.published().tokens.iter().map(|t| (t.at, t.first)).collect();
    assert_eq!(stamps, [(at(2), true), (at(3), false), (at(4), false)]);
    check(&mut rig, "ok reused");
}

#[test]
fn stream_in_single_bytes_is_the_same_stream() {
    let bytes: Vec<u8> = stream().concat();
    let ends: Vec<u64> = stream()
        .iter()
        .scan(0, |sum, piece| {
            *sum += piece.len() as u64;
            Some(*sum)
        })
        .collect();
    let mut rig = Rig::chat(|_| {}).serve(move |_| {
        let one = |(n, byte): (usize, &u8)| Act::Send(us(n as u64 + 1), vec![*byte]);
        bytes.iter().enumerate().map(one).collect()
    });
    let issued = rig.now();
    let done = check(&mut rig, "ok");
    let at = |byte: u64| issued + CONNECT_TAKES + WRITE_TAKES + us(byte);
    assert_eq!((done.times.first_byte, done.times.end), (Some(at(1)), at(ends[4])));
    // The line end of the chunk comes after the event that it carries.
    assert_eq!(done.times.first_token, Some(at(ends[1] - 2)));
    assert_eq!((done.tokens.events, done.tokens.coalesced), (3, 0));
}

#[test]
fn events_of_one_read_are_marked() {
    let mut rig = Rig::chat(|_| {}).serve(|_| vec![send(stream().concat())]);
    let done = check(&mut rig, "ok");
    assert_eq!((done.tokens.events, done.tokens.coalesced), (3, 2));
}

#[test]
fn f9_stream_that_is_cut_is_truncated_and_what_came_is_kept() {
    for end in [Act::End, Act::Reset] {
        let mut rig = Rig::chat(|_| {}).serve(move |_| {
            let mut acts = pieces(3);
            acts.push(end(us(350)));
            acts
        });
        let done = check(&mut rig, "truncated network stream");
        assert_eq!((done.tokens.events, done.tokens.output), (2, Some(2)));
        assert_eq!(done.tokens.source, Some(TokenSource::Events));
        assert!(done.times.first_token.is_some());
        assert_eq!(rig.net().open(), 0);
    }
}

#[test]
fn refused_connect_fails_its_request() {
    let refuse = |_, _| Dial::Fail(us(20), Io::ConnectionRefused);
    let mut rig = Rig::new(|_| {}).dial(refuse);
    let done = check(&mut rig, "connect_refused network connect");
    assert_eq!((done.times.sent, done.times.acquired), (None, None));
}

#[test]
fn each_way_not_to_connect_has_its_name() {
    for (dial, expect) in [
        (Dial::Fail(us(20), Io::HostUnreachable), "connect_refused network connect"),
        (Dial::Fail(us(20), Io::NotFound), "connect_refused network connect"),
        (Dial::Fail(us(20), Io::TimedOut), "connect_timeout network connect"),
        (Dial::Fail(us(20), Io::AddrNotAvailable), "local_limit client connect"),
        (Dial::NoAttempt(Io::Other), "local_limit client connect"),
        (Dial::NoAttempt(Io::InvalidInput), "internal client connect"),
        (Dial::Silent, "connect_timeout network connect"),
    ] {
        let limit = |config: &mut ClientConfig| config.connect_timeout = Some(ms(2));
        let mut rig = Rig::new(limit).dial(move |_, _| dial.clone());
        check(&mut rig, expect);
        assert_eq!(rig.net().open(), 0);
    }
}

#[test]
fn c6_dead_server_slows_a_closed_loop_and_is_found_when_it_returns() {
    let back = Nanos::from_nanos(1_000_000_000) + ms(1_000);
    let mut rig = Rig::new(|_| {}).dial(move |_, now| {
        if now < back { Dial::Fail(us(20), Io::ConnectionRefused) } else { Dial::Up(us(20)) }
    });
    for _ in 0..8 {
        rig.issue();
    }
    rig.then_issue(1_000);
    rig.run(ms(1_000));
    let failed = rig.answers().len();
    // The first eight at once; then by probes after 1, 2, 4 … 64, 100, 100 … ms: seven doublings
    // (127 ms) and at most (1000 - 127) / 100 more, each of which eight wait for.
    assert!(failed <= 8 + 8 * (7 + 9), "{failed}");
    assert!(rig.net().dials.len() <= 8 + 7 + 9, "{}", rig.net().dials.len());
    rig.run(ms(200));
    assert_eq!(rig.answers().len() as u64, rig.issued());
    assert!(rig.answers()[failed + 8..].iter().all(|a| a.completed.outcome == Outcome::Ok));
}

#[test]
fn without_a_cap_there_are_as_many_connections_as_requests() {
    let mut rig = Rig::new(|_| {});
    for _ in 0..500 {
        rig.issue();
    }
    rig.run(ms(5));
    assert_eq!((rig.net().dials.len(), rig.answers().len()), (500, 500));
    assert_eq!(rig.client.counters().limited, 0);
}

#[test]
fn at_the_cap_requests_wait_in_line() {
    let mut rig = Rig::new(|config| config.max_connections = Some(2));
    for _ in 0..6 {
        rig.issue();
    }
    rig.run(ms(5));
    assert_eq!(rig.net().dials.len(), 2);
    assert_eq!(rig.client.counters().limited, 4);
    let order: Vec<u64> = rig.net().asked.iter().map(Rig::ordinal).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    let waited = rig.answers()[2].completed.times;
    assert_eq!(waited.acquired, Some(rig.answers()[0].completed.times.end));
    assert!(waited.sent >= waited.acquired);
}

#[test]
fn connection_that_comes_free_serves_who_waits_for_a_new_one() {
    // The second connect takes for ever.
    let mut rig =
        Rig::new(|_| {}).dial(|nth, _| if nth == 0 { Dial::Up(us(20)) } else { Dial::Silent });
    rig.issue();
    rig.issue();
    rig.run(ms(5));
    assert_eq!(told(&rig), ["0 ok", "1 ok reused"]);
    // And the next needs no third.
    rig.issue();
    rig.run(ms(5));
    assert_eq!((rig.answers().len(), rig.net().dials.len()), (3, 2));
}

#[test]
fn cancel_answers_each_request_wherever_it_is() {
    // 0 is answered in part, 1 not at all, 2 is written in part, 3 has no connection, 4 and 5 wait
    // for the cap.
    let mut rig = Rig::new(|config| config.max_connections = Some(4))
        .dial(|nth, _| if nth == 3 { Dial::Silent } else { Dial::Up(us(20)) })
        .serve(
            |asked| {
                if asked.connection == 0 { vec![send(&answer()[..30])] } else { Vec::new() }
            },
        );
    for _ in 0..2 {
        rig.issue();
    }
    rig.run(ms(1));
    rig.net().room = 10;
    rig.net().drains = false;
    for _ in 2..6 {
        rig.issue();
    }
    rig.run(ms(1));
    rig.issue_in(PhaseId(1));
    rig.cancel(Cancel::Phase(PhaseId(0)));
    rig.run(ms(1));
    let expect: Vec<String> = (0..6).map(|n| format!("{n} unanswered")).collect();
    assert_eq!(told(&rig), expect);
    for connection in 0..3 {
        assert_eq!(rig.net().closed(connection), Some(Close::Reset), "{connection}");
    }
    assert!(rig.answers()[0].completed.times.first_byte.is_some());
    rig.cancel(Cancel::All);
    rig.cancel(Cancel::All);
    rig.run(ms(1));
    assert_eq!(rig.answers().len(), 7);
}

#[test]
fn cancel_reaches_a_second_attempt() {
    let mut rig = Rig::new(|_| {})
        .dial(|nth, _| if nth == 0 { Dial::Up(us(20)) } else { Dial::Silent })
        .serve(closes_on_second(Act::End));
    check(&mut rig, "ok");
    rig.issue();
    rig.run(ms(1));
    rig.cancel(Cancel::All);
    rig.run(ms(1));
    assert_eq!(told(&rig), ["0 ok", "1 unanswered again"]);
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn shut_down_closes_everything() {
    let mut rig = Rig::new(|config| config.warm_connections = 3);
    rig.run(ms(1));
    rig.issue();
    rig.client.shut_down();
    rig.run(ms(1));
    assert_eq!(told(&rig), ["0 unanswered"]);
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn time_outs_end_requests_where_they_are() {
    let limits = |config: &mut ClientConfig| {
        config.first_byte_timeout = Some(ms(1));
        config.request_timeout = Some(ms(3));
        config.max_connections = Some(2);
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    let mut rig = Rig::new(limits).serve(move |asked| {
        // The first is never answered; the second begins to be.
        if Rig::ordinal(asked) == 1 { vec![send(head)] } else { Vec::new() }
    });
    let issued = rig.now();
    rig.issue();
    rig.issue();
    rig.run(ms(10));
    assert_eq!(told(&rig), ["0 first_byte_timeout server wait", "1 request_timeout server body"]);
    let end = |n: usize| rig.answers()[n].completed.times.end;
    // The first was sent when its connection stood.
    assert_eq!(end(0), issued + CONNECT_TAKES + ms(1));
    assert_eq!(end(1), issued + ms(3));
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn who_waits_for_the_cap_too_long_fails_in_the_queue() {
    let limits = |config: &mut ClientConfig| {
        config.request_timeout = Some(ms(3));
        config.max_connections = Some(1);
    };
    let mut rig = Rig::new(limits).serve(|_| vec![Act::Send(ms(100), answer())]);
    rig.issue();
    rig.run(ms(1));
    rig.issue();
    rig.run(us(1_999));
    rig.issue();
    rig.run(ms(1));
    // The first has made room for the second, which had a millisecond left on a connection.
    assert_eq!(told(&rig), ["0 request_timeout server wait"]);
    rig.run(ms(10));
    let told = told(&rig);
    assert_eq!(told[1..], ["1 request_timeout server wait", "2 request_timeout server wait"]);
    let mut rig = Rig::new(limits).serve(|_| vec![Act::Send(ms(100), answer())]);
    rig.issue();
    rig.issue();
    rig.run(ms(3));
    assert_eq!(rig.answers()[1].completed.times.sent, None);
    assert_eq!(tell(&rig.answers()[1].completed), "1 request_timeout client queue");
}

#[test]
fn time_out_of_a_second_attempt_runs_from_the_first_send() {
    let limit = |config: &mut ClientConfig| config.first_byte_timeout = Some(ms(1));
    let mut rig = Rig::new(limit).serve(|asked| match (asked.connection, asked.nth) {
        (0, 0) => vec![send(answer())],
        (0, _) => vec![Act::End(us(900))],
        _ => vec![Act::Send(us(500), answer())],
    });
    check(&mut rig, "ok");
    let issued = rig.now();
    let done = check(&mut rig, "first_byte_timeout server wait again");
    assert_eq!(done.times.end, issued + ms(1));
}

#[test]
fn c8_full_socket_is_written_as_it_drains() {
    let mut rig = Rig::new(|_| {});
    rig.net().room = 10;
    let issued = rig.now();
    let done = check(&mut rig, "ok");
    let written = done.times.written.expect("written");
    // Far more than ten bytes went out, ten at a time, 10 us apart.
    assert!(written >= issued + CONNECT_TAKES + us(100), "{written:?}");
    assert_eq!(done.times.end, written + us(50));
    check(&mut rig, "ok reused");
}

#[test]
fn answer_before_the_request_is_written_stands_and_closes() {
    let mut rig = Rig::new(|_| {});
    rig.net().room = 10;
    rig.net().drains = false;
    rig.issue();
    rig.run(us(100));
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    rig.net().act(0, send(refusal));
    rig.run(ms(1));
    let done = rig.answers()[0].completed;
    assert_eq!(tell(&done), "0 http_status server body");
    assert_eq!((done.status, done.times.written), (Some(413), None));
    assert_eq!(rig.net().closed(0), Some(Close::Reset));
}

#[test]
fn warm_connections_stand_before_the_first_request() {
    let mut rig = Rig::new(|config| config.warm_connections = 100);
    let warmed = Rc::new(Cell::new(None));
    let told = warmed.clone();
    rig.client.when_warm(move |result| told.set(Some(result)));
    rig.run(ms(1));
    let expect = Warmed { stand: 100, failed: 0, error: None };
    assert_eq!(warmed.take(), Some(expect.clone()));
    let mut dials = rig.net().dials.clone();
    let first = dials.iter().filter(|at| **at == dials[0]).count();
    assert_eq!(first, 32, "no more at a time");
    dials.dedup();
    assert!(dials.len() >= 100_usize.div_ceil(32));
    check(&mut rig, "ok");
    assert_eq!(rig.net().dials.len(), 100);
    // Who asks later is told at once.
    let told = warmed.clone();
    rig.client.when_warm(move |result| told.set(Some(result)));
    rig.run(us(1));
    assert_eq!(warmed.take(), Some(expect));
}

#[test]
fn warm_up_of_a_dead_server_fails_soon_and_says_why() {
    let mut rig = Rig::new(|config| config.warm_connections = 100)
        .dial(|_, _| Dial::Fail(us(20), Io::ConnectionRefused));
    let warmed = Rc::new(Cell::new(None));
    let told = warmed.clone();
    rig.client.when_warm(move |result| told.set(Some(result)));
    rig.run(ms(1));
    let result = warmed.take().expect("told");
    assert_eq!((result.stand, result.failed), (0, 100));
    assert!(result.error.expect("why").contains("refused"));
    assert_eq!(rig.net().dials.len(), 32);
}

#[test]
fn endpoints_take_turns_or_the_least_busy_one_is_taken() {
    for (balance, expect) in
        [(Balance::RoundRobin, [0, 1, 0, 1]), (Balance::LeastInFlight, [0, 1, 1, 1])]
    {
        let publisher = takt_record::Publisher::new(
            Box::new(takt_record::Discard),
            takt_record::PublisherConfig::default(),
        );
        let mut config = config_for_two();
        config.balance = balance;
        let mut client = Client::new(config, SharedPublisher::new(publisher));
        let chosen: Vec<usize> = (0..4)
            .map(|n| {
                let chosen = client.choose();
                // The first endpoint never answers; the second does at once.
                client.endpoints[0].in_flight += usize::from(n == 0);
                chosen
            })
            .collect();
        assert_eq!(chosen, expect, "{balance:?}");
    }
}

/// What a random server does on one request.
#[derive(Clone, Debug)]
enum Whim {
    Answer(u64),
    AnswerAndEnd(u64),
    Part(u64),
    Reset(u64),
    End(u64),
    Never,
    Trickle,
}

#[derive(Clone, Debug)]
enum Step {
    Issue(u16),
    Cancel(u16),
    CancelAll,
    Pass(u64),
    Kill(usize),
}

fn whim() -> impl Strategy<Value = Whim> {
    let us = 1..3_000_u64;
    prop_oneof![
        6 => us.clone().prop_map(Whim::Answer),
        2 => us.clone().prop_map(Whim::AnswerAndEnd),
        1 => us.clone().prop_map(Whim::Part),
        1 => us.clone().prop_map(Whim::Reset),
        1 => us.prop_map(Whim::End),
        1 => Just(Whim::Never),
        1 => Just(Whim::Trickle),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..2_u16).prop_map(Step::Issue),
        1 => (0..2_u16).prop_map(Step::Cancel),
        1 => Just(Step::CancelAll),
        6 => (0..2_000_u64).prop_map(Step::Pass),
        1 => (0..8_usize).prop_map(Step::Kill),
    ]
}

fn dial() -> impl Strategy<Value = Dial> {
    prop_oneof![
        6 => (1..500_u64).prop_map(|after| Dial::Up(us(after))),
        1 => (1..500_u64).prop_map(|after| Dial::Fail(us(after), Io::ConnectionRefused)),
        1 => Just(Dial::NoAttempt(Io::Other)),
        1 => Just(Dial::Silent),
    ]
}

fn on_a_whim(whim: &Whim) -> Vec<Act> {
    let after = |n: u64, bytes: Vec<u8>| Act::Send(us(n), bytes);
    match *whim {
        Whim::Answer(n) => vec![after(n, answer())],
        Whim::AnswerAndEnd(n) => vec![after(n, answer()), Act::End(us(n + 30))],
        Whim::Part(n) => vec![after(n, answer()[..25].to_vec()), Act::End(us(n + 30))],
        Whim::Reset(n) => vec![Act::Reset(us(n))],
        Whim::End(n) => vec![Act::End(us(n))],
        Whim::Never => Vec::new(),
        Whim::Trickle => {
            let one = |(n, byte): (usize, &u8)| after(1 + 7 * n as u64, vec![*byte]);
            answer().iter().enumerate().map(one).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the network does and whenever requests are given up, each is answered exactly once, the cap
    /// is held, and no connection is left behind.
    #[test]
    fn each_request_is_answered_exactly_once(
        steps in prop::collection::vec(step(), 1..80),
        whims in prop::collection::vec(whim(), 1..20),
        dials in prop::collection::vec(dial(), 1..20),
        cap in prop_oneof![Just(None), (1..5_usize).prop_map(Some)],
        room in prop_oneof![Just(usize::MAX), 1..200_usize],
        (retry, timeouts, warm) in (any::<bool>(), any::<bool>(), 0..4_usize),
    ) {
        let mut rig = Rig::new(|config| {
            config.max_connections = cap;
            config.retry_stale = retry;
            config.warm_connections = warm;
            if timeouts {
                config.connect_timeout = Some(ms(1));
                config.first_byte_timeout = Some(ms(2));
                config.request_timeout = Some(ms(4));
            }
        });
        let (mut nth, cap) = (0, cap.unwrap_or(usize::MAX));
        rig.net().server = Box::new(move |_| {
            nth += 1;
            on_a_whim(&whims[nth % whims.len()])
        });
        rig.net().dial = Box::new(move |nth, _| dials[nth % dials.len()].clone());
        rig.net().room = room;
        for step in steps {
            match step {
                Step::Issue(phase) => rig.issue_in(PhaseId(phase)),
                Step::Cancel(phase) => rig.cancel(Cancel::Phase(PhaseId(phase))),
                Step::CancelAll => rig.cancel(Cancel::All),
                Step::Pass(n) => { rig.run(us(n)); }
                Step::Kill(n) => rig.net().kill(n),
            }
            prop_assert!(rig.net().open() <= cap);
        }
        rig.run(ms(20));
        rig.client.shut_down();
        rig.run(ms(1));
        prop_assert_eq!(rig.net().open(), 0);
        let mut ordinals: Vec<u64> =
            rig.answers().iter().map(|answer| answer.completed.key.ordinal).collect();
        ordinals.sort_unstable();
        prop_assert_eq!(ordinals, (0..rig.issued()).collect::<Vec<u64>>());
        for answer in rig.answers() {
            let Completed { outcome, times, attempts, .. } = answer.completed;
            let failed = matches!(outcome, Outcome::Failed(_));
            prop_assert_eq!(answer.error.is_some(), failed);
            prop_assert!(attempts == 1 || (attempts == 2 && retry));
            let order = [times.sent, times.first_byte, Some(times.end)];
            let order: Vec<Nanos> = order.into_iter().flatten().collect();
            prop_assert!(order.is_sorted(), "{times:?}");
            prop_assert!(times.issued <= times.end);
            if let Outcome::Failed(failure) = outcome {
                prop_assert_eq!(failure.blame == Blame::Client, is_ours(failure.kind, failure.stage));
            }
        }
    }
}

/// Failures of this machine or of the client's own queue.
fn is_ours(kind: ErrorKind, stage: Stage) -> bool {
    kind == ErrorKind::LocalLimit || stage == Stage::Queue
}
