//! Rate and schedule, in virtual time: the rows R of the list of cases that need a whole session.
//!
//! Every run here is also held to the rules of the simulation, one of which is that each request is handed
//! over at the nanosecond that was drawn.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;

use takt_actors::planned::{Plan, Planned};
use takt_actors::{
    Arrivals as _, Limits, Order, PhaseConfig, Poisson, Purpose, Session, SessionConfig, Timed,
    stream,
};
use takt_engine::{System, VirtualClock};
use takt_mock::{InstantConfig, Mode, TimedConfig};
use takt_record::{
    Completed, Fold, InlineSink, Issued, PhaseKind, PhasePlan, Publisher, PublisherConfig, Record,
    SessionPlan, SharedPublisher, VerdictStatus,
};
use takt_report::RunFold;
use takt_tests::sim::{Http, Kept, Load, Ran, Scenario, Service, Transport, run};
use takt_time::Span;

fn ran(scenario: &Scenario) -> Ran {
    run(scenario).unwrap_or_else(|failed| panic!("{failed}"))
}

/// A session of one open loop for `span`, against an endpoint that answers within a millisecond.
fn planned(load: Load, span: Span) -> Scenario {
    let mut scenario = Scenario::steady(1, 1.0, span);
    let (longest, fails, never) = (Span::from_millis(1), 0, 0);
    scenario.transport = Transport::Planned(Service { longest, fails, never });
    scenario.phases[0].load = load;
    scenario
}

fn http(scenario: &mut Scenario) -> &mut Http {
    let Transport::Http(http) = &mut scenario.transport else { panic!("carried by HTTP") };
    http
}

fn issued(ran: &Ran) -> Vec<Issued> {
    let issued = ran.records.iter().filter_map(|record| match record {
        Kept::Issued(issued) => Some(*issued),
        _ => None,
    });
    issued.collect()
}

fn completed(ran: &Ran) -> Vec<Completed> {
    let completed = ran.records.iter().filter_map(|record| match record {
        Kept::Completed(completed) => Some(**completed),
        _ => None,
    });
    completed.collect()
}

#[test]
fn r1_sends_follow_the_drawn_schedule_to_the_end_at_any_rate() {
    for rate in [1.0, 10.0, 100.0, 1e3, 1e4, 1e5] {
        let span = Span::from_secs_f64(2_000.0 / rate);
        for load in [
            Load::Poisson(rate),
            Load::Constant(rate),
            Load::Gamma(rate, 0.25),
            Load::Ramp(0.0, 2.0 * rate, span, false),
            Load::Trace(2_000, rate, 1.0),
        ] {
            let ran = ran(&planned(load, span));
            let sends = issued(&ran);
            // The widest is gamma of coefficient of variation 2: 90 is the deviation of 2,000.
            assert!((1_500..2_500).contains(&sends.len()), "{load:?}: {}", sends.len());
            assert!(sends.iter().all(|one| Some(one.at) == one.scheduled), "{load:?}");
            let lateness = ran.result.phases[0].lateness_us.expect("reported");
            assert_eq!((lateness.count, lateness.max), (sends.len() as u64, 0.0), "{load:?}");
        }
    }
}

#[test]
fn r1_half_an_hour_at_twenty_a_second_does_not_drift() {
    let half_an_hour = Span::from_secs(1_800);
    let sends = issued(&ran(&planned(Load::Constant(20.0), half_an_hour)));
    // The one that is due when time is up is not of it.
    assert_eq!(sends.len(), 20 * 1_800 - 1);
    let start = sends[0].at.as_nanos() - 50_000_000;
    for (k, one) in sends.iter().enumerate() {
        assert_eq!(one.at.as_nanos() - start, (k as u64 + 1) * 50_000_000);
    }
}

