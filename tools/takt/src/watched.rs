//! The fold of a run as it is watched: figures for the report, news for the console.
//!
//! Runs on the recorder's thread. News are few: the life of phases and the first of each kind of error.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
#[cfg(feature = "zmq")]
use takt_record::MetricsSnapshot;
use takt_record::{
    ErrorKind, FailedBy, Fold, PhaseEvent, PhaseId, PhaseKind, PhaseState, Record, SessionEvent,
    SessionPlan,
};
use takt_report::{Live, RunFold};
use takt_time::Nanos;

use crate::console::Console;
use crate::opprof::ServerShared;

/// Something worth a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// As expected.
    Plain(String),
    /// It may spoil the measurement.
    Bad(String),
}

/// A [`RunFold`] and what is new since the last look.
#[derive(Debug)]
pub(crate) struct Watched(RefCell<Inner>);

#[derive(Debug)]
struct Inner {
    fold: RunFold,
    news: Vec<News>,
    seen: BTreeSet<(PhaseId, ErrorKind, Option<u16>)>,
    server: Option<Arc<ServerShared>>,
}

impl Watched {
    /// The fold of `plan`; whoever takes windows of the server hears of phases.
    pub(crate) fn new(plan: SessionPlan, server: Option<Arc<ServerShared>>) -> Self {
        let (fold, seen) = (RunFold::new(plan), BTreeSet::new());
        Self(RefCell::new(Inner { fold, news: Vec::new(), seen, server }))
    }

    /// What is new since the last call.
    pub(crate) fn news(&self) -> Vec<News> {
        std::mem::take(&mut self.0.borrow_mut().news)
    }

    /// Says what is new of faults; of the rest another tells.
    pub(crate) fn tell_faults(&self, console: &Console) {
        for news in self.news() {
            if let News::Bad(says) = news {
                console.warn(says);
            }
        }
    }

    /// Adds what another reactor saw.
    pub(crate) fn merge(&mut self, other: Self) {
        self.0.get_mut().fold.merge(&other.into_fold());
    }

    /// The running phase.
    pub(crate) fn live(&self, now: Nanos) -> Option<Live> {
        self.0.borrow_mut().fold.live(now)
    }

    /// All figures at `now`, as snapshot number `counter`.
    #[cfg(feature = "zmq")]
    pub(crate) fn snapshot(&self, counter: u64, now: Nanos, last: bool) -> MetricsSnapshot {
        self.0.borrow().fold.snapshot(counter, now, last)
    }

    pub(crate) fn into_fold(self) -> RunFold {
        self.0.into_inner().fold
    }
}

impl Fold for Watched {
    fn fold(&mut self, record: &Record<'_>) {
        let inner = self.0.get_mut();
        inner.fold.fold(record);
        match record {
            Record::Error { key, failure, message, .. }
                if inner.seen.len() < MAX_SEEN
                    && inner.seen.insert((key.phase, failure.kind, failure.status)) =>
            {
                let (name, kind) = (inner.name(key.phase), failure.kind);
                let says = format!("phase {name}: first {kind}: {}", one_line(message));
                inner.news.push(News::Bad(says));
            }
            Record::Phase(phase) => {
                if let Some(server) = &inner.server {
                    server.phase(phase);
                }
                inner.phase(phase.at, phase.phase, phase.event);
            }
            Record::Session(session) => inner.session(session.event),
            _ => {}
        }
    }
}

impl Inner {
    fn name(&self, phase: PhaseId) -> String {
        let plan = self.fold.plan().phases.get(usize::from(phase.0));
        plan.map_or_else(|| phase.0.to_string(), |plan| plan.name.clone())
    }

