//! The client: a keep-alive pool and a receiver in one actor.
//!
//! ```text
//! Submit -> choose endpoint -> idle connection? -> patch id, stamp, write, stamp -> Busy
//!                                  | none                                            | Readable
//!                                  v                                                 v
//!                            line (FIFO), open one                       read, stamp, Answer::feed
//!                                  | Connected, or one comes free                    | end
//!                                  '--------> write                       Answered, pool or close
//! ```
//!
//! A byte is stamped when the read that brought it returned. Token events go from here to the publisher;
//! only the end of a request travels as a message. A request is a slab entry ([`flight`]) that is removed
//! exactly when it is answered, so none can be answered twice; a connection ([`connection`]) names the request
//! it carries by a key that is never used again.
//!
//! What each file holds: [`pool`] an endpoint's idle connections, its line and its manners; [`opening`]
//! making connections; [`sending`] and [`receiving`] the two directions; [`ending`] the end of requests;
//! [`rehearsal`] what is done before a rare request is due; [`deadlines`] time-outs; [`failure`] what went wrong,
//! in the words of the records.
//!
//! # Rules
//!
//! - As many connections as are needed, unless a cap is set; who waits for the cap is counted. Where this
//!   machine gives no more (descriptors, ports), what it gave is the cap from then on.
//! - A connection that comes up, or free, serves the head of its endpoint's line, whoever it was made for.
//! - A dead idle connection is dropped when its end is seen. One that has rested for more than 100 us is looked
//!   at before it is used: servers that close after an answer do so within 12 to 56 us, so by then the close
//!   has arrived and a look finds it; sooner, a look can prove nothing. Where the endpoint has answered on a used
//!   connection, and closed none soon after an answer since, the look begins after 10 ms: it is a system call in
//!   front of a send, and what is left to find are idle time-outs. A look in a rehearsal serves the send that
//!   follows. Neither holds where nothing may be sent twice.
//! - A server that says how long it keeps idle connections (`Keep-Alive: timeout=`) is taken at its word.
//! - A request that dies before any byte of an answer, on a connection that had answered before, is sent once
//!   more, on a connection of its own. Nothing else is ever sent twice: a server that drops a connection which it
//!   has never answered on has failed.
//! - Once warm, nothing is allocated per request.

mod config;
mod connection;
mod deadlines;
mod ending;
mod failure;
mod flight;
mod handle;
mod opening;
mod pool;
mod receiving;
mod rehearsal;
mod sending;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
mod warm;

use std::cell::Cell;
use std::rc::Rc;

use takt_engine::{Actor, Close, Context, Host, Ready, StreamId, System};
use takt_record::SharedPublisher;
use takt_time::Nanos;

pub use config::{Balance, ClientConfig, EndpointTarget, PhaseRoute};
pub use handle::{ClientHandle, WhenWarm};
pub use warm::Warmed;

use crate::api::{Cancel, Replies, Request, TransportCounters};
use connection::Connections;
use deadlines::{Deadlines, RequestDeadlines};
use failure::Loss;
use flight::Flights;
use pool::Endpoint;
use warm::Warm;

/// The HTTP client of a session, as an actor; [`Client::spawn`] gives the handle to it.
#[derive(Debug)]
pub struct Client {
    endpoints: Vec<Endpoint>,
    phases: Vec<PhaseRoute>,
    balance: Balance,
    retry_stale: bool,
    /// Where the next choice of an endpoint starts.
    turn: usize,
    connections: Connections,
    flights: Flights,
    connect_deadlines: Deadlines<StreamId>,
    deadlines: RequestDeadlines,
    /// What is submitted is not to be sent.
    rehearsing: bool,
    warm: Warm,
    /// What reads go into, for all connections.
    buffer: Box<[u8]>,
    publisher: SharedPublisher,
    replies: Option<Replies>,
    counters: Rc<Cell<TransportCounters>>,
    /// When anything last came of any request, for the session's watchdog.
    progress: Rc<Cell<Option<Nanos>>>,
}

/// What a client is told: by its handle, and by itself.
#[derive(Debug)]
pub enum ClientMsg {
    /// Where answers go.
    Attach(Replies),
    /// Send a request.
    Submit(Request),
    /// A request like this one is due in a moment.
    Rehearse(Request),
    /// Give requests up.
    Cancel(Cancel),
    /// Give everything up and end.
    ShutDown,
    /// Tell when the connections are warm.
    WhenWarm(WhenWarm),
    /// Read on from a connection that had more than its share.
    ReadOn(StreamId),
    /// The line of an endpoint, by its number, needs connections.
    TopUp(usize),
    /// An endpoint that was down, by its number, may be tried again.
    Probe(usize),
    /// The oldest time-out of a connection being made is due.
    ConnectTimeOut,
    /// The oldest time-out of a kind is due.
    TimeOut(TimeOut),
}

/// Kinds of time-outs of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeOut {
    /// Of answers that have not begun.
    FirstByte,
    /// Of requests.
    Request,
    /// Of turns of a phase, by its place.
    Turn(u16),
}

pub(crate) type Cx<'a> = Context<'a, Client>;

