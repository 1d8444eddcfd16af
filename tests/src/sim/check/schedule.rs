//! When what is sent: open loops at the moments that were drawn, to the nanosecond; samples in their order.

use std::collections::BTreeSet;

use takt_record::{Issued, PhaseEvent, PhaseId};
use takt_time::{Nanos, Span};

use super::Found;
use super::lives::{Life, Lives, Whole};
use crate::sim::kept::Kept;
use crate::sim::run::{Ran, arrivals, name, order};
use crate::sim::scenario::{Load, OrderKind, Phase, Transport};

pub(super) fn check(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    for (number, phase) in ran.scenario.phases.iter().enumerate() {
        // Conversations have rules of their own.
        if matches!(phase.load, Load::Agentic(_)) {
            continue;
        }
        let own = lives.of_phase(PhaseId(number as u16));
        let own: Vec<Issued> =
            own.filter_map(|life| life.issued().next()).map(|(_, issued)| *issued).collect();
        let Some(start) = start_of(ran, number) else { continue };
        moments(ran, phase, start, &own, found);
        samples(phase, &own, found);
    }
    sends(ran, lives, found);
}

fn start_of(ran: &Ran, number: usize) -> Option<Nanos> {
    ran.records.iter().find_map(|record| match record {
        Kept::Phase(phase) if usize::from(phase.phase.0) == number => match phase.event {
            PhaseEvent::Started { .. } => Some(phase.at),
            _ => None,
        },
        _ => None,
    })
}

/// The schedule is the one that was drawn, and each request is handed over exactly then.
fn moments(ran: &Ran, phase: &Phase, start: Nanos, issued: &[Issued], found: &mut Found) {
    let mut drawn = arrivals(phase);
    for one in issued {
        let due = drawn.as_mut().and_then(|drawn| drawn.next()).map(|offset| start + offset);
        found.same(one.scheduled, due, || format!("{}: scheduled", name(one.key)));
        if let Some(due) = due {
            let free_calls = ran.scenario.link.call_cost == Span::ZERO;
            let on_time = if free_calls { one.at == due } else { one.at >= due };
            found.holds(on_time, || {
                format!("{}: issued at {:?}, due at {due:?}", name(one.key), one.at)
            });
        }
    }
}

/// Samples are drawn in the order that the seed gives, and passes have every sample once.
fn samples(phase: &Phase, issued: &[Issued], found: &mut Found) {
    let mut drawn = order(phase);
    for one in issued {
        found.same(one.sample, drawn.draw(), || format!("{}: sample", name(one.key)));
    }
    if phase.order != OrderKind::WithoutReplacement {
        return;
    }
    let mut passes: Vec<Vec<u32>> = Vec::new();
    for pass in issued.chunks_exact(phase.samples as usize) {
        let distinct: BTreeSet<u32> = pass.iter().map(|one| one.sample).collect();
        found.same(distinct.len(), pass.len(), || "samples in a pass".to_owned());
        passes.push(pass.iter().map(|one| one.sample).collect());
    }
    // Two passes of twelve are alike once in 479,001,600 times.
    if phase.samples >= 12 && passes.windows(2).any(|pair| pair[0] == pair[1]) {
        found.say(|| "a pass repeats the one before".to_owned());
    }
}

/// Where nothing holds a request back it leaves at once: sent when issued, or when the connection that was
/// made for it stands.
fn sends(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    let scenario = &ran.scenario;
    let Transport::Http(http) = &scenario.transport else { return };
    if scenario.link.call_cost > Span::ZERO {
        return;
    }
    let handshake = Span::from_nanos(scenario.link.latency.as_nanos() * 2);
    for Whole { issued, done, .. } in lives.all().filter_map(Life::whole) {
        let times = &done.times;
        if done.attempts == 1 && times.sent.is_some() {
            found.same(times.sent, times.acquired, || format!("{}: sent", name(done.key)));
        }
        let Some(acquired) = times.acquired else { continue };
        let unbounded = http.connections.is_none();
        if scenario.is_peaceful() && unbounded && done.attempts == 1 {
            let waited = acquired - issued.at;
            found.holds(waited <= handshake, || {
                format!("{}: waited {waited} for a connection", name(done.key))
            });
        }
        if let Some(made) = times.connect
            && scenario.is_peaceful()
        {
            found.holds(made <= handshake, || format!("{}: connect {made}", name(done.key)));
        }
    }
}
