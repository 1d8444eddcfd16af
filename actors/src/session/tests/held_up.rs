//! What was due before the end of a phase is sent, however late the client or its clock is.

use super::*;
use crate::api::{Cancel, Replies};
use crate::{Paced, Pacer, Strategy};

/// A transport at which time passes: during the rehearsal of request 50, or during its issue.
struct Slow {
    planned: Planned,
    clock: VirtualClock,
    rehearsing: bool,
}

impl Slow {
    fn pass(&self, request: Request, rehearsing: bool) {
        if request.key.ordinal == 50 && rehearsing == self.rehearsing {
            self.clock.advance(Span::from_millis(800));
        }
    }
}

impl SampleIssuer for Slow {
    fn attach(&mut self, replies: Replies) {
        self.planned.attach(replies);
    }
    fn issue(&mut self, request: Request) {
        self.pass(request, false);
        self.planned.issue(request);
    }
    fn rehearse(&mut self, request: Request) {
        self.pass(request, true);
        self.planned.rehearse(request);
    }
    fn cancel(&mut self, which: Cancel) {
        self.planned.cancel(which);
    }
    fn shut_down(&mut self) {
        self.planned.shut_down();
    }
}

/// A phase of a second.
fn second(strategy: impl Strategy + 'static) -> PhaseConfig {
    let mut phase = PhaseConfig::new("p", strategy, 10);
    phase.limits.duration = Some(Span::from_secs(1));
    phase
}

#[test]
fn a_client_that_is_held_up_over_the_end_sends_all_that_was_due_before() {
    for (rehearsing, rehearse_ahead) in
        [(true, Some(Span::from_micros(100))), (false, Some(Span::from_micros(100))), (false, None)]
    {
        let strategy = Timed::new(Box::new(Constant::new(100.0).unwrap()), Order::sequential(10));
        let config = SessionConfig { rehearse_ahead, ..config(vec![second(strategy)]) };
        let clock = VirtualClock::default();
        let mut system = System::new(clock.clone());
        let answer = |_: &Request| Plan::Answer(Span::from_millis(5));
        let (planned, seen) = Planned::spawn(&mut system, answer);
        let (_, outcome) =
            run_over(system, config, Box::new(Slow { planned, clock, rehearsing }), &[]);
        let phase = &outcome.phases[0];
        let case = format!("rehearsing {rehearsing}, ahead {rehearse_ahead:?}");
        assert_eq!((phase.issued, phase.ended_by), (99, EndedBy::Duration), "{case}");
        assert_eq!(seen.borrow().requests.len(), 99, "{case}");
    }
}

/// A clock that is slow: it says half a second after the end which arrivals there were before.
struct Late(Rc<RefCell<Option<Addr<SessionMsg>>>>);

enum Tell {
    Begin(Option<Nanos>),
    Say(Option<Nanos>),
}

impl Actor for Late {
    type Msg = Tell;

    fn handle(&mut self, tell: Tell, cx: &mut Context<'_, Self>) {
        match tell {
            Tell::Begin(end) => {
                cx.call_at(end.unwrap() + Span::from_millis(500), Tell::Say(end));
            }
            Tell::Say(end) => {
                let moments = [1, 2, 3]
                    .map(|ms| Some(end.unwrap().saturating_sub(Span::from_millis(4 - ms))));
                let says = moments.into_iter().chain([None]);
                for (ordinal, scheduled) in (0..).zip(says) {
                    let message = SessionMsg::Arrival { phase: PhaseId(0), ordinal, scheduled };
                    self.0.borrow().as_ref().unwrap().send(message);
                }
            }
        }
    }
}

struct Line(Addr<Tell>);

impl Pacer for Line {
    fn begin(&mut self, _: Nanos, end: Option<Nanos>) {
        self.0.send(Tell::Begin(end));
    }
    fn end(&mut self) {}
}

#[test]
fn a_phase_waits_for_the_arrivals_of_a_clock_that_is_late() {
    let told = Rc::<RefCell<Option<Addr<SessionMsg>>>>::default();
    let mut system = System::new(VirtualClock::default());
    let line = Line(system.spawn(Late(told.clone()), 8));
    let answer = |_: &Request| Plan::Answer(Span::from_millis(5));
    let (planned, seen) = Planned::spawn(&mut system, answer);
    let config = config(vec![second(Paced::new(Box::new(line), Order::sequential(10)))]);
    let publisher = Publisher::new(Box::new(takt_record::Discard), PublisherConfig::default());
    let (session, slot) = Session::new(config, Box::new(planned), SharedPublisher::new(publisher));
    *told.borrow_mut() = Some(system.spawn(session, 64));
    system.run().unwrap();
    let outcome = slot.take().expect("the session has ended");
    assert_eq!((outcome.phases[0].issued, outcome.phases[0].ended_by), (3, EndedBy::Duration));
    assert_eq!(seen.borrow().requests.len(), 3);
}
