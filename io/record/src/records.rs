//! The records themselves, decoded.
//!
//! Absent is `None`, never zero: a time that was not reached and a count that nobody gave stay out of
//! every statistic.

use takt_time::{Anchor, Nanos, Span};

use crate::kinds::{
    Blame, ConversationState, EndedBy, ErrorKind, FailedBy, FinishReason, PhaseState, Stage,
    TokenSource,
};
use crate::work::Work;

/// A phase by its place in the session, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PhaseId(pub u16);

/// A request within a session: its phase and its ordinal in it, from 0 in issue order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestKey {
    /// The phase that issued it; it is counted there even when it ends later.
    pub phase: PhaseId,
    /// Its number in the phase.
    pub ordinal: u64,
}

/// The conversation and turn of a request of an agentic phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnOf {
    /// Conversation number in the dataset, counted on over repeats.
    pub conversation: u64,
    /// Turn number as the dataset has it.
    pub turn: u32,
}

/// One record. Text is borrowed from the block that it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Record<'a> {
    /// The session's life.
    Session(SessionRecord),
    /// A phase's life.
    Phase(PhaseRecord),
    /// A request was handed to the transport.
    Issued(Issued),
    /// A token event arrived.
    Token(Token),
    /// A request failed; its [`Completed`] follows.
    Error {
        /// When.
        at: Nanos,
        /// Which request.
        key: RequestKey,
        /// What happened.
        failure: Failure,
        /// The server's or the system's words, bounded.
        message: &'a str,
    },
    /// A request ended. Exactly one per [`Issued`].
    Completed(Completed),
    /// Text of an answer, where a phase keeps it.
    Text(Text<'a>),
    /// A conversation's life.
    Conversation(ConversationRecord),
    /// A profiler window of the server.
    Window(WindowRecord),
    /// The two clocks, read together.
    Clock(Anchor),
    /// What the instrument says of itself.
    Health(Health),
}

/// The session began, was interrupted or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRecord {
    /// When.
    pub at: Nanos,
    /// What.
    pub event: SessionEvent,
}

/// Events of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// First record of a session.
    Started,
    /// A stop was asked for (a signal, the embedding program).
    Interrupted,
    /// The session cannot go on.
    Failed(FailedBy),
    /// Last record of a session, always written.
    Ended,
}

/// Something happened to a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRecord {
    /// When.
    pub at: Nanos,
    /// Which.
    pub phase: PhaseId,
    /// What.
    pub event: PhaseEvent,
}

/// Events of a phase, in this order. A warm-up phase has no tracking window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseEvent {
    /// Its strategy starts; the schedule of a timed pattern counts from `at`. `inherited` requests of
    /// earlier phases are still in flight.
    Started {
        /// Requests of earlier phases in flight.
        inherited: u32,
    },
    /// The tracking window opens.
    TrackingStarted,
    /// Nothing more is issued.
    IssuingEnded {
        /// What ended it.
        by: EndedBy,
    },
    /// The tracking window closes.
    TrackingStopped,
    /// The phase is over; what still runs of it is late.
    Ended {
        /// How.
        state: PhaseState,
    },
}

/// A request was handed to the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Which.
    pub key: RequestKey,
    /// Index of its sample in the phase's dataset.
    pub sample: u32,
    /// When.
    pub at: Nanos,
    /// When the schedule wanted it; `None` for a closed loop.
    pub scheduled: Option<Nanos>,
    /// Conversation and turn.
    pub turn: Option<TurnOf>,
}

/// One event of a stream that carries tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// When the read that completed it returned.
    pub at: Nanos,
    /// Which request.
    pub key: RequestKey,
    /// The first of its request.
    pub first: bool,
    /// Tokens in the event when the server says so (continuous usage, token ids); else `None`, and an
    /// event counts as one token by estimate.
    pub tokens: Option<u32>,
    /// Carries answer text.
    pub content: bool,
    /// Carries reasoning.
    pub reasoning: bool,
    /// Carries a piece of a tool call.
    pub tool_call: bool,
    /// Came in the same read as the token event before it: its gap is not a measured one.
    pub coalesced: bool,
}

