//! What the answers say of themselves.

use std::ops::RangeInclusive;

use takt_record::{
    ErrorKind, FailedBy, PhaseResult, PhaseState, TokensCounted, VerdictStatus as Status,
};

use super::{Bench, Limits, grade};
use crate::fold::RunFold;
use crate::gone::GONE;
use crate::phase::PhaseFold;

/// Requests that this side gave up, by a signal, by `run_timeout` or for want of its pacer: what the server
/// would have made of them nobody knows. A phase that is cut short has no others without an answer.
pub(super) fn given_up(run: &RunFold, phase: &PhaseFold) -> u64 {
    let ours = matches!(run.session.failed, Some(FailedBy::RunTimeout | FailedBy::Pacer));
    let cut = run.session.interrupted || ours;
    let cut_short = matches!(phase.state, Some(PhaseState::Interrupted | PhaseState::Failed));
    if cut && cut_short { phase.unanswered } else { 0 }
}

/// What the answers say, those that were `given_up` before they could come left out.
pub(super) fn service(
    bench: &mut Bench<'_>,
    phase: &PhaseFold,
    result: &PhaseResult,
    given_up: u64,
    limits: &Limits,
) {
    // The late are missing in the latencies, too, and are the slow ones.
    let ended = phase.succeeded + phase.failed + phase.unanswered + phase.late - given_up;
    if ended > 0 {
        let survivors = phase.succeeded as f64 / ended as f64;
        let casualties = (ended - phase.succeeded) as f64 / ended as f64;
        if let Some(status) = grade(casualties, limits.casualties, f64::gt) {
            bench.push("survivors", status, survivors, 1.0 - limits.casualties, || {
                match phase.succeeded {
                    0 => format!("None of {ended} requests succeeded in time: there is no latency."),
                    n => format!(
                        "Only {n} of {ended} requests succeeded in time: the latencies are those of \
                         the survivors."
                    ),
                }
            });
        }
    }
    if let (Some(tail), Some(length_s)) = (phase.gone.tail(), result.duration_s) {
        bench.above("endpoint_gone", phase.gone.share(length_s), GONE, || {
            format!(
                "Nothing succeeded in the last {tail} of the phase, though {} requests were tried: rates are means \
                 over a time in which there was no service.",
                phase.gone.failures()
            )
        });
    }
    profiled(bench, phase);
    let first = result.ttft_ms.from_send.or(result.first_byte_ms);
    if let (Some(waited), Some(first)) = (result.socket_wait_ms, first) {
        bench.above("socket_wait", waited.mean / first.mean, limits.socket_wait, || {
            format!(
                "First tokens lay in the socket for {:.3} ms on average before they were read, out of \
                 {:.3} ms: the client is late to read (engine.ttft_until: arrival leaves that out).",
                waited.mean, first.mean
            )
        });
    }
    let used_once = result.instrument.as_ref().and_then(|seen| seen.used_once).unwrap_or(0);
    if used_once > 0 {
        bench.push("used_once", Status::Valid, used_once as f64, 0.0, || {
            format!(
                "A server closes connections after their first answer, though it says that it keeps them: \
                 {used_once} connections at least were used once."
            )
        });
    }
    let refused = result.errors.get(&ErrorKind::LocalLimit).copied().unwrap_or(0) as f64;
    bench.reaches("local_limit", refused, limits.refused, || {
        format!("This machine had no descriptor or port for {refused} requests.")
    });
    let Some(tokens) = &result.tokens else { return };
    let share = tokens.coalesced_share.unwrap_or(0.0);
    bench.above("coalesced", share, limits.coalesced, || {
        format!(
            "{} of {} token events came in one read with the one before: gaps inside a read are not \
             measured.",
            tokens.coalesced, tokens.events
        )
    });
    if let Some(gap) = plateau_ms(result, share) {
        let limit = PLATEAU_MS.start();
        bench.push("delayed_ack", Status::Valid, gap, *limit, || {
            format!(
                "Events come {gap:.0} ms apart, several at a time: a server or gateway without TCP_NODELAY, \
                 whose small writes wait for this machine's delayed acknowledgement, and not the model."
            )
        });
    }
    if let (Some(counted), Some(tracked)) = (&tokens.tokenizer, &phase.tracked) {
        counts_beside(bench, counted, tracked.counted.percent_above(), limits);
    }
    let counted = (phase.succeeded - phase.profiled_ok).max(1);
    bench.above("unseen_tokens", tokens.unseen as f64 / counted as f64, limits.unseen, || {
        format!(
            "The server counts output tokens of {} of {counted} requests whose streams held no text: they were \
             paid for and never seen, and have no TTFT.",
            tokens.unseen
        )
    });
    bench.above("unasked_stream", tokens.unasked as f64 / counted as f64, limits.unasked, || {
        format!(
            "{} of {counted} answers were streams though whole ones were asked for: the figures are those of \
             streams.",
            tokens.unasked
        )
    });
    let disagreeing = tokens.disagreeing as f64 / counted as f64;
    bench.above("token_counts", disagreeing, limits.disagreeing, || {
        format!("The token counts of {} requests contradict each other.", tokens.disagreeing)
    });
}

