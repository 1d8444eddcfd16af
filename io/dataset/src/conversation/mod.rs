//! Conversations: several requests each, of which a later one holds what was said before.
//!
//! ```text
//!  messages  system , user , assistant , tool , tool , assistant , user        one text
//!  turn 1    ─────────────┘              .             .          .            its first bytes
//!  turn 3    ───────────────────────────────────┘      .          .            of it
//!  turn 5    ──────────────────────────────────────────────────────┘
//! ```
//!
//! A conversation's messages are kept once, as JSON objects with commas between; the prompt of a turn is
//! the text from its start to the turn's end. So a history costs its own length, however many turns
//! hold it.
//!
//! A *turn* is one request: what the client says since the last answer. Turns bear the numbers of the file,
//! where answers have numbers too: 1, 3, 5, …
//!
//! Four formats are read: [`ConversationFormat`]. In each, whatever cannot be used is refused with its line
//! before anything is sent.

mod agentic;
mod fault;
mod fields;
mod lists;
mod talk;

use std::io::BufRead;
use std::sync::Arc;

use takt_time::Span;

use crate::dataset::{Limits, stem};
use crate::error::{At, DatasetError, Fault};
use crate::params::Params;
use crate::source::Source;
use crate::{json, jsonl};

pub use fault::ConversationFault;
use lists::Lists;

/// How a file holds conversations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConversationFormat {
    /// A message a line: `conversation_id`, `turn`, `role`, `content`, with tools, their calls and results,
    /// reasoning, delays and parameters.
    Agentic,
    /// A conversation a line, in a column `messages` as OpenAI's chat API takes them.
    Messages,
    /// A JSON array of conversations, each a list of `from` and `value`.
    ShareGpt,
    /// A conversation a line: `turns`, a list of what the user says. No answers are recorded.
    MtBench,
}

/// The conversations of a file, at least one, in its order.
#[derive(Clone, Debug)]
pub struct Conversations {
    /// What reports call it: the file's stem.
    pub name: String,
    list: Vec<Conversation>,
    /// The index of the first turn of each.
    begins: Vec<usize>,
    /// Conversations without a word of the user, which are left out.
    left_out: u64,
    /// Answers before the first word of a user, which are left out.
    unasked: u64,
    /// Answers without a word, which are kept.
    silent: u64,
}

/// One conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Its name in the file, or its line where it has none. Printable ASCII, never empty.
    pub id: Box<str>,
    /// The physical line where it begins, from 1.
    pub row: u64,
    messages: Box<str>,
    /// Where the system message ends; 0 without one.
    system_end: usize,
    turns: Box<[Turn]>,
}

/// One turn: a request for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Its number in the conversation, answers counted; from 1.
    pub number: u32,
    /// The physical line of its first message.
    pub row: u64,
    /// How long after the last answer it was said: what a tool took, or a person.
    pub delay: Option<Span>,
    /// It brings the results of tools and nothing else.
    pub is_tool: bool,
    /// It brings the results of tools, whatever else it says.
    pub has_results: bool,
    /// What it says about how to sample, and its tools.
    pub params: Arc<Params>,
    /// What the column `intent_codes` beside its recorded answer holds, as JSON text.
    pub intents: Option<Box<str>>,
    from: usize,
    to: usize,
    answer_to: usize,
}

impl ConversationFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Agentic, Self::Messages, Self::ShareGpt, Self::MtBench];

    /// The name that the configuration uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agentic => "agentic",
            Self::Messages => "messages",
            Self::ShareGpt => "sharegpt",
            Self::MtBench => "mt-bench",
        }
    }

    /// Whether files of this kind record what was answered.
    pub const fn has_answers(self) -> bool {
        !matches!(self, Self::MtBench)
    }
}

