//! Answers: framing, streams, failures that an answer itself shows, and requests too large for a socket.

use takt_engine::Close;
use takt_record::TokenSource;
use takt_wire::{write_chunk, write_event_chunk, write_last_chunk};

use super::*;
use crate::api::SampleIssuer;
use crate::client::testing::{CONNECT_TAKES, WRITE_TAKES};

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
fn c8_a_socket_that_does_not_drain_stalls_nobody_else() {
    let mut rig = Rig::new(|_| {});
    rig.net().room = 10;
    rig.net().drains = false;
    rig.issue();
    rig.run(us(200));
    // The first one is stuck half-way; sockets have room again for those who come now.
    rig.net().room = usize::MAX;
    for _ in 0..50 {
        rig.issue();
    }
    rig.run(ms(1));
    let answers = rig.answers();
    assert_eq!(answers.len(), 50);
    for answer in &answers {
        let times = answer.completed.times;
        let waited =
            times.first_byte.expect("answered").saturating_since(times.sent.expect("sent"));
        assert!(waited <= us(60), "{waited} for an answer that takes 50 us");
        let writing = times.written.expect("written").saturating_since(times.sent.expect("sent"));
        assert!(writing <= us(5), "{writing}");
    }
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
fn answer_that_is_there_when_the_write_fails_is_read() {
    let mut rig = Rig::new(|_| {});
    rig.net().room = 10;
    rig.net().break_silently = true;
    rig.issue();
    // Ten bytes are written; 10 us later the socket has room, an answer has come, and a reset after it.
    let wrote = CONNECT_TAKES + WRITE_TAKES;
    rig.run(wrote);
    rig.net()
        .act(0, Act::Send(us(10), b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".into()));
    rig.net().act(0, Act::Reset(us(10)));
    rig.run(ms(1));
    assert_eq!(told(&rig), ["0 http_status server body"]);
    assert_eq!(rig.answers()[0].completed.status, Some(400));
}

#[test]
fn large_answer_is_read_to_its_end_in_shares() {
    let body = vec![b'x'; 5 << 20];
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend(&body);
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(bytes.clone())]);
    assert_eq!(check(&mut rig, "ok").body_bytes, body.len() as u64);
    check(&mut rig, "ok reused");
}