/// What was left out because the server was profiled.
fn profiled(bench: &mut Bench<'_>, phase: &PhaseFold) {
    let (all, left_out) = (phase.succeeded + phase.failed + phase.unanswered, phase.profiled);
    if left_out == 0 {
        return;
    }
    let none = phase.succeeded > 0 && phase.profiled_ok == phase.succeeded;
    let status = if none { Status::Invalid } else { Status::Valid };
    bench.push("profiled", status, left_out as f64, 0.0, || {
        let rest = if none {
            "none is left that says how fast the server is"
        } else {
            "they are in no distribution, and rates are those outside of windows"
        };
        format!(
            "{left_out} of {all} requests were under way while the server was profiled: {rest}."
        )
    });
}

/// Our tokenizer's counts beside the server's, which is `percent` above.
fn counts_beside(bench: &mut Bench<'_>, counted: &TokensCounted, percent: f64, limits: &Limits) {
    let off = counted.disagreeing as f64 / counted.compared.max(1) as f64;
    bench.above("tokenizer", off, limits.disagreeing, || {
        let (size, way) = (percent.abs(), if percent < 0.0 { "fewer" } else { "more" });
        format!(
            "The tokenizer counts {size:.1} % {way} output tokens than the server states (usage), differently \
             for {} of {} requests: the figures are the server's.",
            counted.disagreeing, counted.compared
        )
    });
    if counted.uncounted > 0 {
        let of = (counted.requests + counted.uncounted) as f64;
        bench.push("uncounted", Status::Valid, counted.uncounted as f64 / of, 0.0, || {
            format!("The tokenizer could not count {} answers.", counted.uncounted)
        });
    }
}

/// The median gap between reads, in ms, where the gaps are those of Nagle's algorithm against a delayed
/// acknowledgement (RFC 896, RFC 1122 4.2.3.2): half of them or more at Linux's 40 ms, and more than one event
/// a read, since what was held back leaves together.
fn plateau_ms(result: &PhaseResult, coalesced: f64) -> Option<f64> {
    let gaps = result.event_gap_ms.as_ref()?;
    let within = [gaps.p.p25, gaps.p.p75].iter().all(|gap| PLATEAU_MS.contains(gap));
    (within && coalesced >= PLATEAU_COALESCED).then_some(gaps.p.p50)
}

/// The delay of Linux's acknowledgement, and what a busy machine adds.
const PLATEAU_MS: RangeInclusive<f64> = 39.0..=46.0;
/// Every fourth event came with the one before.
const PLATEAU_COALESCED: f64 = 0.25;
