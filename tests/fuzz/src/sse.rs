//! Server-sent events, read in three splits, and by the crate `eventsource-stream`.
//!
//! Input: options, split, then the stream. Option bit 0: a small limit (then takt is held to itself alone).
//!
//! The other reader wants UTF-8 and is given the text with U+FFFD for what is none, which is how the
//! standard reads it. Two more things are done for it, neither of which changes what the standard says: a
//! byte order mark is taken off and an empty line put in its place (it stumbles over a mark at the start), and behind
//! a CR at the end an LF is put (it waits for the byte after). `id` and `retry` are compared by what the events carry, which is nothing in takt.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use eventsource_stream::EventStream;
use futures_core::Stream;
use takt_wire::SseParser;

use super::pieces::{bit, options, pieces};

/// The target.
pub fn sse(data: &[u8]) {
    let Some(([flags, how], wire)) = options(data) else { return };
    let small = bit(flags, 0);
    let limit = if small { 12 } else { 1 << 20 };
    let whole = read(&[wire], limit);
    for how in [b'1', how] {
        assert_eq!(read(&pieces(wire, how), limit), whole, "split {how}");
    }
    if small {
        return;
    }
    assert!(!whole.too_large, "it is smaller than the limit");
    assert_eq!(whole.events, other(wire, how));
}

/// Name (`message` where there is none) and data, as text.
type Event = (String, String);

#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<Event>,
    too_large: bool,
    pending: bool,
    /// What `finish` made of the rest.
    rest: Vec<Event>,
    last_id: Vec<u8>,
    retry_ms: Option<u64>,
}

fn read(pieces: &[&[u8]], limit: usize) -> Seen {
    let mut parser = SseParser::new(limit);
    let mut seen = Seen::default();
    for piece in pieces {
        let mut sink = |event: takt_wire::SseEvent<'_>| {
            assert!(event.data.len() <= limit);
            seen.events.push(event_of(&event));
        };
        if parser.feed(piece, &mut sink).is_err() {
            seen.too_large = true;
            return seen;
        }
    }
    seen.pending = parser.pending();
    let finished = parser.finish(&mut |event| seen.rest.push(event_of(&event)));
    seen.too_large = finished.is_err();
    assert!(seen.rest.len() <= usize::from(seen.pending), "only what is pending is left");
    assert!(seen.too_large || !parser.pending());
    seen.last_id = parser.last_id().to_vec();
    seen.retry_ms = parser.retry().map(|span| span.as_nanos() / 1_000_000);
    seen
}

fn event_of(event: &takt_wire::SseEvent<'_>) -> Event {
    let name = if event.name.is_empty() { b"message" } else { event.name };
    (String::from_utf8_lossy(name).into_owned(), event.text().into_owned())
}

fn other(wire: &[u8], how: u8) -> Vec<Event> {
    let text = String::from_utf8_lossy(wire);
    let mut text = format!("\n{}", text.strip_prefix('\u{feff}').unwrap_or(&text));
    if text.ends_with('\r') {
        text.push('\n');
    }
    let pieces = pieces(text.as_bytes(), how).into_iter().map(<[u8]>::to_vec).collect();
    let mut stream = pin!(EventStream::new(Pieces(pieces)));
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = Vec::new();
    while let Poll::Ready(Some(event)) = stream.as_mut().poll_next(&mut cx) {
        let event = event.expect("it is UTF-8");
        events.push((event.event, event.data));
    }
    events
}

/// Pieces as a stream that never waits.
struct Pieces(std::collections::VecDeque<Vec<u8>>);

impl Stream for Pieces {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}
