//! Records in, state out: the one fold behind live view, snapshot, result and report.
//!
//! Memory does not grow with the number of requests. Per session: the slab of open streams. Per
//! performance phase while it runs: some twenty histograms of at most 300 KiB (mostly far less) and a
//! time line of at most 512 bins; afterwards the values that occurred. Per phase of any kind: counts
//! and at most 26 error samples.

use std::collections::VecDeque;

use takt_record::{
    Counted, FailedBy, Fold, Health, PhaseEvent, PhaseId, Record, RequestKey, RunState,
    SessionEvent, SessionPlan,
};
use takt_time::Nanos;

use crate::live::Mark;
use crate::phase::{PhaseFold, With};
use crate::slo::Slo;
use crate::streams::Streams;
use crate::tracked::Tracked;
use crate::windows::Windows;

/// The fold of a session's records.
///
/// ```
/// # use takt_record::{Fold, Record, SessionPlan};
/// # fn demo(plan: SessionPlan, records: &[Record<'_>]) {
/// let mut fold = takt_report::RunFold::new(plan);
/// for record in records {
///     fold.fold(record);
/// }
/// let result = fold.result(&takt_report::Limits::default());
/// println!("{}", takt_report::render(&result));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RunFold {
    pub(crate) plan: SessionPlan,
    pub(crate) phases: Vec<PhaseFold>,
    pub(crate) slo: Option<Slo>,
    /// The phase that started last.
    pub(crate) current: Option<usize>,
    pub(crate) session: SessionFlags,
    pub(crate) first_at: Option<Nanos>,
    pub(crate) last_at: Nanos,
    /// Records of phases or requests that the plan does not know.
    pub(crate) strays: u64,
    pub(crate) marks: VecDeque<Mark>,
    pub(crate) counted: Counted,
    /// The records are not those of every request.
    pub(crate) partial: bool,
    /// Bytes of records that could not be read, if any could not.
    pub(crate) left_out: Option<u64>,
    /// How the session ended, by somebody who was there.
    pub(crate) known_end: Option<RunState>,
    /// Times at which the server was profiled.
    pub(crate) windows: Windows,
    streams: Streams,
    last_health: Option<Health>,
}

/// What happened to the session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionFlags {
    pub(crate) interrupted: bool,
    pub(crate) failed: Option<FailedBy>,
    pub(crate) ended: bool,
}

impl RunFold {
    /// A fold before the first record of the session that `plan` describes.
    #[must_use]
    pub fn new(plan: SessionPlan) -> Self {
        let mut fold = Self {
            phases: plan.phases.iter().map(PhaseFold::new).collect(),
            slo: Slo::of(&plan),
            plan,
            current: None,
            session: SessionFlags::default(),
            first_at: None,
            last_at: Nanos::ZERO,
            strays: 0,
            marks: VecDeque::new(),
            counted: Counted::Histograms,
            partial: false,
            left_out: None,
            known_end: None,
            windows: Windows::default(),
            streams: Streams::default(),
            last_health: None,
        };
        fold.count_from_arrival();
        fold
    }

    /// Has the time to the first token end when it arrived, where the configuration asks for that.
    fn count_from_arrival(&mut self) {
        let asked =
            self.plan.config.pointer("/engine/ttft_until").and_then(serde_json::Value::as_str);
        for tracked in self.phases.iter_mut().filter_map(|phase| phase.tracked.as_mut()) {
            tracked.by_arrival = asked == Some("arrival");
        }
    }

    /// The same, for percentiles that are exact: every value of every series is kept, eight bytes each.
    #[must_use]
    pub fn of_values(plan: SessionPlan) -> Self {
        let mut fold = Self::new(plan);
        fold.counted = Counted::Values;
        for phase in &mut fold.phases {
            if let Some(tracked) = &mut phase.tracked {
                **tracked = Tracked::of_values();
            }
            phase.talks.keep_values();
        }
        fold.count_from_arrival();
        fold
    }

    /// The records are those of a part of the requests only (a sample, or those before a size cap). The
    /// result then says so, and has no figure that needs all of them.
    pub fn set_partial(&mut self) {
        self.partial = true;
    }

    /// Whether [`set_partial`](Self::set_partial) was said.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Further records are lost, in so many bytes. Whether the session ended is then not known, and the
    /// result says both.
    pub fn leave_out(&mut self, bytes: u64) {
        let before = self.left_out.unwrap_or(0);
        self.left_out = Some(before.saturating_add(bytes));
    }

    /// The session ended so, and for this if it failed, though its records may not say it.
    pub fn ended_as(&mut self, state: RunState, failed: Option<FailedBy>) {
        self.known_end = Some(state);
        self.session.failed = self.session.failed.or(failed);
    }

