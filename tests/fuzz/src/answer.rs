//! A whole answer, from bytes to facts: the same facts in every split, and exactly one end.
//!
//! Input: options, framing, split, then bytes. Options: bit 0, a stream was asked for; bit 1, text is kept; bit
//! 2, small limits; bits 3 to 5, the API. Framing: `@` the bytes are the whole answer; `A` to `C`, they are the body
//! of an event stream with a length, chunked, or until the close; `D` to `F`, of JSON in the same ways. Bit 3 of the
//! framing: the connection is cut rather than closed.

use takt_time::Nanos;
use takt_wire::{
    Answer, AnswerEvent, Api, Ask, FailKind, Form, Framing, Limits, Outcome, write_chunk,
    write_head, write_last_chunk,
};

use super::pieces::{bit, options, pieces};

/// The target.
pub fn answer(data: &[u8]) {
    let Some(([flags, framing, how], bytes)) = options(data) else { return };
    let ask = Ask {
        api: Api::ALL[usize::from(flags >> 3 & 7) % Api::ALL.len()],
        stream: bit(flags, 0),
        keep_text: bit(flags, 1),
        no_body: false,
    };
    let limits = if bit(flags, 2) { SMALL } else { Limits::default() };
    let wire = wire(bytes, framing & 7, how);
    let cut = bit(framing, 3);
    let mut answer = Answer::new(ask, limits);
    let whole = read(&mut answer, &[&wire], cut);
    for how in [b'1', how] {
        // In the same memory, as on a connection that is used again.
        answer.begin(ask);
        assert!(answer.is_untouched() && !answer.is_ended());
        let split = read(&mut answer, &pieces(&wire, how), cut);
        assert_eq!(split.comparable(bit(flags, 2)), whole.comparable(bit(flags, 2)), "split {how}");
    }
    whole.check(&ask);
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// All that was told before the end; bytes of a plain body are joined.
    told: Vec<String>,
    plain: Vec<u8>,
    tokens: u64,
    coalesced: u64,
    outcome: Option<Outcome>,
    reusable: bool,
}

impl Seen {
    /// Under small limits, how far a body is read before a limit is met, and which one, depends on the reads.
    fn comparable(&self, small: bool) -> impl PartialEq + std::fmt::Debug + '_ {
        let failed = self.outcome.as_ref().and_then(|outcome| outcome.failure.as_ref());
        let loose = small && failed.is_some_and(|f| is_of_reads(f.kind));
        (!loose).then_some(self)
    }

    fn check(&self, ask: &Ask) {
        let outcome = self.outcome.as_ref().expect("an answer ends");
        assert_eq!((outcome.token_events, outcome.coalesced), (self.tokens, self.coalesced));
        assert_eq!(outcome.first_token.is_some(), outcome.token_events > 0);
        assert_eq!(outcome.first_token.is_some(), outcome.last_token.is_some());
        assert!(outcome.first_event <= outcome.first_token || outcome.first_token.is_none());
        assert!(outcome.first_token <= outcome.first_content || outcome.first_content.is_none());
        assert!(outcome.last_token <= outcome.last_byte);
        if outcome.is_ok() {
            assert!(outcome.status.is_some_and(|status| ask.api.accepts(status)));
            let told = outcome.done || outcome.finish.is_some();
            assert!(outcome.form != Form::Stream || told, "a stream says that it is whole");
        }
        assert!(!self.reusable || !outcome.closed_early);
        if let Some(failure) = &outcome.failure {
            assert!(failure.message.len() < 8192, "a message is bounded");
        }
    }
}

fn is_of_reads(kind: FailKind) -> bool {
    matches!(kind, FailKind::TooLarge | FailKind::BadFraming)
}

fn read(answer: &mut Answer, pieces: &[&[u8]], cut: bool) -> Seen {
    let mut seen = Seen::default();
    let mut sink = |event: AnswerEvent<'_>| {
        assert!(seen.outcome.is_none(), "nothing follows the end");
        match event {
            AnswerEvent::End(outcome) => seen.outcome = Some(outcome.clone()),
            AnswerEvent::Text(takt_wire::Text::Body(bytes)) => seen.plain.extend_from_slice(bytes),
            other => {
                if let AnswerEvent::Token(token) = &other {
                    assert_eq!(token.first, seen.tokens == 0);
                    seen.tokens += 1;
                    seen.coalesced += u64::from(token.coalesced);
                }
                seen.told.push(format!("{other:?}"));
            }
        }
    };
    // One stamp for all reads: what differs is where they are cut.
    let at = Nanos::from_nanos(1_000);
    for piece in pieces {
        let fed = answer.feed(piece, at, &mut sink);
        assert!(fed.used <= piece.len());
        assert!(fed.ended || fed.used == piece.len());
        assert_eq!(fed.ended, answer.is_ended());
    }
    if cut {
        answer.cut("the connection was reset", &mut sink);
    } else {
        answer.eof(&mut sink);
    }
    assert!(answer.is_ended());
    answer.eof(&mut sink);
    seen.reusable = answer.is_reusable();
    seen
}

fn wire(bytes: &[u8], framing: u8, how: u8) -> Vec<u8> {
    if framing == 0 || framing == 7 {
        return bytes.to_vec();
    }
    let kind = if framing < 4 { "text/event-stream" } else { "application/json" };
    let framing = match framing % 3 {
        1 => Framing::Length(bytes.len() as u64),
        2 => Framing::Chunked,
        _ => Framing::UntilClose,
    };
    let mut wire = Vec::new();
    write_head(&mut wire, 200, kind, framing, true, &[]);
    if framing == Framing::Chunked {
        for piece in pieces(bytes, how.rotate_left(3)) {
            write_chunk(&mut wire, piece);
        }
        write_last_chunk(&mut wire);
    } else {
        wire.extend_from_slice(bytes);
    }
    wire
}

const SMALL: Limits = Limits { head: 128, body: 300, event: 100 };
