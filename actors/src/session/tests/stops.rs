//! Ending before the time: stops in every state, and transports that die.

use takt_engine::Host;

use super::*;
use crate::api::{Cancel, Replies};

#[test]
fn e1_a_stop_ends_issuing_waits_for_the_grace_time_and_gives_up_the_rest() {
    for (service, ok, unanswered) in [(Some(20), true, 0), (None, false, 4)] {
        let ran =
            run(vec![phase("p", closed(4), 1_000), phase("q", closed(1), 1)], service, 0, &[50]);
        assert_eq!(ran.outcome.state, SessionState::Interrupted);
        assert_eq!(states(&ran).len(), 1, "no further phase is begun");
        assert_eq!(ran.outcome.phases[0].state, PhaseState::Interrupted);
        assert_eq!(ran.outcome.phases[0].ended_by, EndedBy::Stop);
        assert_eq!(ran.count("session Interrupted"), 1);
        assert_eq!(ran.count(" unanswered "), unanswered);
        assert_eq!(ran.count(" ok ") > 0, ok);
        let late = |l: &&String| l.contains(" issued ") && ms(l) > 50.0;
        assert_eq!(ran.lines.iter().find(late), None, "nothing is issued after the stop");
    }
}

#[test]
fn e1_a_second_stop_gives_up_at_once_and_a_stop_works_in_every_state() {
    let ran = run(vec![phase("p", closed(4), 1_000)], None, 0, &[50, 55]);
    assert!(ran.lines.last().unwrap().starts_with("55 "), "{:?}", ran.lines.last());
    // Before the first issue, while draining, between phases, at the very end.
    for stop in [0, 1, 5, 10, 14, 15, 20, 29, 30, 31, 60] {
        let warm = warm_up("w", closed(2), 4);
        let ran = run(vec![warm, phase("p", closed(3), 9)], Some(5), 0, &[stop, stop]);
        assert!(ran.outcome.phases.len() <= 2);
    }
}

#[test]
fn e1_a_stop_before_the_first_phase_ends_the_session() {
    // Connections are being made: nobody has said that it may begin.
    let waiting = || SessionConfig {
        begin_at_once: false,
        ..config(vec![phase("p", closed(4), 10), phase("q", closed(1), 1)])
    };
    for stops in [&[20][..], &[20, 21]] {
        let ran = run_planned(waiting(), |_| Plan::Never, stops);
        assert_eq!(ran.outcome.state, SessionState::Interrupted);
        assert_eq!(ran.lines, ["0 session Started", "20 session Interrupted", "20 session Ended"]);
    }
}

#[test]
fn e1_a_stop_with_nothing_in_flight_ends_at_once() {
    // One arrival a second, answered in 5 ms.
    let ran = run(vec![phase("p", open(1.0), 100)], Some(5), 0, &[1_500]);
    assert_eq!(ran.lines.last().unwrap(), "1500 session Ended");
    assert_eq!(states(&ran), [("p", 1, PhaseState::Interrupted, EndedBy::Stop)]);
}

#[test]
fn e1_a_stop_while_a_phase_drains_keeps_why_its_issuing_ended() {
    for (stops, end) in [(&[10][..], "40 "), (&[10, 15], "15 ")] {
        let ran = run(vec![phase("p", closed(3), 3), phase("q", closed(1), 1)], None, 0, stops);
        assert!(ran.lines.last().unwrap().starts_with(end), "{:?}", ran.lines);
        assert_eq!(states(&ran), [("p", 3, PhaseState::Interrupted, EndedBy::Requests)]);
        assert_eq!(ran.count(" unanswered "), 3);
    }
}

#[test]
fn e1_a_stop_also_gives_up_what_a_warm_up_left() {
    let phases = vec![warm_up("w", closed(2), 2), phase("p", closed(4), 10)];
    let ran = run(phases, None, 0, &[10, 15]);
    assert_eq!((ran.count(" unanswered 0."), ran.count(" unanswered 1.")), (2, 2));
    assert_eq!(ran.lines.last().unwrap(), "15 session Ended");
}

/// A transport that fails at its third request, and is silent from then on.
struct Dies(u32, Option<Replies>);

impl SampleIssuer for Dies {
    fn attach(&mut self, replies: Replies) {
        self.1 = Some(replies);
    }
    fn issue(&mut self, _request: Request) {
        self.0 += 1;
        if self.0 == 3 {
            self.1.as_ref().unwrap().failed("the bus is gone");
        }
    }
    fn cancel(&mut self, _which: Cancel) {}
    fn shut_down(&mut self) {}
}

