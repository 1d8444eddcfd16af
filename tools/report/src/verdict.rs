//! The judgement that every result ends in.
//!
//! A reason has a figure and a limit: *suspect* past the limit, *invalid* past ten times it. A share that
//! must not fall below a limit is judged by what is missing. A remark (`client_bound`) says what the
//! figures mean and takes nothing from them.

use std::ops::RangeInclusive;

use takt_record::{
    EndedBy, ErrorKind, FailedBy, Instrument, PhaseResult, PhaseState, Reason, RunState,
    TokensCounted, Verdict, VerdictStatus as Status,
};
use takt_time::Span;

use crate::fold::RunFold;
use crate::phase::PhaseFold;

/// Limits of the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Open loop: lateness p99 may be this, or [`Self::lateness_gap_share`] of the mean gap if that is
    /// more.
    pub lateness: Span,
    /// Open loop: share of the mean gap between arrivals that lateness p99 may be.
    pub lateness_gap_share: f64,
    /// Open loop: how far the time from first to last send may be off the drawn schedule's, as a share.
    pub off_schedule: f64,
    /// Share of time that the reactor thread was runnable and not running.
    pub runnable: f64,
    /// Share of time stolen from the machine.
    pub stolen: f64,
    /// Involuntary context switches of the reactor thread a second.
    pub involuntary: f64,
    /// How long answers can have stood in the socket unread, in the mean, or [`Self::unread_share`] of
    /// the mean latency from send if that is more.
    pub unread: Span,
    /// Share of the mean latency that answers may have stood unread.
    pub unread_share: f64,
    /// Requests that this machine had no descriptor or port for.
    pub refused: f64,
    /// Share of requests whose connection was closed because bytes came that belonged to no answer.
    pub leftover: f64,
    /// Blocks that had to wait in the ring's overflow.
    pub spilled: f64,
    /// Share of requests that waited because a connection limit was reached.
    pub limited: f64,
    /// Share of requests that may fail or stay unanswered.
    pub casualties: f64,
    /// Share of token events that came in one read with the one before.
    pub coalesced: f64,
    /// Share of successes whose token counts contradict each other.
    pub disagreeing: f64,
    /// Share of the time to the first token (or byte) that it lay in the socket, on average, where the kernel's
    /// stamps tell.
    pub socket_wait: f64,
    /// CPU time of the thread that folds and writes the records, as a share of the time.
    pub fold: f64,
    /// Closed loop: busy share of the reactor from which on the client is what is measured.
    pub busy: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lateness: Span::from_micros(100),
            lateness_gap_share: 0.1,
            off_schedule: 0.005,
            runnable: 0.01,
            stolen: 0.01,
            involuntary: 100.0,
            unread: Span::from_micros(50),
            unread_share: 0.1,
            refused: 1.0,
            leftover: 0.01,
            spilled: 1.0,
            limited: 0.001,
            casualties: 0.01,
            coalesced: 0.05,
            disagreeing: 0.01,
            socket_wait: 0.05,
            fold: 0.95,
            busy: 0.9,
        }
    }
}

/// Judges a run.
pub(crate) fn judge(
    run: &RunFold,
    state: RunState,
    results: &[PhaseResult],
    limits: &Limits,
) -> Verdict {
    let mut reasons = Vec::new();
    reasons.extend(unfinished_run(run, state, results));
    reasons.extend(run.partial.then(|| partial_records(results)));
    for (phase, result) in run.phases.iter().zip(results) {
        let mut bench = Bench { phase: &result.name, reasons: &mut reasons };
        if phase.tracked.is_some() && phase.issued == 0 && phase.issuing_ended.is_some() {
            bench.push("nothing_sent", Status::Invalid, 0.0, 1.0, || {
                "No request was sent: there is nothing to judge.".to_owned()
            });
        }
        if phase.tracked.is_some() && phase.issued > 0 {
            // These two compare with what was planned, and what was counted elsewhere.
            if !run.partial {
                schedule(&mut bench, phase, result, limits);
                machine(&mut bench, result, limits);
            }
            service(&mut bench, phase, result, given_up(run, phase), limits);
        }
        let anomalies = phase.all_anomalies() as f64;
        bench.reaches("anomalies", anomalies, 1.0, || {
            format!("{anomalies} records contradict the clock or each other: a fault of takt.")
        });
    }
    if run.plan.config.pointer("/connections/tls/insecure") == Some(&true.into()) {
        Bench { phase: "", reasons: &mut reasons }.push(
            "certificates_unchecked",
            Status::Valid,
            1.0,
            0.0,
            || {
                "No TLS certificate was checked (insecure): nothing shows that the server which answered \
                 is the one that was meant."
                    .to_owned()
            },
        );
    }
    let strays = run.strays as f64;
    Bench { phase: "", reasons: &mut reasons }.reaches("strays", strays, 1.0, || {
        format!("{strays} records belong to no phase of the plan: a fault of takt.")
    });
    let status = reasons.iter().map(|reason| reason.status).max().unwrap_or(Status::Valid);
    Verdict { status, reasons }
}

