//! One request on its way: a slab entry from being handed over to being answered.

use slab::Slab;
use takt_engine::StreamId;
use takt_record::{
    Completed, Failure, FinishReason, Outcome, RequestKey, TokenCounts, TokenSource,
};
use takt_record::{Times, Token};
use takt_time::{Nanos, Span};
use takt_wire::CountedBy;

use super::text::Split;
use crate::api::Request;

/// The requests that have not ended.
#[derive(Debug, Default)]
pub(super) struct Flights {
    slab: Slab<Flight>,
    /// Requests taken in so far.
    serial: u64,
}

/// Names one request of this client; never used again, unlike its place in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlightKey {
    slot: u32,
    serial: u64,
}

/// A request and what is known of it so far.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) request: Request,
    endpoint: u16,
    pub(super) place: Place,
    pub(super) times: Times,
    pub(super) tokens: TokenCounts,
    pub(super) finish: Option<FinishReason>,
    pub(super) status: Option<u16>,
    pub(super) body_bytes: u64,
    pub(super) attempts: u8,
    pub(super) reused: bool,
    /// It waits, or waited, because the cap was reached.
    pub(super) limited: bool,
    /// The start of a character of kept text whose rest is still to come.
    pub(super) split: Split,
    serial: u64,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In its endpoint's line.
    Waiting,
    /// On its second attempt, until this connection of its own stands.
    Connecting(StreamId),
    /// Written to this connection, or being written.
    On(StreamId),
}

impl Flights {
    /// Takes a request in.
    #[inline]
    pub(super) fn insert(&mut self, request: Request, endpoint: usize) -> FlightKey {
        let serial = self.serial;
        self.serial += 1;
        let slot = self.slab.insert(Flight::new(request, endpoint, serial));
        FlightKey { slot: u32::try_from(slot).expect("fewer than 2^32 requests"), serial }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: FlightKey) -> Option<&mut Flight> {
        self.slab.get_mut(key.slot as usize).filter(|flight| flight.serial == key.serial)
    }

    /// Whether the request has not ended.
    #[inline]
    pub(super) fn is_live(&self, key: FlightKey) -> bool {
        self.slab.get(key.slot as usize).is_some_and(|flight| flight.serial == key.serial)
    }

    /// Lets a request go.
    #[inline]
    pub(super) fn remove(&mut self, key: FlightKey) {
        if self.is_live(key) {
            self.slab.remove(key.slot as usize);
        }
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Those that `wanted` says, in the order in which they came.
    pub(super) fn those(&self, wanted: impl Fn(&Flight) -> bool) -> Vec<FlightKey> {
        let keys = self.slab.iter().filter(|(_, flight)| wanted(flight));
        let mut keys: Vec<FlightKey> = keys
            .map(|(slot, flight)| FlightKey { slot: slot as u32, serial: flight.serial })
            .collect();
        keys.sort_unstable_by_key(|key| key.serial);
        keys
    }
}

impl Flight {
    fn new(request: Request, endpoint: usize, serial: u64) -> Self {
        let times =
            Times { scheduled: request.scheduled, issued: request.issued, ..Times::default() };
        Self {
            request,
            endpoint: endpoint as u16,
            place: Place::Waiting,
            times,
            tokens: TokenCounts::default(),
            finish: None,
            status: None,
            body_bytes: 0,
            attempts: 1,
            reused: false,
            limited: false,
            split: Split::default(),
            serial,
        }
    }

    /// Starts over on another connection: the times of the first attempt go, but for its send.
    pub(super) fn again(&mut self) {
        let Times { scheduled, issued, sent, .. } = self.times;
        self.times = Times { scheduled, issued, sent, ..Times::default() };
        self.attempts += 1;
        self.reused = false;
    }

    /// Bytes of the answer lay in the socket for `wait` before the read that returned at `at`. It counts when that
    /// read brought the first byte, or the first token, which counts more.
    pub(super) fn waited_in_socket(&mut self, wait: Span, at: Nanos, tokens_before: bool) {
        let first_token = !tokens_before && self.times.first_token.is_some();
        if first_token || self.times.first_byte == Some(at) {
            self.times.socket_wait = Some(wait);
        }
    }

    /// The record of a token of this request.
    #[inline]
    pub(super) fn token(&mut self, token: &takt_wire::Token) -> Token {
        let tokens = token.tokens.map(count);
        if token.first {
            self.times.first_token = Some(token.at);
            self.tokens.first_event = Some(tokens.unwrap_or(1));
        }
        Token {
            at: token.at,
            key: self.key(),
            first: token.first,
            tokens,
            content: token.kinds.content,
            reasoning: token.kinds.reasoning,
            tool_call: token.kinds.tool_call,
            coalesced: token.coalesced,
        }
    }

    /// Takes over what its answer amounted to, the failure left out.
    #[inline]
    pub(super) fn learn(&mut self, seen: &takt_wire::Outcome) {
        self.status = seen.status;
        self.finish = seen.finish.map(finish);
        self.body_bytes = seen.body_bytes;
        self.times.first_event = seen.first_event;
        self.times.first_token = seen.first_token;
        self.times.first_content = seen.first_content;
        self.times.last_token = seen.last_token;
        let tokens = &mut self.tokens;
        tokens.events = count(seen.token_events);
        tokens.coalesced = count(seen.coalesced);
        let usage = seen.usage.unwrap_or_default();
        tokens.input = usage.prompt;
        tokens.cached = usage.cached;
        tokens.output = seen.output.map(|(output, _)| count(output));
        tokens.source = seen.output.map(|(_, by)| source(by));
    }

    /// Which endpoint it goes to.
    #[inline]
    pub(super) fn endpoint(&self) -> usize {
        self.endpoint.into()
    }

    pub(super) fn key(&self) -> RequestKey {
        self.request.key
    }

    /// Its last record.
    #[inline]
    pub(super) fn completed(&self, outcome: Outcome, end: Nanos) -> Completed {
        let outcome = match outcome {
            Outcome::Failed(failure) => Outcome::Failed(Failure { status: self.status, ..failure }),
            other => other,
        };
        Completed {
            key: self.request.key,
            sample: self.request.sample,
            outcome,
            times: Times { end, ..self.times },
            tokens: self.tokens,
            finish: self.finish,
            status: self.status,
            attempts: self.attempts,
            reused: self.reused,
            body_bytes: self.body_bytes,
            endpoint: self.endpoint,
            turn: self.request.turn,
        }
    }
}

/// A count as records hold it: of events, or of tokens that were counted one by one.
fn count(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn source(by: CountedBy) -> TokenSource {
    match by {
        CountedBy::Usage => TokenSource::Usage,
        CountedBy::ContinuousUsage => TokenSource::ContinuousUsage,
        CountedBy::TokenIds => TokenSource::TokenIds,
        CountedBy::Events => TokenSource::Events,
    }
}

fn finish(reason: takt_wire::FinishReason) -> FinishReason {
    match reason {
        takt_wire::FinishReason::Stop => FinishReason::Stop,
        takt_wire::FinishReason::Length => FinishReason::Length,
        takt_wire::FinishReason::ToolCalls => FinishReason::ToolCalls,
        takt_wire::FinishReason::ContentFilter => FinishReason::ContentFilter,
        takt_wire::FinishReason::FunctionCall => FinishReason::FunctionCall,
        takt_wire::FinishReason::Other => FinishReason::Other,
    }
}
