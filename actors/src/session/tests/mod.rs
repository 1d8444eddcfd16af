//! The session in virtual time, against an endpoint whose every answer is planned.

mod conversations;
mod held_up;

mod limits;
mod rehearsals;
mod stops;
mod together;

use std::cell::RefCell;
use std::rc::Rc;

use takt_engine::{Addr, System, VirtualClock};
use takt_record::{Blame, ErrorKind, Failure, Fold, InlineSink, Publisher, PublisherConfig, Stage};

use super::*;
use crate::planned::{Plan, Planned, Seen};
use crate::{Burst, Concurrency, Constant, Order, Pace, Request, Timed};

const FAILURE: Failure = Failure {
    kind: ErrorKind::HttpStatus,
    blame: Blame::Server,
    stage: Stage::Head,
    status: Some(500),
};

/// Keeps what matters here of each record, as a line.
#[derive(Default)]
struct Lines(Vec<String>);

impl Fold for Lines {
    fn fold(&mut self, record: &Record<'_>) {
        self.0.extend(line(record));
    }
}

/// One line per record that matters here.
fn line(record: &Record<'_>) -> Option<String> {
    let ms = record.at().as_nanos() as f64 / 1e6;
    let key = |key: RequestKey| format!("{}.{}", key.phase.0, key.ordinal);
    Some(match record {
        Record::Session(r) => format!("{ms} session {:?}", r.event),
        Record::Phase(r) => format!("{ms} phase {} {:?}", r.phase.0, r.event),
        Record::Issued(r) => match r.turn {
            Some(of) => format!("{ms} issued {}:{} {}", of.conversation, of.turn, key(r.key)),
            None => format!("{ms} issued {}", key(r.key)),
        },
        Record::Conversation(r) => conversations::line(r, ms),
        Record::Window(r) => format!("{ms} window {:?}", r.event),
        Record::Error { key: k, .. } => format!("{ms} error {}", key(*k)),
        Record::Completed(r) => {
            let how = match r.outcome {
                Outcome::Ok => "ok",
                Outcome::Failed(_) => "failed",
                Outcome::Unanswered => "unanswered",
            };
            format!("{ms} {how} {}", key(r.key))
        }
        _ => return None,
    })
}

/// The instant at which a line begins.
fn ms(line: &str) -> f64 {
    line.split(' ').next().and_then(|at| at.parse().ok()).expect("a line begins with its instant")
}

struct Ran {
    lines: Vec<String>,
    outcome: SessionOutcome,
    seen: Rc<RefCell<Seen>>,
}

impl Ran {
    fn count(&self, word: &str) -> usize {
        self.lines.iter().filter(|line| line.contains(word)).count()
    }

    /// Checks what holds for every session.
    fn consistent(self) -> Self {
        assert!(self.lines.first().unwrap().contains("session Started"));
        assert!(self.lines.last().unwrap().contains("session Ended"));
        let keys = |word: &str| -> Vec<String> {
            let tail = |line: &String| line.rsplit(' ').next().unwrap().to_owned();
            let mut keys: Vec<_> =
                self.lines.iter().filter(|line| line.contains(word)).map(tail).collect();
            keys.sort();
            keys
        };
        let mut ends = [keys(" ok "), keys(" failed "), keys(" unanswered ")].concat();
        ends.sort();
        assert_eq!(keys(" issued "), ends, "each issued request ends exactly once");
        assert_eq!(keys(" error "), keys(" failed "), "each failure has its error");
        assert!(self.seen.borrow().shut_down);
        assert_eq!(self.outcome.strays, 0);
        self
    }
}

fn phase(name: &str, strategy: impl Strategy + 'static, requests: u64) -> PhaseConfig {
    PhaseConfig::new(name, strategy, 100).requests(requests)
}

fn warm_up(name: &str, strategy: impl Strategy + 'static, requests: u64) -> PhaseConfig {
    let (kind, drain_after) = (PhaseKind::Warmup, false);
    PhaseConfig { kind, drain_after, ..phase(name, strategy, requests) }
}

