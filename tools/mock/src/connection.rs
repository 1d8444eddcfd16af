//! One client's connection, and the table of all.

use takt_engine::{Close, StreamId, TimerKey};
use takt_time::{Nanos, Span};
use takt_wire::{Limits, RequestParser};

use crate::generation::Generation;
use crate::ledger::Ledger;
use crate::scheduler::Ticket;

/// What is known of a connection. While nothing is under way its buffers hold nothing.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: StreamId,
    pub(crate) parser: RequestParser,
    /// Read and not parsed: what came behind a request that is being answered.
    pub(crate) input: Vec<u8>,
    /// When the last of it was read.
    pub(crate) input_at: Nanos,
    /// Not written yet: the socket is full, or the batch is not read.
    pub(crate) output: Vec<u8>,
    /// The answer under way.
    pub(crate) job: Option<Box<Job>>,
    /// Present when the server has a sink for the truth.
    pub(crate) ledger: Option<Box<Ledger>>,
    pub(crate) stage: Stage,
    /// How it is closed when it leaves, and how long after the last byte.
    pub(crate) farewell: (Close, Span),
    /// Answers so far.
    pub(crate) answered: u64,
    /// The socket may hold more, which was left there because `input` is full.
    pub(crate) unread: bool,
    /// It has been left to be gone on with soon.
    pub(crate) soon: bool,
    /// The client has ended its side. What it asked for is still answered.
    pub(crate) peer_ended: bool,
}

/// Where a connection is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Requests are taken.
    Open,
    /// No further request is taken; it closes when all is written.
    Leaving,
    /// All is written; it closes when a timer says so.
    Lingering,
}

/// A generation and its place in the queue.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) generation: Generation,
    pub(crate) service: Service,
    pub(crate) timer: Option<TimerKey>,
    /// Its place in the simulated scheduler, until that has made all of its tokens.
    pub(crate) ticket: Option<Ticket>,
}

/// Whether a job has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// It waits for one.
    Waiting,
    /// It has one.
    Running,
    /// It has given it back: all of the answer is made, but not yet written.
    Served,
}

impl Connection {
    fn new(stream: StreamId, limits: Limits, with_ledger: bool) -> Self {
        Self {
            stream,
            parser: RequestParser::new(limits),
            input: Vec::new(),
            input_at: Nanos::ZERO,
            output: Vec::new(),
            job: None,
            ledger: with_ledger.then(Box::default),
            stage: Stage::Open,
            farewell: (Close::Orderly, Span::ZERO),
            answered: 0,
            unread: false,
            soon: false,
            peer_ended: false,
        }
    }

    /// Whether its answer will never go on.
    pub(crate) fn hangs(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.generation.hangs())
    }

    /// Whether the next request has to wait, or is not taken at all.
    pub(crate) fn is_busy(&self) -> bool {
        self.job.is_some() || !self.output.is_empty() || self.stage != Stage::Open
    }
}

/// The connections, by the index of their stream.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    places: Vec<Option<Connection>>,
    open: usize,
}

impl Connections {
    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    pub(crate) fn insert(&mut self, stream: StreamId, limits: Limits, with_ledger: bool) {
        let index = stream.index();
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || None);
        }
        debug_assert!(self.places[index].is_none(), "{stream:?} comes to a place in use");
        self.places[index] = Some(Connection::new(stream, limits, with_ledger));
        self.open += 1;
    }

    /// The connection of `stream`; `None` when it is gone, also when another has its place.
    #[inline]
    pub(crate) fn get(&mut self, stream: StreamId) -> Option<&mut Connection> {
        self.places.get_mut(stream.index())?.as_mut().filter(|c| c.stream == stream)
    }

    /// All of them.
    pub(crate) fn streams(&self) -> Vec<StreamId> {
        self.places.iter().flatten().map(|connection| connection.stream).collect()
    }

    pub(crate) fn remove(&mut self, stream: StreamId) -> Option<Connection> {
        self.get(stream)?;
        self.open -= 1;
        self.places.get_mut(stream.index())?.take()
    }
}
