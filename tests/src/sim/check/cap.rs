//! In flight is issued minus ended, and never more than a closed loop or a bound allows: the sum over all
//! phases, so that the cap holds over the boundary of an undrained phase too.

use takt_record::PhaseEvent;

use super::Found;
use crate::sim::kept::Kept;
use crate::sim::run::{Ran, name};
use crate::sim::scenario::{Load, Transport};
use crate::sim::talks::{Beginning, Talks};

pub(super) fn check(ran: &Ran, found: &mut Found) {
    let scenario = &ran.scenario;
    let mut in_flight = vec![0i64; scenario.phases.len()];
    for record in &ran.records {
        match record {
            Kept::Phase(phase) => {
                if let PhaseEvent::Started { inherited } = phase.event {
                    let sum: i64 = in_flight.iter().sum();
                    let of = || format!("inherited by phase {}", phase.phase.0);
                    found.same(i64::from(inherited), sum, of);
                }
            }
            Kept::Issued(issued) => {
                let phase = usize::from(issued.key.phase.0);
                in_flight[phase] += 1;
                let sum: i64 = in_flight.iter().sum();
                let cap = match scenario.phases[phase].load {
                    Load::Concurrency(target) => Some(i64::from(target)),
                    Load::Burst(bound) => bound.map(|bound| bound as i64),
                    Load::Agentic(Talks { begin: Beginning::Active(target), .. }) => {
                        Some(i64::from(target))
                    }
                    Load::Agentic(_)
                    | Load::Poisson(_)
                    | Load::Constant(_)
                    | Load::Gamma(..)
                    | Load::Ramp(..)
                    | Load::Trace(..) => None,
                };
                found.holds(cap.is_none_or(|cap| sum <= cap), || {
                    format!("{}: {sum} in flight where {cap:?} are allowed", name(issued.key))
                });
            }
            Kept::Completed(done) => {
                in_flight[usize::from(done.key.phase.0)] -= 1;
                let rest = in_flight[usize::from(done.key.phase.0)];
                found.holds(rest >= 0, || format!("{}: ended before it began", name(done.key)));
            }
            _ => {}
        }
    }
    found.holds(in_flight.iter().all(|&rest| rest == 0), || format!("left: {in_flight:?}"));
    if let Transport::Http(http) = &scenario.transport
        && let Some(most) = http.connections
    {
        let endpoints = http.servers + usize::from(http.dead_endpoint);
        let had = ran.client_streams.1;
        found.holds(had <= most * endpoints, || {
            format!("{had} connections at once, with {endpoints} endpoints of {most} each")
        });
    }
}
