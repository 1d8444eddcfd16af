//! Nothing is taken for what it is not, however bad the network: an answer that counts as whole is exactly
//! the one that the server planned for that request and wrote in full.

use std::collections::BTreeMap;

use takt_mock::{Mode, Plan, PlanKey};
use takt_record::{Completed, ErrorKind, FinishReason, Outcome, RequestId, TokenSource};

use super::Found;
use super::lives::Lives;
use crate::sim::log::Told;
use crate::sim::run::{Ran, name};
use crate::sim::scenario::{Http, Phase, Transport};

pub(super) fn check(ran: &Ran, lives: &Lives, found: &mut Found) {
    let Transport::Http(http) = &ran.scenario.transport else { return };
    let told = by_id(ran);
    for (_, _, done) in lives.whole() {
        let id = RequestId::new(ran.scenario.seed, done.key);
        let told: &[&Told] = told.get(&id).map_or(&[], Vec::as_slice);
        found.holds(told.len() <= usize::from(done.attempts), || {
            format!("{}: came to servers {} times", name(done.key), told.len())
        });
        // What a hostile server makes of an answer is held by those who ask it to.
        if matches!(http.mode, Mode::Hostile(_)) {
            continue;
        }
        match done.outcome {
            Outcome::Ok => whole(ran, http, done, told, found),
            Outcome::Failed(failure) => {
                if failure.kind == ErrorKind::HttpStatus {
                    let answered = told.iter().any(|t| Some(t.status) == failure.status);
                    found.holds(answered, || format!("{}: {failure:?}", name(done.key)));
                }
                let planned = planned_error(http, id);
                if ran.scenario.is_peaceful() {
                    let is_planned = failure.kind == ErrorKind::HttpStatus
                        && failure.status == planned
                        && planned.is_some();
                    found.holds(is_planned, || {
                        format!("{}: failed without a reason: {failure:?}", name(done.key))
                    });
                }
            }
            Outcome::Unanswered => given_up(ran, done, found),
        }
    }
}

/// What servers said of each request.
pub(super) fn by_id(ran: &Ran) -> BTreeMap<RequestId, Vec<&Told>> {
    let mut by_id: BTreeMap<RequestId, Vec<&Told>> = BTreeMap::new();
    for told in &ran.told {
        if let Some(id) = told.id {
            by_id.entry(id).or_default().push(told);
        }
    }
    by_id
}

/// The plan of a request.
pub(super) fn plan(http: &Http, id: RequestId) -> Option<Plan> {
    match &http.mode {
        Mode::Timed(timed) => Some(Plan::draw(timed, PlanKey::Id(&id.hex()))),
        Mode::Scheduler(scheduler) => Some(Plan::draw(&scheduler.answers, PlanKey::Id(&id.hex()))),
        Mode::Instant(_) | Mode::Hostile(_) => None,
    }
}

/// Tokens that the answer to a request has.
pub(super) fn tokens(http: &Http, phase: &Phase, done: &Completed, id: RequestId) -> u32 {
    match (&http.mode, plan(http, id)) {
        (_, Some(plan)) => {
            let limited = phase.max_tokens.filter(|_| done.sample.is_multiple_of(2));
            plan.tokens().min(limited.unwrap_or(u32::MAX))
        }
        (Mode::Instant(instant), _) => instant.tokens.get(),
        (Mode::Timed(_) | Mode::Scheduler(_) | Mode::Hostile(_), None) => {
            unreachable!("asked of planned answers")
        }
    }
}

fn planned_error(http: &Http, id: RequestId) -> Option<u16> {
    plan(http, id).and_then(|plan| plan.error())
}

/// Requests are given up by a stop, by a drain that runs out, and at the end by undrained phases.
fn given_up(ran: &Ran, done: &Completed, found: &mut Found) {
    let phase = &ran.scenario.phases[usize::from(done.key.phase.0)];
    let reason = !ran.scenario.stops.is_empty()
        || ran.failed().is_some()
        || phase.drain_timeout.is_some()
        || !phase.drain_after;
    found.holds(reason, || format!("{}: given up without a reason", name(done.key)));
}

fn whole(ran: &Ran, http: &Http, done: &Completed, told: &[&Told], found: &mut Found) {
    let name = || name(done.key);
    let phase = &ran.scenario.phases[usize::from(done.key.phase.0)];
    let id = RequestId::new(ran.scenario.seed, done.key);
    let planned = planned_error(http, id);
    found.same(planned, None, || format!("{}: planned error of a success", name()));
    found.same(done.status, Some(200), || format!("{}: status", name()));
    let written = told.iter().find(|t| t.complete);
    found.holds(written.is_some(), || format!("{}: whole, but no server wrote it", name()));
    let Some(written) = written else { return };
    found.same(written.streamed, phase.stream, || format!("{}: streamed", name()));
    let tokens = tokens(http, phase, done, id);
    let timed = !matches!(http.mode, Mode::Instant(_));
    if timed {
        found.same(written.tokens, tokens, || format!("{}: tokens written", name()));
    }
    let events = match &http.mode {
        Mode::Timed(timed) => tokens.div_ceil(timed.tokens_per_event.get()),
        // A step makes one token; guesses are not drawn.
        Mode::Instant(_) | Mode::Scheduler(_) | Mode::Hostile(_) => tokens,
    };
    let expected = if phase.stream { events } else { 0 };
    found.same(done.tokens.events, expected, || format!("{}: token events", name()));
    // A finish reason makes up for an end that comes too early; what stood behind it is not there then.
    let cut = !ran.scenario.link.faults.are_none() || http.dies.is_some();
    let lost = cut && done.tokens.input.is_none() && done.finish.is_some();
    let usage = !phase.stream || (phase.usage && !lost);
    if usage && timed {
        let said = (done.tokens.output, done.tokens.input, done.tokens.source);
        let prompt = u32::try_from(written.prompt_tokens).ok();
        let should = (Some(tokens), prompt, Some(TokenSource::Usage));
        found.same(said, should, || format!("{}: usage", name()));
    } else if timed {
        let said = (done.tokens.output, done.tokens.source);
        found.same(said, (Some(events), Some(TokenSource::Events)), || {
            format!("{}: estimate", name())
        });
    }
    if let Some(plan) = plan(http, id) {
        let cut = plan.tokens() > tokens;
        let finish = if cut { FinishReason::Length } else { FinishReason::Stop };
        found.same(done.finish, Some(finish), || format!("{}: finish reason", name()));
    }
}
