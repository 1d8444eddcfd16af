//! The way back: every byte is stamped when the read that brought it returned, and read at once.

use takt_engine::{Close, ReadOutcome, StreamId, Then};
use takt_record::SharedPublisher;
use takt_time::Nanos;
use takt_wire::AnswerEvent;

use super::connection::{For, State};
use super::failure::{Fault, Loss};
use super::flight::{Flight, FlightKey};
use super::{Client, ClientMsg, Cx, PhaseRoute, text};

/// The end of an answer. What else there was to know of it is in its flight.
struct Ended {
    /// Its last byte.
    at: Option<Nanos>,
    failure: Option<takt_wire::Failure>,
}

impl Client {
    /// Reads a connection until it is empty, has ended, or has had its share of this turn.
    pub(super) fn readable(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        for _ in 0..READS_AT_A_TIME {
            match self.connections.state(stream) {
                None | Some(State::Making(_)) => return,
                Some(State::Idle | State::Busy(_) | State::Spent) => {}
            }
            let outcome = match cx.read(stream, &mut self.buffer) {
                Ok(outcome) => outcome,
                Err(error) => {
                    let at = cx.stamp();
                    return self.lost(stream, Loss::Broken(error.kind()), at, cx);
                }
            };
            if outcome.bytes > 0 {
                self.received(stream, &outcome, cx);
            }
            match outcome.then {
                Then::More => {}
                Then::Drained => return self.drained(stream, cx),
                Then::End => return self.lost(stream, Loss::End, outcome.at, cx),
            }
        }
        cx.call_soon(ClientMsg::ReadOn(stream));
    }

    /// What `outcome` says is in the buffer came on `stream`.
    fn received(&mut self, stream: StreamId, outcome: &ReadOutcome, cx: &mut Cx<'_>) {
        let ReadOutcome { bytes, at, arrived, .. } = *outcome;
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let State::Busy(key) = connection.state else { return self.unasked(stream, cx) };
        let Some(flight) = self.flights.get_mut(key) else { return };
        if flight.times.first_byte.is_none() {
            flight.times.first_byte = Some(at);
            if connection.served > 0 {
                self.endpoints[connection.endpoint].answered_again();
            }
        }
        let tokens_before = flight.times.first_token.is_some();
        let mut ended = None;
        let mut sink = observer(flight, &self.phases, &self.publisher, at, &mut ended);
        let fed = connection.answer.feed(&self.buffer[..bytes], at, &mut sink);
        drop(sink);
        if let Some(arrived) = arrived {
            flight.waited_in_socket(at.saturating_since(arrived), at, tokens_before);
        }
        if fed.progress {
            self.progress.set(Some(at));
        }
        let Some(ended) = ended else { return };
        connection.served += 1;
        connection.kept = connection.answer.idle_timeout();
        connection.rested = at;
        connection.looked_at = None;
        connection.state = State::Spent;
        let reusable = connection.answer.is_reusable() && connection.rest().is_empty();
        self.answered(key, ended, at, false);
        if fed.used < bytes {
            self.unasked(stream, cx);
        } else if !reusable {
            self.close_spent(stream, cx);
        }
    }

    /// Bytes that belong to no answer: what was answered stands, the connection goes.
    fn unasked(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        self.count(|counters| counters.leftover += 1);
        self.close_spent(stream, cx);
    }

    fn close_spent(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let endpoint = connection.endpoint;
        // What is not wholly written must not be delivered either.
        let how = if connection.rest().is_empty() { Close::Orderly } else { Close::Reset };
        self.discard(stream, how, cx);
        self.top_up(endpoint, cx);
    }

    /// There is nothing more to read for now: a connection whose answer has ended is free.
    fn drained(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        if self.connections.state(stream) == Some(State::Spent) {
            self.release(stream, cx);
        }
    }

    /// A connection has ended, by `at`.
    pub(super) fn lost(&mut self, stream: StreamId, loss: Loss, at: Nanos, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let endpoint = connection.endpoint;
        let used = connection.served > 0;
        let busy_with = match connection.state {
            State::Making(_) => {
                let Loss::Broken(kind) = loss else { return };
                let tls = cx.tls_fault(stream).map(Fault::tls);
                let fault = tls.unwrap_or_else(|| Fault::not_connected(kind));
                return self.give_up_making(stream, &fault, cx);
            }
            State::Idle | State::Spent => None,
            State::Busy(key) => Some(key),
        };
        let untouched = connection.answer.is_untouched();
        if used && (busy_with.is_none() || untouched) {
            let after = at.saturating_since(connection.rested);
            let habit = self.endpoints[endpoint].closed_after(after, connection.served);
            if habit {
                self.count(|counters| counters.used_once += 1);
            }
        }
        if let Some(key) = busy_with {
            if untouched {
                // A server may refuse a client's certificate when the client takes its TLS for done.
                let tls = cx.tls_fault(stream).map(Fault::tls);
                self.discard(stream, Close::Reset, cx);
                match tls {
                    Some(fault) => self.fail(key, fault, cx),
                    None => self.died_unanswered(key, used, loss, cx),
                }
            } else {
                self.cut_short(key, stream, loss, at);
                self.discard(stream, Close::Orderly, cx);
            }
        } else {
            self.discard(stream, Close::Orderly, cx);
        }
        self.top_up(endpoint, cx);
    }

