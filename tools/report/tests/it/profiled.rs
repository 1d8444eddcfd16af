//! Requests that overlap a profiler window: counted, and in no distribution.

use takt_record::{EndedBy, PhaseState, Record, VerdictStatus, WindowEvent, WindowRecord};
use takt_report::{Limits, RunFold};

use crate::run::{Run, at, closed, failed, fold, near, ok, open};

fn window(run: &mut Run, from: f64, to: Option<f64>) {
    let mut push = |ms, event| {
        run.records.push(Record::Window(WindowRecord { at: at(ms), event }));
    };
    push(from, WindowEvent::Opened);
    if let Some(to) = to {
        push(to, WindowEvent::Closed);
    }
}

/// A phase of two seconds; a request of 50 ms begins each 100 ms, and takes twice as long in the window.
fn with_a_window(from: f64, to: Option<f64>) -> Run {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.phase(0, 0.0, 2_000.0);
    window(&mut run, from, to);
    for n in 0..20 {
        let sent = 100.0 * n as f64;
        let slow = sent + 50.0 > from && to.is_none_or(|to| sent < to);
        let end = sent + if slow { 99.0 } else { 50.0 };
        run.add(&ok(n, sent, end).streamed(&[(sent + 10.0, None), (end, None)], 2));
    }
    run
}

#[test]
fn what_overlaps_a_window_is_counted_and_in_no_series() {
    let mut run = with_a_window(320.0, Some(520.0));
    run.add(&failed(20, 330.0, 340.0));
    let phase = run.only_phase();
    // Sent at 300, 400 and 500, and one that failed.
    assert_eq!((phase.issued, phase.succeeded, phase.failed, phase.profiled), (21, 20, 1, 4));
    let latency = phase.latency_ms.from_send.unwrap();
    assert_eq!(latency.count, 17);
    near(latency.max, 50.0);
    for distribution in [phase.ttft_ms.from_send, phase.tpot_ms, phase.event_gap_ms, phase.queue_ms]
    {
        assert_eq!(distribution.unwrap().count, 17);
    }
    assert_eq!(phase.tokens.as_ref().unwrap().output_total, Some(34));
    // Two of the twenty ended in the window, which took a tenth of the time.
    near(phase.successful_per_s.unwrap(), 18.0 / 1.8);
    near(phase.output_tokens_per_s.unwrap(), 36.0 / 1.8);
    assert_eq!((phase.steady, phase.requests_per_s), (None, None));
    let series = phase.series.unwrap();
    assert_eq!((&series.succeeded[..2], &series.failed[..2]), (&[10, 10][..], &[1, 0][..]));
    near(series.latency_p99_ms[0].unwrap().round(), 50.0);
}

#[test]
fn in_flight_leaves_the_time_of_windows_out() {
    let mut run = Run::new(vec![open("p", 10.0)]);
    run.phase(0, 0.0, 1_000.0);
    window(&mut run, 100.0, Some(900.0));
    run.add(&ok(0, 100.0, 900.0).scheduled(100.0));
    let in_flight = run.only_phase().in_flight.unwrap();
    assert_eq!((in_flight.max, in_flight.mean), (0.0, 0.0));
}

#[test]
fn the_verdict_says_what_was_left_out_and_that_nothing_is_left() {
    for (to, left, status) in
        [(Some(520.0), 17, VerdictStatus::Valid), (None, 0, VerdictStatus::Invalid)]
    {
        let from = if to.is_none() { 0.0 } else { 320.0 };
        let result = with_a_window(from, to).result();
        let reason =
            result.verdict.reasons.iter().find(|reason| reason.name == "profiled").unwrap();
        assert_eq!((reason.value, reason.status), (f64::from(20 - left), status));
        let latency = result.phases[0].latency_ms.from_send;
        assert_eq!(latency.map_or(0, |latency| latency.count), u64::from(left as u32));
    }
}

#[test]
fn a_window_of_one_phase_that_outlasts_it_counts_in_the_next() {
    let mut run = Run::new(vec![closed("a", 1), closed("b", 1)]);
    run.start(0, 0.0, 0).end(0, 100.0, EndedBy::Requests, PhaseState::Complete);
    run.start(1, 100.0, 0).end(1, 400.0, EndedBy::Requests, PhaseState::Complete);
    window(&mut run, 60.0, Some(150.0));
    run.add(&ok(0, 10.0, 50.0)).add(&ok(1, 50.0, 90.0));
    run.add(&ok(0, 100.0, 200.0).of_phase(1)).add(&ok(1, 200.0, 300.0).of_phase(1));
    let result = run.result();
    let profiled: Vec<_> = result.phases.iter().map(|phase| phase.profiled).collect();
    assert_eq!(profiled, [1, 1]);
}

#[test]
fn folding_live_and_from_records_read_again_is_the_same() {
    let run = with_a_window(320.0, Some(520.0));
    let records = run.sorted();
    let mut live = RunFold::new(run.plan.clone());
    for (place, record) in records.iter().enumerate() {
        takt_record::Fold::fold(&mut live, record);
        // A look in between changes nothing.
        if place % 3 == 0 {
            let _ = live.result(&Limits::default());
        }
    }
    let limits = Limits::default();
    assert_eq!(live.result(&limits), fold(&run.plan, records).result(&limits));
}
