//! When a run is to be trusted.

use takt_record::{
    ConversationsPlan, EndedBy, ErrorKind, Health, Outcome, PhaseState, Reason, Record, ResultDoc,
    Verdict, VerdictStatus, Work,
};
use takt_report::Limits;
use takt_time::Span;

use crate::run::{Run, at, closed, failed, fold, near, ok, open};

fn reason<'a>(verdict: &'a Verdict, name: &str) -> Option<&'a Reason> {
    verdict.reasons.iter().find(|reason| reason.name == name)
}

/// 1,000 requests at 100 a second, each sent `late_us` after its time.
fn open_loop(late_us: f64) -> Run {
    let mut run = Run::new(vec![open("p", 100.0)]);
    run.start(0, 0.0, 0);
    for i in 0..1_000u64 {
        let t = i as f64 * 10.0;
        let sent = t + late_us / 1e3;
        run.add(&ok(i, sent, sent + 5.0).scheduled(t));
    }
    run
}

fn finish(mut run: Run) -> ResultDoc {
    run.end(0, 11_000.0, EndedBy::Requests, PhaseState::Complete).result()
}

#[test]
fn a_punctual_run_is_valid() {
    let verdict = finish(open_loop(20.0)).verdict;
    assert_eq!(verdict, Verdict { status: VerdictStatus::Valid, reasons: vec![] });
}

#[test]
fn lateness_is_judged_against_a_tenth_of_the_mean_gap() {
    // The gap is 10 ms, so the limit is 1 ms.
    for (late_us, status) in [
        (990.0, None),
        (1_100.0, Some(VerdictStatus::Suspect)),
        (11_000.0, Some(VerdictStatus::Invalid)),
    ] {
        let verdict = finish(open_loop(late_us)).verdict;
        let found = reason(&verdict, "lateness_p99_us");
        assert_eq!(found.map(|r| r.status), status, "{late_us}");
        if let Some(found) = found {
            near(found.limit, 1_000.0);
            near(found.value, late_us);
        }
    }
}

#[test]
fn sends_that_take_longer_than_the_schedule_are_off_it() {
    let mut run = Run::new(vec![open("p", 100.0)]);
    run.start(0, 0.0, 0);
    for i in 0..1_000u64 {
        // The schedule takes 9.99 s, the sends 2 % more.
        let (scheduled, sent) = (i as f64 * 10.0, i as f64 * 10.2);
        run.add(&ok(i, sent, sent + 1.0).scheduled(scheduled));
    }
    let verdict = finish(run).verdict;
    let off = reason(&verdict, "off_schedule").unwrap();
    near(off.value, 0.02);
    assert_eq!((off.status, off.limit), (VerdictStatus::Suspect, 0.005));
}

#[test]
fn what_is_still_in_flight_does_not_put_the_sends_off_their_schedule() {
    let run = open_loop(20.0);
    let mut records = run.sorted();
    // Killed with the ends of the last hundred requests outstanding.
    records.retain(|r| !matches!(r, Record::Completed(done) if done.key.ordinal >= 900));
    let verdict = fold(&run.plan, records).result(&Limits::default()).verdict;
    let names: Vec<_> = verdict.reasons.iter().map(|reason| reason.name.as_str()).collect();
    assert_eq!(names, ["incomplete"]);
}

#[test]
fn a_schedule_that_was_not_finished_is_a_reason_unless_time_or_a_stop_ended_it() {
    for (by, expected) in [
        (EndedBy::MaxDuration, true),
        (EndedBy::Duration, false),
        (EndedBy::Stop, false),
        (EndedBy::Conversations, false),
        (EndedBy::FirstComplete, false),
        (EndedBy::Dataset, true),
        (EndedBy::Requests, true),
    ] {
        let mut run = open_loop(20.0);
        run.plan.phases[0].requests = Some(1_200);
        let result = run.end(0, 11_000.0, by, PhaseState::Capped).result();
        let found = reason(&result.verdict, "schedule_unfinished");
        assert_eq!(found.is_some(), expected, "{by}");
    }
}

/// Whoever says how many conversations, or none, has said how many requests there are at the most.
#[test]
fn a_schedule_is_finished_when_its_conversations_are() {
    for by in [EndedBy::Dataset, EndedBy::Conversations, EndedBy::FirstComplete] {
        let mut run = open_loop(20.0);
        run.plan.phases[0].requests = Some(1_200);
        run.plan.phases[0].conversations = Some(ConversationsPlan::default());
        let result = run.end(0, 11_000.0, by, PhaseState::Complete).result();
        assert_eq!(reason(&result.verdict, "schedule_unfinished"), None, "{by}");
    }
}

