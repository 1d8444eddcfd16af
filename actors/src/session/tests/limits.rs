//! The idle watchdog and the session's own time.

use super::*;

fn watched(phases: Vec<PhaseConfig>, idle_ms: u64) -> SessionConfig {
    SessionConfig { idle_timeout: Some(Span::from_millis(idle_ms)), ..config(phases) }
}

/// Answers the first `n` requests of each phase after `ms`.
fn first(n: u64, ms: u64) -> impl FnMut(&Request) -> Plan {
    move |request| {
        if request.key.ordinal < n { Plan::Answer(Span::from_millis(ms)) } else { Plan::Never }
    }
}

/// The words with which the session failed at `ms`, and at which it ended.
#[track_caller]
fn failed_at(ran: &Ran, by: FailedBy, ms: u64) -> &str {
    let line = format!("{ms} session Failed({by:?})");
    assert!(ran.lines.contains(&line), "{line} is not in {:#?}", ran.lines);
    assert_eq!(ran.lines.last().unwrap(), &format!("{ms} session Ended"));
    match &ran.outcome.state {
        SessionState::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn silence_fails_the_session_counted_from_the_last_answer() {
    // 0 and 1 are answered at 5 ms, 2 and 3 at 10 ms, 4 and 5 never.
    let ran = run_planned(watched(vec![phase("p", closed(2), 100)], 50), first(4, 5), &[]);
    let why = failed_at(&ran, FailedBy::EndpointIdle, 60);
    assert!(why.contains("50ms") && why.contains("2 of phase p"), "{why}");
    assert_eq!(states(&ran), [("p", 6, PhaseState::Failed, EndedBy::Failure)]);
    assert_eq!((ran.count(" ok "), ran.count(" unanswered ")), (4, 2));
}

#[test]
fn any_answer_counts_whoever_it_is_for() {
    // Request 0 never comes back; the other place is answered each 40 ms until the requests are through.
    let plan = |request: &Request| match request.key.ordinal {
        0 => Plan::Never,
        n if n % 2 == 0 => Plan::Fail(Span::from_millis(40), FAILURE),
        _ => Plan::Answer(Span::from_millis(40)),
    };
    let ran = run_planned(watched(vec![phase("p", closed(2), 10)], 50), plan, &[]);
    // Nine answers one after the other: the last at 360 ms.
    failed_at(&ran, FailedBy::EndpointIdle, 410);
}

#[test]
fn time_with_nothing_in_flight_is_no_silence() {
    // An arrival each 100 ms, answered after 1 ms.
    let config = watched(vec![phase("p", open(10.0), 20)], 50);
    let ran = run_planned(config, first(20, 1), &[]);
    assert_eq!(ran.outcome.state, SessionState::Complete);
    // Of the third, at 300 ms, nothing is heard: 50 ms from then, not from the answer at 201 ms.
    let config = watched(vec![phase("p", open(10.0), 20)], 50);
    failed_at(&run_planned(config, first(2, 1), &[]), FailedBy::EndpointIdle, 350);
}

#[test]
fn an_answer_at_the_instant_at_which_it_is_due_is_too_late() {
    for (service, complete) in [(49, true), (50, false)] {
        let config = watched(vec![phase("p", closed(1), 4)], 50);
        let ran = run_planned(config, first(4, service), &[]);
        assert_eq!(ran.outcome.state == SessionState::Complete, complete);
    }
}

#[test]
fn a_phase_inherits_no_silence() {
    // Issued at 10, 20 and 30 ms; the next phase begins at 30 ms.
    let phases = vec![warm_up("w", open(100.0), 3), phase("p", closed(5), 100)];
    let ran = run_planned(watched(phases, 40), |_| Plan::Never, &[]);
    let why = failed_at(&ran, FailedBy::EndpointIdle, 70).to_owned();
    assert!(why.contains("3 of phase w") && why.contains("2 of phase p"), "{why}");
    assert_eq!(states(&ran)[0].2, PhaseState::Complete, "what was over stays as it was");
}

#[test]
fn a_drain_is_watched_too() {
    let ran = run_planned(watched(vec![phase("p", closed(3), 3)], 50), |_| Plan::Never, &[]);
    failed_at(&ran, FailedBy::EndpointIdle, 50);
    assert_eq!(states(&ran), [("p", 3, PhaseState::Failed, EndedBy::Requests)]);
}

#[test]
fn silence_during_the_grace_time_of_a_stop_cuts_it_short() {
    let config = SessionConfig {
        stop_grace: Span::from_secs(5),
        ..watched(vec![phase("p", closed(3), 100)], 50)
    };
    let ran = run_planned(config, |_| Plan::Never, &[10]);
    assert_eq!(ran.outcome.state, SessionState::Interrupted);
    assert_eq!(ran.lines.last().unwrap(), "50 session Ended");
}

#[test]
fn a_session_whose_time_is_over_fails_wherever_it_is() {
    let limited = |phases, begin_at_once| SessionConfig {
        run_timeout: Some(Span::from_millis(70)),
        begin_at_once,
        ..config(phases)
    };
    // Issuing, though the endpoint answers; draining; between phases; before the first.
    let busy = vec![phase("p", open(1_000.0), 100_000)];
    let ran = run_planned(limited(busy, true), first(100_000, 5), &[]);
    failed_at(&ran, FailedBy::RunTimeout, 70);
    assert_eq!(states(&ran)[0].2, PhaseState::Failed);
    let drains = vec![phase("p", closed(2), 2), phase("q", closed(1), 1)];
    let why = failed_at(
        &run_planned(limited(drains, true), |_| Plan::Never, &[]),
        FailedBy::RunTimeout,
        70,
    )
    .to_owned();
    assert!(why.contains("70ms") && why.contains("2 of phase p"), "{why}");
    let never = vec![phase("p", closed(2), 2)];
    let ran = run_planned(limited(never, false), |_| Plan::Never, &[]);
    failed_at(&ran, FailedBy::RunTimeout, 70);
    // Over in time.
    let ran = run_planned(limited(vec![phase("p", closed(2), 2)], true), first(2, 69), &[]);
    assert_eq!(ran.outcome.state, SessionState::Complete);
}
