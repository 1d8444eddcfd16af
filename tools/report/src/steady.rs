//! The steady state of a phase.
//!
//! A closed loop is steady from the first time that as many requests are in flight as it is to keep,
//! until its last issue: before, it fills; after, it drains.
//!
//! An open loop has a rate to reach, and reaches it at the endpoint's end once answers come as often as
//! requests go: until then requests pile up in flight, and successes a second would come out too low. How many
//! that will be nobody knows beforehand. So it counts as steady from the issue that finds [`FILLED`] times as
//! many requests ended as are in flight: with arrivals at a constant rate that is after one to four times the mean
//! latency more than it takes to fill, and never when the endpoint does not keep up. The same holds for
//! `max_throughput`. A `ramp` has no steady state.
//!
//! Conversations are steady from the moment at which as many are active as are to be, until the first one ends
//! that none is left to follow.
//!
//! Requests of a closed loop may move in waves, all begun and answered together, and the window begins and
//! ends on one. So its rates are given only when each place in flight has been filled ten times: then a
//! wave too many or too few is a tenth of the rate at the most.
//!
//! Which issue is the last is known only afterwards; so the counts at each issue are kept until the
//! next one replaces them.

use takt_record::{ConversationEvent, ConversationRecord, PhasePlan, Steady};
use takt_time::Nanos;

use crate::rate::per_second;

/// The first and the latest issue of the steady state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SteadyWindow {
    level: Level,
    marks: Option<(Mark, Mark)>,
    /// The last mark stays the last.
    closed: bool,
}

/// What a phase must reach to be steady.
#[derive(Clone, Copy, Debug, Default)]
enum Level {
    /// So many in flight.
    InFlight(u64),
    /// So many conversations active.
    Active(u64),
    /// Answers as often as requests.
    #[default]
    Throughput,
    /// It has none.
    Never,
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
        let level = match plan.target_concurrency {
            _ if plan.pattern == RAMP => Level::Never,
            Some(target) if plan.conversations.is_some() => Level::Active(u64::from(target)),
            Some(target) if plan.rate.is_none() => Level::InFlight(u64::from(target)),
            _ => Level::Throughput,
        };
        Self { level, marks: None, closed: false }
    }

    /// An issue that brings `in_flight` and finds `ended` requests, of which `succeeded` with `tokens` output
    /// tokens.
    pub(crate) fn issue(
        &mut self,
        at: Nanos,
        in_flight: u64,
        ended: u64,
        succeeded: u64,
        tokens: u128,
    ) {
        let mark = Mark { at, succeeded, tokens };
        match &mut self.marks {
            Some(_) | None if self.closed => {}
            Some((_, last)) => *last = mark,
            None if self.level.is_reached(in_flight, ended) => self.marks = Some((mark, mark)),
            None => {}
        }
    }

    /// A conversation began or ended, which makes `active` of them.
    pub(crate) fn conversation(
        &mut self,
        record: &ConversationRecord,
        active: u64,
        succeeded: u64,
        tokens: u128,
    ) {
        let mark = Mark { at: record.at, succeeded, tokens };
        match (record.event, &mut self.marks) {
            (ConversationEvent::Started { .. }, None) => {
                if matches!(self.level, Level::Active(target) if active >= target) {
                    self.marks = Some((mark, mark));
                }
            }
            // Nobody takes its place: from here on it drains.
            (ConversationEvent::Ended(end), marks) if !end.more => {
                if let Some((_, last)) = marks
                    && !self.closed
                {
                    *last = mark;
                }
                self.closed = true;
            }
            (ConversationEvent::Started { .. } | ConversationEvent::Ended(_), _) => {}
        }
    }

    /// The window, in seconds from `start`; `None` when the target was never reached.
    pub(crate) fn result(&self, start: Nanos) -> Option<Steady> {
        let (first, last) = self.marks?;
        let window = last.at.saturating_since(first.at);
        let done = last.succeeded - first.succeeded;
        let settled = match self.level {
            Level::InFlight(target) | Level::Active(target) => done >= target * WAVES,
            Level::Throughput | Level::Never => true,
        };
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

impl Level {
    fn is_reached(self, in_flight: u64, ended: u64) -> bool {
        match self {
            Self::InFlight(target) => in_flight >= target,
            // Conversations say so themselves.
            Self::Active(_) | Self::Never => false,
            Self::Throughput => ended >= FILLED * in_flight,
        }
    }
}

/// The pattern whose rate never stays.
const RAMP: &str = "ramp";
/// How many must have ended for each one in flight before an open loop counts as steady. Twice the latency is
/// enough when it is constant; three times leaves out 98 % of the filling when it is exponential.
const FILLED: u64 = 3;
/// How often each place in flight must have been filled.
const WAVES: u64 = 10;