fn closed(target: u32) -> Concurrency {
    Concurrency::new(Order::sequential(100), target)
}

fn open(rate: f64) -> Timed {
    Timed::new(Box::new(Constant::new(rate).unwrap()), Order::sequential(100))
}

/// Runs `phases` against an endpoint with `service_ms` (none: it never answers); `stops` are the
/// milliseconds at which the session is told to stop.
fn run(phases: Vec<PhaseConfig>, service_ms: Option<u64>, fail_every: u64, stops: &[u64]) -> Ran {
    let plan = move |request: &Request| match service_ms.map(Span::from_millis) {
        None => Plan::Never,
        Some(after) if fail_every > 0 && request.key.ordinal.is_multiple_of(fail_every) => {
            Plan::Fail(after, FAILURE)
        }
        Some(after) => Plan::Answer(after),
    };
    run_planned(config(phases), plan, stops)
}

/// `phases` with a grace time of 30 ms.
fn config(phases: Vec<PhaseConfig>) -> SessionConfig {
    SessionConfig { stop_grace: Span::from_millis(30), ..SessionConfig::new(phases) }
}

/// Runs a session against an endpoint that treats each request as `plan` says.
fn run_planned(
    config: SessionConfig,
    plan: impl FnMut(&Request) -> Plan + 'static,
    stops: &[u64],
) -> Ran {
    let mut system = System::new(VirtualClock::default());
    let (endpoint, seen) = Planned::spawn(&mut system, plan);
    let (lines, outcome) = run_over(system, config, Box::new(endpoint), stops);
    Ran { lines, outcome, seen }.consistent()
}

/// Runs a session over `transport`.
fn run_over(
    mut system: System<VirtualClock>,
    config: SessionConfig,
    transport: Box<dyn SampleIssuer>,
    stops: &[u64],
) -> (Vec<String>, SessionOutcome) {
    struct Stopper(Addr<SessionMsg>, Vec<u64>);
    impl Actor for Stopper {
        type Msg = ();
        fn started(&mut self, cx: &mut Context<'_, Self>) {
            for &ms in &self.1 {
                cx.call_at(Nanos::ZERO + Span::from_millis(ms), ());
            }
        }
        fn handle(&mut self, (): (), _cx: &mut Context<'_, Self>) {
            self.0.send(SessionMsg::Stop);
        }
    }
    let lines = Rc::<RefCell<Lines>>::default();
    let sink = Box::new(InlineSink::new(lines.clone()));
    let publisher = Publisher::new(sink, PublisherConfig::default());
    let (session, slot) = Session::new(config, transport, SharedPublisher::new(publisher));
    let session = system.spawn(session, 4096);
    system.spawn(Stopper(session, stops.to_vec()), 8);
    system.run().unwrap();
    let lines = std::mem::take(&mut lines.borrow_mut().0);
    (lines, slot.take().expect("the session has ended"))
}

fn states(ran: &Ran) -> Vec<(&str, u64, PhaseState, EndedBy)> {
    let of = |p: &'_ PhaseOutcome| (p.issued, p.state, p.ended_by);
    let with = |p| {
        let (issued, state, by) = of(p);
        (p.name.as_str(), issued, state, by)
    };
    ran.outcome.phases.iter().map(with).collect()
}

#[test]
fn a_phase_brackets_its_requests_with_its_events_in_order() {
    let ran = run(vec![phase("p", closed(1), 2)], Some(5), 0, &[]);
    assert_eq!(
        ran.lines,
        [
            "0 session Started",
            "0 phase 0 Started { inherited: 0 }",
            "0 phase 0 TrackingStarted",
            "0 issued 0.0",
            "5 ok 0.0",
            "5 issued 0.1",
            "5 phase 0 IssuingEnded { by: Requests }",
            "10 ok 0.1",
            "10 phase 0 TrackingStopped",
            "10 phase 0 Ended { state: Complete }",
            "10 session Ended",
        ]
    );
    assert_eq!(ran.outcome.state, SessionState::Complete);
    assert_eq!(states(&ran), [("p", 2, PhaseState::Complete, EndedBy::Requests)]);
}

