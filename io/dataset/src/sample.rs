//! One sample: what a request is made from.
//!
//! A data set of ten million rows stays in memory, so the forms are the compact ones: text without
//! spare capacity, messages as the JSON text they came as, a system prompt shared with the row
//! before when it is the same, parameters as a short list that allocates nothing when
//! there are none.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::params::Params;

/// A row of a data set, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What is asked. Never empty.
    pub prompt: Prompt,
    /// The system prompt that goes before it; never empty, and never together with messages that
    /// hold one themselves.
    pub system: Option<Arc<str>>,
    /// What the row says about how to sample; goes before the run's own setting of the same name.
    pub params: Params,
    /// The right answer, for an accuracy phase; there only when a truth column was named.
    pub truth: Option<Box<str>>,
    /// The physical line where the row starts in its file, from 1. For synthetic samples, which
    /// have no file, their ordinal from 1.
    pub row: u64,
}

impl Sample {
    /// The bytes of prompt and system prompt, UTF-8. Messages count as JSON text.
    pub fn bytes(&self) -> u64 {
        (self.prompt.len() + self.system.as_deref().map_or(0, str::len)) as u64
    }
}

/// What is asked: plain text or a conversation.
#[derive(Clone)]
pub enum Prompt {
    /// Text, exactly as in the file.
    Text(Box<str>),
    /// OpenAI chat messages: a JSON array of objects, each with a non-empty `role`. Kept as the
    /// text of the file, so numbers, key order and escapes go out as they came.
    Messages(Box<RawValue>),
}

impl Prompt {
    /// The bytes of the text, or of the messages' JSON text.
    pub fn len(&self) -> usize {
        match self {
            Prompt::Text(text) => text.len(),
            Prompt::Messages(json) => json.get().len(),
        }
    }

    /// Always false for a prompt that came through a reader.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Messages are equal when their JSON text is, byte for byte.
impl PartialEq for Prompt {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Prompt::Text(a), Prompt::Text(b)) => a == b,
            (Prompt::Messages(a), Prompt::Messages(b)) => a.get() == b.get(),
            _ => false,
        }
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prompt::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Prompt::Messages(json) => f.debug_tuple("Messages").field(&json.get()).finish(),
        }
    }
}
