//! What an API answers, as this crate tells it: the vocabulary shared by all APIs.

use std::ops::BitOr;

/// What one event of a stream, or a whole answer, holds. Absent is `None` or false, never a zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Which kinds of text are there and not empty.
    pub kinds: Kinds,
    /// A role is named.
    pub role: bool,
    /// What an answer is made of is there: a choice, an output, an embedding.
    pub choice: bool,
    /// Why generation ended.
    pub finish: Option<FinishReason>,
    /// The server's own token counts.
    pub usage: Option<Usage>,
    /// How many token ids it brings, where the server was asked for them and does not count.
    pub ids: Option<u64>,
    /// The server's error message.
    pub error: Option<Box<str>>,
}

/// Kinds of generated text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Visible text.
    pub content: bool,
    /// Reasoning (`reasoning_content` or `reasoning`).
    pub reasoning: bool,
    /// Name or arguments of a tool call.
    pub tool_call: bool,
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FinishReason {
    /// The model ended, or a stop sequence came.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// A filter cut the answer.
    ContentFilter,
    /// The older form of a tool call.
    FunctionCall,
    /// Anything else.
    Other,
}

/// Token counts as the server gives them; each may be absent. One that no answer can have (`2^32` or more) is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input tokens.
    pub prompt: Option<u32>,
    /// Output tokens, reasoning included.
    pub completion: Option<u32>,
    /// Input tokens that came from a cache.
    pub cached: Option<u32>,
    /// Output tokens that were reasoning.
    pub reasoning: Option<u32>,
}

/// A piece of an answer's text, in the order it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// Visible text.
    Content(&'a str),
    /// Reasoning.
    Reasoning(&'a str),
    /// A part of a tool call; parts of one `index` belong together, arguments are joined.
    ToolCall {
        /// Which call of the answer.
        index: u64,
        /// The call's id.
        id: Option<&'a str>,
        /// The function's name.
        name: Option<&'a str>,
        /// Arguments, or a part of them.
        arguments: Option<&'a str>,
    },
    /// Bytes of a body that no API stands behind; cut anywhere.
    Body(&'a [u8]),
}

/// Something that should be JSON of an API and is not.
#[derive(Debug, thiserror::Error)]
pub enum BadJson {
    /// Not JSON at all.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// JSON, but no object.
    #[error("not a JSON object")]
    NotAnObject,
}

/// Takes text where an answer's text is kept.
pub type TextSink<'s> = &'s mut dyn FnMut(Text<'_>);

impl Kinds {
    /// Whether there is any text.
    #[must_use]
    pub fn any(self) -> bool {
        self.content || self.reasoning || self.tool_call
    }
}

impl BitOr for Kinds {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self {
            content: self.content | other.content,
            reasoning: self.reasoning | other.reasoning,
            tool_call: self.tool_call | other.tool_call,
        }
    }
}

impl FinishReason {
    /// The reason of this name; the empty one is none.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"" => return None,
            b"stop" => Self::Stop,
            b"length" => Self::Length,
            b"tool_calls" => Self::ToolCalls,
            b"content_filter" => Self::ContentFilter,
            b"function_call" => Self::FunctionCall,
            _ => Self::Other,
        })
    }
}

impl Usage {
    /// A count as it is held, unless it is too large to be one.
    #[must_use]
    pub(crate) fn count(n: u64) -> Option<u32> {
        u32::try_from(n).ok()
    }

    /// `self` with what `later` says put over it.
    #[must_use]
    pub fn updated(self, later: Self) -> Self {
        Self {
            prompt: later.prompt.or(self.prompt),
            completion: later.completion.or(self.completion),
            cached: later.cached.or(self.cached),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }
}
