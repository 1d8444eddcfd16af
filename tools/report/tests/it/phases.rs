//! What belongs to which phase, and what adds up.

use takt_record::{
    Completed, EndedBy, FailedBy, Health, Outcome, PhaseKind, PhasePlan, PhaseState, Record,
    ResultDoc, RunState, SessionEvent, Steady,
};
use takt_report::{Limits, Live, RunFold};
use takt_time::Span;

use crate::run::{Request, Run, at, closed, failed, fold, near, ok, open, warmup};

/// Issued in phase 0 of 0 to 100 ms, ended at 150 ms while phase 1 runs from 100 to 400 ms.
fn with_a_late_one() -> Run {
    let mut run = Run::new(vec![warmup("warm"), closed("perf", 1)]);
    run.start(0, 0.0, 0).end(0, 100.0, EndedBy::Requests, PhaseState::Complete);
    run.start(1, 100.0, 1).end(1, 400.0, EndedBy::Requests, PhaseState::Complete);
    run.add(&ok(0, 0.0, 50.0)).add(&ok(1, 50.0, 150.0));
    run.add(&ok(0, 150.0, 250.0).of_phase(1)).add(&ok(1, 250.0, 350.0).of_phase(1));
    run
}

#[test]
fn a_late_completion_counts_under_its_own_phase_and_nowhere_else() {
    let result = with_a_late_one().result();
    let [warm, perf] = &result.phases[..] else { panic!("two phases") };
    assert_eq!((warm.issued, warm.succeeded, warm.late), (2, 1, 1));
    assert_eq!((perf.issued, perf.succeeded, perf.late, perf.inherited), (2, 2, 0, 1));
    assert_eq!(perf.latency_ms.from_send.unwrap().count, 2);
}

#[test]
fn a_late_completion_of_a_performance_phase_enters_no_series() {
    let mut run = Run::new(vec![closed("a", 2), closed("b", 1)]);
    run.phase(0, 0.0, 100.0).phase(1, 100.0, 300.0);
    run.add(&ok(0, 0.0, 80.0).streamed(&[(20.0, None), (80.0, None)], 2));
    // Ends late, once well and once badly; its tokens came on both sides of the end.
    run.add(&ok(1, 0.0, 200.0).streamed(&[(90.0, None), (200.0, None)], 2));
    run.add(&failed(2, 0.0, 210.0));
    let result = run.result();
    let a = &result.phases[0];
    assert_eq!((a.issued, a.succeeded, a.failed, a.late), (3, 1, 0, 2));
    assert!(a.errors.is_empty() && a.error_samples.is_empty());
    assert_eq!(a.latency_ms.from_send.unwrap().count, 1);
    assert_eq!(a.ttft_ms.from_send.unwrap().count, 1);
    assert_eq!(a.event_gap_ms.unwrap().count, 1);
    assert_eq!(a.series.as_ref().unwrap().succeeded.iter().sum::<u64>(), 1);
    assert_eq!(result.phases[1].issued, 0);
}

#[test]
fn warm_up_and_accuracy_have_counts_and_errors_only() {
    for kind in [PhaseKind::Warmup, PhaseKind::Accuracy] {
        let first = PhasePlan { kind, ..closed("first", 1) };
        let mut run = Run::new(vec![first, closed("perf", 1)]);
        run.phase(0, 0.0, 100.0).phase(1, 100.0, 200.0);
        run.add(&ok(0, 0.0, 90.0).streamed(&[(50.0, None), (90.0, None)], 2));
        run.add(&failed(1, 0.0, 1.0)).add(&ok(0, 100.0, 200.0).of_phase(1));
        let result = run.result();
        let first = &result.phases[0];
        assert_eq!((first.kind, first.issued, first.failed), (kind, 2, 1));
        assert_eq!((first.errors.len(), first.error_samples.len()), (1, 1));
        let window = (first.duration_s, first.issue_window_s, first.steady, first.successful_per_s);
        assert_eq!(window, (None, None, None, None));
        let series = (first.latency_ms.from_send, first.tokens.clone(), first.series.clone());
        assert_eq!(series, (None, None, None));
        assert_eq!(result.phases[1].latency_ms.from_send.unwrap().count, 1);
        assert_eq!(result.phases[1].errors.len(), 0);
    }
}

