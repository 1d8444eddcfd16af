//! One request's answer, from bytes to facts: [`Answer`] drives the HTTP parser, the event parser and the
//! API's reader, and tells what it sees as [`AnswerEvent`]s.
//!
//! ```text
//! bytes, time -> ResponseParser -> head: what is the body?
//!                                    stream -> SseParser -> events -> API -> Token, Finish, [DONE]
//!                                    whole  -> held until it is complete -> API
//!                                    bytes  -> counted (raw API)
//!                                    sample -> the first bytes of a body that is a failure anyway
//! ```
//!
//! Rules that are easy to get wrong, and hold here:
//!
//! * The answer ends ([`AnswerEvent::End`], exactly once) when the body's own end has come, not with `[DONE]`: only then may
//!   the connection be used again. A failure found on the way is kept, nothing more is told, and the rest is
//!   read away.
//! * An event without text (a role, an empty delta, usage, `[DONE]`) is no token.
//! * A stream that ends with neither `[DONE]` nor a finish reason is truncated, however cleanly it was closed.
//! * Two events with the same time came in one read: the later one is marked, and no gap is made up.
//! * Nothing depends on where the bytes were split.

mod events;
#[cfg(test)]
mod form_tests;
mod run;
#[cfg(test)]
mod split_tests;
#[cfg(test)]
mod tests;

use takt_time::{Nanos, Span};

use crate::api::Api;
use crate::delta::{FinishReason, Kinds, Text, Usage};
use crate::framing::{FramingError, Limits};
use crate::last_head::LastHead;
use crate::outcome::Outcome;
use crate::response::{Part, ResponseParser};
use run::Run;

/// Reads one answer; [`Answer::begin`] makes it ready for the next, with the memory it has.
#[derive(Debug)]
pub struct Answer {
    http: ResponseParser,
    run: Run,
}

/// What was asked for, which decides how the answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The API.
    pub api: Api,
    /// A stream was asked for.
    pub stream: bool,
    /// The answer's text is wanted ([`AnswerEvent::Text`]).
    pub keep_text: bool,
    /// The answer has no body whatever its head says (the request was a HEAD).
    pub no_body: bool,
}

/// Something seen in an answer.
#[derive(Debug, PartialEq)]
pub enum AnswerEvent<'a> {
    /// The final head is whole.
    Head {
        /// Status code.
        status: u16,
        /// When.
        at: Nanos,
    },
    /// The first event with data; of bodies that are not read, the first byte.
    FirstEvent {
        /// When.
        at: Nanos,
    },
    /// A piece of text, where text is kept; comes before the token it belongs to.
    Text(Text<'a>),
    /// An event with text.
    Token(Token),
    /// A finish reason.
    Finish {
        /// Why.
        reason: FinishReason,
        /// When.
        at: Nanos,
    },
    /// The server's token counts, as they stand at the end; once, before the end.
    Usage(Usage),
    /// The answer has ended; nothing follows.
    End(&'a Outcome),
}

/// An event of a stream that holds text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// When the read that completed it returned.
    pub at: Nanos,
    /// What it holds.
    pub kinds: Kinds,
    /// Tokens in it, where the server's running counts tell.
    pub tokens: Option<u64>,
    /// It is the first of the answer.
    pub first: bool,
    /// It has the stamp of the token event before it.
    pub coalesced: bool,
}

/// What a call of [`Answer::feed`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Bytes that belong to the answer. Fewer than were given only when it has ended: the rest belongs to
    /// nobody, and the connection is not to be used again.
    pub used: usize,
    /// The server has got on with the request: a head, an event with data or a byte of a plain body. Comments are none.
    pub progress: bool,
    /// The answer has ended.
    pub ended: bool,
}

impl Answer {
    /// Ready for the answer to `ask`.
    #[must_use]
    pub fn new(ask: Ask, limits: Limits) -> Self {
        Self::sharing(ask, limits, LastHead::default())
    }

    /// The same, as [`ResponseParser::sharing`].
    #[must_use]
    pub fn sharing(ask: Ask, limits: Limits, last: LastHead) -> Self {
        let http = ResponseParser::sharing(limits, last);
        let mut answer = Self { http, run: Run::new(ask, limits) };
        answer.http.reset(ask.no_body);
        answer
    }

    /// Forgets the last answer and waits for the one to `ask`.
    pub fn begin(&mut self, ask: Ask) {
        self.http.reset(ask.no_body);
        self.run.begin(ask);
    }

    /// Reads on: `at` is when the read that gave `bytes` returned.
    pub fn feed(&mut self, bytes: &[u8], at: Nanos, sink: &mut impl FnMut(AnswerEvent<'_>)) -> Fed {
        let Self { http, run } = self;
        if run.ended {
            return Fed { used: 0, progress: false, ended: true };
        }
        run.progress = false;
        let result = http.feed(bytes, &mut |part| match part {
            Part::Head(head) => run.head(head, at, sink),
            Part::Body(body) => run.body(body, at, sink),
            Part::End => run.whole = true,
        });
        let used = match result {
            Ok(used) => {
                if used > 0 {
                    run.last_byte = Some(at);
                }
                if run.whole {
                    run.complete(sink);
                }
                used
            }
            Err(error) => {
                run.last_byte = Some(at);
                run.broken(error, "", sink);
                bytes.len()
            }
        };
        run.end_if_due(http, sink);
        Fed { used, progress: run.progress, ended: run.ended }
    }

    /// The peer has closed its side in good order. Ends the answer, if it had not ended.
    pub fn eof(&mut self, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        let Self { http, run } = self;
        if run.ended {
            return;
        }
        match http.eof(&mut |part| run.whole |= part == Part::End) {
            Ok(()) => run.complete(sink),
            Err(error) => run.broken(error, "", sink),
        }
        run.end_if_due(http, sink);
    }

    /// The connection is gone otherwise than in good order; `cause` says how (a reset, a time-out). Ends the answer, if it
    /// had not ended; a body that lasts until the connection's end is then truncated, too.
    pub fn cut(&mut self, cause: &str, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        let Self { http, run } = self;
        if run.ended {
            return;
        }
        let error = match http.eof(&mut |_| {}) {
            Ok(()) => FramingError::ClosedInBody,
            Err(error) => error,
        };
        run.broken(error, cause, sink);
        run.end_if_due(http, sink);
    }

    /// Whether the answer has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.run.ended
    }

    /// Whether no byte of the answer has come: then a request that died on a used connection may be sent again.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        !self.http.is_touched()
    }

    /// Whether the connection may carry the next request: the body's own end has come and the head allows it. Bytes
    /// left over ([`Fed::used`]) forbid it; only the caller knows of them.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.run.ended && self.http.is_reusable()
    }

    /// `Keep-Alive: timeout=…`, as far as the server told: how long it keeps the connection when idle.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<Span> {
        self.run.idle_timeout
    }
}
