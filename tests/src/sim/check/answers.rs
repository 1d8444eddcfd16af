//! Nothing is taken for what it is not, however bad the network: an answer that counts as whole is exactly
//! the one that the server planned for that request and wrote in full.

use takt_mock::{Mode, Plan, PlanKey};
use takt_record::{
    Completed, ErrorKind, FinishReason, Outcome, RequestId, RequestKey, TokenSource,
};

use super::Found;
use super::lives::{Life, Lives, Whole};
use crate::sim::run::{Ran, name};
use crate::sim::scenario::{Http, Phase, Transport};

pub(super) fn check(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    let Transport::Http(http) = &ran.scenario.transport else { return };
    for Whole { life, done, .. } in lives.all().filter_map(Life::whole) {
        let came = life.told().len();
        found.holds(came <= usize::from(done.attempts), || {
            format!("{}: came to servers {came} times", name(done.key))
        });
        // What a hostile server makes of an answer is held by those who ask it to.
        if matches!(http.mode, Mode::Hostile(_)) {
            continue;
        }
        let plan = plan(ran, http, done.key);
        let planned = plan.as_ref().and_then(Plan::error);
        match done.outcome {
            Outcome::Ok => {
                found.same(planned, None, || {
                    format!("{}: planned error of a success", name(done.key))
                });
                whole(ran, http, (life, done), plan.as_ref(), found);
            }
            Outcome::Failed(failure) => {
                if failure.kind == ErrorKind::HttpStatus {
                    let answered = life.told().any(|t| Some(t.status) == failure.status);
                    found.holds(answered, || format!("{}: {failure:?}", name(done.key)));
                }
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

/// The plan of a request.
pub(super) fn plan(ran: &Ran, http: &Http, key: RequestKey) -> Option<Plan> {
    let answers = match &http.mode {
        Mode::Timed(timed) => timed,
        Mode::Scheduler(scheduler) => &scheduler.answers,
        Mode::Instant(_) | Mode::Hostile(_) => return None,
    };
    Some(Plan::draw(answers, PlanKey::Id(&RequestId::new(ran.scenario.seed, key).hex())))
}

/// Tokens that the answer to a request has.
pub(super) fn tokens(http: &Http, phase: &Phase, done: &Completed, plan: Option<&Plan>) -> u32 {
    match (&http.mode, plan) {
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

/// Requests are given up by a stop, by a drain that runs out, and at the end by undrained phases.
fn given_up(ran: &Ran, done: &Completed, found: &mut Found) {
    let phase = &ran.scenario.phases[usize::from(done.key.phase.0)];
    let reason = !ran.scenario.stops.is_empty()
        || ran.failed().is_some()
        || phase.drain_timeout.is_some()
        || !phase.drain_after;
    found.holds(reason, || format!("{}: given up without a reason", name(done.key)));
}

fn whole(
    ran: &Ran,
    http: &Http,
    (life, done): (Life<'_>, &Completed),
    plan: Option<&Plan>,
    found: &mut Found,
) {
    let name = || name(done.key);
    let phase = &ran.scenario.phases[usize::from(done.key.phase.0)];
    found.same(done.status, Some(200), || format!("{}: status", name()));
    let written = life.told().find(|t| t.complete);
    found.holds(written.is_some(), || format!("{}: whole, but no server wrote it", name()));
    let Some(written) = written else { return };
    found.same(written.streamed, phase.stream, || format!("{}: streamed", name()));
    let tokens = tokens(http, phase, done, plan);
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
    if let Some(plan) = plan {
        let cut = plan.tokens() > tokens;
        let finish = if cut { FinishReason::Length } else { FinishReason::Stop };
        found.same(done.finish, Some(finish), || format!("{}: finish reason", name()));
    }
}
