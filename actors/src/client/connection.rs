//! One connection: what it is doing, the machine that reads its answers, and what is still to be written.
//!
//! ```text
//!                    Connected            answer's end          socket found empty
//! Making ------------------------> Busy ----------------> Spent ------------------> Idle
//!    \                              ^  ^                    |                        |
//!     \-- nobody waits -> Idle      |  '--- somebody waits -'                        |
//!                                   '------------------------------- taken ----------'
//! ```
//!
//! Any state may end in the connection's close. `Busy` names its request and gives it up exactly once.

use takt_engine::StreamId;
use takt_time::{Nanos, Span};
use takt_wire::{Answer, Api, Ask, LastHead, Limits};

use super::flight::FlightKey;

/// The connections, by the slot of their stream. A slot keeps its memory for the next connection in it.
#[derive(Debug)]
pub(super) struct Connections {
    slots: Vec<Option<Box<Connection>>>,
    limits: Limits,
    last_head: LastHead,
}

/// One connection, or the place where one was.
#[derive(Debug)]
pub(super) struct Connection {
    /// Whose place this is; `None` when it is vacant.
    stream: Option<StreamId>,
    /// Which endpoint it leads to.
    pub(super) endpoint: usize,
    pub(super) state: State,
    /// Answers that ended on it.
    pub(super) served: u64,
    /// How long the server said it keeps it idle.
    pub(super) kept: Option<Span>,
    /// When the attempt to connect began.
    pub(super) began: Nanos,
    /// When the connection stood and its TLS handshake began; `None` without TLS.
    pub(super) stood: Option<Nanos>,
    /// When its last answer ended; when it stood up, before the first.
    pub(super) rested: Nanos,
    /// When it was last looked at ahead of a request; `None` when it has answered since, or never.
    pub(super) looked_at: Option<Nanos>,
    pub(super) answer: Answer,
    /// What a short write left over, and how far that has been written since.
    rest: Vec<u8>,
    rest_at: usize,
}

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Being made.
    Making(For),
    /// Nothing.
    Idle,
    /// Carrying a request.
    Busy(FlightKey),
    /// Its answer has ended; the socket may hold more. May carry another request if so.
    Spent,
}

/// For whom a connection is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// Whoever is first in line when it stands.
    Line,
    /// As `Line`, and part of the warm-up.
    Warmth,
    /// The second attempt of this request, which is not in the line.
    Retry(FlightKey),
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self { slots: Vec::new(), limits, last_head: LastHead::default() }
    }

    /// Takes in a connection that is being made.
    pub(super) fn insert(&mut self, stream: StreamId, endpoint: usize, made: For, now: Nanos) {
        let index = stream.index();
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let (limits, last_head) = (self.limits, &self.last_head);
        let new = || Box::new(Connection::new(limits, last_head.clone()));
        let connection = self.slots[index].get_or_insert_with(new);
        connection.stream = Some(stream);
        connection.endpoint = endpoint;
        connection.state = State::Making(made);
        connection.served = 0;
        connection.kept = None;
        connection.began = now;
        connection.stood = None;
        connection.rested = now;
        connection.looked_at = None;
        connection.clear_rest();
    }

    #[inline]
    pub(super) fn get_mut(&mut self, stream: StreamId) -> Option<&mut Connection> {
        let connection = self.slots.get_mut(stream.index())?.as_deref_mut()?;
        (connection.stream == Some(stream)).then_some(connection)
    }

    /// What a connection does, if it is there.
    #[inline]
    pub(super) fn state(&self, stream: StreamId) -> Option<State> {
        let connection = self.slots.get(stream.index())?.as_deref()?;
        (connection.stream == Some(stream)).then_some(connection.state)
    }

    /// Whether it is still being made.
    pub(super) fn is_being_made(&self, stream: StreamId) -> bool {
        matches!(self.state(stream), Some(State::Making(_)))
    }

    /// Vacates the place of a connection.
    pub(super) fn remove(&mut self, stream: StreamId) {
        if let Some(connection) = self.get_mut(stream) {
            connection.stream = None;
            connection.clear_rest();
        }
    }

    /// All that are there.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        self.slots.iter().flatten().filter_map(|connection| connection.stream).collect()
    }
}

impl Connection {
    fn new(limits: Limits, last_head: LastHead) -> Self {
        // Any question will do: the first request asks its own.
        let ask = Ask { api: Api::Raw, stream: false, keep_text: false, no_body: false };
        Self {
            stream: None,
            endpoint: 0,
            state: State::Idle,
            served: 0,
            kept: None,
            began: Nanos::ZERO,
            stood: None,
            rested: Nanos::ZERO,
            looked_at: None,
            answer: Answer::sharing(ask, limits, last_head),
            rest: Vec::new(),
            rest_at: 0,
        }
    }

    /// What of its making a request waited for that came at `issued`: for the connection, and for its TLS.
    pub(super) fn waited_for(&self, issued: Nanos) -> (Option<Span>, Option<Span>) {
        if self.served > 0 || self.rested <= issued {
            return (None, None);
        }
        let up = self.stood.unwrap_or(self.rested);
        let from = self.began.max(issued);
        let connect = (up > from).then(|| up.saturating_since(from));
        let tls = self.stood.map(|stood| self.rested.saturating_since(stood.max(issued)));
        (connect, tls)
    }

    /// Whether the server, by its own word, is about to close it or has.
    pub(super) fn is_expired(&self, now: Nanos) -> bool {
        self.kept.is_some_and(|kept| now.saturating_since(self.rested) + CLOSE_CALL >= kept)
    }

    /// Keeps what a short write left over.
    pub(super) fn keep_rest(&mut self, rest: &[u8]) {
        self.rest.clear();
        self.rest.extend_from_slice(rest);
        self.rest_at = 0;
    }

    /// What is still to be written.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        &self.rest[self.rest_at..]
    }

    /// So many bytes of the rest were written. Whether that was all of it.
    pub(super) fn wrote(&mut self, bytes: usize) -> bool {
        self.rest_at += bytes;
        let all = self.rest_at == self.rest.len();
        if all {
            self.clear_rest();
        }
        all
    }

    fn clear_rest(&mut self) {
        self.rest.clear();
        self.rest.shrink_to(KEPT);
        self.rest_at = 0;
    }
}

/// This long before a server may close an idle connection it is not used any more: the two would meet
/// half-way.
const CLOSE_CALL: Span = Span::from_millis(100);
/// Bytes of the write buffer that stay with a connection; long prompts come again and again.
const KEPT: usize = 64 << 10;
