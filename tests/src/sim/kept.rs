//! A record as a run keeps it: without its words, and no larger than most records are.
//!
//! A [`Record`] has the size of its largest kind, which is ten times that of a token event.

use takt_record::{
    Completed, ConversationRecord, Failure, Health, Issued, PhaseRecord, Record, RequestKey,
    SessionRecord, Text, TextKind, Token, WindowRecord,
};
use takt_time::{Anchor, Nanos};

/// See [`Record`].
#[derive(Clone, Debug, PartialEq)]
pub enum Kept {
    /// See [`Record::Session`].
    Session(SessionRecord),
    /// See [`Record::Phase`].
    Phase(PhaseRecord),
    /// See [`Record::Issued`].
    Issued(Issued),
    /// See [`Record::Token`].
    Token(Token),
    /// See [`Record::Error`].
    Error(Nanos, RequestKey, Failure),
    /// See [`Record::Completed`].
    Completed(Box<Completed>),
    /// See [`Record::Text`].
    Text(Nanos, RequestKey, TextKind),
    /// See [`Record::Conversation`].
    Conversation(Box<ConversationRecord>),
    /// See [`Record::Window`].
    Window(WindowRecord),
    /// See [`Record::Clock`].
    Clock(Anchor),
    /// See [`Record::Health`].
    Health(Box<Health>),
}

impl Kept {
    /// When.
    #[must_use]
    pub fn at(&self) -> Nanos {
        match self {
            Self::Session(record) => record.at,
            Self::Phase(record) => record.at,
            Self::Issued(record) => record.at,
            Self::Token(record) => record.at,
            Self::Error(at, ..) | Self::Text(at, ..) => *at,
            Self::Completed(record) => record.times.end,
            Self::Conversation(record) => record.at,
            Self::Window(record) => record.at,
            Self::Clock(anchor) => anchor.mono,
            Self::Health(record) => record.at,
        }
    }

    /// The request that it is of.
    #[must_use]
    pub fn key(&self) -> Option<RequestKey> {
        match self {
            Self::Issued(record) => Some(record.key),
            Self::Token(record) => Some(record.key),
            Self::Error(_, key, _) | Self::Text(_, key, _) => Some(*key),
            Self::Completed(record) => Some(record.key),
            Self::Session(_)
            | Self::Phase(_)
            | Self::Conversation(_)
            | Self::Window(_)
            | Self::Clock(_)
            | Self::Health(_) => None,
        }
    }
}

impl From<&Record<'_>> for Kept {
    fn from(record: &Record<'_>) -> Self {
        match *record {
            Record::Session(r) => Self::Session(r),
            Record::Phase(r) => Self::Phase(r),
            Record::Issued(r) => Self::Issued(r),
            Record::Token(r) => Self::Token(r),
            Record::Error { at, key, failure, .. } => Self::Error(at, key, failure),
            Record::Completed(r) => Self::Completed(Box::new(r)),
            Record::Text(Text { at, key, kind, .. }) => Self::Text(at, key, kind),
            Record::Conversation(r) => Self::Conversation(Box::new(r)),
            Record::Window(r) => Self::Window(r),
            Record::Clock(anchor) => Self::Clock(anchor),
            Record::Health(r) => Self::Health(Box::new(r)),
        }
    }
}