#[test]
fn too_few_survivors_are_a_reason() {
    for (fail_every, status) in
        [(1_000, None), (50, Some(VerdictStatus::Suspect)), (5, Some(VerdictStatus::Invalid))]
    {
        let mut run = Run::new(vec![closed("p", 1)]);
        run.start(0, 0.0, 0);
        for i in 0..1_000u64 {
            let t = i as f64 * 10.0;
            let request =
                if i % fail_every == 0 { failed(i, t, t + 5.0) } else { ok(i, t, t + 5.0) };
            run.add(&request);
        }
        let verdict = finish(run).verdict;
        assert_eq!(reason(&verdict, "survivors").map(|r| r.status), status, "{fail_every}");
    }
}

#[test]
fn requests_that_end_after_their_phase_are_missed() {
    // Of 20 requests one is still in flight when the phase ends: the slowest, and in no latency.
    let mut run = Run::new(vec![closed("p", 1)]);
    run.start(0, 0.0, 0);
    for i in 0..19u64 {
        let t = i as f64 * 10.0;
        run.add(&ok(i, t, t + 5.0));
    }
    run.add(&ok(19, 190.0, 12_000.0));
    let verdict = finish(run).verdict;
    let survivors = reason(&verdict, "survivors").unwrap();
    near(survivors.value, 0.95);
    assert_eq!(survivors.status, VerdictStatus::Suspect);
}

#[test]
fn a_phase_that_sent_nothing_is_not_valid() {
    let mut run = Run::new(vec![open("p", 1.0), open("not reached", 1.0)]);
    run.start(0, 0.0, 0);
    let verdict = finish(run).verdict;
    assert_eq!(verdict.status, VerdictStatus::Invalid);
    let phases: Vec<_> = verdict.reasons.iter().filter(|r| r.name == "nothing_sent").collect();
    assert_eq!(phases.len(), 1, "a phase that was not begun is no reason: {verdict:?}");
    assert_eq!(phases[0].phase.as_deref(), Some("p"));
}

#[test]
fn what_the_instrument_says_of_itself_counts() {
    let mut run = open_loop(20.0);
    let start = Health { at: at(0.0), runnable: Some(Span::ZERO), ..Health::default() };
    // Over 11 s: 2 % runnable and not running, three blocks spilled, one record lost, busy all the time.
    let end = Health {
        at: at(11_000.0),
        runnable: Some(Span::from_millis(220)),
        busy: Span::from_millis(10_900),
        spilled: 3,
        lost: 1,
        ..Health::default()
    };
    let verdict = finish({
        run.health(start).health(end);
        run
    })
    .verdict;
    near(reason(&verdict, "runnable").unwrap().value, 0.02);
    assert_eq!(reason(&verdict, "runnable").unwrap().status, VerdictStatus::Suspect);
    assert_eq!(reason(&verdict, "ring_spilled").unwrap().status, VerdictStatus::Suspect);
    assert_eq!(reason(&verdict, "records_lost").unwrap().status, VerdictStatus::Invalid);
    assert_eq!(reason(&verdict, "client_bound"), None, "an open loop has its own measure");
    assert_eq!(verdict.status, VerdictStatus::Invalid);
}

#[test]
fn a_busy_closed_loop_is_client_bound_and_still_valid() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.start(0, 0.0, 0).add(&ok(0, 0.0, 10_000.0));
    run.health(Health { at: at(0.0), ..Health::default() });
    run.health(Health { at: at(11_000.0), busy: Span::from_millis(10_450), ..Health::default() });
    let verdict = finish(run).verdict;
    let bound = reason(&verdict, "client_bound").unwrap();
    near(bound.value, 0.95);
    assert_eq!((bound.status, verdict.status), (VerdictStatus::Valid, VerdictStatus::Valid));
}

#[test]
fn a_busy_reactor_is_the_limit_of_conversations_unless_they_arrive() {
    // 100 answers that stood for 1.5 s each, where the mean latency is 10 s.
    let unread = Span::from_secs(150);
    let work = Work { sampled: 100, unread_reads: 100, unread, ..Work::default() };
    for (arrivals_per_s, bound) in [(None, true), (Some(2.0), false)] {
        let plan = ConversationsPlan { arrivals_per_s, ..ConversationsPlan::default() };
        let mut run = Run::new(vec![closed("p", 1)]);
        run.plan.phases[0].conversations = Some(plan);
        run.start(0, 0.0, 0).add(&ok(0, 0.0, 10_000.0));
        run.health(Health { at: at(0.0), work: Some(Work::default()), ..Health::default() });
        let (busy, work) = (Span::from_millis(10_450), Some(work));
        run.health(Health { at: at(11_000.0), busy, work, ..Health::default() });
        let verdict = finish(run).verdict;
        assert_eq!(reason(&verdict, "client_bound").is_some(), bound, "{arrivals_per_s:?}");
        let unread = reason(&verdict, "unread_us").expect("more than a tenth of the latency");
        assert_eq!(unread.status == VerdictStatus::Valid, bound, "{arrivals_per_s:?}");
    }
}