    /// A connection died under a request before any byte of an answer. It may have been `stale`: dead
    /// before the request was sent, which nobody could see.
    fn died_unanswered(&mut self, key: FlightKey, stale: bool, loss: Loss, cx: &mut Cx<'_>) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        if stale && self.retry_stale && flight.attempts == 1 {
            let endpoint = flight.endpoint();
            flight.again();
            self.open(endpoint, For::Retry(key), cx);
        } else {
            let fault = Fault::unanswered(flight, loss);
            self.fail(key, fault, cx);
        }
    }

    /// The connection's end is the answer's end, for better or worse.
    fn cut_short(&mut self, key: FlightKey, stream: StreamId, loss: Loss, at: Nanos) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let Some(flight) = self.flights.get_mut(key) else { return };
        let mut ended = None;
        let mut sink = observer(flight, &self.phases, &self.publisher, at, &mut ended);
        match loss {
            Loss::End => connection.answer.eof(&mut sink),
            Loss::Broken(_) => connection.answer.cut(&loss.words(), &mut sink),
        }
        drop(sink);
        if let Some(ended) = ended {
            self.answered(key, ended, at, true);
        }
    }

    /// What came so far of a request that is given up.
    pub(super) fn learn_so_far(&mut self, key: FlightKey, stream: StreamId, at: Nanos) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let Some(flight) = self.flights.get_mut(key) else { return };
        if connection.answer.is_untouched() {
            return;
        }
        let mut ended = None;
        let mut sink = observer(flight, &self.phases, &self.publisher, at, &mut ended);
        connection.answer.cut("given up", &mut sink);
        drop(sink);
    }

    /// An answer has ended, in a read that returned at `at`; or with its connection, which was `lost`.
    #[inline]
    fn answered(&mut self, key: FlightKey, ended: Ended, at: Nanos, lost: bool) {
        match ended.failure {
            None => self.succeed(key, ended.at.unwrap_or(at)),
            Some(failure) => {
                let failure = self.named(key, failure);
                self.fail_at(key, Fault::in_answer(failure, lost), at);
            }
        }
    }

    /// The failure with what was asked, where there is no such thing.
    fn named(&mut self, key: FlightKey, failure: takt_wire::Failure) -> takt_wire::Failure {
        let Some(flight) = self.flights.get_mut(key) else { return failure };
        if !matches!(flight.status, Some(404 | 405)) {
            return failure;
        }
        let Some(route) = self.phases.get(usize::from(flight.key().phase.0)) else {
            return failure;
        };
        let mut samples = route.samples.borrow_mut();
        failure.to(samples.request_for(&flight.request, flight.endpoint()), flight.status)
    }
}

/// What is done with the events of an answer: tokens and text are recorded, text goes to samples that hear it,
/// the rest goes into the flight, the end into `ended` as well.
fn observer<'a>(
    flight: &'a mut Flight,
    phases: &'a [PhaseRoute],
    publisher: &'a SharedPublisher,
    at: Nanos,
    ended: &'a mut Option<Ended>,
) -> impl FnMut(AnswerEvent<'_>) + 'a {
    move |event| match event {
        AnswerEvent::Token(token) => publisher.token(&flight.token(&token)),
        AnswerEvent::Head { status, .. } => flight.status = Some(status),
        AnswerEvent::Text(text) => {
            let Some(route) = phases.get(usize::from(flight.key().phase.0)) else { return };
            if route.hears {
                route.samples.borrow_mut().heard(&flight.request, &text);
            }
            if route.keep_text {
                text::record(&text, flight, publisher, at);
            }
        }
        AnswerEvent::End(outcome) => {
            flight.learn(outcome);
            *ended = Some(Ended { at: outcome.last_byte, failure: outcome.failure.clone() });
        }
        AnswerEvent::FirstEvent { .. } | AnswerEvent::Finish { .. } | AnswerEvent::Usage(_) => {}
    }
}

/// Reads of one connection before others have their turn: 1 MiB.
const READS_AT_A_TIME: u32 = 16;