impl Conversations {
    /// Reads all of `input`, which is the contents of `file` (used in messages and for the name, not opened),
    /// and checks every message. `array` says that a file of `messages` rows is one JSON array of them.
    ///
    /// # Errors
    ///
    /// The first row that cannot be used, an input without a conversation, or a failure to read.
    pub fn read(
        input: impl BufRead,
        file: &str,
        format: ConversationFormat,
        array: bool,
        limits: &Limits,
    ) -> Result<Conversations, DatasetError> {
        let mut input = input;
        let mut source = Source::new(&mut input, limits.row_bytes_max);
        let mut out = Conversations {
            name: stem(file),
            list: Vec::new(),
            begins: Vec::new(),
            left_out: 0,
            unasked: 0,
            silent: 0,
        };
        let read = if format == ConversationFormat::Agentic {
            agentic::read(&mut source, &mut out, limits.rows_max)
        } else {
            let mut lists = Lists::new(&mut out, limits.rows_max);
            match format {
                ConversationFormat::ShareGpt => {
                    json::each(&mut source, &mut |row, place| lists.sharegpt(row, place))
                }
                ConversationFormat::MtBench => {
                    jsonl::each(&mut source, &mut |row, place| lists.mt_bench(row, place))
                }
                _ if array => json::each(&mut source, &mut |row, place| lists.messages(row, place)),
                _ => jsonl::each(&mut source, &mut |row, place| lists.messages(row, place)),
            }
        };
        read.and_then(
            |()| if out.list.is_empty() { Err(At::nowhere(Fault::Empty)) } else { Ok(()) },
        )
        .map_err(|at| at.in_file(file))?;
        let mut turns = 0;
        out.begins.extend(out.list.iter().map(|talk| {
            turns += talk.turns.len();
            turns - talk.turns.len()
        }));
        Ok(out)
    }

    /// All of them, in the order of the file.
    pub fn list(&self) -> &[Conversation] {
        &self.list
    }

    /// How many turns they have together; at least one.
    pub fn turns(&self) -> usize {
        self.list.iter().map(|talk| talk.turns.len()).sum()
    }

    /// The turn at `index`, counted from 0 over all conversations.
    pub fn turn(&self, index: usize) -> Option<(&Conversation, &Turn)> {
        let place = self.begins.partition_point(|begin| *begin <= index).checked_sub(1)?;
        let talk = &self.list[place];
        Some((talk, talk.turns.get(index - self.begins[place])?))
    }

    /// Bytes of their messages, each counted once.
    pub fn bytes(&self) -> usize {
        self.list.iter().map(|talk| talk.messages.len()).sum()
    }

    /// Conversations that were left out, since no user says anything in them.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Answers that were left out, since nobody had asked anything yet.
    pub fn unasked(&self) -> u64 {
        self.unasked
    }

    /// Recorded answers that say nothing. They are kept: a model may have said nothing.
    pub fn silent(&self) -> u64 {
        self.silent
    }
}

impl Conversation {
    /// Its turns, at least one, in order.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// All messages: JSON objects with commas between.
    pub fn messages(&self) -> &str {
        &self.messages
    }

    /// The system message, as JSON; empty without one.
    pub fn system(&self) -> &str {
        &self.messages[..self.system_end]
    }

    /// Everything that the request of `turn` says, recorded answers included.
    ///
    /// # Panics
    /// For a turn of another conversation, perhaps.
    pub fn prompt(&self, turn: &Turn) -> &str {
        &self.messages[..turn.to]
    }

    /// What `turn` says itself.
    pub fn asked(&self, turn: &Turn) -> &str {
        &self.messages[turn.from..turn.to]
    }

    /// Where in [`messages`](Self::messages) that stands.
    pub fn asked_at(&self, turn: &Turn) -> std::ops::Range<usize> {
        turn.from..turn.to
    }

    /// The recorded answer to `turn`, as JSON messages; empty where there is none.
    pub fn answer(&self, turn: &Turn) -> &str {
        self.messages[turn.to..turn.answer_to].trim_start_matches(',')
    }
}
