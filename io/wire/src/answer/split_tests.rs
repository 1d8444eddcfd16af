//! The property that nothing depends on where an answer's bytes were split.

use proptest::prelude::*;

use super::tests::{A, Close, ROLE, STOP, USAGE, ask, chunk_of, feed_all};
use super::*;
use crate::Framing;
use crate::reply::{write_chunk, write_head, write_last_chunk};
use crate::testing::split;

/// Bodies of streams: usual events, odd ones, and pieces of the format.
fn bodies() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => proptest::sample::select(vec![ROLE, A, STOP, USAGE]).prop_map(|e| format!("data: {e}\n\n")),
        2 => "[a-zü\"\\\\]{0,9}".prop_map(|text| {
            format!("data:{}\r\n\r\n", chunk_of(&serde_json::json!({"content": text}).to_string()))
        }),
        1 => Just("data: [DONE]\n\n".to_owned()),
        1 => Just("data: {\"error\":\"x\"}\n\n".to_owned()),
        1 => "(data|event: error|: ping|data: \\{|\n|\r){0,4}",
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn wires() -> impl Strategy<Value = Vec<u8>> {
    let sizes = proptest::collection::vec(1usize..90, 1..6);
    let kinds = vec!["text/event-stream", "application/json", "text/html", "text/plain", ""];
    let statuses = prop_oneof![6 => Just(200u16), 1 => Just(500), 1 => Just(204)];
    let whole = Just(r#"{"choices":[{"message":{"content":"hi"}}],"usage":null}"#.to_owned());
    let body = prop_oneof![6 => bodies(), 1 => whole];
    let kind = prop_oneof![3 => Just("text/event-stream"), 2 => proptest::sample::select(kinds)];
    (statuses, kind, body, sizes, 0usize..3, any::<bool>()).prop_map(
        |(status, kind, body, sizes, framing, end)| {
            let mut wire = Vec::new();
            let length = Framing::Length(body.len() as u64);
            let framing = [length, Framing::Chunked, Framing::UntilClose][framing];
            write_head(&mut wire, status, kind, framing, true, &[]);
            if framing != Framing::Chunked {
                wire.extend_from_slice(body.as_bytes());
                return wire;
            }
            let mut left = body.as_bytes();
            for size in sizes.iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let (chunk, after) = left.split_at((*size).min(left.len()));
                write_chunk(&mut wire, chunk);
                left = after;
            }
            if end {
                write_last_chunk(&mut wire);
            }
            wire
        },
    )
}

proptest! {
    #[test]
    fn every_split_tells_the_same(
        wire in wires(),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        stream in any::<bool>(),
        keep_text in any::<bool>(),
        small in any::<bool>(),
        close in proptest::sample::select(vec![Close::Open, Close::Eof, Close::Cut]),
    ) {
        let event = if small { 60 } else { 1 << 20 };
        let limits = Limits { event, ..Limits::default() };
        let ask = Ask { keep_text, ..ask(stream) };
        let run = |slices: Vec<&[u8]>| {
            let reads = slices.into_iter().map(|bytes| (1, bytes));
            feed_all(&mut Answer::new(ask, limits), reads, close)
        };
        let whole = run(vec![&wire]);
        prop_assert!(close == Close::Open || whole.outcome.is_some());
        prop_assert_eq!(&run(split(&wire, &cuts)), &whole);
        prop_assert_eq!(&run(wire.chunks(1).collect()), &whole);
    }
}
