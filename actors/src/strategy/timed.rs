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
    /// The next request was rehearsed.
    rehearsed: bool,
}

impl Timed {
    /// Sends at `arrivals`, taking samples in `order`.
    #[must_use]
    pub fn new(arrivals: Box<dyn Arrivals>, order: Order) -> Self {
        Self { arrivals, order, due: Nanos::ZERO, rehearsed: false }
    }

    fn arm_next(&mut self, pace: &mut dyn Pace) {
        while let Some(offset) = self.arrivals.next() {
            self.due = pace.start() + offset;
            if !pace.elsewhere(self.due) {
                if let Some(before) = pace.rehearsal_for(self.due) {
                    pace.at(before, REHEARSE);
                }
                return pace.at(self.due, ISSUE);
            }
        }
        pace.finished();
    }
}

impl Strategy for Timed {
    fn start(&mut self, pace: &mut dyn Pace) {
        self.arm_next(pace);
    }

    fn tick(&mut self, token: u64, pace: &mut dyn Pace) {
        match token {
            REHEARSE if pace.now() < self.due => {
                self.rehearsed = true;
                pace.rehearse(&mut self.order, self.due);
            }
            REHEARSE => {}
            ARM => self.arm_next(pace),
            _ if pace.issue_next(&mut self.order, Some(self.due)).is_none() => {}
            // What is not needed for the write waits until that is done: a timer's turn comes after it.
            // Its deadline is the send's own, before the end of the phase, which may be over by now.
            _ if std::mem::take(&mut self.rehearsed) => pace.at(self.due, ARM),
            _ => self.arm_next(pace),
        }
    }
}

/// A request is due.
const ISSUE: u64 = 0;
/// The next request is due in a moment.
const REHEARSE: u64 = 1;
/// The request that was due is on its way; the next is to be seen to.
const ARM: u64 = 2;
