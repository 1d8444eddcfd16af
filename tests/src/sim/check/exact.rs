//! Over a network that adds nothing but its latency the client measures what the server planned, plus the
//! latency, to the nanosecond: arrival, each token, the end.

use takt_mock::{Mode, Plan};
use takt_record::{Completed, ErrorKind, Failure, Outcome};
use takt_time::Nanos;

use super::Found;
use super::answers::{plan, tokens};
use super::lives::{Life, Lives, Whole};
use crate::sim::log::Told;
use crate::sim::run::{Ran, name};
use crate::sim::scenario::{Http, Transport};

pub(super) fn check(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    let Transport::Http(http) = &ran.scenario.transport else { return };
    if !ran.scenario.link.is_exact() {
        return;
    }
    for Whole { life, done, .. } in lives.all().filter_map(Life::whole) {
        // A second attempt is another arrival; its send is the first one's.
        let (1, Some(told), 1) = (life.told().len(), life.told().next(), done.attempts) else {
            continue;
        };
        arrival(ran, done, told, found);
        if matches!(http.mode, Mode::Hostile(_)) {
            continue;
        }
        let plan = plan(ran, http, done.key);
        service(http, plan.clone(), (done, told), found);
        if matches!(done.outcome, Outcome::Ok) {
            answer(ran, http, (life, done, told), plan.as_ref(), found);
        } else if told.complete && is_refusal(done) {
            let at = told.ended.map(|at| at + ran.scenario.link.latency);
            found.same(Some(done.times.end), at, || format!("{}: end of an error", name(done.key)));
        }
    }
}

/// Answered in full with a status that says no. (What fails otherwise was given up before its answer came.)
fn is_refusal(done: &Completed) -> bool {
    matches!(done.outcome, Outcome::Failed(Failure { kind: ErrorKind::HttpStatus, .. }))
}

fn arrival(ran: &Ran, done: &Completed, told: &Told, found: &mut Found) {
    let name = || name(done.key);
    let expected = done.times.sent.map(|sent| sent + ran.scenario.link.latency);
    found.same(Some(told.arrived), expected, || format!("{}: arrival", name()));
    found.same(done.times.written, done.times.sent, || format!("{}: written at once", name()));
}

/// The server itself keeps to its plan: its clock is the same one.
fn service(http: &Http, plan: Option<Plan>, (done, told): (&Completed, &Told), found: &mut Found) {
    let (Mode::Timed(timed), Some(mut plan)) = (&http.mode, plan) else { return };
    let name = || name(done.key);
    let Some(started) = told.started else { return };
    if timed.slots.is_none() {
        found.same(started, told.arrived, || format!("{}: start of service", name()));
    }
    let first = started + plan.ttft();
    found.same(told.first_planned, Some(first), || format!("{}: first token planned", name()));
    let mut at = first;
    for (place, event) in told.events.iter().enumerate() {
        if place > 0 {
            at = (0..event.tokens).fold(at, |at, _| at + plan.next_gap());
        }
        found.same((event.planned, event.written), (at, at), || {
            format!("{}: event {place}", name())
        });
    }
}

fn answer(
    ran: &Ran,
    http: &Http,
    (life, done, told): (Life<'_>, &Completed, &Told),
    plan: Option<&Plan>,
    found: &mut Found,
) {
    let name = || name(done.key);
    let latency = ran.scenario.link.latency;
    let times = &done.times;
    if matches!(http.mode, Mode::Timed(_)) {
        let seen = life.tokens().map(|token| token.at);
        let written = told.events.iter().map(|event| event.written + latency);
        found.holds(seen.clone().eq(written.clone()), || {
            let (seen, written): (Vec<Nanos>, Vec<Nanos>) = (seen.collect(), written.collect());
            format!("{}: token times: {seen:?}, and they should be {written:?}", name())
        });
        let phase = &ran.scenario.phases[usize::from(done.key.phase.0)];
        if !told.streamed && tokens(http, phase, done, plan) > 0 {
            let end = told.last_planned.map(|at| at + latency);
            found.same(Some(times.end), end, || format!("{}: end as planned", name()));
        }
    }
    let end = told.ended.map(|at| at + latency);
    found.same(Some(times.end), end, || format!("{}: end", name()));
    if !told.streamed {
        found.same(times.first_byte, Some(times.end), || format!("{}: first byte", name()));
    }
}
