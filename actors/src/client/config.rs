//! What a client is told once, before it starts.

use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use takt_engine::Target;
use takt_time::Span;
use takt_wire::{Api, Ask, Limits};

use crate::api::Samples;

/// Everything a [`super::Client`] needs to know. The phases are those of the session, in its order.
#[derive(Debug)]
pub struct ClientConfig {
    /// Where requests go; at least one.
    pub endpoints: Vec<EndpointTarget>,
    /// Which endpoint a request goes to.
    pub balance: Balance,
    /// The most connections to each endpoint; `None` for as many as are needed.
    pub max_connections: Option<usize>,
    /// Whether a request that dies unanswered on a connection which had answered before is sent once more.
    pub retry_stale: bool,
    /// The longest time for a connection to be made.
    pub connect_timeout: Option<Span>,
    /// The longest time from the first send to the first byte of the answer.
    pub first_byte_timeout: Option<Span>,
    /// The longest time from being handed over to the end of the answer, waiting included.
    pub request_timeout: Option<Span>,
    /// Connections to be opened before anything is sent, spread over the endpoints.
    pub warm_connections: usize,
    /// Bounds on what a server may send.
    pub limits: Limits,
    /// What the requests of each phase are; a [`takt_record::PhaseId`] is a place in this list.
    pub phases: Vec<PhaseRoute>,
}

impl ClientConfig {
    /// Endpoints in turn, as many connections as are needed and none ahead, stale ones replaced, no
    /// time-outs.
    #[must_use]
    pub fn new(endpoints: Vec<EndpointTarget>, phases: Vec<PhaseRoute>) -> Self {
        Self {
            endpoints,
            balance: Balance::RoundRobin,
            max_connections: None,
            retry_stale: true,
            connect_timeout: None,
            first_byte_timeout: None,
            request_timeout: None,
            warm_connections: 0,
            limits: Limits::default(),
            phases,
        }
    }
}

/// One endpoint.
#[derive(Clone, Debug)]
pub struct EndpointTarget {
    /// Its address, resolved.
    pub target: Target,
    /// Addresses to connect from, in turn; the system's choice when there are none.
    pub sources: Vec<IpAddr>,
}

impl EndpointTarget {
    /// An endpoint that is connected to from any address.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self { target, sources: Vec::new() }
    }

    /// Its address once for each source.
    pub(super) fn ways(self) -> Vec<Target> {
        if self.sources.is_empty() {
            return vec![self.target];
        }
        let way = |source: &IpAddr| {
            let mut way = self.target.clone();
            if let Target::Tcp { from, .. } | Target::Tls { from, .. } = &mut way {
                *from = Some(*source);
            }
            way
        };
        self.sources.iter().map(way).collect()
    }
}

/// How requests are spread over endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// In turn.
    RoundRobin,
    /// To the one with the fewest requests under way or waiting; in turn among equals.
    LeastInFlight,
}

/// What the requests of one phase are, and what is expected back.
#[derive(Clone)]
pub struct PhaseRoute {
    /// Where the prepared requests are; phases may share them.
    pub samples: Rc<RefCell<dyn Samples>>,
    /// How answers are read.
    pub api: Api,
    /// Whether an event stream was asked for.
    pub stream: bool,
    /// Whether the text of answers is recorded.
    pub keep_text: bool,
    /// Whether the samples hear the text of answers, as conversations with a live history must.
    pub hears: bool,
    /// The longest time from being handed over to the end of a turn of a conversation.
    pub turn_timeout: Option<Span>,
}

impl PhaseRoute {
    /// What the answer to the request in `bytes` is to be read as.
    pub(super) fn ask(&self, bytes: &[u8]) -> Ask {
        Ask {
            api: self.api,
            stream: self.stream,
            keep_text: self.keep_text || self.hears,
            no_body: bytes.starts_with(b"HEAD "),
        }
    }
}

impl fmt::Debug for PhaseRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhaseRoute")
            .field("api", &self.api)
            .field("stream", &self.stream)
            .field("keep_text", &self.keep_text)
            .field("hears", &self.hears)
            .field("turn_timeout", &self.turn_timeout)
            .finish_non_exhaustive()
    }
}
