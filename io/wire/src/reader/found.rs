//! What a scan found, and where it stands.

use crate::delta::{Delta, FinishReason, Kinds, Usage};

/// What the scan found. Strings are the raw bytes between their quotes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found<'a> {
    pub(super) role: bool,
    pub(super) choice: bool,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<Usage>,
    pub(super) content: Option<&'a [u8]>,
    pub(super) reasoning_content: Option<&'a [u8]>,
    pub(super) reasoning: Option<&'a [u8]>,
    /// There is text that nobody keeps: of a tool call, or of a whole answer.
    pub(super) unkept: Kinds,
    /// How many token ids there are.
    pub(super) ids: Option<u64>,
    pub(super) holes: Holes,
}

/// The places that differ from one event of a stream to the next, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holes {
    list: [Hole; HOLES_MAX],
    len: usize,
    /// There are more than are kept.
    more: bool,
}

/// A place that differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: What,
}

/// What stands at a place that differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum What {
    /// A whole number of no account.
    #[default]
    Number,
    /// The inside of a string of no account.
    Noise,
    /// The inside of a string: answer text.
    Content,
    /// The inside of a string: reasoning.
    Reasoning,
    /// The inside of a string: a piece of a tool call.
    ToolCall,
    /// The server's running count of output tokens.
    Completion,
    /// A list of token ids.
    Ids,
}

impl<'a> Found<'a> {
    /// Visible text, if it is not empty.
    pub(super) fn content_text(&self) -> Option<&'a [u8]> {
        self.content.filter(|raw| !raw.is_empty())
    }

    /// Reasoning, if it is not empty; servers that send both names send the same text twice.
    pub(super) fn reasoning_text(&self) -> Option<&'a [u8]> {
        let not_empty = |raw: &&[u8]| !raw.is_empty();
        self.reasoning_content.filter(not_empty).or(self.reasoning.filter(not_empty))
    }

    pub(super) fn into_delta(self) -> Delta {
        let kept = Kinds {
            content: self.content_text().is_some(),
            reasoning: self.reasoning_text().is_some(),
            tool_call: false,
        };
        Delta {
            kinds: kept | self.unkept,
            role: self.role,
            choice: self.choice,
            finish: self.finish,
            usage: self.usage,
            ids: self.ids,
            error: None,
        }
    }
}

impl Holes {
    /// Notes a place; it lies behind those that were noted before.
    pub(super) fn note(&mut self, start: usize, end: usize, what: What) {
        match self.list.get_mut(self.len) {
            Some(place) => {
                *place = Hole { start, end, what };
                self.len += 1;
            }
            None => self.more = true,
        }
    }

    /// Notes the inside of a string that has just been stepped over, unless it is empty.
    pub(super) fn note_text(&mut self, behind: usize, raw: Option<&[u8]>, what: What) {
        if let Some(raw) = raw.filter(|raw| !raw.is_empty()) {
            // The closing quote is behind, too.
            self.note(behind - 1 - raw.len(), behind - 1, what);
        }
    }

    /// Texts turn out to be of the kind `what`.
    pub(super) fn texts_are(&mut self, what: What) {
        for hole in self.list.iter_mut().filter(|hole| hole.what == What::Content) {
            hole.what = what;
        }
    }

    /// All of them, if they are known.
    pub(super) fn all(&self) -> Option<&[Hole]> {
        (!self.more).then(|| &self.list[..self.len])
    }
}

impl What {
    /// The kinds of text at the place.
    pub(super) fn kinds(self) -> Kinds {
        Kinds {
            content: self == Self::Content,
            reasoning: self == Self::Reasoning,
            tool_call: self == Self::ToolCall,
        }
    }
}

/// A text, its token ids, two running counts, a sequence number and room for one more.
pub(super) const HOLES_MAX: usize = 6;