#[test]
fn a_transport_that_dies_and_answers_nothing_more_cannot_keep_a_session_from_its_end() {
    for stops in [&[][..], &[1], &[1, 2]] {
        let phases = vec![phase("p", closed(5), 100)];
        let (lines, outcome) =
            run_over(System::new(VirtualClock::default()), config(phases), dies(), stops);
        assert_eq!(outcome.state, SessionState::Failed("the bus is gone".to_owned()));
        assert_eq!(outcome.phases[0].state, PhaseState::Failed);
        assert!(lines.contains(&"0 session Failed(Transport)".to_owned()), "{lines:?}");
        assert_eq!(lines.last().unwrap(), "10000 session Ended");
    }
}

fn dies() -> Box<dyn SampleIssuer> {
    Box::new(Dies(0, None))
}

#[test]
fn a_session_with_a_hook_for_its_end_leaves_the_system_to_its_other_actors() {
    struct Clock(Rc<RefCell<Vec<Nanos>>>);
    impl Actor for Clock {
        type Msg = ();
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            cx.call_at(Nanos::ZERO + Span::from_millis(500), ());
        }
        fn handle(&mut self, (): (), cx: &mut Context<'_, Self>) {
            self.0.borrow_mut().push(cx.now());
            cx.stop_system();
        }
    }
    let (ticks, ended) = (Rc::<RefCell<Vec<_>>>::default(), Rc::<RefCell<Vec<_>>>::default());
    let mut system = System::new(VirtualClock::default());
    let (transport, _) = Planned::spawn(&mut system, |_| Plan::Answer(Span::from_millis(5)));
    system.spawn(Clock(ticks.clone()), 8);
    let (tell, slot_of) = (ended.clone(), Rc::<RefCell<Option<OutcomeSlot>>>::default());
    let slot_there = slot_of.clone();
    let hook = move || {
        let outcome = slot_there.borrow().as_ref().and_then(OutcomeSlot::take);
        tell.borrow_mut().push(outcome.map(|outcome| outcome.state));
    };
    let config =
        SessionConfig { on_ended: Some(Box::new(hook)), ..config(vec![phase("p", closed(1), 2)]) };
    let sink = Box::new(InlineSink::new(Rc::<RefCell<Lines>>::default()));
    let publisher = SharedPublisher::new(Publisher::new(sink, PublisherConfig::default()));
    let (session, slot) = Session::new(config, Box::new(transport), publisher);
    slot_of.replace(Some(slot));
    system.spawn(session, 64);
    system.run().unwrap();
    assert_eq!(*ended.borrow(), [Some(SessionState::Complete)]);
    assert_eq!(*ticks.borrow(), [Nanos::ZERO + Span::from_millis(500)]);
    assert_eq!(system.host().now(), Nanos::ZERO + Span::from_millis(500));
}

#[test]
fn a_profiler_window_is_recorded_in_its_place_and_told_back() {
    struct Windows(Addr<SessionMsg>, std::sync::mpsc::SyncSender<Nanos>);
    impl Actor for Windows {
        type Msg = WindowEvent;
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            for (ms, event) in [(7, WindowEvent::Opened), (12, WindowEvent::Closed)] {
                cx.call_at(Nanos::ZERO + Span::from_millis(ms), event);
            }
        }
        fn handle(&mut self, event: WindowEvent, _cx: &mut Context<'_, Self>) {
            self.0.send(SessionMsg::Window(event, self.1.clone()));
        }
    }
    let mut system = System::new(VirtualClock::default());
    let (endpoint, _) = Planned::spawn(&mut system, |_| Plan::Answer(Span::from_millis(5)));
    let lines = Rc::<RefCell<Lines>>::default();
    let publisher =
        Publisher::new(Box::new(InlineSink::new(lines.clone())), PublisherConfig::default());
    let config = config(vec![phase("p", closed(1), 3)]);
    let (session, _) = Session::new(config, Box::new(endpoint), SharedPublisher::new(publisher));
    let session = system.spawn(session, 64);
    let (told, heard) = std::sync::mpsc::sync_channel(2);
    system.spawn(Windows(session, told), 8);
    system.run().unwrap();
    let lines = &lines.borrow().0;
    let of = |line: &&String| [" issued ", " ok ", " window "].iter().any(|w| line.contains(w));
    assert_eq!(
        lines.iter().filter(of).collect::<Vec<_>>(),
        [
            "0 issued 0.0",
            "5 ok 0.0",
            "5 issued 0.1",
            "7 window Opened",
            "10 ok 0.1",
            "10 issued 0.2",
            "12 window Closed",
            "15 ok 0.2"
        ]
    );
    assert_eq!(heard.try_iter().map(Nanos::as_nanos).collect::<Vec<_>>(), [7_000_000, 12_000_000]);
}