#[test]
fn r1_the_last_send_is_as_late_as_the_first_on_a_client_whose_every_call_costs_time() {
    let mut scenario = Scenario::steady(3, 200.0, Span::from_secs(20));
    scenario.link.call_cost = Span::from_micros(3);
    let mut sends = completed(&ran(&scenario));
    sends.sort_by_key(|done| done.times.scheduled);
    let lateness = |done: &Completed| {
        let (sent, due) = (done.times.sent.expect("sent"), done.times.scheduled.expect("open"));
        (sent - due).as_secs_f64()
    };
    let mean = |part: &[Completed]| part.iter().map(lateness).sum::<f64>() / part.len() as f64;
    // The very first ones make the connections that the others find.
    let (first, last) = (mean(&sends[500..1_500]), mean(&sends[sends.len() - 1_000..]));
    assert!(first > 0.0, "calls cost time");
    assert!(last < 2.0 * first && first < 2.0 * last, "{first} s, then {last} s");
}

#[test]
fn r2_behind_a_cap_latency_from_schedule_grows_and_the_report_says_why() {
    let mut scenario = Scenario::steady(1, 1.0, Span::from_secs(10));
    scenario.phases[0].load = Load::Constant(10.0);
    http(&mut scenario).connections = Some(1);
    http(&mut scenario).mode = Mode::Timed(TimedConfig {
        ttft: "500ms".parse().expect("a distribution"),
        tpot: "0".parse().expect("a distribution"),
        ..TimedConfig::default()
    });
    let result = ran(&scenario).result;
    let latency = &result.phases[0].latency_ms;
    let (schedule, send) = (latency.from_schedule.expect("open"), latency.from_send.expect("sent"));
    // Half a second and two trips of 0.2 ms; of 99 requests the last waits for 98 others, less 9.8 s.
    assert!(send.max < 502.0, "{}", send.max);
    assert!((39_000.0..41_000.0).contains(&schedule.max), "{}", schedule.max);
    let text = takt_report::render(&result);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text.matches("is longer than from send because sends left after").count(), 1);
}

/// The fold of a run and its sends.
struct Watched {
    fold: RunFold,
    sends: Vec<Issued>,
}

impl Fold for Watched {
    fn fold(&mut self, record: &Record<'_>) {
        self.fold.fold(record);
        if let Record::Issued(issued) = record {
            self.sends.push(*issued);
        }
    }
}

#[test]
fn r3_a_server_that_stalls_for_two_seconds_moves_no_arrival_and_shows_in_the_latency() {
    let (ms, second) = (Span::from_millis, 1_000_000_000);
    let mut system = System::new(VirtualClock::default());
    let (transport, _) = Planned::spawn(&mut system, move |request| {
        let at = request.issued.as_nanos();
        // From 2 s to 4 s nothing is answered; then everything is.
        let waits = if (2 * second..4 * second).contains(&at) { 4 * second - at } else { 0 };
        Plan::Answer(ms(10) + Span::from_nanos(waits))
    });
    let phase = PhasePlan {
        name: "p".to_owned(),
        kind: PhaseKind::Performance,
        pattern: "poisson".to_owned(),
        rate: Some(200.0),
        ramp: None,
        target_concurrency: None,
        requests: None,
        stream: false,
        conversations: None,
    };
    let plan = SessionPlan { phases: vec![phase], ..SessionPlan::default() };
    let watched = Watched { fold: RunFold::new(plan), sends: Vec::new() };
    let watched = Rc::new(RefCell::new(watched));
    let sink = Box::new(InlineSink::new(watched.clone()));
    let publisher = SharedPublisher::new(Publisher::new(sink, PublisherConfig::default()));
    let arrivals = || Poisson::new(200.0, stream(42, Purpose::Arrivals)).expect("a rate");
    let strategy = Timed::new(Box::new(arrivals()), Order::sequential(1));
    let mut phase = PhaseConfig::new("p", strategy, 1);
    phase.limits = Limits { duration: Some(Span::from_secs(6)), ..Limits::default() };
    let config = SessionConfig::new(vec![phase]);
    let (session, _outcome) = Session::new(config, Box::new(transport), publisher);
    system.spawn(session, 4_096);
    system.run().expect("a virtual clock does not fail");

    let watched = watched.borrow();
    let mut drawn = arrivals();
    for one in &watched.sends {
        let due = drawn.next().expect("endless").as_nanos();
        assert_eq!((one.at.as_nanos(), one.scheduled), (due, Some(one.at)));
    }
    let during = watched.sends.iter().filter(|one| one.at.as_nanos() / second / 2 == 1);
    // 400 expected, of deviation 20.
    assert!(during.count() > 300, "arrivals go on");
    let result = watched.fold.result(&takt_report::Limits::default());
    let latency = result.phases[0].latency_ms.from_schedule.expect("an open loop");
    assert!((1_900.0..=2_012.0).contains(&latency.max), "{}", latency.max);
    // A third of all arrived in the stall, at even moments.
    assert!((latency.p.p50 - 10.0).abs() < 0.1, "{}", latency.p.p50);
    assert!((1_500.0..1_800.0).contains(&latency.p.p95), "{}", latency.p.p95);
}

