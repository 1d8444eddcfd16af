//! Conversations, as far as the load generator knows them: which turns there are and when they may be sent
//! ([`Scripts`]), how long users think ([`Think`]), and how the request of a turn is made ([`TurnRequests`]).

mod requests;
mod salt;
mod think;

use takt_time::Span;

pub use requests::{Around, TalkText, TurnRequests, TurnText, TurnTexts};
pub use salt::{SALT_AT, salt_of, salted};
pub use think::{Think, ThinkTime};

/// The turns of all conversations of a dataset, in a row: the place of a turn is its sample's index.
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    /// Where the turns of each conversation begin, and where the last ones end.
    begins: Vec<u32>,
    turns: Vec<TurnPlan>,
}

/// One turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnPlan {
    /// Its number in its conversation, as records have it.
    pub number: u32,
    /// How long after the last answer it was recorded.
    pub delay: Option<Span>,
    /// It brings the results of tools.
    pub is_tool: bool,
}

impl Scripts {
    /// Adds a conversation, which has at least one turn.
    ///
    /// # Panics
    /// Without a turn, or with more than 2^32 in all.
    pub fn push(&mut self, turns: impl IntoIterator<Item = TurnPlan>) {
        let begin = self.turns.len();
        self.turns.extend(turns);
        assert!(self.turns.len() > begin, "a conversation has a turn");
        if self.begins.is_empty() {
            self.begins.push(0);
        }
        self.begins.push(u32::try_from(self.turns.len()).expect("turns are numbered by 32 bits"));
    }

    /// How many conversations there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many turns each conversation has.
    pub fn lengths(&self) -> impl Iterator<Item = u32> {
        self.begins.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// The turn of this sample.
    ///
    /// # Panics
    /// When there are fewer.
    #[must_use]
    pub fn plan(&self, sample: u32) -> TurnPlan {
        self.turns[sample as usize]
    }

    /// How many turns conversation `source` has.
    pub(crate) fn turns_of(&self, source: u32) -> u32 {
        self.begins[source as usize + 1] - self.begins[source as usize]
    }

    /// The sample of a turn.
    pub(crate) fn sample(&self, source: u32, turn: u32) -> u32 {
        self.begins[source as usize] + turn
    }

    pub(crate) fn turn(&self, source: u32, turn: u32) -> TurnPlan {
        self.turns[self.sample(source, turn) as usize]
    }
}