#[test]
fn what_the_reactor_could_not_do_in_time_is_a_reason() {
    let reading = |ms: f64, involuntary, work| Health {
        at: at(ms),
        involuntary: Some(involuntary),
        busy: Span::from_micros((ms * 100.0) as u64),
        work: Some(work),
        ..Health::default()
    };
    // Over 10 s: switched 150 times a second, 1,000 answers that stood for 1.5 ms each (of 5), 20 of a
    // thousand connections closed for what came behind, a message too many, a fold that takes 99 %.
    let work = Work {
        sampled: 500,
        unread_reads: 1_000,
        unread: Span::from_millis(1_500),
        leftover: 20,
        overflows: 1,
        fold: Some(Span::from_millis(9_900)),
        ..Work::default()
    };
    let quiet = Work { fold: Some(Span::ZERO), ..Work::default() };
    let mut run = open_loop(20.0);
    run.health(reading(0.0, 0, quiet)).health(reading(10_000.0, 1_500, work));
    let verdict = finish(run).verdict;
    for (name, value, limit) in [
        ("involuntary_per_s", 150.0, 100.0),
        ("unread_us", 1_500.0, 500.0),
        ("leftover", 0.02, 0.01),
        ("mailbox_overflows", 1.0, 1.0),
        ("fold_share", 0.99, 0.95),
    ] {
        let found = reason(&verdict, name).unwrap_or_else(|| panic!("{name} in {verdict:?}"));
        assert_eq!(found.status, VerdictStatus::Suspect, "{name}");
        near(found.value, value);
        near(found.limit, limit);
    }
    let mut run = open_loop(20.0);
    run.health(reading(0.0, 0, quiet)).health(reading(10_000.0, 100, quiet));
    assert_eq!(finish(run).verdict.reasons, []);
}

#[test]
fn connections_that_a_server_lets_be_used_once_are_a_remark_with_their_number() {
    let judged = |from, to| {
        let mut run = open_loop(20.0);
        for (ms, used_once) in [(0.0, from), (10_000.0, to)] {
            let work = Some(Work { used_once, fold: Some(Span::ZERO), ..Work::default() });
            run.health(Health { at: at(ms), work, ..Health::default() });
        }
        finish(run).verdict
    };
    let verdict = judged(Some(7), Some(997));
    let found = reason(&verdict, "used_once").expect("990 in this phase");
    assert_eq!((found.status, found.value), (VerdictStatus::Valid, 990.0));
    assert!(found.says.contains("990 connections at least were used once"), "{}", found.says);
    // None, and a journal of an earlier version.
    for (from, to) in [(Some(7), Some(7)), (None, None)] {
        assert_eq!(judged(from, to).reasons, []);
    }
}

#[test]
fn answers_that_wait_for_a_client_that_is_the_limit_are_a_remark() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.start(0, 0.0, 0).add(&ok(0, 0.0, 10_000.0));
    let reading =
        |ms: f64, busy, work| Health { at: at(ms), busy, work: Some(work), ..Health::default() };
    let work = Work { unread_reads: 20, unread: Span::from_secs(100), ..Work::default() };
    run.health(reading(0.0, Span::ZERO, Work::default()));
    run.health(reading(11_000.0, Span::from_millis(10_900), work));
    let verdict = finish(run).verdict;
    let found = reason(&verdict, "unread_us").unwrap();
    assert_eq!((found.status, verdict.status), (VerdictStatus::Valid, VerdictStatus::Valid));
}

#[test]
fn a_machine_without_descriptors_or_ports_is_a_reason() {
    let mut run = open_loop(20.0);
    let mut refused = failed(1_000, 10_000.0, 10_000.0).scheduled(10_000.0);
    let Outcome::Failed(failure) = &mut refused.done.outcome else { panic!("it failed") };
    failure.kind = ErrorKind::LocalLimit;
    run.add(&refused);
    let verdict = finish(run).verdict;
    assert_eq!(reason(&verdict, "local_limit").map(|r| r.status), Some(VerdictStatus::Suspect));
}

#[test]
fn limits_are_settable() {
    let mut run = open_loop(20.0);
    let strict =
        Limits { lateness: Span::from_micros(1), lateness_gap_share: 1e-6, ..Limits::default() };
    let result =
        run.end(0, 11_000.0, EndedBy::Requests, PhaseState::Complete).fold().result(&strict);
    assert_eq!(reason(&result.verdict, "lateness_p99_us").map(|r| r.limit), Some(1.0));
}
