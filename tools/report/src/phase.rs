//! The state of one phase while records come in.
//!
//! Every issued request lands in exactly one of `succeeded`, `failed`, `unanswered` and `late`, or is
//! still in flight. `late` is what ended after its phase was over: it enters nothing else, here or in
//! the phase that runs by then.

use takt_record::{
    Completed, ConversationRecord, EndedBy, EndpointCounts, ErrorKind, Failure, FinishReason,
    Health, Issued, Outcome, PhaseEvent, PhaseKind, PhasePlan, PhaseState,
};
use takt_time::Nanos;

use crate::gone::Gone;
use crate::health::HealthSpan;
use crate::samples::ErrorSamples;
use crate::slo::Slo;
use crate::steady::SteadyWindow;
use crate::streams::Streams;
use crate::talks::Talks;
use crate::tracked::Tracked;
use crate::windows::Windows;

/// Counts, moments and, for a performance phase, distributions.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseFold {
    pub(crate) issued: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) unanswered: u64,
    pub(crate) late: u64,
    pub(crate) inherited: u64,
    pub(crate) retried: u64,
    /// Ended in time and overlapped a profiler window, and those of them that succeeded.
    pub(crate) profiled: u64,
    pub(crate) profiled_ok: u64,
    /// Successes that ended outside of windows, and their output tokens.
    pub(crate) clear: u64,
    pub(crate) clear_tokens: u64,
    pub(crate) errors: [u64; ErrorKind::ALL.len()],
    pub(crate) finish: [u64; FinishReason::ALL.len()],
    pub(crate) samples: ErrorSamples,
    /// By endpoint, as far as any was used; their addresses are the plan's.
    pub(crate) endpoints: Vec<EndpointCounts>,
    pub(crate) started: Option<Nanos>,
    pub(crate) tracking_started: Option<Nanos>,
    pub(crate) issuing_ended: Option<Nanos>,
    pub(crate) tracking_stopped: Option<Nanos>,
    pub(crate) ended: Option<Nanos>,
    pub(crate) ended_by: Option<EndedBy>,
    pub(crate) state: Option<PhaseState>,
    /// Sends of requests that ended, and when the schedule wanted these same sends.
    pub(crate) sent: Extent,
    pub(crate) scheduled: Extent,
    pub(crate) gone: Gone,
    pub(crate) in_flight: u64,
    /// When `in_flight` was last accounted for, and how often it changed.
    pub(crate) changed: Nanos,
    pub(crate) changes: u64,
    pub(crate) steady: SteadyWindow,
    /// One span for each reactor that worked on the phase.
    pub(crate) health: Vec<HealthSpan>,
    pub(crate) anomalies: u64,
    /// Streams are asked for.
    pub(crate) streams: bool,
    pub(crate) tracked: Option<Box<Tracked>>,
    pub(crate) talks: Box<Talks>,
}

/// From the first to the last of some instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: Option<Nanos>,
    pub(crate) last: Option<Nanos>,
    /// How many.
    pub(crate) count: u64,
}

/// What requests are folded with, besides their phase.
pub(crate) struct With<'a> {
    pub(crate) streams: &'a mut Streams,
    pub(crate) windows: &'a Windows,
}

impl PhaseFold {
    /// A phase that has not begun.
    pub(crate) fn new(plan: &PhasePlan) -> Self {
        let tracked = (plan.kind == PhaseKind::Performance).then(Box::default);
        Self { tracked, streams: plan.stream, steady: SteadyWindow::new(plan), ..Self::default() }
    }

    /// Something happened to the phase.
    pub(crate) fn event(
        &mut self,
        at: Nanos,
        event: PhaseEvent,
        health: Option<Health>,
        windows: &Windows,
    ) {
        match event {
            PhaseEvent::Started { inherited } => {
                self.inherited = u64::from(inherited);
                self.started = Some(at);
                self.changed = at;
                self.health = vec![HealthSpan::new(at, health)];
                if let Some(tracked) = &mut self.tracked {
                    tracked.timeline(at);
                }
            }
            PhaseEvent::TrackingStarted => self.tracking_started = Some(at),
            PhaseEvent::IssuingEnded { by } => {
                self.dwell(at, windows);
                self.issuing_ended = Some(at);
                self.ended_by = Some(by);
            }
            PhaseEvent::TrackingStopped => self.tracking_stopped = Some(at),
            PhaseEvent::Ended { state } => {
                self.dwell(at, windows);
                self.ended = Some(at);
                self.state = Some(state);
                self.health.iter_mut().for_each(|span| span.end(at));
                if let Some(tracked) = &mut self.tracked {
                    tracked.freeze();
                }
                self.talks.freeze();
            }
        }
    }

