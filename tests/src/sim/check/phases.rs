//! The life of session and phases: events in their order, issuing within its limits, drains that drain.

use takt_actors::{PhaseOutcome, SessionState};
use takt_record::{EndedBy, PhaseEvent, PhaseId, PhaseKind, PhaseState, SessionEvent};
use takt_time::Nanos;

use super::Found;
use super::lives::Lives;
use crate::sim::kept::Kept;
use crate::sim::run::{Ran, name};
use crate::sim::scenario::Load;

pub(super) fn check(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    let stopped = session(ran, found);
    let stopped_at = stopped.map(|(place, _)| place);
    let Some(outcome) = &ran.outcome else {
        return found.say(|| "the session gave no account of itself".to_owned());
    };
    found.same(outcome.strays, 0, || "strays".to_owned());
    let agrees = match (&outcome.state, stopped.map(|(_, event)| event)) {
        (SessionState::Complete, None)
        | (SessionState::Interrupted, Some(SessionEvent::Interrupted)) => true,
        (SessionState::Failed(why), Some(SessionEvent::Failed(_))) => !why.is_empty(),
        _ => false,
    };
    found.holds(agrees, || format!("state of the session: {:?} after {stopped:?}", outcome.state));
    if stopped_at.is_none() {
        found.same(outcome.phases.len(), ran.scenario.phases.len(), || "phases".to_owned());
    }
    for (number, phase) in outcome.phases.iter().enumerate() {
        one(ran, lives, number, phase, found);
    }
    if let Some(place) = stopped_at {
        let after = ran.records[place..].iter();
        let issued = after.filter(|record| matches!(record, Kept::Issued(_))).count();
        found.same(issued, 0, || "issued after the stop".to_owned());
    }
    sequence(ran, found);
}

/// The session's own events; gives the place of its interruption or failure, and which.
fn session(ran: &Ran, found: &mut Found) -> Option<(usize, SessionEvent)> {
    let events = ran.records.iter().enumerate().filter_map(|(place, record)| match record {
        Kept::Session(session) => Some((place, session.event)),
        _ => None,
    });
    let events: Vec<(usize, SessionEvent)> = events.collect();
    let stopped = events
        .iter()
        .find(|(_, event)| matches!(event, SessionEvent::Interrupted | SessionEvent::Failed(_)));
    let mut expected = vec![(0, SessionEvent::Started)];
    expected.extend(stopped);
    expected.push((ran.records.len() - 1, SessionEvent::Ended));
    found.same(&events, &expected, || {
        let last = ran.records.last();
        format!("events of the session, of which the last record is {last:?}")
    });
    if ran.scenario.stops.is_empty() {
        let told = stopped.is_none_or(|(_, event)| *event != SessionEvent::Interrupted);
        found.holds(told, || "stopped without being told to".to_owned());
    }
    stopped.copied()
}

/// Phases follow each other, none begins before the last has ended.
fn sequence(ran: &Ran, found: &mut Found) {
    let mut running: Option<PhaseId> = None;
    let mut next = 0;
    for record in &ran.records {
        match record {
            Kept::Phase(phase) => match phase.event {
                PhaseEvent::Started { .. } => {
                    found.same(running, None, || "running when the next begins".to_owned());
                    found.same(phase.phase.0, next, || "the next phase".to_owned());
                    (running, next) = (Some(phase.phase), next + 1);
                }
                PhaseEvent::Ended { .. } => running = None,
                _ => {}
            },
            Kept::Issued(issued) => {
                found.same(running, Some(issued.key.phase), || {
                    format!("{}: the phase that runs", name(issued.key))
                });
            }
            _ => {}
        }
    }
}

