//! A conversation while its messages come in.

use std::sync::Arc;

use serde_json::Value;
use takt_time::Span;

use super::{Conversation, Turn};
use crate::params::Params;

/// The messages so far.
pub(super) struct Talk {
    pub(super) id: Box<str>,
    pub(super) row: u64,
    messages: String,
    system_end: usize,
    turns: Vec<Turn>,
    /// Messages of either side so far: the number of the last one.
    number: u32,
    /// The last message was an answer.
    answered: bool,
}

/// What a turn has beside its words.
#[derive(Default)]
pub(super) struct Beside {
    pub(super) delay: Option<Span>,
    pub(super) is_tool: bool,
    pub(super) params: Arc<Params>,
}

impl Talk {
    pub(super) fn new(id: &str, row: u64) -> Self {
        Self {
            id: id.into(),
            row,
            messages: String::new(),
            system_end: 0,
            turns: Vec::new(),
            number: 0,
            answered: true,
        }
    }

    /// The system message, which goes before all others.
    pub(super) fn system(&mut self, message: &str) {
        let comma = if self.messages.is_empty() { "" } else { "," };
        self.messages.insert_str(0, comma);
        self.messages.insert_str(0, message);
        self.system_end = message.len();
        let by = message.len() + comma.len();
        for turn in &mut self.turns {
            (turn.from, turn.to, turn.answer_to) =
                (turn.from + by, turn.to + by, turn.answer_to + by);
        }
    }

    pub(super) fn has_system(&self) -> bool {
        self.system_end > 0
    }

    /// Whether anything was said but by the system.
    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// A turn of the client, or the rest of one that no answer has followed.
    pub(super) fn ask(&mut self, message: &str, row: u64, beside: Beside) {
        if !self.answered {
            self.push(message);
            let to = self.messages.len();
            if let Some(turn) = self.turns.last_mut() {
                (turn.to, turn.answer_to) = (to, to);
                turn.is_tool &= beside.is_tool;
                turn.has_results |= beside.is_tool;
            }
            return;
        }
        let number = self.number + 1;
        self.turn(message, number, row, beside);
    }

    /// A turn of its own, whatever came before it.
    pub(super) fn turn(&mut self, message: &str, number: u32, row: u64, beside: Beside) {
        let from = self.push(message);
        let to = self.messages.len();
        let params = match self.turns.last() {
            Some(before) if before.params == beside.params => before.params.clone(),
            _ => beside.params,
        };
        let Beside { delay, is_tool, .. } = beside;
        let (intents, answer_to, has_results) = (None, to, is_tool);
        self.turns.push(Turn {
            number,
            row,
            delay,
            is_tool,
            has_results,
            params,
            intents,
            from,
            to,
            answer_to,
        });
        self.number = number;
        self.answered = false;
    }

    /// An answer, or one more message of it.
    pub(super) fn answer(&mut self, message: &str, intents: Option<Box<str>>) {
        self.push(message);
        let end = self.messages.len();
        if let Some(turn) = self.turns.last_mut() {
            turn.answer_to = end;
            turn.intents = intents;
        }
        self.number += u32::from(!self.answered);
        self.answered = true;
    }

    /// The conversation; `None` when nobody asked anything.
    pub(super) fn finish(self) -> Option<Conversation> {
        if self.turns.is_empty() {
            return None;
        }
        Some(Conversation {
            id: self.id,
            row: self.row,
            messages: self.messages.into_boxed_str(),
            system_end: self.system_end,
            turns: self.turns.into_boxed_slice(),
        })
    }

    /// Gives where the message begins.
    fn push(&mut self, message: &str) -> usize {
        if !self.messages.is_empty() {
            self.messages.push(',');
        }
        let from = self.messages.len();
        self.messages.push_str(message);
        from
    }
}

/// A message of a role and a text.
pub(super) fn message(role: &str, content: &str) -> String {
    // Strings can always be written.
    format!("{{\"role\":{},\"content\":{}}}", Value::from(role), Value::from(content))
}