    /// A request was issued.
    pub(crate) fn issue(&mut self, issued: &Issued, windows: &Windows) {
        self.dwell(issued.at, windows);
        self.issued += 1;
        self.in_flight += 1;
        if let Some(tracked) = &mut self.tracked {
            tracked.timeline(issued.at).bin(issued.at).issued += 1;
            let tokens = tracked.output.sum();
            let ended = self.issued - self.in_flight;
            self.steady.issue(issued.at, self.in_flight, ended, self.succeeded, tokens);
            if let Some(turn) = issued.turn {
                self.talks.issued(turn.turn, tracked.latency.from_send.keeps_values());
            }
        }
    }

    /// A conversation began or ended.
    pub(crate) fn conversation(&mut self, record: &ConversationRecord, windows: &Windows) {
        self.talks.conversation(record, windows);
        if let Some(tracked) = &self.tracked {
            let tokens = tracked.output.sum();
            let active = self.talks.active();
            self.steady.conversation(record, active, self.succeeded, tokens);
        }
    }

    /// A request failed, in these words.
    pub(crate) fn error(&mut self, failure: &Failure, message: &str) {
        if self.ended.is_none() {
            self.samples.record(failure, message);
        }
    }

    /// A request ended.
    pub(crate) fn complete(&mut self, done: &Completed, with: With<'_>, slo: Option<&Slo>) {
        let With { streams, windows } = with;
        self.dwell(done.times.end, windows);
        match self.in_flight.checked_sub(1) {
            Some(rest) => self.in_flight = rest,
            None => self.anomalies += 1,
        }
        if let Some(sent) = done.times.sent {
            self.sent.take(sent);
            if let Some(scheduled) = done.times.scheduled {
                self.scheduled.take(scheduled);
            }
        }
        self.spread(done);
        if self.ended.is_some() {
            self.late += 1;
            streams.end(done.key, |_| ());
            return;
        }
        self.retried += u64::from(done.attempts > 1);
        let profiled = windows.overlap(&done.times);
        self.profiled += u64::from(profiled);
        if let Some(tracked) = &mut self.tracked {
            if !profiled {
                tracked.ended(done);
            }
            if let Some(turn) = done.turn {
                self.talks.completed(turn.turn, done, profiled);
            }
        }
        match done.outcome {
            Outcome::Ok => {
                self.succeeded += 1;
                self.gone.succeeded(done.times.end);
                if let Some(reason) = done.finish {
                    self.finish[usize::from(reason.code())] += 1;
                }
                self.profiled_ok += u64::from(profiled);
                if !windows.meet(done.times.end, done.times.end) {
                    self.clear += 1;
                    self.clear_tokens += u64::from(done.tokens.output.unwrap_or(0));
                }
                if let Some(tracked) = &mut self.tracked {
                    if profiled {
                        tracked.set_aside(done);
                        streams.end(done.key, |_| ());
                    } else {
                        tracked.succeeded(done, streams, slo);
                        tracked.came(done, self.streams);
                    }
                }
            }
            Outcome::Failed(failure) => {
                self.failed += 1;
                self.gone.failed(done.times.issued, done.times.end);
                self.errors[usize::from(failure.kind.code())] += 1;
                if let Some(tracked) = &mut self.tracked {
                    tracked.timeline(done.times.end).bin(done.times.end).failed += 1;
                    streams.end(done.key, |_| ());
                }
            }
            Outcome::Unanswered => {
                self.unanswered += 1;
                streams.end(done.key, |_| ());
            }
        }
    }

    /// Counts a request under its endpoint.
    fn spread(&mut self, done: &Completed) {
        let endpoint = usize::from(done.endpoint);
        if self.endpoints.len() <= endpoint {
            self.endpoints.resize(endpoint + 1, EndpointCounts::default());
        }
        let counts = &mut self.endpoints[endpoint];
        let in_time = self.ended.is_none();
        counts.ended += 1;
        counts.succeeded += u64::from(in_time && done.outcome == Outcome::Ok);
        counts.failed += u64::from(in_time && done.outcome.failure().is_some());
    }

