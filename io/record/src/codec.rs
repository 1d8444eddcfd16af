//! The packed form of a record, version 1.
//!
//! A record is a tag byte, then its time as a step from the record before it in the block, then its fields.
//! Absent fields are absent bits of a flag byte and take no room. What records of one block have in
//! common is kept as [`State`]: the last time, the last ordinal and the current phase. A change of phase is
//! a tag of its own before the record that needs it.
//!
//! ```text
//! tag, low two bits   upper six bits
//!   0  token          first, tokens given, content, reasoning, tool call, coalesced
//!   1  issued         scheduled, turn
//!   2  completed      outcome (2 bits), reused, more than one attempt, status 200, turn
//!   3  any other      which: phase change, session, phase, error, text, clock, health, conversation, window
//! ```
//!
//! The times of a completed request are steps along the chain in which they normally happen, so
//! most take one to three bytes. See [`crate::Block`] for what stands around the records.

use thiserror::Error;

/// The version of the packed form; the first byte of each block.
pub const CODEC_VERSION: u8 = 1;

/// The longest text of one record, in bytes. Longer text is written in pieces.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// Bytes that are no block of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("record {record} of the block cannot be read: {kind}")]
pub struct CodecError {
    /// Which record of the block, from 0; those before it are whole.
    pub record: u32,
    /// What is wrong with it.
    pub kind: CodecErrorKind,
}

/// What can be wrong with packed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodecErrorKind {
    /// The bytes end inside the record.
    #[error("the bytes end inside it")]
    Truncated,
    /// The block was written in a form that this version does not know.
    #[error("packed form {0}, this program reads {CODEC_VERSION}")]
    Version(u8),
    /// A tag or a flag that has no meaning.
    #[error("unknown tag {0:#04x}")]
    Tag(u8),
    /// A number that its field cannot hold, or a code outside its list.
    #[error("a number is out of its range")]
    Range,
    /// Text that is not UTF-8 or is longer than [`MAX_TEXT_BYTES`].
    #[error("its text is not UTF-8 or too long")]
    Text,
    /// Bytes after the last record.
    #[error("bytes follow the last record")]
    Trailing,
}

/// What a record is coded against: the same on both sides after each record.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// Time of the last record; at first the block's base.
    pub(crate) at: u64,
    /// The ordinal last named.
    pub(crate) ordinal: u64,
    /// The phase of the request last named.
    pub(crate) phase: u16,
}

pub(crate) mod tag {
    pub(crate) const TOKEN: u8 = 0;
    pub(crate) const ISSUED: u8 = 1;
    pub(crate) const COMPLETED: u8 = 2;
    pub(crate) const OTHER: u8 = 3;
    pub(crate) const KIND: u8 = 0b11;

    pub(crate) const PHASE_CHANGE: u8 = OTHER;
    pub(crate) const SESSION: u8 = OTHER | 1 << 2;
    pub(crate) const PHASE: u8 = OTHER | 2 << 2;
    pub(crate) const ERROR: u8 = OTHER | 3 << 2;
    pub(crate) const TEXT: u8 = OTHER | 4 << 2;
    pub(crate) const CLOCK: u8 = OTHER | 5 << 2;
    pub(crate) const HEALTH: u8 = OTHER | 6 << 2;
    pub(crate) const CONVERSATION: u8 = OTHER | 7 << 2;
    pub(crate) const WINDOW: u8 = OTHER | 8 << 2;
}

pub(crate) mod token {
    pub(crate) const FIRST: u8 = 1 << 2;
    pub(crate) const TOKENS: u8 = 1 << 3;
    pub(crate) const CONTENT: u8 = 1 << 4;
    pub(crate) const REASONING: u8 = 1 << 5;
    pub(crate) const TOOL_CALL: u8 = 1 << 6;
    pub(crate) const COALESCED: u8 = 1 << 7;
}

pub(crate) mod issued {
    pub(crate) const SCHEDULED: u8 = 1 << 2;
    pub(crate) const TURN: u8 = 1 << 3;
    pub(crate) const ALL: u8 = super::tag::KIND | SCHEDULED | TURN;
}

