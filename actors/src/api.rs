//! The seams of the load generator: who holds the samples, who carries a request.
//!
//! ```text
//! Strategy --issue--> session --Request--> SampleIssuer ... the endpoint
//!     ^                  |  ^                   |
//!     '----completed-----'  '-----Answered------'   (through Replies)
//! ```

use takt_engine::Addr;
use takt_record::{Completed, PhaseId, RequestId, RequestKey, TurnOf};
use takt_time::Nanos;
use takt_wire::{PreparedRequest, Text};

use crate::session::SessionMsg;

/// The samples of a phase, in memory. Nothing here may read from disk: the clock is running.
pub trait Samples {
    /// How many there are; sample indices run from 0. Never 0.
    fn len(&self) -> u32;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The prepared request of `sample` for endpoint number `endpoint`; the client patches the id into it.
    fn request(&mut self, sample: u32, endpoint: usize) -> &mut PreparedRequest;

    /// The request that is asked for, for endpoint number `endpoint`: what the client sends. Samples whose
    /// requests depend on more than their index, such as a conversation, override it. Called once more
    /// for a second attempt, and beforehand in a rehearsal of a request that may not come: calls are not to be counted.
    fn request_for(&mut self, asked: &Request, endpoint: usize) -> &mut PreparedRequest {
        self.request(asked.sample, endpoint)
    }

    /// A piece of the answer to `asked`, where the phase's route says that its samples hear them.
    fn heard(&mut self, _asked: &Request, _text: &Text<'_>) {}

    /// A conversation is over: what is kept of it can go.
    fn forget(&mut self, _conversation: u64) {}
}

/// One request on its way from the session to the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its phase and ordinal.
    pub key: RequestKey,
    /// Its id on the wire.
    pub id: RequestId,
    /// Index of its sample.
    pub sample: u32,
    /// When the schedule wanted it; `None` for a closed loop.
    pub scheduled: Option<Nanos>,
    /// When the session handed it over.
    pub issued: Nanos,
    /// Conversation and turn.
    pub turn: Option<TurnOf>,
}

/// A transport: takes requests and answers each exactly once. The HTTP client is one; an embedder brings
/// another to drive something else with the same session.
pub trait SampleIssuer {
    /// Called once, before the first request: where answers go.
    fn attach(&mut self, replies: Replies);

    /// Sends a request. Must not block; one [`Answered`] follows, whatever happens.
    fn issue(&mut self, request: Request);

    /// A request like this one is due in a moment. Whatever can be looked at, or brought into the caches, before it is
    /// issued may be; nothing is sent, nothing follows, and it may not come. Must not block.
    fn rehearse(&mut self, _request: Request) {}

    /// Gives up requests that are under way or waiting for a connection: each is answered as unanswered,
    /// its connection closed.
    fn cancel(&mut self, which: Cancel);

    /// When anything last came of any request: a response head, an event with data, a byte of a plain body. A
    /// transport that does not know says `None`; then only answers in full count.
    fn progress(&self) -> Option<Nanos> {
        None
    }

    /// What it counts of itself, since it began.
    fn counters(&self) -> TransportCounters {
        TransportCounters::default()
    }

    /// Nothing more comes: let connections go.
    fn shut_down(&mut self);
}

/// Which requests to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Those of one phase: its drain ran out.
    Phase(PhaseId),
    /// All: the session stops.
    All,
}

/// A transport's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounters {
    /// Connections opened.
    pub connections: u64,
    /// Requests that waited for a connection because a limit was reached.
    pub limited: u64,
    /// TLS handshakes that ended well.
    pub secured: u64,
    /// Those among them that resumed an earlier session.
    pub resumed: u64,
    /// Connections closed because bytes came that belonged to no answer.
    pub leftover: u64,
    /// Connections that ended with their first answer, of endpoints that are known to close them behind it.
    pub used_once: u64,
}

/// The end of one request, as the transport tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// All that is known of it.
    pub completed: Completed,
    /// The words of a failure, bounded; `None` otherwise.
    pub error: Option<Box<str>>,
}

/// A transport's way back to the session.
#[derive(Clone, Debug)]
pub struct Replies(pub(crate) Addr<SessionMsg>);

impl Replies {
    /// A request has ended.
    pub fn answered(&self, answer: Answered) {
        self.0.send(SessionMsg::Answered(answer));
    }

    /// The transport cannot go on; the session fails with `why`.
    pub fn failed(&self, why: impl Into<Box<str>>) {
        self.0.send(SessionMsg::TransportFailed(why.into()));
    }
}
