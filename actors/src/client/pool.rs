//! One endpoint: its idle connections, the requests that wait for one, and what was learnt of its manners.
//!
//! Idle connections are taken last in, first out: those that load needs stay warm, the rest grow old
//! together. Waiting requests are served first in, first out, by whichever connection is there first.
//!
//! # An endpoint that is gone
//!
//! A request whose connect is refused fails at once. If its successor did too, a closed loop would run
//! through its dataset at the speed of the loopback. So from the first refusal on an endpoint counts as
//! *down*: who comes now waits for a *probe*, one attempt at a time, the first after a millisecond, each
//! further one after twice the time up to 100 ms; its outcome, good or bad, is that of all who wait then.
//! A closed loop against a dead server is thus slowed to its concurrency per 100 ms, an open loop keeps its
//! schedule and gets its failures within 100 ms, and a server that comes back is found within 100 ms.
//! An attempt that times out paces itself and makes nobody wait.
//!
//! # An endpoint that closes after its answers
//!
//! Some servers announce keep-alive and close each connection some tens of microseconds after its answer
//! (llama.cpp: 12 to 56 us). One such close may be chance; a second without any answer on a used connection
//! between them is a habit, and from then on connections to that endpoint are used once. A close after the second
//! answer or a later one is none: servers let go of connections that have served their number.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};

use takt_engine::{StreamId, Target};
use takt_time::{Nanos, Span};

use super::config::EndpointTarget;
use super::flight::FlightKey;

/// One endpoint.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// How to reach it: once for each address to connect from.
    ways: Vec<Target>,
    way: usize,
    /// Most recently used last. Some may have died since: whoever takes one that has not just been used looks.
    pub(super) idle: Vec<StreamId>,
    /// Requests without a connection, oldest first.
    pub(super) waiting: VecDeque<FlightKey>,
    /// The most connections it may have: as configured, or as this machine would give.
    pub(super) cap: usize,
    /// Connections, those being made included.
    pub(super) open: usize,
    /// Connections being made for whoever waits, or to be warm.
    pub(super) connecting: usize,
    /// When a connection was last opened for the line.
    pub(super) opened: Nanos,
    /// How long to wait before the next one: three times what that one cost.
    pub(super) open_pause: Span,
    /// The line will be looked at after the sockets have been.
    pub(super) topping_up: bool,
    /// Requests that have not ended.
    pub(super) in_flight: usize,
    /// Present from a refusal until a connection stands again.
    pub(super) down: Option<Down>,
    quick_closes: u8,
    /// It has answered on a used connection, and closed none soon after an answer since.
    pub(super) keeps: bool,
}

/// An endpoint that refuses connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Down {
    /// When the next attempt is due.
    pub(super) due: Nanos,
    /// The attempt under way.
    pub(super) probe: Option<StreamId>,
    /// A timer for `due` is under way.
    pub(super) armed: bool,
    backoff: Span,
}

impl Endpoint {
    pub(super) fn new(target: EndpointTarget, cap: usize) -> Self {
        Self {
            ways: target.ways(),
            way: 0,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            cap,
            open: 0,
            connecting: 0,
            opened: Nanos::ZERO,
            open_pause: Span::ZERO,
            topping_up: false,
            in_flight: 0,
            down: None,
            quick_closes: 0,
            keeps: false,
        }
    }

    /// Begins a connection from the address whose turn it is, or from the next that has a port left.
    ///
    /// # Errors
    /// What the last of them said.
    pub(super) fn connect(
        &mut self,
        mut connect: impl FnMut(&Target) -> io::Result<StreamId>,
    ) -> io::Result<StreamId> {
        let mut tries = self.ways.len();
        loop {
            let way = &self.ways[self.way];
            self.way = (self.way + 1) % self.ways.len();
            tries -= 1;
            match connect(way) {
                Err(error) if tries > 0 && error.kind() == ErrorKind::AddrNotAvailable => {}
                done => return done,
            }
        }
    }

    /// Whether its connections have TLS.
    pub(super) fn has_tls(&self) -> bool {
        matches!(self.ways[..], [Target::Tls { .. }, ..])
    }

    /// Whether it may have another connection.
    pub(super) fn has_room(&self) -> bool {
        self.open < self.cap
    }

    /// Whether connections are used again.
    pub(super) fn pools(&self) -> bool {
        self.quick_closes < HABIT
    }