#[test]
fn r4_ten_times_what_the_client_can_do_is_invalid_and_costs_no_throughput() {
    let mut scenario = Scenario::steady(1, 1.0, Span::from_secs(1));
    scenario.link.call_cost = Span::from_micros(20);
    http(&mut scenario).mode = Mode::Instant(InstantConfig::default());
    http(&mut scenario).connections = Some(64);
    scenario.phases[0].limits = Limits { requests: Some(4_000), ..Limits::default() };
    scenario.phases[0].load = Load::Burst(Some(64));
    let capacity = ran(&scenario).result.phases[0].successful_per_s.expect("a rate");

    scenario.phases[0].load = Load::Constant((10.0 * capacity).round());
    let result = ran(&scenario).result;
    let reached = result.phases[0].successful_per_s.expect("a rate");
    assert!(reached > 0.9 * capacity, "{reached} of {capacity}");
    assert_eq!(result.verdict.status, VerdictStatus::Invalid);
    let late = result.verdict.reasons.iter().find(|reason| reason.name == "lateness_p99_us");
    let late = late.expect("the reason");
    assert_eq!(late.status, VerdictStatus::Invalid);
    assert!(late.says.contains("the client, not the server"), "{}", late.says);
}

#[test]
fn r5_r6_rates_below_one_and_below_the_number_of_connections_are_exact() {
    for rate in [0.3, 0.5, 12.5] {
        let mut scenario = Scenario::steady(1, 1.0, Span::from_secs(1));
        scenario.phases[0].load = Load::Constant(rate);
        scenario.phases[0].limits = Limits { requests: Some(20), ..Limits::default() };
        let http = http(&mut scenario);
        (http.servers, http.warm, http.begin_warm) = (3, 64, true);
        let sends = issued(&ran(&scenario));
        assert_eq!(sends.len(), 20);
        for (k, one) in sends.iter().enumerate() {
            let since = (one.at - sends[0].at).as_nanos() as f64;
            assert!(
                (since - k as f64 * 1e9 / rate).abs() < 1.5,
                "{rate}: send {k} after {since} ns"
            );
        }
    }
}

#[test]
fn r7_a_session_shorter_than_a_second_reports_no_rate_of_a_few_requests() {
    let mut scenario = planned(Load::Constant(1_000.0), Span::from_millis(5));
    scenario.phases[0].limits = Limits { requests: Some(4), ..Limits::default() };
    let result = ran(&scenario).result;
    let phase = &result.phases[0];
    assert_eq!((phase.succeeded, phase.requests_per_s, phase.successful_per_s), (4, None, None));
    let steady = phase.steady.as_ref().and_then(|steady| steady.requests_per_s);
    assert_eq!(steady, None);
}
