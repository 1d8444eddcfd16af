//! The way out: one write straight from the prepared bytes. Only what a full socket leaves over is copied.

use std::io::{self, IoSlice};

use takt_engine::{Close, StreamId};

use super::connection::State;
use super::failure::{Fault, Loss};
use super::flight::{FlightKey, Place};
use super::{Client, Cx, TimeOut};

impl Client {
    /// Sends a request on a connection that stands and carries none.
    #[inline]
    pub(super) fn send(&mut self, key: FlightKey, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let Some(route) = self.phases.get(usize::from(flight.request.key.phase.0)) else {
            if self.rehearsing {
                return self.rehearsed(key, Some(stream));
            }
            self.fail(key, Fault::no_route(), cx);
            return self.serve(stream, cx);
        };
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let request = flight.request;
        let mut samples = route.samples.borrow_mut();
        let prepared = samples.request_for(&request, connection.endpoint);
        prepared.patch_id(&request.id.hex());
        let bytes = prepared.bytes();
        connection.answer.begin(route.ask(bytes));
        if self.rehearsing {
            drop(samples);
            return self.rehearsed(key, Some(stream));
        }
        connection.state = State::Busy(key);
        flight.place = Place::On(stream);
        flight.reused = connection.served > 0;
        let times = &mut flight.times;
        times.acquired = Some(cx.now().max(request.issued));
        (times.connect, times.tls) = connection.waited_for(request.issued);
        let sent = cx.stamp();
        let first_attempt = times.sent.is_none();
        times.sent.get_or_insert(sent);
        let failed = match cx.write(stream, &[IoSlice::new(bytes)]) {
            Ok(written) if written == bytes.len() => {
                times.written = Some(cx.stamp());
                None
            }
            Ok(written) => {
                connection.keep_rest(&bytes[written..]);
                None
            }
            Err(error) => {
                connection.keep_rest(bytes);
                Some(error)
            }
        };
        drop(samples);
        if first_attempt {
            // Time runs from the first send: a second attempt goes on with the time-out of the first.
            self.time_runs(TimeOut::FirstByte, sent, key, cx);
        }
        if let Some(error) = failed {
            self.write_failed(key, stream, &error, cx);
        }
    }

    /// A socket that was full has room again.
    pub(super) fn writable(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let State::Busy(key) = connection.state else { return };
        if connection.rest().is_empty() {
            return;
        }
        match cx.write(stream, &[IoSlice::new(connection.rest())]) {
            Ok(written) => {
                if connection.wrote(written)
                    && let Some(flight) = self.flights.get_mut(key)
                {
                    flight.times.written = Some(cx.stamp());
                }
            }
            Err(error) => self.write_failed(key, stream, &error, cx),
        }
    }

    /// The connection takes nothing more. The server may have said why before it closed.
    fn write_failed(
        &mut self,
        key: FlightKey,
        stream: StreamId,
        error: &io::Error,
        cx: &mut Cx<'_>,
    ) {
        self.readable(stream, cx);
        if self.connections.state(stream) == Some(State::Busy(key)) {
            let at = cx.stamp();
            self.lost(stream, Loss::Broken(error.kind()), at, cx);
        }
    }

    /// Lets a connection go whose answer has ended, or gives it to the next.
    pub(super) fn release(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get_mut(stream) else { return };
        let endpoint = connection.endpoint;
        if self.endpoints[endpoint].pools() {
            self.serve(stream, cx);
        } else {
            self.retire(stream, cx);
            self.top_up(endpoint, cx);
        }
    }

    /// Lets a connection go whose endpoint would close it.
    pub(super) fn retire(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        if self.connections.get_mut(stream).is_some_and(|connection| connection.served == 1) {
            self.count(|counters| counters.used_once += 1);
        }
        self.discard(stream, Close::Orderly, cx);
    }
}
