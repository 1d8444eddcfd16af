//! Making connections: for the line, for warmth, for a second attempt; and finding out who is down.

use takt_engine::{Close, StreamId};
use takt_time::Span;

use super::connection::{For, State};
use super::failure::Fault;
use super::flight::{FlightKey, Place};
use super::{Client, ClientMsg, Cx};

impl Client {
    /// Takes the idle connection that was used last and is still alive.
    pub(super) fn take_idle(&mut self, endpoint: usize, cx: &mut Cx<'_>) -> Option<StreamId> {
        while let Some(stream) = self.endpoints[endpoint].idle.pop() {
            let pools = self.endpoints[endpoint].pools();
            let Some(connection) = self.connections.get_mut(stream) else { continue };
            if connection.state != State::Idle {
                continue;
            }
            if connection.served > 0 && !pools {
                self.retire(stream, cx);
                continue;
            }
            if connection.is_expired(cx.now()) {
                self.discard(stream, Close::Orderly, cx);
                continue;
            }
            let kept = connection.served > 0 && self.endpoints[endpoint].keeps && self.retry_stale;
            let fresh = if kept { FRESH_WHERE_KEPT } else { FRESH };
            let looked_at = connection.looked_at.filter(|_| self.retry_stale);
            let rehearsed = looked_at.is_some_and(|at| cx.now().saturating_since(at) <= FRESH_LOOK);
            if rehearsed || cx.now().saturating_since(connection.rested) <= fresh {
                return Some(stream);
            }
            self.readable(stream, cx);
            if let Some(connection) = self.connections.get_mut(stream)
                && connection.state == State::Idle
            {
                connection.looked_at = (connection.served > 0).then_some(cx.now());
                return Some(stream);
            }
        }
        None
    }

    /// Puts a request at the end of its endpoint's line and sees to it that a connection comes.
    pub(super) fn line_up(&mut self, key: FlightKey, endpoint: usize, cx: &mut Cx<'_>) {
        let line = &mut self.endpoints[endpoint];
        line.waiting.push_back(key);
        let to_come = line.connecting + line.cap.saturating_sub(line.open);
        let limited = line.waiting.len() > to_come;
        if limited && let Some(flight) = self.flights.get_mut(key) {
            flight.limited = true;
            self.count(|counters| counters.limited += 1);
        }
        self.top_up(endpoint, cx);
    }

    /// Sees to the line after the sockets have been looked at.
    pub(super) fn top_up(&mut self, endpoint: usize, cx: &mut Cx<'_>) {
        if !std::mem::replace(&mut self.endpoints[endpoint].topping_up, true) {
            cx.call_soon(ClientMsg::TopUp(endpoint));
        }
    }

    /// Opens a connection if the line needs one and may have it: one between two looks at the sockets, and
    /// not so often that it takes more than a quarter of the reactor's time. A server that stalls for ten
    /// milliseconds would otherwise be met with a storm of connections that costs more than the stall.
    ///
    /// A client that is behind its schedule has answers waiting in its sockets, so the connections it lacks
    /// are about to come free, and each one it opens costs it several requests and puts it further behind:
    /// it would end with every descriptor of the machine open. So it opens one a millisecond until it has
    /// caught up.
    pub(super) fn top_up_now(&mut self, endpoint: usize, cx: &mut Cx<'_>) {
        let (now, behind) = (cx.now(), cx.is_behind());
        let line = &mut self.endpoints[endpoint];
        line.topping_up = false;
        if line.connecting >= line.waiting.len() || !line.has_room() {
            return;
        }
        let connecting = line.connecting > 0;
        if let Some(down) = &mut line.down {
            if connecting || down.probe.is_some() {
                return;
            }
            if now < down.due {
                if !std::mem::replace(&mut down.armed, true) {
                    cx.call_at(down.due, ClientMsg::Probe(endpoint));
                }
                return;
            }
        }
        let pause = if behind { line.open_pause.max(OPEN_BEHIND_EVERY) } else { line.open_pause };
        let due = line.opened + pause;
        if now < due {
            line.topping_up = true;
            cx.call_at(due, ClientMsg::TopUp(endpoint));
            return;
        }
        let begun = cx.stamp();
        self.open(endpoint, For::Line, cx);
        let done = cx.stamp();
        let line = &mut self.endpoints[endpoint];
        line.opened = done;
        line.open_pause = Span::from_nanos(3 * done.saturating_since(begun).as_nanos());
        self.top_up(endpoint, cx);
    }

