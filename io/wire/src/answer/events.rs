//! What the events of a stream have told so far, and what counts as a token.

use takt_time::Nanos;

use super::{AnswerEvent, Ask, Token};
use crate::chat::{Learned, error_message};
use crate::delta::{FinishReason, Kinds, Text, TextSink, Usage};
use crate::outcome::FailKind;
use crate::sse::SseEvent;

/// What the events of a stream, or a whole answer, have told.
#[derive(Debug, Default)]
pub(super) struct Events {
    learned: Learned,
    pub(super) count: u64,
    pub(super) kinds: Kinds,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<Usage>,
    /// Whether counts came with each event that held text, and the last of them.
    running: Running,
    pub(super) first_event: Option<Nanos>,
    pub(super) first_token: Option<Nanos>,
    pub(super) first_content: Option<Nanos>,
    pub(super) last_token: Option<Nanos>,
    pub(super) token_events: u64,
    pub(super) coalesced: u64,
    pub(super) done: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Running {
    #[default]
    Unknown,
    Counted(u64),
    Not,
}

impl Events {
    /// Nothing told yet; the memory stays.
    pub(super) fn restarted(mut self) -> Self {
        self.learned.reset();
        Self { learned: self.learned, ..Self::default() }
    }

    /// One event of a stream; nothing is told of one that makes the answer a failure.
    pub(super) fn event(
        &mut self,
        ask: &Ask,
        event: SseEvent<'_>,
        at: Nanos,
        sink: &mut impl FnMut(AnswerEvent<'_>),
    ) -> Result<(), (FailKind, String)> {
        if self.done {
            return Ok(());
        }
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.count += 1;
            self.done = true;
            return Ok(());
        }
        if event.name == b"error" {
            return Err((FailKind::ApiError, error_message(data).into()));
        }
        if data.is_empty() {
            return Ok(());
        }
        let mut text = |text: Text<'_>| sink(AnswerEvent::Text(text));
        let keep: Option<TextSink<'_>> = if ask.keep_text { Some(&mut text) } else { None };
        let delta = ask.api.read_event(&mut self.learned, data, keep).map_err(|error| {
            (FailKind::BadJson, format!("an event is not JSON ({error}): {}", shown(data)))
        })?;
        if let Some(message) = delta.error {
            return Err((FailKind::ApiError, message.into()));
        }
        self.count += 1;
        if self.first_event.is_none() {
            self.first_event = Some(at);
            sink(AnswerEvent::FirstEvent { at });
        }
        if let Some(usage) = delta.usage {
            self.usage = Some(self.usage.unwrap_or_default().updated(usage));
        }
        if delta.kinds.any() {
            self.token(delta.kinds, delta.usage, at, sink);
        }
        self.finished(delta.finish, at, sink);
        Ok(())
    }

    fn token(
        &mut self,
        kinds: Kinds,
        usage: Option<Usage>,
        at: Nanos,
        sink: &mut impl FnMut(AnswerEvent<'_>),
    ) {
        let counted = usage.and_then(|usage| usage.completion);
        let (running, tokens) = match (self.running, counted) {
            (Running::Unknown, Some(now)) => (Running::Counted(now), Some(now)),
            (Running::Counted(before), Some(now)) => {
                (Running::Counted(now), now.checked_sub(before))
            }
            _ => (Running::Not, None),
        };
        self.running = running;
        let first = self.first_token.is_none();
        let coalesced = self.last_token == Some(at);
        self.kinds = self.kinds | kinds;
        self.first_token.get_or_insert(at);
        if kinds.content {
            self.first_content.get_or_insert(at);
        }
        self.last_token = Some(at);
        self.token_events += 1;
        self.coalesced += u64::from(coalesced);
        sink(AnswerEvent::Token(Token { at, kinds, tokens, first, coalesced }));
    }

    /// A finish reason, if there is one.
    pub(super) fn finished(
        &mut self,
        reason: Option<FinishReason>,
        at: Nanos,
        sink: &mut impl FnMut(AnswerEvent<'_>),
    ) {
        if let Some(reason) = reason {
            self.finish = Some(reason);
            sink(AnswerEvent::Finish { reason, at });
        }
    }

    /// Whether counts came with each event that held text.
    pub(super) fn counts_run(&self) -> bool {
        matches!(self.running, Running::Counted(_))
    }

    /// Whether the API has said that the answer is at its end.
    pub(super) fn is_complete(&self) -> bool {
        self.done || self.finish.is_some()
    }
}

/// The start of some bytes, as text on one line.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SAMPLE)]);
    let one_line: Vec<&str> = text.split_whitespace().collect();
    let more = if bytes.len() > SAMPLE { " …" } else { "" };
    if one_line.is_empty() {
        "(nothing)".to_owned()
    } else {
        format!("{}{more}", one_line.join(" "))
    }
}

/// Bytes of a body that an error text shows.
pub(super) const SAMPLE: usize = 512;