/// How and when a request ended, with all its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Which.
    pub key: RequestKey,
    /// Index of its sample.
    pub sample: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Times of its (last) attempt; `issued`, `scheduled` and `sent` are those of the first.
    pub times: Times,
    /// Token counts with their source.
    pub tokens: TokenCounts,
    /// Why the server stopped generating.
    pub finish: Option<FinishReason>,
    /// HTTP status, when a head came.
    pub status: Option<u16>,
    /// Attempts made: 1, or 2 when a stale connection was replaced.
    pub attempts: u8,
    /// The connection had served another request before.
    pub reused: bool,
    /// Bytes of the answer's body, framing left out.
    pub body_bytes: u64,
    /// The endpoint that it went to, by its place in the configuration.
    pub endpoint: u16,
    /// Conversation and turn.
    pub turn: Option<TurnOf>,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered in full.
    Ok,
    /// Failed; an [`Record::Error`] came before.
    Failed(Failure),
    /// Cancelled when its drain ran out or the session stopped.
    Unanswered,
}

impl Outcome {
    /// The word for it in events and responses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed(_) => "failed",
            Self::Unanswered => "unanswered",
        }
    }

    /// What went wrong, if something did.
    #[must_use]
    pub const fn failure(self) -> Option<Failure> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Ok | Self::Unanswered => None,
        }
    }
}

/// A failed sample is data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What.
    pub kind: ErrorKind,
    /// Whose fault, as far as can be told.
    pub blame: Blame,
    /// How far the request had come.
    pub stage: Stage,
    /// HTTP status, when there was one.
    pub status: Option<u16>,
}

/// The times of one request, all from one clock. In order as listed, where present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Times {
    /// When the schedule wanted it.
    pub scheduled: Option<Nanos>,
    /// Handed to the transport.
    pub issued: Nanos,
    /// A connection was there for it.
    pub acquired: Option<Nanos>,
    /// How long that connection took to be made, when it was made for this request.
    pub connect: Option<Span>,
    /// How long its TLS handshake took, the same.
    pub tls: Option<Span>,
    /// How long the bytes of the first token (of an answer without one, its first byte) lay in the socket
    /// before the read that took them, by the kernel's stamp of the last of them; where that is asked for.
    pub socket_wait: Option<Span>,
    /// Just before the first write of the request: the send.
    pub sent: Option<Nanos>,
    /// The last byte was accepted by the system.
    pub written: Option<Nanos>,
    /// First byte of the response.
    pub first_byte: Option<Nanos>,
    /// First event of the stream, token or not.
    pub first_event: Option<Nanos>,
    /// First event with a token.
    pub first_token: Option<Nanos>,
    /// First event with answer text (after reasoning, say).
    pub first_content: Option<Nanos>,
    /// Last event with a token.
    pub last_token: Option<Nanos>,
    /// Last byte of the response, or the moment of failure.
    pub end: Nanos,
}

/// Token counts of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// Prompt tokens.
    pub input: Option<u32>,
    /// Generated tokens.
    pub output: Option<u32>,
    /// Prompt tokens that the server took from its cache.
    pub cached: Option<u32>,
    /// Tokens in the first token event, which TPOT leaves out; 1 by estimate when the server says nothing.
    pub first_event: Option<u32>,
    /// Events that carried tokens.
    pub events: u32,
    /// Events among them that came in one read with the one before.
    pub coalesced: u32,
    /// Who counted `output`.
    pub source: Option<TokenSource>,
}

/// A piece of kept text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// When the piece was complete.
    pub at: Nanos,
    /// Which request.
    pub key: RequestKey,
    /// What it is.
    pub kind: TextKind,
    /// The text; pieces of one kind are in order and concatenate.
    pub text: &'a str,
}

/// Kinds of kept text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Answer text.
    Content,
    /// Reasoning.
    Reasoning,
    /// Tool calls, JSON.
    ToolCalls,
}

/// What the instrument says of itself: counters since the session began, read at the start and end of
/// each phase and about once a second between. What a platform cannot tell is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Health {
    /// When it was read.
    pub at: Nanos,
    /// CPU time of the reactor thread.
    pub on_cpu: Option<Span>,
    /// Time the reactor thread was runnable but not running.
    pub runnable: Option<Span>,
    /// Time stolen from the machine, all cores.
    pub stolen: Option<Span>,
    /// Involuntary context switches of the reactor thread.
    pub involuntary: Option<u64>,
    /// Time the reactor spent in handlers rather than waiting.
    pub busy: Span,
    /// Turns of the reactor.
    pub turns: u64,
    /// The longest turn so far.
    pub longest_turn: Span,
    /// Timers fired.
    pub timers: u64,
    /// Readiness events delivered.
    pub ready: u64,
    /// Messages delivered.
    pub messages: u64,
    /// Blocks that did not fit the ring at once and waited in the overflow.
    pub spilled: u64,
    /// Records lost because the overflow was full as well.
    pub lost: u64,
    /// Connections opened.
    pub connections: u64,
    /// Requests that waited for a connection because a limit was reached.
    pub limited: u64,
    /// TLS handshakes that ended well.
    pub secured: u64,
    /// Those among them that resumed an earlier session.
    pub resumed: u64,
    /// What the reactor did; absent in journals of earlier versions.
    pub work: Option<Work>,
}