#[test]
fn the_unanswered_are_neither_successes_nor_failures() {
    let mut run = Run::new(vec![closed("p", 2)]);
    let mut lost = ok(1, 0.0, 300.0);
    lost.done.outcome = Outcome::Unanswered;
    let phase = run.phase(0, 0.0, 300.0).add(&ok(0, 0.0, 100.0)).add(&lost).only_phase();
    assert_eq!((phase.issued, phase.completed, phase.unanswered), (2, 1, 1));
    assert_eq!(phase.latency_ms.from_send.unwrap().count, 1);
    assert_eq!(phase.queue_ms.unwrap().count, 2);
}

#[test]
fn in_flight_is_weighted_by_time_and_steady_begins_at_the_target() {
    let mut run = Run::new(vec![closed("p", 2)]);
    // In flight: 0 until 1 s, 1 until 2 s, 2 until 6 s (one leaves at 4 s and is replaced), then the end.
    run.start(0, 0.0, 0).end(0, 6_000.0, EndedBy::Requests, PhaseState::Complete);
    run.add(&ok(0, 1_000.0, 4_000.0)).add(&ok(1, 2_000.0, 6_000.0)).add(&ok(2, 4_000.0, 6_000.0));
    let phase = run.only_phase();
    let in_flight = phase.in_flight.unwrap();
    // (0 * 1 + 1 * 1 + 2 * 4) / 6
    near(in_flight.mean, 1.5);
    assert_eq!((in_flight.min, in_flight.max, in_flight.p.p50), (0.0, 2.0, 2.0));
    let steady = phase.steady.unwrap();
    assert_eq!((steady.start_s, steady.end_s), (2.0, 4.0));
    // One success for two places: far from ten times each.
    assert_eq!((steady.requests_per_s, steady.output_tokens_per_s), (None, None));
    assert_eq!(phase.series.unwrap().in_flight, [0.0, 1.0, 2.0, 2.0, 2.0, 2.0, 0.0]);
}

#[test]
fn the_steady_rate_of_a_closed_loop_is_given_once_waves_no_longer_bend_it() {
    // Two places, waves of 100 ms: the last issue is that of wave `waves`, which finds 2 * waves done.
    let steady = |waves: u64| {
        let mut run = Run::new(vec![closed("p", 2)]);
        run.phase(0, 0.0, 100.0 * (waves + 1) as f64);
        for n in 0..2 * (waves + 1) {
            let from = 100.0 * (n / 2) as f64;
            run.add(&ok(n, from, from + 100.0));
        }
        run.only_phase().steady.unwrap().requests_per_s
    };
    assert_eq!(steady(9), None);
    let rate = steady(11).unwrap();
    // 20 a second, give or take a wave of two in 1.1 s.
    assert!((18.0..=22.0).contains(&rate), "{rate}");
}

#[test]
fn a_closed_loop_that_never_fills_has_no_steady_state() {
    let mut run = Run::new(vec![closed("p", 64)]);
    assert_eq!(run.phase(0, 0.0, 50.0).add(&ok(0, 0.0, 50.0)).only_phase().steady, None);
}

#[test]
fn a_stamp_before_its_cause_is_an_anomaly_and_no_zero() {
    let mut run = Run::new(vec![open("p", 10.0)]);
    // Sent 1 ms before its time.
    let result = run.phase(0, 0.0, 50.0).add(&ok(0, 9.0, 50.0).scheduled(10.0)).result();
    let phase = &result.phases[0];
    assert_eq!(phase.lateness_us, None);
    assert!(result.verdict.reasons.iter().any(|r| r.name == "anomalies" && r.value == 2.0));
    // The request was scheduled and issued at 10: both lateness and queueing come out negative.
    assert_eq!((phase.queue_ms, phase.latency_ms.from_send.unwrap().count), (None, 1));
}

#[test]
fn a_run_without_its_end_is_killed_and_still_has_figures() {
    let mut run = Run::new(vec![closed("p", 1), closed("never", 1)]);
    run.start(0, 0.0, 0).add(&ok(0, 0.0, 40.0)).add(&ok(1, 40.0, 2_000.0));
    let result = run.fold().result(&Limits::default());
    assert_eq!((result.state, result.complete), (RunState::Killed, false));
    let [p, never] = &result.phases[..] else { panic!("two phases") };
    assert_eq!((p.state, p.succeeded, p.duration_s), (None, 2, Some(2.0)));
    assert_eq!((never.start_time_ns, never.issued, never.duration_s), (None, 0, None));
}