    /// The plan that it was made for.
    #[must_use]
    pub fn plan(&self) -> &SessionPlan {
        &self.plan
    }

    /// Adds what another reactor of the same session saw: each request in one fold only, the life of
    /// session and phases in both. Counts and histograms add up; the steady window and the distribution
    /// of in-flight counts of a phase that both worked on are given up, since they do not add.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.phases.iter_mut().zip(&other.phases) {
            mine.merge(theirs);
        }
        self.current = self.current.max(other.current);
        self.session.interrupted |= other.session.interrupted;
        self.session.failed = self.session.failed.or(other.session.failed);
        // Of a run that was killed some reactors may have ended before. Who saw nothing does not count.
        let ended = |fold: &Self| fold.session.ended || fold.first_at.is_none();
        self.session.ended = ended(self) && ended(other);
        self.first_at = self.first_at.into_iter().chain(other.first_at).min();
        self.last_at = self.last_at.max(other.last_at);
        self.strays += other.strays;
        self.partial |= other.partial;
        self.windows.merge(&other.windows);
    }

    fn phase(&mut self, phase: PhaseId) -> Option<&mut PhaseFold> {
        let found = self.phases.get_mut(usize::from(phase.0));
        self.strays += u64::from(found.is_none());
        found
    }

    /// Is `key` of a phase whose token events count?
    fn tracks(&self, key: RequestKey) -> bool {
        let phase = self.phases.get(usize::from(key.phase.0));
        phase.is_some_and(|phase| phase.tracked.is_some() && phase.ended.is_none())
    }

    /// The session is over: what was still in flight will never be answered. Only a fault of takt leaves
    /// anything, since a session gives up and counts what it does not wait for.
    fn ended(&mut self) {
        self.session.ended = true;
        self.phases.iter_mut().for_each(PhaseFold::forsake);
    }

    fn read_health(&mut self, reading: &Health) {
        self.last_health = Some(*reading);
        if let Some(current) = self.current {
            self.phases[current].health.iter_mut().for_each(|span| span.read(reading));
        }
    }
}

impl RunFold {
    /// Takes in what a tokenizer counted of a success that has been folded, beside the count that its server
    /// `stated`; `None` when it could not be counted.
    pub fn tokenizer_counted(&mut self, phase: PhaseId, stated: Option<u32>, counted: Option<u32>) {
        if let Some(phase) = self.phase(phase)
            && let Some(tracked) = &mut phase.tracked
        {
            tracked.counted.add(stated, counted);
        }
    }
}

impl Fold for RunFold {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Token(token) => {
                if self.tracks(token.key)
                    && self.streams.token(token).is_err()
                    && let Some(phase) = self.phase(token.key.phase)
                {
                    phase.anomalies += 1;
                }
            }
            Record::Issued(issued) => match self.phases.get_mut(usize::from(issued.key.phase.0)) {
                Some(phase) => phase.issue(issued, &self.windows),
                None => self.strays += 1,
            },
            Record::Completed(done) => match self.phases.get_mut(usize::from(done.key.phase.0)) {
                Some(phase) => {
                    let with = With { streams: &mut self.streams, windows: &self.windows };
                    phase.complete(done, with, self.slo.as_ref());
                }
                None => self.strays += 1,
            },
            Record::Error { key, failure, message, .. } => {
                if let Some(phase) = self.phase(key.phase) {
                    phase.error(failure, message);
                }
            }
            Record::Conversation(talk) => match self.phases.get_mut(usize::from(talk.phase.0)) {
                Some(phase) => phase.conversation(talk, &self.windows),
                None => self.strays += 1,
            },
            Record::Phase(phase) => {
                let health = self.last_health;
                if let Some(found) = self.phases.get_mut(usize::from(phase.phase.0)) {
                    found.event(phase.at, phase.event, health, &self.windows);
                    if matches!(phase.event, PhaseEvent::Started { .. }) {
                        self.current = Some(usize::from(phase.phase.0));
                        self.marks.clear();
                    }
                } else {
                    self.strays += 1;
                }
            }
            Record::Session(session) => match session.event {
                SessionEvent::Started => {}
                SessionEvent::Interrupted => self.session.interrupted = true,
                SessionEvent::Failed(by) => self.session.failed = Some(by),
                SessionEvent::Ended => self.ended(),
            },
            Record::Window(window) => self.windows.take(window),
            Record::Health(reading) => self.read_health(reading),
            Record::Text(_) | Record::Clock(_) => {}
        }
        let at = record.at();
        self.first_at = self.first_at.or(Some(at));
        self.last_at = self.last_at.max(at);
    }
}
