//! Several sessions on one run, in virtual time: what they issue together is what one alone issues.

use std::collections::BTreeMap;

use takt_engine::{Actor, Context};
use takt_record::Issued;

use super::*;
use crate::{Claims, Poisson, Purpose, Share, part, stream};

/// What was issued, with when it ended; and the beginnings of phases.
#[derive(Default)]
struct Log {
    issued: Vec<Issued>,
    ends: BTreeMap<RequestKey, Nanos>,
    begins: Vec<(PhaseId, Nanos)>,
    events: Vec<SessionEvent>,
}

impl Fold for Log {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Issued(issued) => self.issued.push(*issued),
            Record::Completed(done) => {
                assert_eq!(self.ends.insert(done.key, done.times.end), None, "it ends once");
            }
            Record::Phase(PhaseRecord { at, phase, event: PhaseEvent::Started { .. } }) => {
                self.begins.push((*phase, *at));
            }
            Record::Session(session) => self.events.push(session.event),
            _ => {}
        }
    }
}

impl Log {
    /// Number, sample, moment of the schedule and of the sending, in order.
    fn requests(&self) -> Vec<(RequestKey, u32, Option<Nanos>, Nanos)> {
        let mut all: Vec<_> =
            self.issued.iter().map(|r| (r.key, r.sample, r.scheduled, r.at)).collect();
        all.sort();
        all
    }

    /// The most that were in flight at once. Of one instant, ends come first.
    fn peak(&self) -> i64 {
        let begins = self.issued.iter().map(|r| (r.at, 1));
        let mut steps: Vec<_> = begins.chain(self.ends.values().map(|at| (*at, -1))).collect();
        steps.sort_unstable();
        let mut in_flight = 0;
        steps
            .iter()
            .map(|(_, step)| {
                in_flight += step;
                in_flight
            })
            .max()
            .unwrap_or(0)
    }

    /// Each of `requests` requests of `phase` was issued once, with the sample of its place, and has ended.
    #[track_caller]
    fn has_all(&self, phase: u16, requests: u64, samples: u64) {
        let of = |key: &RequestKey| key.phase == PhaseId(phase);
        let all = self.requests().into_iter().filter(|(key, ..)| of(key));
        let seen: Vec<_> = all.map(|(key, sample, ..)| (key.ordinal, u64::from(sample))).collect();
        let expect: Vec<_> = (0..requests).map(|n| (n, n % samples)).collect();
        assert_eq!(seen, expect);
        assert_eq!(self.ends.keys().filter(|key| of(key)).count() as u64, requests);
    }
}

/// Stops the system when so many sessions have ended.
struct Last(usize);

impl Actor for Last {
    type Msg = ();

    fn handle(&mut self, (): (), cx: &mut Context<'_, Self>) {
        self.0 -= 1;
        if self.0 == 0 {
            cx.stop_system();
        }
    }
}

/// Runs `count` sessions of the phases that `phases` makes for each, by its place; answers take ten milliseconds and
/// a little more in each session.
fn several(count: u64, phases: impl Fn(u64) -> Vec<PhaseConfig>) -> (Log, Vec<SessionOutcome>) {
    run_several(count, phases, |_, _| {})
}

/// The same; `meddle` may do something to the sessions while they run.
fn run_several(
    count: u64,
    phases: impl Fn(u64) -> Vec<PhaseConfig>,
    meddle: impl FnOnce(&mut System<VirtualClock>, &[(Addr<SessionMsg>, OutcomeSlot)]),
) -> (Log, Vec<SessionOutcome>) {
    let mut system = System::new(VirtualClock::default());
    let log = Rc::new(RefCell::new(Log::default()));
    let last = system.spawn(Last(count as usize), 8);
    let together = Together::new(count as usize);
    let mut slots = Vec::new();
    for index in 0..count {
        let took = Span::from_nanos(10_000_000 + 700_000 * index);
        let (endpoint, _) = Planned::spawn(&mut system, move |_| Plan::Answer(took));
        let sink = Box::new(InlineSink::new(log.clone()));
        let publisher = Publisher::new(sink, PublisherConfig::default());
        let mut config = config(phases(index));
        let last = last.clone();
        config.on_ended = Some(Box::new(move || last.send(())));
        config.together = (count > 1).then(|| together.member(index as usize));
        let publisher = SharedPublisher::new(publisher);
        let (session, slot) = Session::new(config, Box::new(endpoint), publisher);
        let address = system.spawn(session, 1 << 10);
        let remote = system.remote(&address, 16);
        together.reached_by(index as usize, Box::new(move |msg| drop(remote.send(msg))));
        slots.push((address, slot));
    }
    meddle(&mut system, &slots);
    system.run().unwrap();
    let log = log.take();
    (log, slots.iter().map(|(_, slot)| slot.take().expect("it has ended")).collect())
}

