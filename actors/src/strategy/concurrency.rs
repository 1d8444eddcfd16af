//! The closed loop: so many in flight, the next one leaves when one has ended.
//!
//! A permit per request in flight. Requests inherited from an undrained phase hold permits too, so the
//! cap holds for the sum; when more were inherited than there are permits, the surplus is a debt that is
//! paid off before a permit comes free.

use takt_engine::Semaphore;
use takt_record::Completed;

use crate::order::Order;
use crate::strategy::{Pace, Strategy};

/// `concurrency`.
pub struct Concurrency {
    order: Order,
    target: u32,
    permits: Semaphore<()>,
    debt: u32,
    /// The first requests are still being issued, some at a time.
    filling: bool,
}

impl Concurrency {
    /// Keeps `target` requests in flight; with none it is through at once.
    #[must_use]
    pub fn new(order: Order, target: u32) -> Self {
        Self { order, target, permits: Semaphore::new(target as usize), debt: 0, filling: true }
    }

    /// Issues up to `most` requests as far as permits go. Says whether it could have gone on.
    fn issue(&mut self, most: u32, pace: &mut dyn Pace) -> bool {
        for _ in 0..most {
            if !self.permits.try_acquire() {
                return false;
            }
            if pace.issue_next(&mut self.order, None).is_none() {
                self.permits.release().expect("acquired above");
                return false;
            }
        }
        true
    }

    fn permit_back(&mut self, pace: &mut dyn Pace) {
        if self.debt > 0 {
            self.debt -= 1;
            return;
        }
        self.permits
            .release()
            .expect("each request in flight holds one permit or is part of the debt");
        if !self.filling {
            self.issue(1, pace);
        }
    }
}

impl Strategy for Concurrency {
    fn start(&mut self, pace: &mut dyn Pace) {
        if self.target == 0 {
            return pace.finished();
        }
        for _ in 0..pace.inherited() {
            if !self.permits.try_acquire() {
                self.debt += 1;
            }
        }
        pace.soon(0);
    }

    fn tick(&mut self, _token: u64, pace: &mut dyn Pace) {
        self.filling = self.issue(FILL, pace);
        if self.filling {
            pace.soon(0);
        }
    }

    fn completed(&mut self, _done: &Completed, pace: &mut dyn Pace) {
        self.permit_back(pace);
    }

    fn inherited_ended(&mut self, pace: &mut dyn Pace) {
        self.permit_back(pace);
    }
}

/// Requests issued at the start between two looks at the sockets.
const FILL: u32 = 32;
