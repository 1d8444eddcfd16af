//! Did the sends follow the schedule?

use takt_record::{EndedBy, PhaseResult, VerdictStatus as Status};
use takt_time::Span;

use super::{Bench, Limits};
use crate::phase::PhaseFold;

/// Did the sends follow the schedule? For open loops.
pub(super) fn schedule(
    bench: &mut Bench<'_>,
    phase: &PhaseFold,
    result: &PhaseResult,
    limits: &Limits,
) {
    let Some(drawn) = phase.scheduled.span() else { return };
    let mean_gap_us = match result.load.rate {
        Some(rate) if rate > 0.0 => 1e6 / rate,
        _ => drawn.as_micros_f64() / phase.issued.max(1) as f64,
    };
    let limit = limits.lateness.as_micros_f64().max(limits.lateness_gap_share * mean_gap_us);
    if let Some(lateness) = &result.lateness_us {
        let p99 = lateness.p.p99;
        bench.above("lateness_p99_us", p99, limit, || {
            format!(
                "One send in a hundred left {p99:.0} us or more after its time: the client, not the \
                 server, is late."
            )
        });
    }
    // The delays of conversations are scheduled one by one, as answers come.
    if result.conversations.is_none()
        && let Some(sends) = phase.sent.span()
        && drawn >= Span::from_millis(100)
    {
        let off = (sends.as_secs_f64() / drawn.as_secs_f64() - 1.0).abs();
        bench.above("off_schedule", off, limits.off_schedule, || {
            format!(
                "The sends took {:.3} s where the drawn schedule has {:.3} s.",
                sends.as_secs_f64(),
                drawn.as_secs_f64()
            )
        });
    }
    unfinished_schedule(bench, phase, result);
}

fn unfinished_schedule(bench: &mut Bench<'_>, phase: &PhaseFold, result: &PhaseResult) {
    // What ends a phase of conversations by itself is asked for beside a number of requests.
    let cut = match phase.ended_by {
        Some(
            EndedBy::Duration
            | EndedBy::Stop
            | EndedBy::Failure
            | EndedBy::Conversations
            | EndedBy::FirstComplete,
        ) => true,
        Some(EndedBy::Dataset) => result.conversations.is_some(),
        _ => false,
    };
    let Some(planned) = result.load.requests.filter(|&planned| planned > phase.issued) else {
        return;
    };
    if cut || phase.issuing_ended.is_none() {
        return;
    }
    let (issued, planned) = (phase.issued as f64, planned as f64);
    let status = if issued < 0.95 * planned { Status::Invalid } else { Status::Suspect };
    bench.push("schedule_unfinished", status, issued, planned, || {
        format!("Only {issued} of {planned} scheduled requests were sent.")
    });
}