    fn phase(&mut self, at: Nanos, phase: PhaseId, event: PhaseEvent) {
        let name = self.name(phase);
        let says = match event {
            PhaseEvent::Started { inherited } => {
                let Some(plan) = self.fold.plan().phases.get(usize::from(phase.0)) else { return };
                let level = match (plan.ramp, plan.rate, plan.target_concurrency) {
                    (Some(ramp), ..) => format!(" {} to {}/s", ramp.from, ramp.to),
                    // Of a recording the mean has no end of digits.
                    (None, Some(rate), _) => format!(" {}/s", (rate * 1e3).round() / 1e3),
                    (None, None, Some(target)) => format!(" {target}"),
                    (None, None, None) => String::new(),
                };
                let what = match plan.kind {
                    PhaseKind::Warmup => "warm-up, ",
                    PhaseKind::Accuracy => "accuracy, ",
                    PhaseKind::Performance => "",
                };
                let inherited = match inherited {
                    0 => String::new(),
                    n => format!(", {n} requests of earlier phases in flight"),
                };
                format!("phase {name}: {what}{}{level}{inherited}", plan.pattern)
            }
            PhaseEvent::Ended { state } => {
                let Some(live) = self.fold.live(at) else { return };
                let mut says = format!(
                    "phase {name}: {state} after {:.1} s: {} issued, {} succeeded",
                    live.elapsed.as_secs_f64(),
                    live.issued,
                    live.completed - live.failed,
                );
                let more = [
                    (live.failed, "failed"),
                    (live.unanswered, "unanswered"),
                    (live.in_flight, "still in flight"),
                ];
                for (n, what) in more {
                    if n > 0 {
                        says.push_str(&format!(", {n} {what}"));
                    }
                }
                let plan = self.fold.plan();
                let reactors = plan.config.pointer("/engine/reactors").and_then(Value::as_u64);
                if let Some(count) = reactors.filter(|count| *count > 1) {
                    says.push_str(&format!(" by one of {count} reactors"));
                }
                if state != PhaseState::Complete {
                    return self.news.push(News::Bad(says));
                }
                says
            }
            PhaseEvent::TrackingStarted
            | PhaseEvent::IssuingEnded { .. }
            | PhaseEvent::TrackingStopped => return,
        };
        self.news.push(News::Plain(says));
    }

    fn session(&mut self, event: SessionEvent) {
        let says = match event {
            SessionEvent::Started | SessionEvent::Ended => return,
            SessionEvent::Interrupted => "stop: no more requests, waiting for those in flight",
            SessionEvent::Failed(FailedBy::Transport) => "the connections gave up: the run ends",
            SessionEvent::Failed(FailedBy::EndpointIdle) => "the endpoint is silent: the run ends",
            SessionEvent::Failed(FailedBy::RunTimeout) => "the run's time is over: it ends",
            SessionEvent::Failed(FailedBy::Pacer) => "the pacer has gone: the run ends",
            SessionEvent::Failed(FailedBy::Internal) => "a fault of takt: the run ends",
        };
        self.news.push(News::Bad(says.to_owned()));
    }
}

/// What a server said, on one line and without control over the terminal.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(MESSAGE_CHARS).collect()
}

const MESSAGE_CHARS: usize = 160;

/// Kinds of errors that are told of: a server may make up a new status for every answer.
const MAX_SEEN: usize = 256;

#[cfg(test)]
mod tests {
    use takt_record::{Blame, Failure, PhasePlan, RequestKey, Stage};

    use super::*;

    fn watched() -> Watched {
        let phase = PhasePlan {
            name: "perf".into(),
            kind: PhaseKind::Performance,
            pattern: "poisson".into(),
            rate: Some(50.0),
            ramp: None,
            target_concurrency: None,
            requests: None,
            stream: true,
            conversations: None,
        };
        Watched::new(SessionPlan { phases: vec![phase], ..SessionPlan::default() }, None)
    }

    fn error(status: u16, message: &str) -> Record<'_> {
        let failure = Failure {
            kind: ErrorKind::HttpStatus,
            blame: Blame::Server,
            stage: Stage::Head,
            status: Some(status),
        };
        Record::Error { at: Nanos::ZERO, key: RequestKey::default(), failure, message }
    }

    #[test]
    fn each_kind_of_error_is_news_once_a_phase() {
        let mut watched = watched();
        for (status, message) in [(500, "a\u{1b}[2J\nb"), (500, "again"), (429, "slow down")] {
            watched.fold(&error(status, message));
        }
        let expected = ["a [2J b", "slow down"]
            .map(|says| News::Bad(format!("phase perf: first http_status: {says}")));
        assert_eq!(watched.news(), expected);
        assert_eq!(watched.news(), []);
    }
}
