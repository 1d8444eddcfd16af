//! The fold of a run as it is watched: figures for the report, news for the console.
//!
//! Runs on the recorder's thread.

use std::cell::RefCell;
use std::sync::Arc;

#[cfg(feature = "zmq")]
use takt_record::MetricsSnapshot;
use takt_record::{Fold, PhaseEvent, PhaseId, PhaseRecord, Record, SessionPlan};
use takt_report::{Live, RunFold};
use takt_time::Nanos;

use crate::news::Newsdesk;
use crate::opprof::ServerShared;

/// A [`RunFold`] that says what is new.
#[derive(Debug)]
pub(crate) struct Watched(RefCell<Inner>);

#[derive(Debug)]
struct Inner {
    fold: RunFold,
    news: Newsdesk,
    server: Option<Arc<ServerShared>>,
}

impl Watched {
    /// The fold of `plan`; whoever takes windows of the server hears of phases.
    pub(crate) fn new(
        plan: SessionPlan,
        news: Newsdesk,
        server: Option<Arc<ServerShared>>,
    ) -> Self {
        Self(RefCell::new(Inner { fold: RunFold::new(plan), news, server }))
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
            Record::Error { key, failure, message, .. } => {
                inner.news.error(key.phase, || inner.name(key.phase), failure, message);
            }
            Record::Phase(phase) => {
                if let Some(server) = &inner.server {
                    server.phase(phase);
                }
                inner.phase(phase);
            }
            Record::Session(session) => inner.news.session(session.event),
            _ => {}
        }
    }
}

impl Inner {
    fn name(&self, phase: PhaseId) -> String {
        let plan = self.fold.plan().phases.get(usize::from(phase.0));
        plan.map_or_else(|| phase.0.to_string(), |plan| plan.name.clone())
    }

    fn phase(&mut self, record: &PhaseRecord) {
        let phase = record.phase;
        match record.event {
            PhaseEvent::Started { inherited } => {
                if let Some(plan) = self.fold.plan().phases.get(usize::from(phase.0)) {
                    self.news.begun(phase, plan, inherited.into());
                }
            }
            PhaseEvent::Ended { state } => {
                let live = self.fold.live(record.at);
                self.news.ended(phase, &self.name(phase), state, live);
            }
            PhaseEvent::TrackingStarted
            | PhaseEvent::IssuingEnded { .. }
            | PhaseEvent::TrackingStopped => {}
        }
    }
}
