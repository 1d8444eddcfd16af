//! What the instrument says of itself.

use takt_record::{Instrument, PhaseResult, VerdictStatus as Status};

use super::{Bench, Limits, grade};

/// Was it kept from its work, and what did it lose?
pub(super) fn machine(bench: &mut Bench<'_>, result: &PhaseResult, limits: &Limits) {
    let Some(seen) = &result.instrument else { return };
    let percent = |share: f64| share * 100.0;
    let runnable = seen.runnable_share.unwrap_or(0.0);
    bench.above("runnable", runnable, limits.runnable, || {
        format!(
            "For {:.1} % of the time the reactor could have run and the system ran something else: give \
             it a core of its own (--core N).",
            percent(runnable)
        )
    });
    let stolen = seen.stolen_share.unwrap_or(0.0);
    bench.above("stolen", stolen, limits.stolen, || {
        format!("The hypervisor took {:.1} % of the time for other guests.", percent(stolen))
    });
    let involuntary = seen.involuntary_per_s.unwrap_or(0.0);
    bench.above("involuntary_per_s", involuntary, limits.involuntary, || {
        format!("The system took the core from the reactor {involuntary:.0} times a second.")
    });
    let spilled = seen.spilled as f64;
    bench.reaches("ring_spilled", spilled, limits.spilled, || {
        format!("{spilled} blocks of records had to wait: the recorder did not keep up.")
    });
    let fold = seen.fold_share.unwrap_or(0.0);
    bench.above("fold_share", fold, limits.fold, || {
        format!(
            "The thread that writes the records worked for {:.0} % of the time: it is at its limit.",
            percent(fold)
        )
    });
    if seen.lost > 0 {
        bench.push("records_lost", Status::Invalid, seen.lost as f64, 0.0, || {
            format!("{} records were lost: the counts are too low.", seen.lost)
        });
    }
    let limited = seen.limited as f64 / result.issued.max(1) as f64;
    bench.above("limited", limited, limits.limited, || {
        format!("{} requests waited because a connection limit was reached.", seen.limited)
    });
    let leftover = seen.leftover.unwrap_or(0);
    let share = leftover as f64 / result.issued.max(1) as f64;
    bench.above("leftover", share, limits.leftover, || {
        format!("{leftover} connections were closed because bytes came that belonged to no answer.")
    });
    let overflows = seen.overflows.unwrap_or(0) as f64;
    bench.reaches("mailbox_overflows", overflows, 1.0, || {
        format!("{overflows} messages went beyond the room of a mailbox: a fault of takt.")
    });
    let busy = seen.busy_share.unwrap_or(0.0);
    let closed = result.load.rate.is_none() && result.load.conversations_per_s.is_none();
    let bound = closed && busy > limits.busy;
    unread(bench, result, seen, bound, limits);
    if bound {
        bench.push("client_bound", Status::Valid, busy, limits.busy, || {
            format!(
                "The reactor was busy for {:.0} % of the time: the rate is the client's, the server may \
                 be faster.",
                percent(busy)
            )
        });
    }
}

/// Did answers wait in the socket for a reactor that was at something else? Where the client is the limit
/// anyhow that is a remark.
fn unread(
    bench: &mut Bench<'_>,
    result: &PhaseResult,
    seen: &Instrument,
    bound: bool,
    limits: &Limits,
) {
    let Some((unread, latency)) = seen.unread_us.zip(result.latency_ms.from_send) else { return };
    let limit = limits.unread.as_micros_f64().max(limits.unread_share * latency.mean * 1e3);
    let Some(status) = grade(unread.mean, limit, f64::gt) else { return };
    let status = if bound { Status::Valid } else { status };
    bench.push("unread_us", status, unread.mean, limit, || {
        format!(
            "Answers may have stood in the socket for {:.0} us in the mean before they were read, of a \
             latency of {:.0} us.",
            unread.mean,
            latency.mean * 1e3
        )
    });
}
