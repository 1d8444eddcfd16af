//! The steady state of a phase.
//!
//! A closed loop is steady from the first time that as many requests are in flight as it is to keep,
//! until its last issue: before, it fills; after, it drains. An open loop has no level to reach: its
//! arrivals come at their rate from the first on, so its steady state runs from the first issue to the
//! last, and only the drain is left out. The same holds for `max_throughput`.
//!
//! Requests of a closed loop may move in waves, all begun and answered together, and the window begins and
//! ends on one. So its rates are given only when each place in flight has been filled ten times: then a
//! wave too many or too few is a tenth of the rate at the most.
//!
//! Which issue is the last is known only afterwards; so the counts at each issue are kept until the
//! next one replaces them.

use takt_record::{PhasePlan, Steady};
use takt_time::Nanos;

use crate::rate::per_second;

/// The first and the latest issue of the steady state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SteadyWindow {
    target: u64,
    marks: Option<(Mark, Mark)>,
}

/// An issue, and what had succeeded by then.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: Nanos,
    succeeded: u64,
    tokens: u128,
}

impl SteadyWindow {
    /// Of a phase that has not begun.
    pub(crate) fn new(plan: &PhasePlan) -> Self {
        let target = if plan.rate.is_some() { None } else { plan.target_concurrency };
        Self { target: u64::from(target.unwrap_or(0)), marks: None }
    }

    /// An issue that brings `in_flight` and finds `succeeded` requests with `tokens` output tokens done.
    pub(crate) fn issue(&mut self, at: Nanos, in_flight: u64, succeeded: u64, tokens: u128) {
        let mark = Mark { at, succeeded, tokens };
        match &mut self.marks {
            Some((_, last)) => *last = mark,
            None if in_flight >= self.target => self.marks = Some((mark, mark)),
            None => {}
        }
    }

    /// The window, in seconds from `start`; `None` when the target was never reached.
    pub(crate) fn result(&self, start: Nanos) -> Option<Steady> {
        let (first, last) = self.marks?;
        let window = last.at.saturating_since(first.at);
        let done = last.succeeded - first.succeeded;
        let settled = done >= self.target * WAVES;
        let tokens = u64::try_from(last.tokens - first.tokens).ok().filter(|&tokens| tokens > 0);
        Some(Steady {
            start_s: first.at.saturating_since(start).as_secs_f64(),
            end_s: last.at.saturating_since(start).as_secs_f64(),
            requests_per_s: per_second(done, done, window).filter(|_| settled),
            output_tokens_per_s: tokens
                .and_then(|tokens| per_second(tokens, done, window))
                .filter(|_| settled),
        })
    }
}

/// How often each place in flight must have been filled.
const WAVES: u64 = 10;