fn one(ran: &Ran, lives: &Lives<'_>, number: usize, outcome: &PhaseOutcome, found: &mut Found) {
    let config = &ran.scenario.phases[number];
    let id = PhaseId(number as u16);
    let of = |what: &str| format!("phase {number}: {what}");
    let events = ran.records.iter().enumerate().filter_map(|(place, record)| match record {
        Kept::Phase(phase) if phase.phase == id => Some((place, phase.at, phase.event)),
        _ => None,
    });
    let events: Vec<(usize, Nanos, PhaseEvent)> = events.collect();
    let kinds: Vec<u8> = events.iter().map(|(_, _, event)| rank(*event)).collect();
    let expected: &[u8] =
        if config.kind == PhaseKind::Performance { &[0, 1, 2, 3, 4] } else { &[0, 2, 4] };
    found.same(&kinds[..], expected, || of("events in order"));
    if kinds != expected {
        return;
    }
    let place = |wanted| events.iter().find(|(_, _, event)| rank(*event) == wanted);
    let (Some(start), Some(closed), Some(end)) = (place(0), place(2), place(4)) else { return };
    let (PhaseEvent::IssuingEnded { by }, PhaseEvent::Ended { state }) = (closed.2, end.2) else {
        return;
    };
    found.same((outcome.ended_by, outcome.state), (by, state), || of("its own account"));
    let own = lives.of_phase(id);
    let own: Vec<_> = own.collect();
    found.same(outcome.issued, own.len() as u64, || of("issued"));
    let ordinals_run = own.iter().enumerate().all(|(n, life)| life.key.ordinal == n as u64);
    found.holds(ordinals_run, || of("ordinals have a gap"));
    let places = own.iter().filter_map(|life| life.issued().next()).map(|(place, _)| place);
    let places: Vec<usize> = places.collect();
    found.holds(places.is_sorted(), || of("ordinals are not in issue order"));
    let outside = places.iter().filter(|&&at| !(start.0..closed.0).contains(&at)).count();
    found.same(outside, 0, || of("issued outside of its issuing"));

    let left =
        own.iter().filter(|life| life.completed().next().is_none_or(|(place, _)| place > end.0));
    let left = left.count();
    let drains =
        config.drain_after || matches!(state, PhaseState::Interrupted | PhaseState::Failed);
    found.holds(!drains || left == 0, || of(&format!("{left} left after its drain")));
    limits(ran, number, (start.1, closed.1), (by, state), own.len() as u64, found);
}

fn limits(
    ran: &Ran,
    number: usize,
    (start, closed): (Nanos, Nanos),
    (by, state): (EndedBy, PhaseState),
    issued: u64,
    found: &mut Found,
) {
    let config = &ran.scenario.phases[number];
    let (limits, samples) = (&config.limits, u64::from(config.pass()));
    let free_calls = ran.scenario.link.call_cost == takt_time::Span::ZERO;
    let of = |what: &str| format!("phase {number}: {what}");
    let took = closed - start;
    found.holds(limits.requests.is_none_or(|most| issued <= most), || of("too many requests"));
    for most in [limits.duration, limits.max_duration].into_iter().flatten() {
        found.holds(!free_calls || took <= most, || of(&format!("issued for {took}")));
    }
    let interrupted = matches!(state, PhaseState::Interrupted | PhaseState::Failed);
    match by {
        EndedBy::Requests => found.same(Some(issued), limits.requests, || of("requests")),
        EndedBy::Duration => {
            found.holds(Some(took) >= limits.duration, || of("its duration was cut short"));
        }
        EndedBy::MaxDuration => {
            found.holds(Some(took) >= limits.max_duration, || of("capped before its time"));
            found.holds(interrupted || state == PhaseState::Capped, || of("capped and not said"));
        }
        EndedBy::Dataset | EndedBy::Conversations | EndedBy::FirstComplete
            if matches!(config.load, Load::Agentic(_)) => {}
        EndedBy::Conversations | EndedBy::FirstComplete => {
            found.say(|| of("ended by conversations, and has none"));
        }
        EndedBy::Dataset => {
            found.same(issued % samples, 0, || of("not whole passes"));
            let least = limits.min_duration.unwrap_or_default();
            // Another pass is begun only when it is not over by the next arrival.
            let passes = issued / samples;
            found.holds(issued > 0 && (passes == 1 || least > takt_time::Span::ZERO), || {
                of(&format!("{passes} passes"))
            });
        }
        EndedBy::Stop => {
            found.same(state, PhaseState::Interrupted, || of("stopped and not said"));
        }
        EndedBy::Failure => found.same(state, PhaseState::Failed, || of("failed and not said")),
        EndedBy::Strategy => {
            let whole =
                matches!(config.load, Load::Trace(arrivals, ..) if issued == u64::from(arrivals));
            found.holds(whole, || of(&format!("{issued} issued, and no arrivals left")));
        }
    }
}

/// The place of an event in a phase's life.
fn rank(event: PhaseEvent) -> u8 {
    match event {
        PhaseEvent::Started { .. } => 0,
        PhaseEvent::TrackingStarted => 1,
        PhaseEvent::IssuingEnded { .. } => 2,
        PhaseEvent::TrackingStopped => 3,
        PhaseEvent::Ended { .. } => 4,
    }
}