    /// What is in flight will never be answered.
    pub(crate) fn forsake(&mut self) {
        let left = std::mem::take(&mut self.in_flight);
        *(if self.ended.is_some() { &mut self.late } else { &mut self.unanswered }) += left;
    }

    /// All contradictions seen in this phase.
    pub(crate) fn all_anomalies(&self) -> u64 {
        let tracked = self.tracked.as_ref().map_or(0, |tracked| tracked.anomalies);
        self.anomalies + tracked + self.talks.anomalies
    }

    /// Adds what another reactor's fold saw of the same phase.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.started.is_none() && other.issued == 0 {
            return;
        }
        if self.started.is_none() && self.issued == 0 {
            self.clone_from(other);
            return;
        }
        for (mine, theirs) in [
            (&mut self.issued, other.issued),
            (&mut self.succeeded, other.succeeded),
            (&mut self.failed, other.failed),
            (&mut self.unanswered, other.unanswered),
            (&mut self.late, other.late),
            (&mut self.inherited, other.inherited),
            (&mut self.retried, other.retried),
            (&mut self.profiled, other.profiled),
            (&mut self.profiled_ok, other.profiled_ok),
            (&mut self.clear, other.clear),
            (&mut self.clear_tokens, other.clear_tokens),
            (&mut self.in_flight, other.in_flight),
            (&mut self.anomalies, other.anomalies),
        ] {
            *mine += theirs;
        }
        self.errors.iter_mut().zip(other.errors).for_each(|(mine, theirs)| *mine += theirs);
        self.finish.iter_mut().zip(other.finish).for_each(|(mine, theirs)| *mine += theirs);
        self.samples.merge(&other.samples);
        let most = self.endpoints.len().max(other.endpoints.len());
        self.endpoints.resize(most, EndpointCounts::default());
        for (mine, theirs) in self.endpoints.iter_mut().zip(&other.endpoints) {
            mine.ended += theirs.ended;
            mine.succeeded += theirs.succeeded;
            mine.failed += theirs.failed;
        }
        let least = |a: Option<Nanos>, b: Option<Nanos>| a.into_iter().chain(b).min();
        self.started = least(self.started, other.started);
        self.tracking_started = least(self.tracking_started, other.tracking_started);
        // It has ended when it has for all.
        let last = |a: Option<Nanos>, b: Option<Nanos>| a.zip(b).map(|(a, b)| a.max(b));
        self.issuing_ended = last(self.issuing_ended, other.issuing_ended);
        self.tracking_stopped = last(self.tracking_stopped, other.tracking_stopped);
        self.ended = last(self.ended, other.ended);
        self.ended_by = self.ended_by.or(other.ended_by).filter(|_| self.issuing_ended.is_some());
        self.state = self.state.max(other.state).filter(|_| self.ended.is_some());
        self.sent.merge(other.sent);
        self.gone.merge(other.gone);
        self.scheduled.merge(other.scheduled);
        self.steady = SteadyWindow::default();
        self.talks.merge(&other.talks);
        self.health.extend_from_slice(&other.health);
        match (&mut self.tracked, &other.tracked) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.clone()),
        }
        if let (Some(_), Some(tracked)) = (self.ended, &mut self.tracked) {
            tracked.freeze();
        }
    }

    /// Accounts for the time since `in_flight` last changed.
    fn dwell(&mut self, now: Nanos, windows: &Windows) {
        let span = now.saturating_since(self.changed);
        self.changes += 1;
        if let Some(tracked) = &mut self.tracked
            && self.started.is_some()
            && self.ended.is_none()
        {
            tracked.timeline(self.changed).dwell(self.in_flight, self.changed, span);
            if self.issuing_ended.is_none() {
                let shut = windows.covered(self.changed, now).as_nanos();
                tracked.in_flight.record_n(self.in_flight, span.as_nanos() - shut);
            }
        }
        self.changed = self.changed.max(now);
    }
}

impl Extent {
    /// Includes an instant.
    pub(crate) fn take(&mut self, at: Nanos) {
        self.count += 1;
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(Some(at));
    }

    /// From first to last; `None` of nothing.
    pub(crate) fn span(self) -> Option<takt_time::Span> {
        Some(self.last?.saturating_since(self.first?))
    }

    fn merge(&mut self, other: Self) {
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        self.count += other.count;
    }
}