#[test]
fn an_interrupted_run_says_so() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.start(0, 0.0, 0).add(&ok(0, 0.0, 40.0));
    run.session(45.0, SessionEvent::Interrupted);
    let result = run.end(0, 50.0, EndedBy::Stop, PhaseState::Interrupted).result();
    assert_eq!((result.state, result.complete), (RunState::Interrupted, false));
    assert_eq!(result.verdict.reasons[0].name, "incomplete");
}

/// Nine answered, and one given up when the run was cut short.
fn cut_short(event: SessionEvent, state: PhaseState) -> ResultDoc {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.start(0, 0.0, 0);
    for n in 0..9 {
        run.add(&ok(n, 40.0 * n as f64, 40.0 * (n + 1) as f64));
    }
    let mut lost = ok(9, 360.0, 400.0);
    lost.done.outcome = Outcome::Unanswered;
    run.add(&lost).session(380.0, event);
    run.end(0, 400.0, EndedBy::Stop, state).result()
}

#[test]
fn what_this_side_gave_up_is_no_casualty_of_the_server() {
    let failed = |by| cut_short(SessionEvent::Failed(by), PhaseState::Failed);
    for (result, casualty) in [
        (cut_short(SessionEvent::Interrupted, PhaseState::Interrupted), false),
        (failed(FailedBy::RunTimeout), false),
        (failed(FailedBy::Pacer), false),
        (failed(FailedBy::EndpointIdle), true),
    ] {
        let phase = &result.phases[0];
        assert_eq!((phase.issued, phase.succeeded, phase.unanswered), (10, 9, 1));
        let reasons = &result.verdict.reasons;
        assert_eq!(reasons.iter().any(|r| r.name == "survivors"), casualty, "{reasons:?}");
    }
}

#[test]
fn a_failed_run_says_what_failed_it() {
    for &by in FailedBy::ALL {
        let words = match by {
            FailedBy::Transport => "connections gave up",
            FailedBy::EndpointIdle => "nothing came from the endpoint",
            FailedBy::RunTimeout => "limits.run_timeout",
            FailedBy::Internal => "fault of takt",
            FailedBy::Pacer => "its pacer",
        };
        let result = cut_short(SessionEvent::Failed(by), PhaseState::Failed);
        assert_eq!((result.state, result.failed_by), (RunState::Failed, Some(by)));
        let reason = &result.verdict.reasons[0];
        assert!(reason.name == "incomplete" && reason.says.contains(words), "{}", reason.says);
    }
}

#[test]
fn what_is_known_of_an_end_stays_known_when_other_records_are_lost() {
    let state = |event: Option<SessionEvent>| {
        let mut run = Run::new(vec![closed("p", 2)]);
        for event in event.into_iter().chain([SessionEvent::Ended]) {
            run.session(50.0, event);
        }
        let mut fold = run.fold();
        fold.leave_out(0);
        fold.result(&Limits::default()).state
    };
    assert_eq!(state(Some(SessionEvent::Failed(FailedBy::Pacer))), RunState::Failed);
    assert_eq!(state(Some(SessionEvent::Interrupted)), RunState::Interrupted);
    assert_eq!(state(None), RunState::Killed, "others may not have ended so");
}

#[test]
fn what_is_in_flight_when_a_session_breaks_off_is_unanswered() {
    let mut run = Run::new(vec![closed("p", 2)]);
    run.start(0, 0.0, 0).add(&ok(0, 0.0, 40.0));
    // Its end is never written: a fault took the reactor down.
    run.add(&ok(1, 10.0, 1_000.0));
    run.records.pop();
    let by = FailedBy::Internal;
    let phase = run.session(50.0, SessionEvent::Failed(by)).only_phase();
    assert_eq!((phase.issued, phase.succeeded, phase.unanswered, phase.late), (2, 1, 1, 0));
}

/// An open loop of 100 a second for ten seconds whose answers take `ms`.
fn steady_at_100(ms: f64) -> Option<Steady> {
    let mut run = Run::new(vec![open("p", 100.0)]);
    run.phase(0, 0.0, 10_000.0 + ms);
    for n in 0..1_000 {
        let from = 10.0 * n as f64;
        run.add(&ok(n, from, from + ms).scheduled(from));
    }
    run.only_phase().steady
}