pub(crate) mod completed {
    pub(crate) const FAILED: u8 = 1 << 2;
    pub(crate) const UNANSWERED: u8 = 2 << 2;
    pub(crate) const OUTCOME: u8 = 3 << 2;
    pub(crate) const REUSED: u8 = 1 << 4;
    pub(crate) const ATTEMPTS: u8 = 1 << 5;
    pub(crate) const STATUS_200: u8 = 1 << 6;
    pub(crate) const TURN: u8 = 1 << 7;
}

/// Bits of the two bytes that say which fields of a completed request are present.
pub(crate) mod present {
    pub(crate) const SCHEDULED: u16 = 1;
    pub(crate) const ACQUIRED: u16 = 1 << 1;
    pub(crate) const CONNECT: u16 = 1 << 2;
    pub(crate) const TLS: u16 = 1 << 3;
    pub(crate) const SENT: u16 = 1 << 4;
    pub(crate) const WRITTEN: u16 = 1 << 5;
    pub(crate) const FIRST_BYTE: u16 = 1 << 6;
    pub(crate) const FIRST_EVENT: u16 = 1 << 7;
    pub(crate) const FIRST_TOKEN: u16 = 1 << 8;
    pub(crate) const FIRST_CONTENT: u16 = 1 << 9;
    pub(crate) const LAST_TOKEN: u16 = 1 << 10;
    pub(crate) const INPUT: u16 = 1 << 11;
    pub(crate) const OUTPUT: u16 = 1 << 12;
    pub(crate) const CACHED: u16 = 1 << 13;
    pub(crate) const FIRST_EVENT_TOKENS: u16 = 1 << 14;
    pub(crate) const STATUS: u16 = 1 << 15;
}

/// Set in the byte of a completed request's words, above the finish reason and the token source, when a byte
/// of further fields follows that byte.
pub(crate) const MORE: u8 = 1 << 7;

/// Bits of that byte of further fields.
pub(crate) mod more {
    pub(crate) const ENDPOINT: u8 = 1;
    pub(crate) const SOCKET_WAIT: u8 = 1 << 1;
    pub(crate) const ALL: u8 = ENDPOINT | SOCKET_WAIT;
}

/// Bits of the byte that says which readings of a health record are present.
pub(crate) mod health {
    pub(crate) const ON_CPU: u8 = 1;
    pub(crate) const RUNNABLE: u8 = 1 << 1;
    pub(crate) const STOLEN: u8 = 1 << 2;
    pub(crate) const INVOLUNTARY: u8 = 1 << 3;
    /// There was TLS: two counts more at the end.
    pub(crate) const TLS: u8 = 1 << 4;
    /// What the reactor did follows: its counts, a byte of bits for what may be absent, and that.
    pub(crate) const WORK: u8 = 1 << 5;
    pub(crate) const ALL: u8 = ON_CPU | RUNNABLE | STOLEN | INVOLUNTARY | TLS | WORK;
}

/// Bits of the byte that says what a conversation record holds: its state above them when it has ended.
pub(crate) mod conversation {
    pub(crate) const ENDED: u8 = 1;
    pub(crate) const MORE: u8 = 1 << 1;
    pub(crate) const INPUT: u8 = 1 << 2;
    pub(crate) const OUTPUT: u8 = 1 << 3;
    pub(crate) const CACHED: u8 = 1 << 4;
    pub(crate) const STATE: u8 = 5;
}

/// Set in the second byte of a failure when a status follows; below it blame and stage.
pub(crate) const FAILURE_STATUS: u8 = 1 << 7;

/// Set in the event byte of a phase record; the code of the event's own word follows in the next byte.
pub(crate) mod session_event {
    pub(crate) const STARTED: u8 = 0;
    pub(crate) const INTERRUPTED: u8 = 1;
    pub(crate) const FAILED: u8 = 2;
    pub(crate) const ENDED: u8 = 3;
}

pub(crate) mod window_event {
    pub(crate) const OPENED: u8 = 0;
    pub(crate) const CLOSED: u8 = 1;
}

pub(crate) mod phase_event {
    pub(crate) const STARTED: u8 = 0;
    pub(crate) const TRACKING_STARTED: u8 = 1;
    pub(crate) const ISSUING_ENDED: u8 = 2;
    pub(crate) const TRACKING_STOPPED: u8 = 3;
    pub(crate) const ENDED: u8 = 4;
}
