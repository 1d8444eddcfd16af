//! What a progress bar shows.

use std::cmp::Ordering;

use takt_time::{Nanos, Span};

use crate::fold::RunFold;
use crate::rate::per_second;
use crate::series::Series;

/// The phase that runs, at a glance.
#[derive(Clone, Debug)]
pub struct Live {
    /// Name of the phase.
    pub phase: String,
    /// Its place among all phases, from 0.
    pub place: usize,
    /// It is over, and no other has started.
    pub over: bool,
    /// Time since its start.
    pub elapsed: Span,
    /// Requests issued.
    pub issued: u64,
    /// Requests that the plan asks for, when it asks for a number.
    pub planned: Option<u64>,
    /// Succeeded and failed.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Given up without an answer.
    pub unanswered: u64,
    /// Issued and not ended.
    pub in_flight: u64,
    /// Time since its last request was issued, once no more are.
    pub draining: Option<Span>,
    /// Completions a second over the last [`WINDOW_MARKS`] looks.
    pub rate_per_s: Option<f64>,
    /// Latencies of the phase so far, from schedule if there is one.
    pub latencies: Latencies,
}

/// Latencies of which percentiles can be asked.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Series);

/// A look at the phase: when, and how many were completed by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    at: Nanos,
    completed: u64,
}

impl Live {
    /// The same phase as several reactors see it; of two phases the later one.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        match self.place.cmp(&other.place) {
            Ordering::Less => other,
            Ordering::Greater => self,
            Ordering::Equal => {
                self.latencies.0.merge(&other.latencies.0);
                Self {
                    over: self.over && other.over,
                    elapsed: self.elapsed.max(other.elapsed),
                    issued: self.issued + other.issued,
                    completed: self.completed + other.completed,
                    failed: self.failed + other.failed,
                    unanswered: self.unanswered + other.unanswered,
                    in_flight: self.in_flight + other.in_flight,
                    draining: self.draining.zip(other.draining).map(|(a, b)| a.min(b)),
                    rate_per_s: self.rate_per_s.zip(other.rate_per_s).map(|(a, b)| a + b),
                    ..self
                }
            }
        }
    }
}

impl Latencies {
    /// Median and 99th percentile; `None` of nothing.
    #[must_use]
    pub fn p50_p99(&self) -> Option<(Span, Span)> {
        let at = |permille| self.0.quantile(permille).map(Span::from_nanos);
        at(500).zip(at(990))
    }
}

impl RunFold {
    /// The running phase at `now`; `None` before the first. A look costs tens of microseconds: four a
    /// second are nothing, one a record would be.
    pub fn live(&mut self, now: Nanos) -> Option<Live> {
        let place = self.current?;
        let (phase, plan) = (&self.phases[place], &self.plan.phases[place]);
        let completed = phase.succeeded + phase.failed;
        let before = self.marks.front().copied();
        if self.marks.len() >= WINDOW_MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { at: now, completed });
        let latency = phase.tracked.as_ref().map(|tracked| tracked.latency.live().clone());
        Some(Live {
            phase: plan.name.clone(),
            place,
            over: phase.ended.is_some(),
            elapsed: now.saturating_since(phase.started.unwrap_or(now)),
            issued: phase.issued,
            planned: plan.requests,
            completed,
            failed: phase.failed,
            unanswered: phase.unanswered,
            in_flight: phase.in_flight,
            draining: phase.issuing_ended.map(|at| now.saturating_since(at)),
            rate_per_s: before.and_then(|before| {
                let done = completed - before.completed;
                per_second(done, done, now.saturating_since(before.at))
            }),
            latencies: Latencies(latency.unwrap_or_default()),
        })
    }
}

/// Looks that a rate reaches back over: two seconds at four a second.
pub const WINDOW_MARKS: usize = 8;