#[test]
fn the_steady_state_of_an_open_loop_begins_when_answers_come_as_often_as_requests() {
    for ms in [5.0, 205.0, 1_995.0] {
        let steady = steady_at_100(ms).unwrap();
        let rate = steady.requests_per_s.unwrap();
        // To within the arrival at either end; the whole phase has 1,000 in 12 s at the slowest.
        let window = steady.end_s - steady.start_s;
        assert!((rate - 100.0).abs() <= 1.0 / window + 1e-9, "{ms}: {rate} over {window}");
        assert_eq!(steady.end_s, 9.99);
        // Four latencies: three times as many have ended as are in flight.
        assert!(steady.start_s <= 4.0 * ms / 1e3 + 0.05, "{ms}: from {}", steady.start_s);
    }
}

#[test]
fn an_endpoint_that_does_not_keep_up_and_a_ramp_have_no_steady_state() {
    assert_eq!(steady_at_100(9_000.0), None);
    let ramp = PhasePlan { pattern: "ramp".to_owned(), ..open("p", 100.0) };
    let mut run = Run::new(vec![ramp]);
    run.phase(0, 0.0, 1_000.0);
    for n in 0..50 {
        run.add(&ok(n, 10.0 * n as f64, 10.0 * n as f64 + 1.0));
    }
    assert_eq!(run.only_phase().steady, None);
}

/// A mixed run over two phases, with streams, failures and late ones.
fn mixed() -> Run {
    let mut run = Run::new(vec![open("a", 100.0), closed("b", 4)]);
    run.phase(0, 0.0, 2_100.0).phase(1, 2_100.0, 5_000.0);
    for i in 0..200u64 {
        let t = i as f64 * 10.0;
        let stream = [(t + 3.0, None), (t + 7.0 + (i % 5) as f64, None), (t + 30.0, None)];
        let request = match i % 7 {
            0 => failed(i, t + 0.01, t + 2.0),
            _ => ok(i, t + 0.02, t + 31.0 + (i % 11) as f64).streamed(&stream, 3),
        };
        run.add(&request.scheduled(t));
        run.add(&ok(i, 2_100.0 + t, 2_150.0 + 1.2 * t).of_phase(1));
    }
    let read =
        |ms: f64, busy| Health { at: at(ms), busy: Span::from_millis(busy), ..Health::default() };
    run.health(read(0.0, 0)).health(read(2_100.0, 100)).health(read(5_000.0, 400));
    run
}

fn key_of(record: &Record<'_>) -> Option<u64> {
    match record {
        Record::Issued(r) => Some(r.key.ordinal),
        Record::Token(r) => Some(r.key.ordinal),
        Record::Completed(Completed { key, .. }) | Record::Error { key, .. } => Some(key.ordinal),
        _ => None,
    }
}

#[test]
fn folds_of_parts_merge_to_the_fold_of_the_whole() {
    let mut run = mixed();
    let whole = run.result();
    let part = |keep: fn(u64) -> bool| -> RunFold {
        fold(&run.plan, run.sorted().into_iter().filter(|r| key_of(r).is_none_or(keep)))
    };
    let mut merged = part(|ordinal| ordinal.is_multiple_of(3));
    merged.merge(&part(|ordinal| !ordinal.is_multiple_of(3)));
    let mut merged = merged.result(&Limits::default());
    // What does not add up is given up, and said to be.
    for (mine, theirs) in merged.phases.iter_mut().zip(&whole.phases) {
        assert_eq!((mine.steady, mine.in_flight), (None, None));
        (mine.steady, mine.in_flight) = (theirs.steady, theirs.in_flight);
        if let (Some(mine), Some(theirs)) = (&mut mine.series, &theirs.series) {
            for (mine, theirs) in mine.in_flight.iter().zip(&theirs.in_flight) {
                assert!((mine - theirs).abs() < 1e-9);
            }
            mine.in_flight.clone_from(&theirs.in_flight);
        }
    }
    assert_eq!(merged, whole);
}

