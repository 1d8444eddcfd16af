//! The end of requests: each is removed from the slab and answered, in one place, once.

use takt_engine::Close;
use takt_record::Outcome;
use takt_time::Nanos;

use super::failure::Fault;
use super::flight::{FlightKey, Place};
use super::{Client, ClientMsg, Cx, TimeOut};
use crate::api::{Answered, Cancel};

impl Client {
    /// A request was answered in full at `at`.
    #[inline]
    pub(super) fn succeed(&mut self, key: FlightKey, at: Nanos) {
        self.end(key, Outcome::Ok, at, None);
    }

    /// A request has failed just now.
    pub(super) fn fail(&mut self, key: FlightKey, fault: Fault, cx: &mut Cx<'_>) {
        let at = cx.stamp();
        self.fail_at(key, fault, at);
    }

    /// A request failed at `at`.
    pub(super) fn fail_at(&mut self, key: FlightKey, fault: Fault, at: Nanos) {
        self.end(key, Outcome::Failed(fault.failure), at, Some(fault.message));
    }

    #[inline]
    fn end(&mut self, key: FlightKey, outcome: Outcome, at: Nanos, error: Option<Box<str>>) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        self.endpoints[flight.endpoint()].in_flight -= 1;
        let completed = flight.completed(outcome, at);
        self.flights.remove(key);
        if let Some(replies) = &self.replies {
            replies.answered(Answered { completed, error });
        }
    }

    /// Gives requests up.
    pub(super) fn cancel(&mut self, which: Cancel, cx: &mut Cx<'_>) {
        let doomed = self.flights.those(|flight| match which {
            Cancel::All => true,
            Cancel::Phase(phase) => flight.key().phase == phase,
        });
        let at = cx.stamp();
        for key in doomed {
            self.let_go(key, at, cx);
            self.end(key, Outcome::Unanswered, at, None);
        }
        for endpoint in 0..self.endpoints.len() {
            let flights = &self.flights;
            self.endpoints[endpoint].waiting.retain(|&key| flights.is_live(key));
            self.top_up(endpoint, cx);
        }
    }

    /// Takes what came so far of a request off its connection, and closes that.
    fn let_go(&mut self, key: FlightKey, at: Nanos, cx: &mut Cx<'_>) {
        match self.flights.get_mut(key).map(|flight| flight.place) {
            Some(Place::On(stream)) => {
                self.learn_so_far(key, stream, at);
                self.discard(stream, Close::Reset, cx);
            }
            Some(Place::Connecting(stream)) => self.discard(stream, Close::Reset, cx),
            Some(Place::Waiting) | None => {}
        }
    }

    /// The time that a request has for something runs from `from`.
    #[inline]
    pub(super) fn time_runs(
        &mut self,
        kind: TimeOut,
        from: Nanos,
        key: FlightKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(deadlines) = self.deadlines.of(kind) else { return };
        if let Some(at) = deadlines.add(from, key) {
            cx.call_at(at, ClientMsg::TimeOut(kind));
        }
        let flights = &self.flights;
        deadlines.sweep(flights.len(), |key| flights.is_live(key));
    }

    /// The oldest time-out of a kind is due.
    pub(super) fn timed_out(&mut self, kind: TimeOut, cx: &mut Cx<'_>) {
        let now = cx.now();
        while let Some(key) = self.deadlines.of(kind).and_then(|of_kind| of_kind.pop_due(now)) {
            let Some(flight) = self.flights.get_mut(key) else { continue };
            if kind != TimeOut::FirstByte || flight.times.first_byte.is_none() {
                let fault = Fault::timed_out(kind, flight);
                self.too_late(key, fault, cx);
            }
        }
        let Some(deadlines) = self.deadlines.of(kind) else { return };
        let flights = &self.flights;
        if let Some(at) = deadlines.rearm(|key| flights.is_live(key)) {
            cx.call_at(at, ClientMsg::TimeOut(kind));
        }
    }

    /// A request's time has run out.
    fn too_late(&mut self, key: FlightKey, fault: Fault, cx: &mut Cx<'_>) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let endpoint = flight.endpoint();
        let at = cx.stamp();
        self.let_go(key, at, cx);
        self.fail_at(key, fault, at);
        let waiting = &mut self.endpoints[endpoint].waiting;
        // Time runs out in the order of the line, so it is near the head.
        if let Some(place) = waiting.iter().position(|&waits| waits == key) {
            waiting.remove(place);
        }
        self.top_up(endpoint, cx);
    }
}
