//! From the state of a fold to the snapshot that subscribers and `final_snapshot.json` get.
//!
//! Cheap enough for a few a second: one walk over each histogram that has values.

use std::borrow::Cow;

use takt_record::{
    FinishReason, Metric, MetricsSnapshot, PhasePlan, PhaseSnapshot, SNAPSHOT_SCHEMA, SnapshotState,
};
use takt_time::Nanos;

use crate::fold::RunFold;
use crate::phase::PhaseFold;
use crate::tracked::Tracked;

impl RunFold {
    /// The figures at `now`, as snapshot number `counter`. `last`: nothing more comes, so that a session
    /// without an end was killed.
    #[must_use]
    pub fn snapshot(&self, counter: u64, now: Nanos, last: bool) -> MetricsSnapshot {
        let over = last || self.session.ended;
        let phases = self.plan.phases.iter().zip(&self.phases);
        MetricsSnapshot {
            schema: Cow::Borrowed(SNAPSHOT_SCHEMA),
            session_id: self.plan.session_id.clone(),
            counter,
            timestamp_ns: now.as_nanos(),
            state: if over { self.state().into() } else { SnapshotState::Live },
            metrics: self.totals(),
            phases: phases.map(|(plan, phase)| of_phase(plan, phase)).collect(),
        }
    }

    /// Sums over phases: `total_` of all of them, `tracked_` of those that are measured.
    fn totals(&self) -> Vec<Metric> {
        let sum = |tracked: bool, count: fn(&PhaseFold) -> u64| -> u64 {
            let phases = self.phases.iter().filter(|phase| !tracked || phase.tracked.is_some());
            phases.map(count).sum()
        };
        let mut metrics = Vec::new();
        for (name, tracked, count) in TOTALS {
            metrics.push(counter(name, sum(*tracked, *count)));
        }
        for (reason, name) in FinishReason::ALL.iter().zip(TRACKED_FINISH_REASONS) {
            let phases = self.phases.iter().filter(|phase| phase.tracked.is_some());
            let count = phases.map(|phase| phase.finish[usize::from(reason.code())]).sum();
            metrics.push(counter(name, count));
        }
        metrics
    }
}

fn of_phase(plan: &PhasePlan, phase: &PhaseFold) -> PhaseSnapshot {
    let mut metrics: Vec<Metric> =
        PHASE_COUNTERS.iter().map(|(name, count)| counter(name, count(phase))).collect();
    if let Some(tracked) = &phase.tracked {
        series(tracked, &mut metrics);
    }
    PhaseSnapshot { name: plan.name.clone(), kind: plan.kind, state: phase.state, metrics }
}

fn series(tracked: &Tracked, metrics: &mut Vec<Metric>) {
    for (name, series) in [
        ("sample_latency_ns", &tracked.latency.from_send),
        ("sample_latency_from_schedule_ns", &tracked.latency.from_schedule),
        ("isl", &tracked.input),
        ("osl", &tracked.output),
        ("ttft_ns", &tracked.ttft.from_send),
        ("ttft_from_schedule_ns", &tracked.ttft.from_schedule),
        ("chunk_delta_ns", &tracked.event_gap),
        ("itl_ns", &tracked.itl),
        ("tpot_ns", &tracked.tpot),
        ("lateness_ns", &tracked.lateness),
    ] {
        metrics.extend(series.snapshot(name).map(Metric::Series));
    }
}

fn counter(name: &'static str, value: u64) -> Metric {
    Metric::Counter { name: Cow::Borrowed(name), value }
}

/// What is counted of a phase.
type Count = fn(&PhaseFold) -> u64;

/// Totals of the session: name, of measured phases only, what.
const TOTALS: &[(&str, bool, Count)] = &[
    ("total_samples_issued", false, |phase| phase.issued),
    ("total_samples_completed", false, |phase| phase.succeeded + phase.failed + phase.late),
    ("total_samples_failed", false, |phase| phase.failed),
    ("total_samples_unanswered", false, |phase| phase.unanswered),
    ("tracked_samples_issued", true, |phase| phase.issued),
    ("tracked_samples_completed", true, |phase| phase.succeeded + phase.failed),
    ("tracked_samples_failed", true, |phase| phase.failed),
    ("tracked_samples_unanswered", true, |phase| phase.unanswered),
];

/// One for each member of [`FinishReason::ALL`].
const TRACKED_FINISH_REASONS: [&str; FinishReason::ALL.len()] = [
    "tracked_finish_reason_stop",
    "tracked_finish_reason_length",
    "tracked_finish_reason_tool_calls",
    "tracked_finish_reason_content_filter",
    "tracked_finish_reason_function_call",
    "tracked_finish_reason_other",
];

const PHASE_COUNTERS: &[(&str, Count)] = &[
    ("samples_issued", |phase| phase.issued),
    ("samples_completed", |phase| phase.succeeded + phase.failed),
    ("samples_succeeded", |phase| phase.succeeded),
    ("samples_failed", |phase| phase.failed),
    ("samples_unanswered", |phase| phase.unanswered),
    ("samples_late", |phase| phase.late),
    ("samples_in_flight", |phase| phase.in_flight),
    ("samples_retried", |phase| phase.retried),
];