fn unfinished_run(run: &RunFold, state: RunState, results: &[PhaseResult]) -> Option<Reason> {
    let (status, word) = match state {
        RunState::Complete => return None,
        RunState::Interrupted => (Status::Suspect, "was interrupted"),
        RunState::Killed => (Status::Suspect, "was killed, or still runs"),
        RunState::Failed => (Status::Invalid, failed_by(run.session.failed)),
    };
    Some(Reason {
        phase: None,
        name: "incomplete".to_owned(),
        status,
        value: results.iter().filter(|phase| phase.end_time_ns.is_some()).count() as f64,
        limit: results.len() as f64,
        says: format!("The run {word}: the figures are those of what was measured until then."),
    })
}

fn failed_by(by: Option<FailedBy>) -> &'static str {
    match by {
        Some(FailedBy::EndpointIdle) => {
            "failed: nothing came from the endpoint for as long as \
             `limits.endpoint_response_idle_timeout` allows, though requests were in flight"
        }
        Some(FailedBy::RunTimeout) => "failed: it was not over within `limits.run_timeout`",
        Some(FailedBy::Transport) => "failed: its connections gave up",
        Some(FailedBy::Pacer) => "failed: its pacer, which said when to send, has gone",
        Some(FailedBy::Internal) => "failed by a fault of takt",
        None => "failed",
    }
}

fn partial_records(results: &[PhaseResult]) -> Reason {
    let held: u64 = results.iter().map(|phase| phase.issued).sum();
    Reason {
        phase: None,
        name: "partial_records".to_owned(),
        status: Status::Suspect,
        value: held as f64,
        limit: 0.0,
        says: format!(
            "The journal holds only a part of the requests, as it was told to: counts are of the {held} \
             that it holds, distributions of these, and what needs all of them is absent."
        ),
    }
}

/// Did the sends follow the schedule? For open loops.
fn schedule(bench: &mut Bench<'_>, phase: &PhaseFold, result: &PhaseResult, limits: &Limits) {
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
    let cut = matches!(phase.ended_by, Some(EndedBy::Duration | EndedBy::Stop | EndedBy::Failure));
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

/// Requests that this side gave up, by a signal, by `run_timeout` or for want of its pacer: what the server
/// would have made of them nobody knows. A phase that is cut short has no others without an answer.
fn given_up(run: &RunFold, phase: &PhaseFold) -> u64 {
    let ours = matches!(run.session.failed, Some(FailedBy::RunTimeout | FailedBy::Pacer));
    let cut = run.session.interrupted || ours;
    let cut_short = matches!(phase.state, Some(PhaseState::Interrupted | PhaseState::Failed));
    if cut && cut_short { phase.unanswered } else { 0 }
}

/// What the answers say, those that were `given_up` before they could come left out.
fn service(
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
    let disagreeing = tokens.disagreeing as f64 / phase.succeeded.max(1) as f64;
    bench.above("token_counts", disagreeing, limits.disagreeing, || {
        format!("The token counts of {} requests contradict each other.", tokens.disagreeing)
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

/// What the instrument says of itself.
fn machine(bench: &mut Bench<'_>, result: &PhaseResult, limits: &Limits) {
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
    let bound = result.load.rate.is_none() && busy > limits.busy;
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

/// The delay of Linux's acknowledgement, and what a busy machine adds.
const PLATEAU_MS: RangeInclusive<f64> = 39.0..=46.0;
/// Every fourth event came with the one before.
const PLATEAU_COALESCED: f64 = 0.25;

/// Where reasons are collected.
struct Bench<'a> {
    phase: &'a str,
    reasons: &'a mut Vec<Reason>,
}

impl Bench<'_> {
    /// A quantity that should not be above its limit.
    fn above(&mut self, name: &str, value: f64, limit: f64, says: impl FnOnce() -> String) {
        if let Some(status) = grade(value, limit, f64::gt) {
            self.push(name, status, value, limit, says);
        }
    }

    /// A count that should not reach its limit.
    fn reaches(&mut self, name: &str, value: f64, limit: f64, says: impl FnOnce() -> String) {
        if let Some(status) = grade(value, limit, f64::ge) {
            self.push(name, status, value, limit, says);
        }
    }

    fn push(
        &mut self,
        name: &str,
        status: Status,
        value: f64,
        limit: f64,
        says: impl FnOnce() -> String,
    ) {
        let phase = (!self.phase.is_empty()).then(|| self.phase.to_owned());
        self.reasons.push(Reason {
            phase,
            name: name.to_owned(),
            status,
            value,
            limit,
            says: says(),
        });
    }
}

fn grade(value: f64, limit: f64, meets: fn(&f64, &f64) -> bool) -> Option<Status> {
    match () {
        () if meets(&value, &(10.0 * limit)) => Some(Status::Invalid),
        () if meets(&value, &limit) => Some(Status::Suspect),
        () => None,
    }
}
