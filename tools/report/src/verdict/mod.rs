//! The judgement that every result ends in.
//!
//! A reason has a figure and a limit: *suspect* past the limit, *invalid* past ten times it. A share that
//! must not fall below a limit is judged by what is missing. A remark (`client_bound`) says what the
//! figures mean and takes nothing from them.

mod limits;
mod machine;
mod schedule;
mod service;

use takt_record::{FailedBy, PhaseResult, Reason, RunState, Verdict, VerdictStatus as Status};

pub use limits::Limits;

use crate::fold::RunFold;

/// Judges a run.
pub(crate) fn judge(
    run: &RunFold,
    state: RunState,
    results: &[PhaseResult],
    limits: &Limits,
) -> Verdict {
    let mut reasons = Vec::new();
    reasons.extend(unfinished_run(run, state, results));
    reasons.extend(run.left_out.map(left_out_records));
    reasons.extend(run.partial.then(|| partial_records(results)));
    for (phase, result) in run.phases.iter().zip(results) {
        let mut bench = Bench { phase: Some(&result.name), reasons: &mut reasons };
        if phase.tracked.is_some() && phase.issued == 0 && phase.issuing_ended.is_some() {
            bench.push("nothing_sent", Status::Invalid, 0.0, 1.0, || {
                "No request was sent: there is nothing to judge.".to_owned()
            });
        }
        if phase.tracked.is_some() && phase.issued > 0 {
            // These two compare with what was planned, and what was counted elsewhere.
            if !run.partial {
                schedule::schedule(&mut bench, phase, result, limits);
                machine::machine(&mut bench, result, limits);
            }
            service::service(&mut bench, phase, result, service::given_up(run, phase), limits);
        }
        let anomalies = phase.all_anomalies() as f64;
        bench.reaches("anomalies", anomalies, 1.0, || {
            format!("{anomalies} records contradict the clock or each other: a fault of takt.")
        });
    }
    whole_run(run, &mut reasons);
    let status = reasons.iter().map(|reason| reason.status).max().unwrap_or(Status::Valid);
    Verdict { status, reasons }
}

fn unfinished_run(run: &RunFold, state: RunState, results: &[PhaseResult]) -> Option<Reason> {
    let (status, word) = match state {
        RunState::Complete => return None,
        RunState::Interrupted => (Status::Suspect, "was interrupted"),
        RunState::Killed if run.left_out.is_some() => {
            (Status::Suspect, "was killed, or still runs, or the records of its end are lost")
        }
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

fn left_out_records(bytes: u64) -> Reason {
    let behind = match bytes {
        0 => String::new(),
        _ => format!(": {bytes} bytes of the files that are there are left out"),
    };
    Reason {
        phase: None,
        name: "records_left_out".to_owned(),
        status: Status::Suspect,
        value: bytes as f64,
        limit: 0.0,
        says: format!(
            "The journal is damaged, cut short or not all there, as is said at the end{behind}. \
             What was recorded in what is missing is in no figure."
        ),
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
            "There are records of only a part of the requests: counts are of these {held}, distributions \
             too, and what needs all of them is absent."
        ),
    }
}

/// What holds of the run as a whole.
fn whole_run(run: &RunFold, reasons: &mut Vec<Reason>) {
    let mut bench = Bench { phase: None, reasons };
    if run.plan.config.pointer("/connections/tls/insecure") == Some(&true.into()) {
        bench.push("certificates_unchecked", Status::Valid, 1.0, 0.0, || {
            "No TLS certificate was checked (insecure): nothing shows that the server which answered \
             is the one that was meant."
                .to_owned()
        });
    }
    let strays = run.strays as f64;
    bench.reaches("strays", strays, 1.0, || {
        format!("{strays} records belong to no phase of the plan: a fault of takt.")
    });
}

/// Where reasons are collected.
struct Bench<'a> {
    phase: Option<&'a str>,
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
        let phase = self.phase.map(str::to_owned);
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
