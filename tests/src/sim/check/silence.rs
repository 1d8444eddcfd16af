//! The watchdog fires exactly when it is due and never otherwise, and so does the session's own time.
//!
//! Silence begins with the last progress, with a phase, or when something came to be in flight. What counts as
//! progress the client knows alone; seen from outside, it is among the instants at which bytes came, and an
//! answer in full or a token is progress for certain. So the moment of a failure must lie the limit behind one of
//! the former and not less behind any of the latter; and where not a byte came for so long, it must have failed.

use takt_record::{FailedBy, Outcome, PhaseEvent};
use takt_time::{Nanos, Span};

use super::Found;
use crate::sim::kept::Kept;
use crate::sim::run::Ran;
use crate::sim::scenario::Transport;

pub(super) fn check(ran: &Ran, found: &mut Found) {
    if ran.scenario.link.call_cost > Span::ZERO {
        return;
    }
    let failed = ran.failed();
    if let Some((at, FailedBy::RunTimeout)) = failed {
        let due = ran.scenario.run_timeout.map(|limit| ran.span.0 + limit);
        found.same(Some(at), due, || "failed for its time".to_owned());
    }
    let at = failed.and_then(|(at, by)| (by == FailedBy::EndpointIdle).then_some(at));
    let Some(timeout) = ran.scenario.idle_timeout else {
        return found.same(at, None, || "failed for silence that nobody watches for".to_owned());
    };
    let mut watch = Watch::new(timeout, at);
    for (at, what) in happenings(ran) {
        watch.take(at, what, found);
    }
    if let Some(at) = at {
        watch.fired(at, found);
    }
}

/// What the watchdog goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Something came.
    Heard,
    /// Progress for certain.
    Progress,
    /// A phase began.
    Phase,
    Issued,
    Ended,
}

/// All of it up to the failure, in order.
fn happenings(ran: &Ran) -> Vec<(Nanos, What)> {
    let planned = matches!(ran.scenario.transport, Transport::Planned(_));
    let mut all: Vec<(Nanos, What)> = ran.heard.iter().map(|&at| (at, What::Heard)).collect();
    for record in &ran.records {
        match record {
            Kept::Session(session) if ran.failed().is_some_and(|(at, _)| at == session.at) => {
                break;
            }
            Kept::Phase(phase) if matches!(phase.event, PhaseEvent::Started { .. }) => {
                all.push((phase.at, What::Phase));
            }
            Kept::Issued(issued) => all.push((issued.at, What::Issued)),
            Kept::Token(token) => all.push((token.at, What::Progress)),
            Kept::Completed(done) => {
                let (end, outcome) = (done.times.end, done.outcome);
                if outcome == Outcome::Ok || (planned && outcome != Outcome::Unanswered) {
                    all.push((end, What::Progress));
                }
                all.push((end, What::Ended));
            }
            _ => {}
        }
    }
    all.sort_by_key(|&(at, _)| at);
    let until = ran.failed().map_or(Nanos::MAX, |(at, _)| at);
    all.retain(|&(at, _)| at <= until);
    all
}

/// The state of a second watchdog, which knows less.
struct Watch {
    timeout: Span,
    /// When the first one fired.
    fired: Option<Nanos>,
    in_flight: u64,
    /// Since when something is in flight. A place that is filled again in the same call was never empty, which
    /// cannot be seen here: hence the earliest and the latest possible.
    since: (Nanos, Nanos),
    emptied: Option<Nanos>,
    heard: Option<Nanos>,
    progress: Option<Nanos>,
    /// Instants at which silence may have begun.
    beginnings: Vec<Nanos>,
}

impl Watch {
    fn new(timeout: Span, fired: Option<Nanos>) -> Self {
        let since = (Nanos::ZERO, Nanos::ZERO);
        let (in_flight, emptied, heard, progress) = (0, None, None, None);
        let beginnings = Vec::new();
        Self { timeout, fired, in_flight, since, emptied, heard, progress, beginnings }
    }

    fn take(&mut self, at: Nanos, what: What, found: &mut Found) {
        let last = self.heard.map_or(self.since.1, |heard| heard.max(self.since.1));
        if self.in_flight > 0
            && at > last + self.timeout
            && self.fired.is_none_or(|fired| at < fired)
        {
            let limit = self.timeout;
            found.say(|| format!("silent from {last:?} to {at:?}, where {limit} are allowed"));
        }
        match what {
            What::Heard => self.heard = Some(at),
            What::Progress => {
                self.heard = Some(at);
                self.progress = Some(at);
            }
            What::Phase => self.since = (at, at),
            What::Issued => {
                if self.in_flight == 0 {
                    self.since.1 = at;
                    if self.emptied != Some(at) {
                        self.since.0 = at;
                    }
                }
                self.in_flight += 1;
            }
            What::Ended => {
                self.in_flight -= 1;
                if self.in_flight == 0 {
                    self.emptied = Some(at);
                }
            }
        }
        if self.beginnings.last() != Some(&at) {
            self.beginnings.push(at);
        }
    }

    fn fired(&self, at: Nanos, found: &mut Found) {
        let since = at.checked_since(Nanos::ZERO + self.timeout).map(|span| Nanos::ZERO + span);
        let one = since.is_some_and(|since| self.beginnings.binary_search(&since).is_ok());
        found.holds(one, || format!("failed for silence at {at:?}: nothing happened before it"));
        let latest = self.progress.map_or(self.since.0, |progress| progress.max(self.since.0));
        let silent = at.saturating_since(latest);
        found.holds(silent >= self.timeout, || format!("failed after {silent} of silence"));
        found.holds(self.in_flight > 0, || "failed for silence with nothing in flight".to_owned());
    }
}