    /// An endpoint that was down may be tried again, if anybody waits.
    pub(super) fn probe(&mut self, endpoint: usize, cx: &mut Cx<'_>) {
        if let Some(down) = &mut self.endpoints[endpoint].down {
            down.armed = false;
        }
        self.top_up(endpoint, cx);
    }

    /// Opens warm connections as long as some are wanted.
    pub(super) fn warm_up(&mut self, cx: &mut Cx<'_>) {
        while self.warm.wants() {
            let (many, from) = (self.endpoints.len(), self.warm.opened());
            let mut in_turn = (from..from + many).map(|n| n % many);
            let Some(endpoint) = in_turn.find(|&n| self.endpoints[n].has_room()) else {
                self.warm.enough();
                return;
            };
            self.warm.opening();
            self.open(endpoint, For::Warmth, cx);
        }
    }

    /// Opens a connection, or lets those fail who would have had it.
    pub(super) fn open(&mut self, endpoint: usize, made: For, cx: &mut Cx<'_>) {
        let line = &mut self.endpoints[endpoint];
        let is_probe = made == For::Line && line.down.is_some();
        let stream = match line.connect(|way| cx.connect(way)) {
            Ok(stream) => stream,
            Err(_) if line.open > 0 && made == For::Line => {
                // This machine's limit is reached; those who wait are served by what there is.
                line.cap = line.open;
                return self.count(|counters| counters.limited += 1);
            }
            Err(error) => {
                return self.no_connection(
                    endpoint,
                    made,
                    is_probe,
                    &Fault::no_attempt(&error),
                    cx,
                );
            }
        };
        line.open += 1;
        line.connecting += usize::from(!matches!(made, For::Retry(_)));
        if is_probe && let Some(down) = &mut line.down {
            down.probe = Some(stream);
        }
        if let For::Retry(key) = made
            && let Some(flight) = self.flights.get_mut(key)
        {
            flight.place = Place::Connecting(stream);
        }
        self.connections.insert(stream, endpoint, made, cx.now());
        if let Some(at) = self.connect_deadlines.add(cx.now(), stream) {
            cx.call_at(at, ClientMsg::ConnectTimeOut);
        }
        let connections = &self.connections;
        let making = self.endpoints.iter().map(|line| line.connecting).sum();
        self.connect_deadlines.sweep(making, |stream| connections.is_being_made(stream));
    }

    /// A connection stands; one with TLS is of use only when it is secured.
    pub(super) fn connected(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        if self.endpoints[connection.endpoint].has_tls() {
            connection.stood = Some(cx.now());
        } else {
            self.made(stream, cx);
        }
    }

    /// The TLS of a connection stands.
    pub(super) fn secured(&mut self, stream: StreamId, resumed: bool, cx: &mut Cx<'_>) {
        self.count(|counters| {
            counters.secured += 1;
            counters.resumed += u64::from(resumed);
        });
        self.made(stream, cx);
    }

    /// A connection can carry requests.
    fn made(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let State::Making(made) = connection.state else { return };
        let endpoint = connection.endpoint;
        connection.state = State::Idle;
        connection.rested = cx.now();
        self.count(|counters| counters.connections += 1);
        let line = &mut self.endpoints[endpoint];
        line.connecting -= usize::from(!matches!(made, For::Retry(_)));
        line.down = None;
        match made {
            For::Retry(key) if self.flights.is_live(key) => self.send(key, stream, cx),
            For::Line | For::Warmth | For::Retry(_) => self.serve(stream, cx),
        }
        self.top_up(endpoint, cx);
        if made == For::Warmth {
            self.warm.stands();
            self.warm_up(cx);
        }
    }

