//! The way of a request up to the write, gone once before it is due.
//!
//! After some milliseconds of rest code and data have left the caches, and the same instructions take seven times as
//! long: 4 us after 1 ms, 29 us after 20 ms. So a schedule with long gaps has each request rehearsed shortly before its
//! moment: the same code, the same connection, the same bytes. All of it is done again in earnest but the look at the
//! connection, which would be a system call in front of the write, and the making of a prompt that is made when it is
//! sent. Whatever comes between the two comes to a client that knows of no such request.

use takt_engine::StreamId;

use super::flight::FlightKey;
use super::{Client, Cx};
use crate::api::Request;

impl Client {
    /// Does all that [`Client::submit`] does for a request, but for the write, the line and the time-outs.
    pub(super) fn rehearse(&mut self, request: Request, cx: &mut Cx<'_>) {
        let turn = self.turn;
        self.rehearsing = true;
        self.submit(request, cx);
        self.rehearsing = false;
        self.turn = turn;
    }

    /// Takes back a request that was rehearsed, on `stream` if there was one for it.
    pub(super) fn rehearsed(&mut self, key: FlightKey, stream: Option<StreamId>) {
        let Some(flight) = self.flights.get_mut(key) else { return };
        let endpoint = flight.endpoint();
        self.flights.remove(key);
        self.endpoints[endpoint].in_flight -= 1;
        self.endpoints[endpoint].idle.extend(stream);
    }
}