#[test]
fn an_open_loop_sends_at_its_moments_whatever_the_endpoint_does() {
    // Answers take 50 ms, arrivals come each 10 ms: five are in flight at once, none is held back.
    let ran = run(vec![phase("p", open(100.0), 20)], Some(50), 0, &[]);
    let seen = ran.seen.borrow();
    for (n, (at, request)) in seen.requests.iter().enumerate() {
        let due = Nanos::ZERO + Span::from_millis(10 * (n as u64 + 1));
        assert_eq!((*at, request.scheduled), (due, Some(due)));
    }
    assert_eq!((seen.requests.len(), seen.most_at_once), (20, 5));
}

#[test]
fn a_closed_loop_keeps_its_number_in_flight_and_no_more() {
    for target in [1, 3, 45] {
        let ran = run(vec![phase("p", closed(target), 200)], Some(5), 3, &[]);
        assert_eq!(ran.seen.borrow().most_at_once, target as usize);
        assert_eq!(ran.count(" failed "), 67, "a failure frees its place as a success does");
    }
}

#[test]
fn the_cap_holds_over_the_boundary_of_an_undrained_warm_up() {
    for (warm, target) in [(16, 16), (16, 4), (4, 16)] {
        let phases = vec![warm_up("w", closed(warm), 40), phase("p", closed(target), 60)];
        let ran = run(phases, Some(5), 0, &[]);
        assert_eq!(ran.seen.borrow().most_at_once, warm.max(target) as usize);
        let inherited = format!("phase 1 Started {{ inherited: {warm} }}");
        assert_eq!(ran.count(&inherited), 1, "{:?}", ran.lines);
        // While inherited requests run, nothing is issued beyond the new cap.
        let mut in_flight = 0u32;
        for line in &ran.lines {
            if line.contains(" issued ") {
                in_flight += 1;
                let second = line.contains(" issued 1.");
                assert!(!second || in_flight <= target, "{line}: {in_flight} in flight");
            } else if line.contains(" ok ") {
                in_flight -= 1;
            }
        }
    }
}

#[test]
fn e2_a_request_that_is_never_answered_ends_with_the_drain_timeout() {
    let config =
        PhaseConfig { drain_timeout: Some(Span::from_millis(40)), ..phase("p", closed(3), 3) };
    let ran = run(vec![config], None, 0, &[]);
    assert_eq!(ran.count(" unanswered "), 3);
    assert!(ran.lines.contains(&"40 unanswered 0.0".to_owned()), "{:?}", ran.lines);
    assert_eq!(ran.outcome.state, SessionState::Complete);
}

#[test]
fn an_undrained_phase_leaves_its_requests_to_the_next_and_the_session_gives_up_the_last() {
    let phases = vec![warm_up("w", closed(2), 2), warm_up("v", open(100.0), 3)];
    let ran = run(phases, None, 0, &[]);
    assert_eq!((ran.count(" issued "), ran.count(" unanswered ")), (5, 5));
    assert_eq!(ran.count("phase 1 Started { inherited: 2 }"), 1);
    assert_eq!(ran.outcome.state, SessionState::Complete);
}

#[test]
fn a_duration_ends_a_closed_loop_and_an_open_loop_at_its_moment() {
    let limited = |strategy: Box<dyn Strategy>| PhaseConfig {
        strategy,
        limits: Limits { duration: Some(Span::from_millis(100)), ..Limits::default() },
        ..phase("p", closed(1), 0)
    };
    let ran = run(vec![limited(Box::new(open(100.0)))], Some(1), 0, &[]);
    // At 10, 20 … 90: the arrival of 100 ms belongs to the time after.
    assert_eq!(states(&ran), [("p", 9, PhaseState::Complete, EndedBy::Duration)]);
    let ran = run(vec![limited(Box::new(closed(1)))], Some(10), 0, &[]);
    assert_eq!(states(&ran), [("p", 10, PhaseState::Complete, EndedBy::Duration)]);
    let capped = PhaseConfig {
        limits: Limits { max_duration: Some(Span::from_millis(25)), ..Limits::default() },
        ..phase("p", closed(1), 0)
    };
    let ran = run(vec![capped], Some(10), 0, &[]);
    assert_eq!(states(&ran), [("p", 3, PhaseState::Capped, EndedBy::MaxDuration)]);
}