    /// Gives an idle connection to the head of the line, or to the pool.
    pub(super) fn serve(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        connection.state = State::Idle;
        let line = &mut self.endpoints[connection.endpoint];
        match line.waiting.pop_front() {
            Some(key) => self.send(key, stream, cx),
            None => line.idle.push(stream),
        }
    }

    /// Connections that have not come up in time are given up.
    pub(super) fn connect_timed_out(&mut self, cx: &mut Cx<'_>) {
        while let Some(stream) = self.connect_deadlines.pop_due(cx.now()) {
            let secures = self.connections.get_mut(stream).is_some_and(|c| c.stood.is_some());
            self.give_up_making(stream, &Fault::connect_timeout(secures), cx);
        }
        let connections = &self.connections;
        if let Some(at) = self.connect_deadlines.rearm(|stream| connections.is_being_made(stream)) {
            cx.call_at(at, ClientMsg::ConnectTimeOut);
        }
    }

    /// A connection is not to be expected any more, if it still was.
    pub(super) fn give_up_making(&mut self, stream: StreamId, fault: &Fault, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let State::Making(made) = connection.state else { return };
        let endpoint = connection.endpoint;
        let is_probe = self.endpoints[endpoint].is_probe(stream);
        self.discard(stream, Close::Reset, cx);
        self.no_connection(endpoint, made, is_probe, fault, cx);
    }

    /// There is no connection where one was to be: somebody fails for it.
    fn no_connection(
        &mut self,
        endpoint: usize,
        made: For,
        is_probe: bool,
        fault: &Fault,
        cx: &mut Cx<'_>,
    ) {
        let line = &mut self.endpoints[endpoint];
        if is_probe || fault.is_quick() {
            line.refused(cx.now(), is_probe);
        }
        match made {
            For::Retry(key) => self.fail(key, fault.clone(), cx),
            For::Warmth => self.warm.failed(&fault.message),
            For::Line => {}
        }
        let line = &mut self.endpoints[endpoint];
        // A probe speaks for all who wait; any other attempt for the head, unless others still run for it.
        let failing = match made {
            For::Retry(_) => 0,
            _ if is_probe => line.waiting.len(),
            _ => usize::from(line.waiting.len() > line.connecting),
        };
        for _ in 0..failing {
            if let Some(key) = self.endpoints[endpoint].waiting.pop_front() {
                self.fail(key, fault.clone(), cx);
            }
        }
        self.top_up(endpoint, cx);
    }

    /// Closes a connection and forgets it. What it carried is the caller's concern.
    pub(super) fn discard(&mut self, stream: StreamId, how: Close, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let line = &mut self.endpoints[connection.endpoint];
        line.open -= 1;
        if matches!(connection.state, State::Making(For::Line | For::Warmth)) {
            line.connecting -= 1;
        }
        if line.is_probe(stream)
            && let Some(down) = &mut line.down
        {
            down.probe = None;
        }
        self.connections.remove(stream);
        cx.close(stream, how);
    }
}

/// A client that is behind opens connections no more often than this.
const OPEN_BEHIND_EVERY: Span = Span::from_millis(1);
/// A connection that has rested no longer than this is used without a look at it; see the module's rules.
const FRESH: Span = Span::from_micros(100);
/// The same where the endpoint keeps its connections: far less than any server's patience with an idle one.
const FRESH_WHERE_KEPT: Span = Span::from_millis(10);
/// A look in a rehearsal this long ago serves the send as well. A close that came since costs a second attempt, so it
/// counts only where there is one.
const FRESH_LOOK: Span = Span::from_micros(500);
