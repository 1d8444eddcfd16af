//! The open loop with its clock elsewhere: another thread or process waits for each moment of the
//! schedule and says when it has come.

use takt_time::Nanos;

use crate::order::Order;
use crate::strategy::{Pace, Strategy};

/// A clock outside the reactor. It knows the phase's arrivals, and sends each one to the session as
/// [`crate::SessionMsg::Arrival`] when it is due, in order and without leaving any out. No call may wait.
pub trait Pacer {
    /// The phase begins at `start`, which its schedule counts from. Arrivals of before `end`, if it has one, are wanted,
    /// however late they are; then, not before `end` where it is that which ends them, the word that there are no more.
    fn begin(&mut self, start: Nanos, end: Option<Nanos>);

    /// No more arrivals are wanted. May be called again.
    fn end(&mut self);
}

/// Sends what a [`Pacer`] says is due.
pub struct Paced {
    pacer: Box<dyn Pacer>,
    order: Order,
    next: u64,
}

impl Paced {
    /// Sends when `pacer` says so, taking samples in `order`.
    #[must_use]
    pub fn new(pacer: Box<dyn Pacer>, order: Order) -> Self {
        Self { pacer, order, next: 0 }
    }
}

impl Strategy for Paced {
    fn start(&mut self, pace: &mut dyn Pace) {
        self.pacer.begin(pace.start(), pace.end());
    }

    fn tick(&mut self, _token: u64, _pace: &mut dyn Pace) {}

    fn arrived(&mut self, ordinal: u64, scheduled: Option<Nanos>, pace: &mut dyn Pace) {
        debug_assert_eq!(ordinal, self.next, "a pacer leaves nothing out");
        self.next += 1;
        match scheduled {
            Some(at) => {
                pace.issue_next(&mut self.order, Some(at));
            }
            None => pace.finished(),
        }
    }

    fn issuing_ended(&mut self) {
        self.pacer.end();
    }

    fn ends_itself(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use takt_engine::{Actor, Addr, Context, System, VirtualClock};
    use takt_record::{Discard, Outcome, PhaseId, Publisher, PublisherConfig, SharedPublisher};
    use takt_time::Span;

    use super::*;
    use crate::planned::{Plan, Planned};
    use crate::random::{Purpose, stream};
    use crate::{Arrivals, PhaseConfig, Poisson, Session, SessionConfig, SessionMsg, Timed};

    const REQUESTS: u64 = 100;

    fn arrivals() -> Poisson {
        Poisson::new(1_000.0, stream(3, Purpose::Arrivals)).unwrap()
    }

    fn order() -> Order {
        Order::sequential(10)
    }

    /// A clock as an actor of its own.
    struct Clock {
        arrivals: Poisson,
        session: Rc<RefCell<Option<Addr<SessionMsg>>>>,
        start: Nanos,
        ordinal: u64,
        ended: Rc<RefCell<u32>>,
    }

    enum Tell {
        Begin(Nanos),
        Due(Nanos),
        End,
    }

    struct Line(Addr<Tell>);

    impl Pacer for Line {
        fn begin(&mut self, start: Nanos, _: Option<Nanos>) {
            self.0.send(Tell::Begin(start));
        }
        fn end(&mut self) {
            self.0.send(Tell::End);
        }
    }

    impl Actor for Clock {
        type Msg = Tell;

        fn handle(&mut self, tell: Tell, cx: &mut Context<'_, Self>) {
            match tell {
                Tell::Begin(start) => self.start = start,
                Tell::Due(at) => {
                    if let Some(session) = &*self.session.borrow() {
                        let (ordinal, scheduled) = (self.ordinal, Some(at));
                        session.send(SessionMsg::Arrival { phase: PhaseId(0), ordinal, scheduled });
                    }
                    self.ordinal += 1;
                }
                // It goes on all the same: what comes too late must do no harm.
                Tell::End => return *self.ended.borrow_mut() += 1,
            }
            if self.ordinal < 2 * REQUESTS {
                let next = self.start + self.arrivals.next().unwrap();
                cx.call_at(next, Tell::Due(next));
            }
        }
    }

    /// When each request was sent by `strategy`, and how many there were of each outcome.
    fn sent(
        system: &mut System<VirtualClock>,
        strategy: impl Strategy + 'static,
        told: &RefCell<Option<Addr<SessionMsg>>>,
    ) -> Vec<(Nanos, Option<Nanos>)> {
        let (issuer, seen) = Planned::spawn(system, |_| Plan::Answer(Span::from_millis(50)));
        let publisher = Publisher::new(Box::new(Discard), PublisherConfig::default());
        let completed = Rc::new(RefCell::new(0));
        let counted = completed.clone();
        let mut config =
            SessionConfig::new(vec![PhaseConfig::new("p", strategy, 10).requests(REQUESTS)]);
        config.on_completed = Some(Box::new(move |done| {
            *counted.borrow_mut() += u64::from(done.outcome == Outcome::Ok);
        }));
        let (session, _) = Session::new(config, Box::new(issuer), SharedPublisher::new(publisher));
        *told.borrow_mut() = Some(system.spawn(session, 1 << 12));
        system.run().unwrap();
        assert_eq!(*completed.borrow(), REQUESTS);
        let seen = seen.borrow();
        seen.requests.iter().map(|(at, request)| (*at, request.scheduled)).collect()
    }

    #[test]
    fn a_clock_elsewhere_sends_at_the_same_moments_and_hears_of_the_end_once() {
        let told = Rc::default();
        let mut system = System::new(VirtualClock::default());
        let inline = sent(&mut system, Timed::new(Box::new(arrivals()), order()), &told);

        let mut system = System::new(VirtualClock::default());
        let ended = Rc::default();
        let clock = Clock {
            arrivals: arrivals(),
            session: told.clone(),
            start: Nanos::ZERO,
            ordinal: 0,
            ended: Rc::clone(&ended),
        };
        let line = Line(system.spawn(clock, 16));
        let paced = sent(&mut system, Paced::new(Box::new(line), order()), &told);
        assert_eq!(paced, inline);
        assert_eq!(*ended.borrow(), 1);
    }
}