#[test]
fn max_throughput_issues_without_pause_up_to_its_bound() {
    let burst = |bound| Burst::new(Order::sequential(100), bound);
    let ran = run(vec![phase("p", burst(Some(8)), 100)], Some(5), 0, &[]);
    assert_eq!(ran.seen.borrow().most_at_once, 8);
    let ran = run(vec![phase("p", burst(None), 100)], Some(5), 0, &[]);
    assert_eq!(ran.seen.borrow().most_at_once, 100);
}

#[test]
fn a_strategy_that_says_it_is_finished_ends_its_phase() {
    struct Three;
    impl Strategy for Three {
        fn start(&mut self, pace: &mut dyn Pace) {
            for sample in 0..3 {
                assert!(pace.issue(sample, None).is_some());
            }
            pace.finished();
            assert!(pace.issue(3, None).is_none());
        }
        fn tick(&mut self, _token: u64, _pace: &mut dyn Pace) {}
    }
    let ran = run(vec![phase("p", Three, 100)], Some(5), 0, &[]);
    assert_eq!(states(&ran), [("p", 3, PhaseState::Complete, EndedBy::Strategy)]);
}

#[test]
fn an_accuracy_phase_is_counted_and_drained_and_not_tracked() {
    let accuracy = PhaseConfig { kind: PhaseKind::Accuracy, ..phase("a", closed(2), 4) };
    let ran = run(vec![accuracy], Some(5), 4, &[]);
    assert_eq!((ran.count(" issued "), ran.count(" ok "), ran.count(" failed ")), (4, 3, 1));
    let phases: Vec<&String> = ran.lines.iter().filter(|l| l.contains("phase 0")).collect();
    assert_eq!(
        phases,
        [
            "0 phase 0 Started { inherited: 0 }",
            "5 phase 0 IssuingEnded { by: Requests }",
            "10 phase 0 Ended { state: Complete }",
        ]
    );
}

/// What came to a strategy's hooks.
struct Hooks(Box<dyn Strategy>, Rc<RefCell<Vec<Option<RequestKey>>>>);

impl Strategy for Hooks {
    fn start(&mut self, pace: &mut dyn Pace) {
        self.0.start(pace);
    }
    fn tick(&mut self, token: u64, pace: &mut dyn Pace) {
        self.0.tick(token, pace);
    }
    fn completed(&mut self, done: &Completed, pace: &mut dyn Pace) {
        self.1.borrow_mut().push(Some(done.key));
        self.0.completed(done, pace);
    }
    fn inherited_ended(&mut self, pace: &mut dyn Pace) {
        self.1.borrow_mut().push(None);
        self.0.inherited_ended(pace);
    }
}

#[test]
fn a_stale_completion_tells_the_strategy_that_a_place_is_free_and_nothing_else() {
    let heard = Rc::<RefCell<Vec<_>>>::default();
    let burst = Burst::new(Order::sequential(100), Some(4));
    let strategies: [Box<dyn Strategy>; 3] =
        [Box::new(closed(4)), Box::new(open(200.0)), Box::new(burst)];
    for strategy in strategies {
        let hooked = Hooks(strategy, heard.clone());
        let phases = vec![warm_up("w", closed(4), 4), phase("p", hooked, 40)];
        run(phases, Some(7), 0, &[]);
        let heard = std::mem::take(&mut *heard.borrow_mut());
        assert_eq!(heard.iter().filter(|key| key.is_none()).count(), 4);
        assert!(heard.iter().flatten().all(|key| key.phase == PhaseId(1)), "{heard:?}");
    }
}