impl Client {
    /// A client in `system`, and the handle that a session is given. `capacity` is the most requests that
    /// may be handed over before the client has its turn: the largest burst of the session.
    ///
    /// # Panics
    /// Without an endpoint, or with more than 65,535.
    pub fn spawn<H: Host>(
        system: &mut System<H>,
        config: ClientConfig,
        publisher: SharedPublisher,
        capacity: usize,
    ) -> ClientHandle {
        let client = Self::new(config, publisher);
        let (counters, progress) = (client.counters.clone(), client.progress.clone());
        ClientHandle::new(system.spawn(client, capacity + HOUSEKEEPING), counters, progress)
    }

    fn new(config: ClientConfig, publisher: SharedPublisher) -> Self {
        let endpoints = 1..=usize::from(u16::MAX);
        assert!(endpoints.contains(&config.endpoints.len()), "a client has 1 to 65,535 endpoints");
        let deadlines = RequestDeadlines::new(&config);
        let cap = config.max_connections.unwrap_or(usize::MAX);
        let endpoints = config.endpoints.into_iter().map(|e| Endpoint::new(e, cap));
        Self {
            endpoints: endpoints.collect(),
            phases: config.phases,
            balance: config.balance,
            retry_stale: config.retry_stale,
            turn: 0,
            connections: Connections::new(config.limits),
            flights: Flights::default(),
            connect_deadlines: Deadlines::new(config.connect_timeout),
            deadlines,
            rehearsing: false,
            warm: Warm::new(config.warm_connections),
            buffer: vec![0; READ_BUFFER].into_boxed_slice(),
            publisher,
            replies: None,
            counters: Rc::default(),
            progress: Rc::default(),
        }
    }

    fn submit(&mut self, request: Request, cx: &mut Cx<'_>) {
        let endpoint = self.choose();
        let key = self.flights.insert(request, endpoint);
        self.endpoints[endpoint].in_flight += 1;
        if !self.rehearsing {
            self.time_runs(TimeOut::Request, request.issued, key, cx);
            if request.turn.is_some() {
                self.time_runs(TimeOut::Turn(request.key.phase.0), request.issued, key, cx);
            }
        }
        if self.endpoints[endpoint].waiting.is_empty()
            && let Some(stream) = self.take_idle(endpoint, cx)
        {
            self.send(key, stream, cx);
        } else if self.rehearsing {
            self.rehearsed(key, None);
        } else {
            self.line_up(key, endpoint, cx);
        }
    }

    /// The endpoint for the next request.
    fn choose(&mut self) -> usize {
        let many = self.endpoints.len();
        let from = self.turn;
        let chosen = match self.balance {
            Balance::RoundRobin => from,
            // `min_by_key` gives the first of equals, counted from where the last choice ended.
            Balance::LeastInFlight => (from..from + many)
                .map(|n| n % many)
                .min_by_key(|&n| self.endpoints[n].in_flight)
                .unwrap_or(from),
        };
        self.turn = (chosen + 1) % many;
        chosen
    }

    fn count(&self, change: impl FnOnce(&mut TransportCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    fn shut_down(&mut self, cx: &mut Cx<'_>) {
        self.cancel(Cancel::All, cx);
        for stream in self.connections.streams() {
            self.discard(stream, Close::Orderly, cx);
        }
        cx.stop();
    }
}

impl Actor for Client {
    type Msg = ClientMsg;

    fn started(&mut self, cx: &mut Cx<'_>) {
        self.warm_up(cx);
    }

    fn handle(&mut self, msg: ClientMsg, cx: &mut Cx<'_>) {
        match msg {
            ClientMsg::Submit(request) => self.submit(request, cx),
            ClientMsg::Rehearse(request) => self.rehearse(request, cx),
            ClientMsg::ReadOn(stream) => self.readable(stream, cx),
            ClientMsg::ConnectTimeOut => self.connect_timed_out(cx),
            ClientMsg::TimeOut(kind) => self.timed_out(kind, cx),
            ClientMsg::TopUp(endpoint) => self.top_up_now(endpoint, cx),
            ClientMsg::Probe(endpoint) => self.probe(endpoint, cx),
            ClientMsg::Cancel(which) => self.cancel(which, cx),
            ClientMsg::Attach(replies) => self.replies = Some(replies),
            ClientMsg::WhenWarm(when) => self.warm.tell(when),
            ClientMsg::ShutDown => self.shut_down(cx),
        }
    }

    fn ready(&mut self, event: Ready, cx: &mut Cx<'_>) {
        match event {
            Ready::Readable(stream) => self.readable(stream, cx),
            Ready::Writable(stream) => self.writable(stream, cx),
            Ready::Connected(stream) => self.connected(stream, cx),
            Ready::Secured { stream, resumed } => self.secured(stream, resumed, cx),
            Ready::Closed(stream, kind) => self.lost(stream, Loss::Broken(kind), cx.now(), cx),
            // It neither listens nor watches foreign descriptors.
            Ready::Accepted { .. } | Ready::Foreign(_) => {}
        }
    }
}

/// Bytes of the buffer that all connections read into.
const READ_BUFFER: usize = 64 << 10;
/// Room in the mailbox beside requests: cancels, time-outs, connections with more to read.
const HOUSEKEEPING: usize = 4096;
