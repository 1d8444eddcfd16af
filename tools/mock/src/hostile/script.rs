//! What leaves when: an answer as bytes with times, and its end.

use takt_time::{Nanos, Span};
use takt_wire::{write_chunk, write_head};

use super::Fault;
use super::answer::{Answer, Body, Bytes, End, Tear};
use crate::page::Page;

/// A piece of a good answer, as it would have left.
#[derive(Debug)]
pub(crate) struct Rehearsed {
    pub(crate) at: Nanos,
    pub(crate) bytes: Vec<u8>,
    /// Tokens in it.
    pub(crate) tokens: u32,
}

/// A spoiled answer under way.
#[derive(Debug, PartialEq)]
pub(crate) struct Script {
    /// The last one first.
    pieces: Vec<Piece>,
    begun: bool,
    status: u16,
    streamed: bool,
    pub(crate) end: End,
}

#[derive(Debug, PartialEq)]
struct Piece {
    at: Nanos,
    bytes: Vec<u8>,
    tokens: u32,
}

impl Script {
    /// What becomes of the `good` answer, whose service began at `began`, by `fault`.
    pub(crate) fn new(
        fault: Fault,
        good: &[Rehearsed],
        began: Nanos,
        ordinal: u64,
        keep_alive: bool,
    ) -> Self {
        let mut answer = Answer::read(good, began, ordinal);
        (fault.kind.apply)(&mut answer, fault.setting);
        if answer.body == Body::UntilClose && answer.end == End::Keep {
            answer.end = End::Close(Span::ZERO);
        }
        let mut pieces = torn(&answer, written(&answer, keep_alive), began);
        pieces.reverse();
        let (status, streamed) = (answer.status, answer.streamed());
        Self { pieces, begun: false, status, streamed, end: answer.end }
    }

    /// When something leaves next; `None` when nothing does any more.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.pieces.last().map(|piece| piece.at)
    }

    /// Whether the answer has ended. One that hangs never does.
    pub(crate) fn is_done(&self) -> bool {
        self.pieces.is_empty() && !self.hangs()
    }

    /// Whether nothing will follow, and nothing will end it.
    pub(crate) fn hangs(&self) -> bool {
        self.pieces.is_empty() && self.end == End::Hang
    }

    /// Writes what is due at `now`.
    pub(crate) fn advance(&mut self, now: Nanos, page: &mut Page<'_>) {
        if !std::mem::replace(&mut self.begun, true) {
            page.begins();
            if let Some(ledger) = &mut page.ledger {
                ledger.status(self.status, self.streamed);
            }
        }
        while self.next_at().is_some_and(|at| at <= now) {
            let Some(piece) = self.pieces.pop() else { return };
            page.out.extend_from_slice(&piece.bytes);
            if piece.tokens > 0 {
                page.counts.emitted(piece.tokens);
                let queued = page.queued();
                if let Some(ledger) = &mut page.ledger {
                    ledger.event(piece.at, piece.tokens, queued);
                }
            }
        }
        if self.is_done() && !matches!(self.end, End::Reset | End::ServerGone) {
            page.ends(self.status, self.streamed);
        }
    }
}

/// The answer as pieces, by the time from the start of service.
fn written(answer: &Answer, keep_alive: bool) -> Vec<(Span, Vec<u8>, u32)> {
    let spelled: Vec<Vec<u8>> =
        answer.parts.iter().map(|part| part.spelled(&answer.style)).collect();
    let length = spelled.iter().map(|bytes| bytes.len() as u64).sum();
    let mut head = answer.prelude.clone();
    let headers: Vec<(&str, &str)> =
        answer.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let framing = answer.body.framing(length);
    if answer.has_head {
        write_head(&mut head, answer.status, &answer.content_type, framing, keep_alive, &headers);
    }
    let mut pieces = vec![(answer.head_at, head, 0)];
    for (part, bytes) in answer.parts.iter().zip(spelled) {
        let mut framed = Vec::with_capacity(bytes.len() + 16);
        if answer.body.is_chunked() && !matches!(part.bytes, Bytes::Unframed(_)) {
            write_chunk(&mut framed, &bytes);
        } else {
            framed = bytes;
        }
        pieces.push((part.at, framed, part.tokens));
    }
    let mut tail = Vec::new();
    if answer.body == Body::Chunked {
        tail.extend_from_slice(b"0\r\n");
        for (name, value) in &answer.trailers {
            tail.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        tail.extend_from_slice(b"\r\n");
    }
    tail.extend_from_slice(&answer.after);
    let last = pieces.last().map_or(Span::ZERO, |piece| piece.0);
    pieces.push((last, tail, 0));
    if answer.end == End::Reset {
        // So that what was written is read before.
        pieces.push((last + RESET_AFTER, Vec::new(), 0));
    }
    pieces
}

/// The pieces torn apart as the answer says, each part a moment behind the one before.
fn torn(answer: &Answer, pieces: Vec<(Span, Vec<u8>, u32)>, began: Nanos) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for (at, bytes, tokens) in pieces {
        let mut at = began + at;
        let mut from = 0;
        for upto in tears(&bytes, answer.tear) {
            // Nothing leaves before what comes before it.
            if let Some(before) = out.last() {
                let gap = if from > 0 { TEAR_GAP } else { Span::ZERO };
                at = at.max(before.at + gap);
            }
            let tokens = if upto == bytes.len() { tokens } else { 0 };
            out.push(Piece { at, bytes: bytes[from..upto].to_vec(), tokens });
            from = upto;
        }
    }
    out
}

/// Where the torn parts of `bytes` end, the last one included.
fn tears(bytes: &[u8], tear: Option<Tear>) -> Vec<usize> {
    let mut ends: Vec<usize> = match tear {
        None => Vec::new(),
        Some(Tear::Every(most)) => (1..bytes.len()).filter(|at| at % most.max(1) == 0).collect(),
        Some(Tear::Characters) => {
            let continues = |at: &usize| bytes[*at] & 0b1100_0000 == 0b1000_0000;
            (1..bytes.len()).filter(continues).collect()
        }
    };
    ends.push(bytes.len());
    ends
}

/// From one torn part to the next.
const TEAR_GAP: Span = Span::from_micros(200);
/// From the last byte to a reset.
const RESET_AFTER: Span = Span::from_millis(2);
