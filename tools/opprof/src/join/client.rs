//! The client's side: a fold over the journal.
//!
//! Memory does not grow with requests: latencies go into a sketch a slice, and only the slowest requests
//! are kept. What overlaps a profiler window is counted as an answer, and has no latency.

use std::collections::BTreeMap;

use takt_record::{Completed, Fold, Outcome, PhaseId, PhaseKind, Record, RequestKey, SessionPlan};
use takt_report::{Sketch, Windows};
use takt_time::{Nanos, Span};

/// A request that took long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slow {
    /// Which.
    pub(super) key: RequestKey,
    /// The figure by which it is slow: time to its first token, or per token, nanoseconds.
    pub(super) value_ns: u64,
    /// When it was sent, client's clock.
    pub(super) sent_ns: u64,
    /// From when to when it was slow, client's clock.
    pub(super) window_ns: (u64, u64),
}

/// The client's side of a slice of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClientSlice {
    /// First tokens in it, nanoseconds from the send.
    pub(super) ttft: Sketch,
    /// Last tokens in it, nanoseconds a token.
    pub(super) tpot: Sketch,
    /// Answers that ended well in it.
    pub(super) answers: u64,
}

/// The fold.
#[derive(Clone, Debug)]
pub struct ClientFold {
    measured: Vec<bool>,
    width_ns: u64,
    keep: usize,
    slices: BTreeMap<u64, ClientSlice>,
    slowest_ttft: Vec<Slow>,
    slowest_tpot: Vec<Slow>,
    offsets: Vec<i128>,
    span: Option<(u64, u64)>,
    windows: Windows,
}

impl ClientFold {
    /// Of a run with this plan: slices of `width`, and so many slowest requests of each kind.
    #[must_use]
    pub fn new(plan: &SessionPlan, width: Span, keep: usize) -> Self {
        Self {
            measured: plan
                .phases
                .iter()
                .map(|phase| phase.kind == PhaseKind::Performance)
                .collect(),
            width_ns: width.as_nanos().max(1),
            keep,
            slices: BTreeMap::new(),
            slowest_ttft: Vec::new(),
            slowest_tpot: Vec::new(),
            offsets: Vec::new(),
            span: None,
            windows: Windows::default(),
        }
    }

    /// First send and last end, client's clock.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Wall clock less monotonic clock, the middle of what was read.
    #[must_use]
    pub fn wall_minus_mono(&self) -> Option<i128> {
        let mut offsets = self.offsets.clone();
        offsets.sort_unstable();
        offsets.get(offsets.len() / 2).copied()
    }

    pub(super) fn slice_ns(&self) -> u64 {
        self.width_ns
    }

    pub(super) fn slice(&self, place: u64) -> ClientSlice {
        self.slices.get(&place).cloned().unwrap_or_default()
    }

    pub(super) fn slowest_ttft(&self) -> &[Slow] {
        &self.slowest_ttft
    }

    pub(super) fn slowest_tpot(&self) -> &[Slow] {
        &self.slowest_tpot
    }

    /// Share of the time between two moments in which the server was profiled.
    pub(super) fn profiled(&self, from_ns: u64, to_ns: u64) -> f64 {
        let (from, to) = (Nanos::from_nanos(from_ns), Nanos::from_nanos(to_ns));
        self.windows.covered(from, to).as_nanos() as f64 / (to_ns - from_ns).max(1) as f64
    }

    fn is_measured(&self, phase: PhaseId) -> bool {
        self.measured.get(usize::from(phase.0)).copied().unwrap_or(false)
    }

    fn completed(&mut self, done: &Completed) {
        let times = &done.times;
        let (Some(sent), Outcome::Ok) = (times.sent, done.outcome) else { return };
        if !self.is_measured(done.key.phase) {
            return;
        }
        let end = times.end.as_nanos();
        let (first, last) = self.span.unwrap_or((sent.as_nanos(), end));
        self.span = Some((first.min(sent.as_nanos()), last.max(end)));
        self.at(times.end).answers += 1;
        if self.windows.overlap(times) {
            // Its latency is that of a profiled server.
            return;
        }
        let Some(first_token) = times.first_token else { return };
        let request = |value: Span, from: Nanos, to: Nanos| Slow {
            key: done.key,
            value_ns: value.as_nanos(),
            sent_ns: sent.as_nanos(),
            window_ns: (from.as_nanos(), to.as_nanos()),
        };
        let ttft = first_token.saturating_since(sent);
        self.at(first_token).ttft.record(ttft.as_nanos());
        keep(&mut self.slowest_ttft, request(ttft, sent, first_token), self.keep);
        let tokens = done.tokens.output.zip(done.tokens.first_event);
        let after_first = tokens.and_then(|(all, first)| all.checked_sub(first));
        if let (Some(last_token), Some(tokens @ 1..)) = (times.last_token, after_first) {
            let each = last_token.saturating_since(first_token).as_nanos() / u64::from(tokens);
            self.at(last_token).tpot.record(each);
            let each = Span::from_nanos(each);
            keep(&mut self.slowest_tpot, request(each, first_token, last_token), self.keep);
        }
    }

    fn at(&mut self, at: Nanos) -> &mut ClientSlice {
        self.slices.entry(at.as_nanos() / self.width_ns).or_default()
    }
}

impl Fold for ClientFold {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Completed(done) => self.completed(done),
            Record::Window(window) => self.windows.take(window),
            Record::Clock(anchor) => {
                let offset = i128::from(anchor.wall_ns) - i128::from(anchor.mono.as_nanos());
                // One a second of a day; the middle of these is the middle of all.
                if self.offsets.len() < OFFSETS_MAX {
                    self.offsets.push(offset);
                }
            }
            _ => {}
        }
    }
}

/// Keeps the slowest, slowest first.
fn keep(slowest: &mut Vec<Slow>, request: Slow, most: usize) {
    let at = slowest.partition_point(|other| other.value_ns >= request.value_ns);
    if at < most {
        slowest.insert(at, request);
        slowest.truncate(most);
    }
}

const OFFSETS_MAX: usize = 86_400;
