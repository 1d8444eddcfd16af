use takt_record::{
    Completed, Fold as _, JoinClocks, Outcome, PhaseId, PhaseKind, PhasePlan, Record, RequestKey,
    SessionPlan, Times, TokenCounts, WindowEvent, WindowRecord,
};
use takt_time::{Anchor, Nanos, Span};

use super::*;
use crate::testing::facts;

const MS: u64 = 1_000_000;

/// The client's wall clock is this far ahead of its monotonic one.
const OFFSET: u64 = 1_795_000_000_000_000_000;

fn plan() -> SessionPlan {
    let phase = |name: &str, kind| PhasePlan {
        name: name.into(),
        kind,
        pattern: "concurrency".into(),
        rate: None,
        ramp: None,
        target_concurrency: Some(1),
        requests: None,
        stream: true,
        conversations: None,
    };
    let phases =
        vec![phase("warmup", PhaseKind::Warmup), phase("performance", PhaseKind::Performance)];
    SessionPlan { phases, ..SessionPlan::default() }
}

/// A request sent at a millisecond, its first token so much later, four more at 10 ms each.
fn request(phase: u16, ordinal: u64, sent_ms: u64, ttft_ms: u64) -> Record<'static> {
    let at = |ms: u64| Nanos::from_nanos(ms * MS);
    let first = sent_ms + ttft_ms;
    Record::Completed(Completed {
        key: RequestKey { phase: PhaseId(phase), ordinal },
        sample: 0,
        outcome: Outcome::Ok,
        times: Times {
            issued: at(sent_ms),
            sent: Some(at(sent_ms)),
            first_token: Some(at(first)),
            last_token: Some(at(first + 40)),
            end: at(first + 41),
            ..Times::default()
        },
        tokens: TokenCounts { output: Some(5), first_event: Some(1), ..TokenCounts::default() },
        finish: None,
        status: Some(200),
        attempts: 1,
        reused: false,
        body_bytes: 0,
        endpoint: 0,
        turn: None,
    })
}

fn client(requests: &[Record<'_>]) -> ClientFold {
    let mut fold = ClientFold::new(&plan(), Span::from_millis(100), 2);
    fold.fold(&Record::Clock(Anchor { mono: Nanos::from_nanos(5 * MS), wall_ns: OFFSET + 5 * MS }));
    requests.iter().for_each(|record| fold.fold(record));
    fold
}

/// A step of a millisecond's start and length on a server whose clocks are these far apart.
fn step(start_ms: u64, len_ms: u64, prefill: u64, decode: u64, mono_from_client: u64) -> StepFacts {
    let mut step = facts(start_ms, 0, 0, prefill, decode);
    step.submit_wall_ns = OFFSET + start_ms * MS;
    step.submit_mono_ns = start_ms * MS + mono_from_client;
    step.complete_mono_ns = step.submit_mono_ns + len_ms * MS;
    step.waiting = decode / 2;
    step
}

#[test]
fn client_latency_stands_beside_what_the_server_did() {
    let fold = client(&[request(0, 0, 1, 900), request(1, 0, 100, 20), request(1, 1, 210, 60)]);
    let steps = [
        step(0, 50, 0, 99, 0),
        step(100, 50, 400, 2, 0),
        step(150, 25, 0, 4, 0),
        step(200, 100, 800, 10, 0),
        step(9_000, 10, 1, 1, 0),
    ];
    let joined = join(&fold, &steps).unwrap();
    assert_eq!((joined.clocks, joined.steps, joined.recorded), (JoinClocks::Same, 3, 5));
    // 100 to 311 ms: the warm-up's request makes no slice.
    assert_eq!(joined.slices.len(), 3);
    let first = &joined.slices[0];
    assert_eq!((first.answers, first.server.steps, first.server.prefill_tokens), (1, 2, 400));
    assert!((first.server.busy - 0.75).abs() < 1e-9);
    // 2 for 50 ms and 4 for 25.
    assert!((first.server.decode_batch - 200.0 / 75.0).abs() < 1e-9);
    assert!((first.server.prefill_share - 50.0 / 75.0).abs() < 1e-9);
    let slow = &joined.slowest_ttft[0];
    assert_eq!((slow.ordinal, slow.value_ms), (1, 60.0));
    assert_eq!((slow.during.steps, slow.during.waiting_max), (1, 5));
    assert!((slow.sent_s - 0.110).abs() < 1e-9);
    assert_eq!(joined.slowest_tpot[0].value_ms, 10.0);
    let text = takt_report::render_joined(&joined);
    assert!(
        text.contains("3 of 5 steps lie within the run; joined by the monotonic clock"),
        "{text}"
    );
    assert!(text.contains("slowest to the first token"), "{text}");
}

#[test]
fn what_overlaps_a_window_is_an_answer_without_a_latency() {
    let window =
        |ms: u64, event| Record::Window(WindowRecord { at: Nanos::from_nanos(ms * MS), event });
    let fold = client(&[
        request(1, 0, 100, 20),
        window(205, WindowEvent::Opened),
        request(1, 1, 110, 90),
        window(255, WindowEvent::Closed),
        request(1, 2, 256, 30),
    ]);
    let joined = join(&fold, &[step(100, 50, 400, 2, 0)]).unwrap();
    let slowest: Vec<u64> = joined.slowest_ttft.iter().map(|slow| slow.ordinal).collect();
    assert_eq!(slowest, [2, 0]);
    let rows: Vec<_> = joined.slices.iter().map(|row| (row.answers, row.profiled)).collect();
    assert_eq!(rows, [(1, 0.0), (1, 0.5), (1, 0.0)]);
    assert_eq!(joined.slices[1].tpot_p50_ms, None);
}

#[test]
fn two_machines_are_joined_by_their_wall_clocks() {
    let fold = client(&[request(1, 0, 100, 20)]);
    let joined = join(&fold, &[step(100, 50, 400, 2, 77_000_000 * MS)]).unwrap();
    assert_eq!((joined.clocks, joined.slices[0].server.steps), (JoinClocks::Wall, 1));
}

#[test]
fn what_cannot_be_joined_is_said() {
    let fold = client(&[request(1, 0, 100, 20)]);
    let error = join(&fold, &[step(5_000, 10, 1, 1, 0)]).unwrap_err();
    assert!(
        error.to_string().starts_with("no step record lies within the time of the run"),
        "{error}"
    );
    assert_eq!(join(&client(&[request(0, 0, 1, 1)]), &[]), Err(JoinError::NoRequests));
    let mut silent = ClientFold::new(&plan(), Span::from_millis(100), 2);
    silent.fold(&request(1, 0, 1, 1));
    assert_eq!(join(&silent, &[]), Err(JoinError::NoClock));
}

#[test]
fn only_the_slowest_are_kept_slowest_first() {
    let requests: Vec<Record<'_>> =
        (0..50).map(|n| request(1, n, n * 10, 1 + n * 7 % 50)).collect();
    let fold = client(&requests);
    let kept: Vec<u64> = fold.slowest_ttft().iter().map(|r| r.value_ns / MS).collect();
    assert_eq!(kept, [50, 49]);
}
