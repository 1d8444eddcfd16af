//! As fast as the client accepts: one issue after another, with a look at the sockets between two.

use takt_record::Completed;

use crate::order::Order;
use crate::strategy::{Pace, Strategy};

/// `max_throughput`, with an optional bound on what is in flight.
pub struct Burst {
    order: Order,
    bound: Option<u64>,
    waiting: bool,
}

impl Burst {
    /// Issues without pause, but never more than `bound` in flight, inherited ones counted; nothing with a bound of 0.
    #[must_use]
    pub fn new(order: Order, bound: Option<u64>) -> Self {
        Self { order, bound, waiting: false }
    }

    fn go_on(&mut self, pace: &mut dyn Pace) {
        if std::mem::take(&mut self.waiting) {
            pace.soon(0);
        }
    }
}

impl Strategy for Burst {
    fn start(&mut self, pace: &mut dyn Pace) {
        if self.bound == Some(0) {
            return pace.finished();
        }
        pace.soon(0);
    }

    fn tick(&mut self, _token: u64, pace: &mut dyn Pace) {
        let in_flight = pace.in_flight() + u64::from(pace.inherited());
        if self.bound.is_some_and(|bound| in_flight >= bound) {
            self.waiting = true;
        } else if pace.issue_next(&mut self.order, None).is_some() {
            pace.soon(0);
        }
    }

    fn completed(&mut self, _done: &Completed, pace: &mut dyn Pace) {
        self.go_on(pace);
    }

    fn inherited_ended(&mut self, pace: &mut dyn Pace) {
        self.go_on(pace);
    }
}
