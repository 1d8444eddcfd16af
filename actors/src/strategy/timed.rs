//! The open loop: sends at the moments of an arrival process, whatever the endpoint does.

use takt_time::Nanos;

use crate::arrivals::Arrivals;
use crate::order::Order;
use crate::strategy::{Pace, Strategy};

/// `poisson`, `constant` and whatever else has arrivals.
pub struct Timed {
    arrivals: Box<dyn Arrivals>,
    order: Order,
    due: Nanos,
}

impl Timed {
    /// Sends at `arrivals`, taking samples in `order`.
    #[must_use]
    pub fn new(arrivals: Box<dyn Arrivals>, order: Order) -> Self {
        Self { arrivals, order, due: Nanos::ZERO }
    }

    fn arm_next(&mut self, pace: &mut dyn Pace) {
        while let Some(offset) = self.arrivals.next() {
            self.due = pace.start() + offset;
            if !pace.elsewhere(self.due) {
                return pace.at(self.due, 0);
            }
        }
        pace.finished();
    }
}

impl Strategy for Timed {
    fn start(&mut self, pace: &mut dyn Pace) {
        self.arm_next(pace);
    }

    fn tick(&mut self, _token: u64, pace: &mut dyn Pace) {
        if pace.issue_next(&mut self.order, Some(self.due)).is_some() {
            self.arm_next(pace);
        }
    }
}