#[test]
fn live_views_of_parts_are_together_that_of_the_whole() {
    let run = mixed();
    // In the middle of the first phase, whose requests have a schedule, and in the second, whose have none.
    for now in [1_500.0, 4_000.0] {
        let live = |keep: fn(u64) -> bool| {
            let records = run.sorted().into_iter().filter(|r| r.at() <= at(now));
            let mut fold = fold(&run.plan, records.filter(|r| key_of(r).is_none_or(keep)));
            fold.live(at(now)).unwrap()
        };
        let whole = live(|_| true);
        let both = live(|ordinal| ordinal.is_multiple_of(3))
            .with(live(|ordinal| !ordinal.is_multiple_of(3)));
        assert!(whole.latencies.p50_p99().is_some());
        assert_eq!(both.latencies.p50_p99(), whole.latencies.p50_p99());
        let counts = |live: &Live| {
            (
                (
                    live.place,
                    live.issued,
                    live.completed,
                    live.failed,
                    live.in_flight,
                    live.elapsed,
                ),
                (live.unanswered, live.over, live.draining),
            )
        };
        assert_eq!(counts(&both), counts(&whole));
    }
}

#[test]
fn a_fold_merges_with_one_that_saw_nothing_of_a_phase() {
    let mut run = mixed();
    let whole = run.result();
    let mut empty = RunFold::new(run.plan.clone());
    empty.merge(&run.fold());
    assert_eq!(empty.result(&Limits::default()), whole);
}

#[test]
fn a_live_view_shows_the_running_phase() {
    let mut run = Run::new(vec![warmup("warm"), open("perf", 10.0)]);
    run.phase(0, 0.0, 10.0).start(1, 1_000.0, 0);
    for i in 0..40u64 {
        let t = 1_000.0 + 100.0 * i as f64;
        run.add(&ok(i, t, t + 50.0).of_phase(1).scheduled(t));
    }
    let mut fold = RunFold::new(run.plan.clone());
    assert!(fold.live(at(0.0)).is_none());
    let mut seen: Option<Live> = None;
    for record in run.sorted() {
        takt_record::Fold::fold(&mut fold, &record);
        if record.at() >= at(1_000.0) && matches!(record, Record::Completed(_)) {
            seen = fold.live(record.at());
        }
    }
    let live = seen.unwrap();
    assert_eq!((live.phase.as_str(), live.issued, live.completed), ("perf", 40, 40));
    assert_eq!((live.failed, live.in_flight, live.over), (0, 0, false));
    assert_eq!(live.elapsed, Span::from_millis(3_950));
    // Eight looks back are 0.8 s and 8 completions: too few for a rate. Ten a second needs a second.
    assert_eq!(live.rate_per_s, None);
    near(live.latencies.p50_p99().unwrap().0.as_millis_f64(), 50.0);
}

#[test]
fn a_slow_answer_within_the_objective_is_goodput_and_one_beyond_is_not() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.plan.config["slo"] = serde_json::json!({"ttft_ms": {"p50": 20, "p99": 50}});
    let answer = |i: u64, first: f64| -> Request {
        let t = i as f64 * 500.0;
        ok(i, t, t + 400.0).streamed(&[(t + first, None), (t + 400.0, None)], 2)
    };
    run.phase(0, 0.0, 2_000.0);
    for (i, first) in [10.0, 50.0, 51.0, 300.0].into_iter().enumerate() {
        run.add(&answer(i as u64, first));
    }
    let goodput = run.only_phase().goodput.unwrap();
    assert_eq!((goodput.share, goodput.requests_per_s), (Some(0.5), Some(1.0)));
    // Of four, the second is the median and the last is the 99th percentile.
    let [p50, p99] = &goodput.gates[..] else { panic!("{goodput:?}") };
    assert_eq!((p50.percentile.as_str(), p50.limit, p50.met), ("50", 20.0, false));
    assert_eq!((p99.percentile.as_str(), p99.limit, p99.met), ("99", 50.0, false));
    near(p50.value.unwrap() / 50.0, 1.0);
    near(p99.value.unwrap() / 300.0, 1.0);
}

#[test]
fn a_percentile_that_is_kept_is_met_and_one_that_nobody_has_is_not() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.plan.config["slo"] = serde_json::json!({"latency_ms": {"p99": 401}, "tpot_ms": {"p90": 9}});
    run.phase(0, 0.0, 2_000.0);
    run.add(&ok(0, 0.0, 400.0));
    let gates = run.only_phase().goodput.unwrap().gates;
    let met: Vec<_> = gates.iter().map(|gate| (gate.metric.as_str(), gate.met)).collect();
    assert_eq!(met, [("tpot_ms", false), ("latency_ms", true)]);
    assert!(gates[0].value.is_none() && gates[1].value.is_some());
}
