//! Nobody waits longer than was agreed: a drain ends with its time-out, a stop with its grace time, a second
//! stop, a failure and the last undrained phase at once, and everything with the session's own time.

use takt_record::{PhaseEvent, PhaseId, PhaseState, SessionEvent};
use takt_time::{Nanos, Span};

use super::Found;
use crate::sim::kept::Kept;
use crate::sim::run::Ran;

pub(super) fn check(ran: &Ran, found: &mut Found) {
    if ran.scenario.link.call_cost > Span::ZERO {
        return;
    }
    for (number, config) in ran.scenario.phases.iter().enumerate() {
        let event = |wanted: fn(PhaseEvent) -> bool| phase_event(ran, number, wanted);
        let closed = event(|event| matches!(event, PhaseEvent::IssuingEnded { .. }));
        let ended = event(
            |event| matches!(event, PhaseEvent::Ended { state } if !matches!(state, PhaseState::Interrupted | PhaseState::Failed)),
        );
        let (Some(closed), Some(ended)) = (closed, ended) else { continue };
        let limit = if config.drain_after { config.drain_timeout } else { Some(Span::ZERO) };
        if let Some(limit) = limit {
            let took = ended - closed;
            found.holds(took <= limit, || format!("phase {number}: drained for {took}"));
        }
    }
    session(ran, found);
}

fn session(ran: &Ran, found: &mut Found) {
    let Some(ended) = session_event(ran, SessionEvent::Ended) else { return };
    if let Some(limit) = ran.scenario.run_timeout {
        let took = ended - ran.span.0;
        found.holds(took <= limit, || format!("ran for {took}, where {limit} are allowed"));
    }
    if let Some(failed) = ran.failed() {
        return found.same(ended, failed.0, || "the end of a session that failed".to_owned());
    }
    let Some(stopped) = session_event(ran, SessionEvent::Interrupted) else {
        let last = ran.scenario.phases.len() - 1;
        let over = phase_event(ran, last, |event| matches!(event, PhaseEvent::Ended { .. }));
        return found.same(Some(ended), over, || "the end of the session".to_owned());
    };
    // The first stop that finds the session running is the one that counts.
    let second = ran.scenario.stops.get(1).map(|after| ran.span.0 + *after);
    let limit = second
        .filter(|&at| at > stopped)
        .into_iter()
        .fold(stopped + ran.scenario.stop_grace, Nanos::min);
    found.holds(ended <= limit, || {
        format!("ended at {ended:?}, stopped at {stopped:?}, to be over by {limit:?}")
    });
}

fn session_event(ran: &Ran, wanted: SessionEvent) -> Option<Nanos> {
    ran.records.iter().find_map(|record| match record {
        Kept::Session(session) if session.event == wanted => Some(session.at),
        _ => None,
    })
}

fn phase_event(ran: &Ran, number: usize, wanted: fn(PhaseEvent) -> bool) -> Option<Nanos> {
    let id = PhaseId(number as u16);
    ran.records.iter().find_map(|record| match record {
        Kept::Phase(phase) if phase.phase == id && wanted(phase.event) => Some(phase.at),
        _ => None,
    })
}