fn poisson(rate: f64) -> Timed {
    let arrivals = Poisson::new(rate, stream(7, Purpose::Arrivals)).unwrap();
    Timed::new(Box::new(arrivals), Order::without_replacement(100, stream(7, Purpose::Order)))
}

/// The phase, shared by number.
fn nth(first: u64, of: u64, phase: PhaseConfig) -> PhaseConfig {
    PhaseConfig { share: if of == 1 { Share::All } else { Share::Nth { first, of } }, ..phase }
}

/// A closed loop with a part of `target` places.
fn claimed(claims: &Claims, target: u64, index: u64, of: u64, requests: u64) -> PhaseConfig {
    let target = part(target, index, of) as u32;
    let strategy = Concurrency::new(Order::sequential(100), target);
    PhaseConfig { share: Share::Claimed(claims.clone()), ..phase("closed", strategy, requests) }
}

#[test]
fn the_arrivals_of_one_schedule_are_divided_and_none_is_moved() {
    let alone = several(1, |_| vec![phase("p", poisson(1_000.0), 500)]).0;
    for of in 2..=5 {
        let (log, ended) = several(of, |i| vec![nth(i, of, phase("p", poisson(1_000.0), 500))]);
        let from_start = |log: &Log| -> Vec<_> {
            let start = log.begins[0].1;
            let of = |(key, sample, due, at): (RequestKey, u32, Option<Nanos>, Nanos)| {
                (key, sample, due.unwrap().saturating_since(start), at.saturating_since(start))
            };
            log.requests().into_iter().map(of).collect()
        };
        assert_eq!(from_start(&log), from_start(&alone), "{of} sessions");
        assert!(log.begins.iter().all(|begin| *begin == log.begins[0]), "at one moment");
        let issued: Vec<u64> = ended.iter().map(|ended| ended.phases[0].issued).collect();
        assert_eq!(issued.iter().sum::<u64>(), 500);
        assert!(issued.iter().all(|n| n.abs_diff(500 / of) <= 1), "{issued:?}");
    }
}

#[test]
fn r6_fewer_arrivals_than_sessions_are_exact() {
    for requests in 1..5 {
        let (log, ended) = several(4, |i| vec![nth(i, 4, phase("p", open(1.0), requests))]);
        log.has_all(0, requests, 100);
        for ended in ended {
            assert_eq!(
                (ended.state, ended.phases[0].state),
                (SessionState::Complete, PhaseState::Complete)
            );
        }
    }
}

#[test]
fn a_schedule_that_time_ends_has_the_same_arrivals_when_it_is_divided() {
    let timed = |strategy| {
        let limits = Limits { duration: Some(Span::from_millis(333)), ..Limits::default() };
        PhaseConfig { limits, ..phase("p", strategy, 1) }
    };
    let alone = several(1, |_| vec![timed(poisson(300.0))]).0;
    let shared = several(3, |i| vec![nth(i, 3, timed(poisson(300.0)))]).0;
    assert!(alone.issued.len() > 60);
    let samples = |log: &Log| -> Vec<_> { log.requests().iter().map(|r| (r.0, r.1)).collect() };
    assert_eq!(samples(&shared), samples(&alone));
}

#[test]
fn whole_passes_end_for_all_sessions_at_the_same_request() {
    let least = Limits { min_duration: Some(Span::from_millis(450)), ..Limits::default() };
    // A pass of 100 at 1,000 a second takes a tenth of a second: the fifth ends behind the least.
    let passes = |phase| PhaseConfig { limits: least, ..phase };
    let (log, _) = several(3, |i| vec![nth(i, 3, passes(phase("p", open(1_000.0), 1)))]);
    log.has_all(0, 500, 100);
    for of in 1..6 {
        let claims = Claims::default();
        let (log, ended) = several(of, |i| vec![passes(claimed(&claims, 7, i, of, 1))]);
        let issued = log.issued.len() as u64;
        assert!(issued > 100 && issued.is_multiple_of(100), "{issued} requests of {of} sessions");
        log.has_all(0, issued, 100);
        assert!(ended.iter().all(|ended| ended.phases[0].ended_by == EndedBy::Dataset));
    }
}