/// A conversation of an agentic phase began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationRecord {
    /// When; of an end, the last byte of its last answer.
    pub at: Nanos,
    /// Its phase.
    pub phase: PhaseId,
    /// Its number, as [`TurnOf`] has it.
    pub conversation: u64,
    /// What happened.
    pub event: ConversationEvent,
}

/// Events of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationEvent {
    /// It has a slot: its first turn is sent, or waits for its delay.
    Started {
        /// Turns that it has.
        turns: u32,
    },
    /// It is over.
    Ended(ConversationEnd),
}

/// What a conversation came to. `turns = succeeded + failed + skipped + unsent`, and one more when its last
/// turn was given up or was still in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationEnd {
    /// How it ended.
    pub how: ConversationState,
    /// When it had its slot.
    pub began: Nanos,
    /// Turns that it has.
    pub turns: u32,
    /// Turns answered.
    pub succeeded: u32,
    /// Turns failed: none or one.
    pub failed: u32,
    /// Turns that were not sent because one before them failed.
    pub skipped: u32,
    /// Turns that were not sent because the phase was over.
    pub unsent: u32,
    /// Time from the issue of its turns to their ends.
    pub waited: Span,
    /// Time of the delays before its turns: tools, and users who think.
    pub paused: Span,
    /// Prompt tokens of the turns answered, where they were told.
    pub input: Option<u64>,
    /// Generated tokens, likewise.
    pub output: Option<u64>,
    /// Prompt tokens from the server's cache, likewise.
    pub cached: Option<u64>,
    /// A conversation was left to begin when it ended.
    pub more: bool,
}

/// A profiler window of the server opened or closed. What was under way at any moment in between is of a
/// profiled server: its times are no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRecord {
    /// When. The margin around the window is in it: it opens before the profiler is started, and closes after
    /// it was stopped.
    pub at: Nanos,
    /// What.
    pub event: WindowEvent,
}

/// Events of a window. Windows follow one another; one that never closes lasts to the end of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowEvent {
    /// The profiler is about to be started.
    Opened,
    /// It was stopped.
    Closed,
}

impl Default for ConversationEnd {
    /// Nothing yet, stopped.
    fn default() -> Self {
        Self {
            how: ConversationState::Stopped,
            began: Nanos::ZERO,
            turns: 0,
            succeeded: 0,
            failed: 0,
            skipped: 0,
            unsent: 0,
            waited: Span::ZERO,
            paused: Span::ZERO,
            input: None,
            output: None,
            cached: None,
            more: false,
        }
    }
}

/// A pure consumer of records, in the order in which they were written.
pub trait Fold {
    /// Takes one record in.
    fn fold(&mut self, record: &Record<'_>);
}

impl Record<'_> {
    /// When the record's event happened.
    #[must_use]
    pub fn at(&self) -> Nanos {
        match self {
            Record::Session(r) => r.at,
            Record::Phase(r) => r.at,
            Record::Issued(r) => r.at,
            Record::Token(r) => r.at,
            Record::Error { at, .. } => *at,
            Record::Completed(r) => r.times.end,
            Record::Text(r) => r.at,
            Record::Conversation(r) => r.at,
            Record::Window(r) => r.at,
            Record::Clock(r) => r.mono,
            Record::Health(r) => r.at,
        }
    }
}

impl Record<'_> {
    /// The phase that it is about, or that issued its request.
    #[must_use]
    pub fn phase(&self) -> Option<PhaseId> {
        match self {
            Record::Phase(r) => Some(r.phase),
            Record::Issued(r) => Some(r.key.phase),
            Record::Token(r) => Some(r.key.phase),
            Record::Error { key, .. } => Some(key.phase),
            Record::Completed(r) => Some(r.key.phase),
            Record::Text(r) => Some(r.key.phase),
            Record::Conversation(r) => Some(r.phase),
            Record::Session(_) | Record::Window(_) | Record::Clock(_) | Record::Health(_) => None,
        }
    }
}

impl Times {
    /// Actual send minus scheduled send; `None` for a closed loop and for what was never sent.
    #[must_use]
    pub fn lateness(&self) -> Option<Span> {
        Some(self.sent?.saturating_since(self.scheduled?))
    }
}