    /// An answer came on a connection that had been used before.
    pub(super) fn answered_again(&mut self) {
        if self.pools() {
            self.quick_closes = 0;
            self.keeps = true;
        }
    }

    /// A connection that had `served` so many answers was found closed by the server, `after` the last of them ended.
    /// Says whether that is its habit.
    pub(super) fn closed_after(&mut self, after: Span, served: u64) -> bool {
        if after > QUICK {
            return false;
        }
        self.keeps = false;
        if served == 1 {
            self.quick_closes = self.quick_closes.saturating_add(1).min(HABIT);
        }
        served == 1 && !self.pools()
    }

    /// An attempt has failed at once. `probe` says that it was the probe of an endpoint known to be down.
    pub(super) fn refused(&mut self, now: Nanos, probe: bool) {
        let backoff = match self.down {
            None => BACKOFF_FIRST,
            Some(down) if probe => Span::from_nanos(down.backoff.as_nanos() * 2).min(BACKOFF_MOST),
            Some(_) => return,
        };
        let armed = self.down.is_some_and(|down| down.armed);
        self.down = Some(Down { due: now + backoff, probe: None, armed, backoff });
    }

    /// Whether `stream` is the probe.
    pub(super) fn is_probe(&self, stream: StreamId) -> bool {
        self.down.is_some_and(|down| down.probe == Some(stream))
    }
}

/// So many quick closes in a row are a habit.
const HABIT: u8 = 2;
/// A close this soon after an answer was not caused by idleness.
const QUICK: Span = Span::from_millis(1);
const BACKOFF_FIRST: Span = Span::from_millis(1);
const BACKOFF_MOST: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn endpoint() -> Endpoint {
        let target = Target::tcp(SocketAddr::from(([127, 0, 0, 1], 1)));
        Endpoint::new(EndpointTarget::new(target), 8)
    }

    #[test]
    fn two_quick_closes_in_a_row_are_a_habit_for_good() {
        let mut e = endpoint();
        e.closed_after(QUICK, 1);
        e.answered_again();
        assert!(e.keeps);
        e.closed_after(QUICK + Span::from_nanos(1), 1);
        assert!(e.keeps, "that was idleness");
        e.closed_after(QUICK, 1);
        e.closed_after(QUICK + Span::from_nanos(1), 1);
        assert!(e.pools() && !e.keeps);
        e.closed_after(Span::ZERO, 1);
        assert!(!e.pools());
        e.answered_again();
        assert!(!e.pools());
    }

    #[test]
    fn connections_that_have_served_their_number_make_no_habit() {
        let mut e = endpoint();
        for _ in 0..10 {
            e.closed_after(Span::ZERO, 2);
        }
        assert!(e.pools());
    }

    #[test]
    fn source_addresses_take_turns_and_one_without_a_port_is_passed_over() {
        let mut target = EndpointTarget::new(Target::tcp(([127, 0, 0, 1], 1).into()));
        target.sources = (2..5).map(|last| [127, 0, 0, last].into()).collect();
        let mut e = Endpoint::new(target, 8);
        let from = |way: &Target| match way {
            Target::Tcp { from: Some(std::net::IpAddr::V4(from)), .. } => from.octets()[3],
            other => panic!("{other:?}"),
        };
        let mut used = Vec::new();
        for _ in 0..5 {
            let stream = e.connect(|way| match from(way) {
                3 => Err(ErrorKind::AddrNotAvailable.into()),
                other => Ok(StreamId::new(other.into(), 0)),
            });
            used.push(stream.expect("another has a port").index());
        }
        assert_eq!(used, [2, 4, 2, 4, 2]);
        let mut asked = 0;
        let none = e.connect(|_| {
            asked += 1;
            Err(ErrorKind::AddrNotAvailable.into())
        });
        assert_eq!((none.expect_err("none has").kind(), asked), (ErrorKind::AddrNotAvailable, 3));
    }

    #[test]
    fn probes_grow_rarer_up_to_a_limit() {
        let mut e = endpoint();
        let now = Nanos::from_nanos(5);
        e.refused(now, false);
        let mut expect = BACKOFF_FIRST;
        for _ in 0..10 {
            assert_eq!(e.down.expect("down").due, now + expect);
            // Others that were under way when it went down change nothing.
            e.refused(now, false);
            e.refused(now, true);
            expect = Span::from_nanos(expect.as_nanos() * 2).min(BACKOFF_MOST);
        }
        assert_eq!(expect, BACKOFF_MOST);
    }
}