#[test]
fn c1_a_cap_holds_over_sessions_and_over_an_undrained_warm_up() {
    for (cap, of) in [(45, 8), (3, 4), (7, 2), (1, 3)] {
        let (first, second) = (Claims::default(), Claims::default());
        let (log, ended) = several(of, |i| {
            let warm = claimed(&first, cap, i, of, 100);
            let warm = PhaseConfig { kind: PhaseKind::Warmup, drain_after: false, ..warm };
            vec![warm, claimed(&second, cap, i, of, 1_000)]
        });
        log.has_all(0, 100, 100);
        log.has_all(1, 1_000, 100);
        assert_eq!(log.peak(), cap as i64, "cap {cap} over {of} sessions");
        assert!(ended.iter().all(|ended| ended.state == SessionState::Complete));
    }
}

#[test]
fn a_burst_is_divided_with_its_bound() {
    let (claims, of) = (Claims::default(), 4);
    let (log, _) = several(of, |i| {
        let strategy = Burst::new(Order::sequential(100), Some(part(6, i, of)));
        vec![PhaseConfig { share: Share::Claimed(claims.clone()), ..phase("b", strategy, 500) }]
    });
    log.has_all(0, 500, 100);
    assert_eq!(log.peak(), 6);
}

#[test]
fn no_phase_begins_while_another_session_is_in_the_one_before() {
    // Session 1 has answers that take longer.
    let claims = [Claims::default(), Claims::default(), Claims::default()];
    let phases = |i| claims.iter().map(|claims| claimed(claims, 4, i, 2, 100)).collect();
    let (log, _) = several(2, phases);
    assert_eq!(log.begins.len(), 6);
    for phase in 1..3 {
        let begun: Vec<_> = log.begins.iter().filter(|b| b.0 == PhaseId(phase)).collect();
        assert_eq!(begun[0], begun[1]);
        let ended = log.ends.iter().filter(|(key, _)| key.phase.0 == phase - 1);
        assert!(ended.map(|(_, at)| *at).max().unwrap() < begun[0].1);
    }
}

#[test]
fn a_session_that_fails_ends_the_others_and_nobody_waits_for_it() {
    for (at_ms, claims) in [(25, Claims::default()), (1_000, Claims::default())] {
        // At 25 ms all are at work; at 1,000 ms session 0 waits for the other two, whose phase ends by time.
        let phases = |i: u64| {
            let mut long = claimed(&claims, 6, i, 3, 1 << 40);
            long.limits = Limits { duration: Some(Span::from_secs(2)), ..Limits::default() };
            if i == 0 {
                long.limits.duration = Some(Span::from_millis(500));
            }
            vec![long, claimed(&Claims::default(), 6, i, 3, 10)]
        };
        let (log, ended) = run_several(3, phases, |system, sessions| {
            let session = sessions[2].0.clone();
            system.spawn(
                At(
                    at_ms,
                    Some(Box::new(move || {
                        session.send(SessionMsg::TransportFailed("gone".into()));
                    })),
                ),
                2,
            );
        });
        let states: Vec<_> = ended.iter().map(|ended| ended.state.clone()).collect();
        let failed = SessionState::Failed("gone".to_owned());
        assert_eq!(states, [SessionState::Interrupted, SessionState::Interrupted, failed]);
        assert_eq!(log.events.iter().filter(|event| **event == SessionEvent::Ended).count(), 3);
        assert_eq!(log.ends.len(), log.issued.len());
        assert!(log.issued.iter().all(|issued| issued.key.phase == PhaseId(0)));
    }
}

/// Does something once, so many milliseconds after the beginning.
struct At(u64, Option<Box<dyn FnOnce()>>);

impl Actor for At {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        cx.call_at(Nanos::ZERO + Span::from_millis(self.0), ());
    }

    fn handle(&mut self, (): (), _cx: &mut Context<'_, Self>) {
        if let Some(act) = self.1.take() {
            act();
        }
    }
}
