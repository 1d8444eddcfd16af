//! What the events of a stream have told so far, and what counts as a token.

use takt_time::Nanos;

use super::{AnswerEvent, Ask, Token};
use crate::delta::{Delta, FinishReason, Kinds, Text, TextSink, Usage};
use crate::outcome::{CountedBy, FailKind};
use crate::reader::{Reader, error_message};
use crate::sse::SseEvent;

/// What the events of a stream, or a whole answer, have told.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) count: u64,
    pub(super) kinds: Kinds,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<Usage>,
    /// Whether counts came with each event that held text, and the last of them.
    running: Running,
    pub(super) ids: Ids,
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
    Counted(u32),
    Not,
}

/// Token ids that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ids {
    all: u64,
    /// Those since the last event with text.
    waiting: u64,
    any: bool,
    /// An event with text came without.
    missed: bool,
}

impl Ids {
    /// Those of a whole answer.
    pub(super) fn whole(ids: Option<u64>) -> Self {
        Self { all: ids.unwrap_or(0), any: ids.is_some(), ..Self::default() }
    }

    /// How many there were, if every event with text brought its own.
    fn total(self) -> Option<u64> {
        (self.any && !self.missed).then_some(self.all)
    }

    fn add(&mut self, ids: u64) {
        self.all = self.all.saturating_add(ids);
        self.waiting = self.waiting.saturating_add(ids);
        self.any = true;
    }

    /// Those of an event with text, and of the events without text before it.
    fn of_text(&mut self, ids: Option<u64>) -> Option<u64> {
        self.missed |= ids.is_none();
        let waiting = std::mem::take(&mut self.waiting);
        (!self.missed).then_some(waiting)
    }
}

impl Events {
    /// One event of a stream; nothing is told of one that makes the answer a failure.
    pub(super) fn event(
        &mut self,
        ask: &Ask,
        reader: &mut Reader,
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
        let mut delta = ask.api.read_event(reader, data, keep).map_err(|error| {
            (FailKind::BadJson, format!("an event is not JSON ({error}): {}", shown(data)))
        })?;
        if let Some(message) = delta.error.take() {
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
        if let Some(ids) = delta.ids {
            self.ids.add(ids);
        }
        if delta.kinds.any() {
            self.token(&delta, at, sink);
        }
        self.finished(delta.finish, at, sink);
        Ok(())
    }

    fn token(&mut self, delta: &Delta, at: Nanos, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        let kinds = delta.kinds;
        let counted = delta.usage.and_then(|usage| usage.completion);
        let (running, by_count) = match (self.running, counted) {
            (Running::Unknown, Some(now)) => (Running::Counted(now), Some(now)),
            (Running::Counted(before), Some(now)) => {
                (Running::Counted(now), now.checked_sub(before))
            }
            _ => (Running::Not, None),
        };
        self.running = running;
        let tokens = self.ids.of_text(delta.ids).or(by_count.map(u64::from));
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

    /// How many tokens the answer has, and who says so. The server's own count goes before all others.
    pub(super) fn output(&self) -> Option<(u64, CountedBy)> {
        let usage = self.usage.and_then(|usage| usage.completion).map(u64::from);
        let ids = self.ids.total();
        match (usage, ids) {
            (None, Some(ids)) => Some((ids, CountedBy::TokenIds)),
            (Some(count), Some(ids)) if count == ids => Some((count, CountedBy::TokenIds)),
            (Some(count), _) if matches!(self.running, Running::Counted(_)) => {
                Some((count, CountedBy::ContinuousUsage))
            }
            (Some(count), _) => Some((count, CountedBy::Usage)),
            (None, None) if self.token_events > 0 => Some((self.token_events, CountedBy::Events)),
            (None, None) => None,
        }
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
