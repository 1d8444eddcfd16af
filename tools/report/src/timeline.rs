//! A phase over time, in at most [`MAX_BINS`] bins of equal length.
//!
//! Bins begin as seconds. When a phase outlasts the last bin, neighbours are added up and the bin
//! length doubles: memory stays what it was. Everything in a bin adds exactly, so a time line made in
//! two steps equals one made in one.

use takt_record::OverTime;
use takt_time::{Nanos, Span};

use crate::sketch::Sketch;

/// What happened when, since the start of a phase.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    start: Nanos,
    width_ns: u64,
    bins: Vec<Bin>,
}

/// One bin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bin {
    /// Requests issued.
    pub(crate) issued: u64,
    /// Requests that ended well.
    pub(crate) succeeded: u64,
    /// Requests that failed.
    pub(crate) failed: u64,
    /// Output tokens of the requests that ended well.
    pub(crate) output_tokens: u64,
    /// Latencies of the requests that ended well, nanoseconds.
    pub(crate) latency: Sketch,
    /// Lateness of the sends, nanoseconds.
    pub(crate) lateness: Sketch,
    /// Requests in flight times nanoseconds.
    in_flight_ns: u128,
}

impl Timeline {
    /// An empty one that begins at `start`.
    pub(crate) fn new(start: Nanos) -> Self {
        Self { start, width_ns: SECOND_NS, bins: Vec::new() }
    }

    /// The bin of `at`; what is before the start belongs to the first.
    pub(crate) fn bin(&mut self, at: Nanos) -> &mut Bin {
        let since = at.saturating_since(self.start).as_nanos();
        while since / self.width_ns >= MAX_BINS as u64 {
            self.widen();
        }
        let place = (since / self.width_ns) as usize;
        if place >= self.bins.len() {
            self.bins.resize_with(place + 1, Bin::default);
        }
        &mut self.bins[place]
    }

    /// `in_flight` requests were in flight for `span` from `from` on.
    pub(crate) fn dwell(&mut self, in_flight: u64, from: Nanos, span: Span) {
        let end = from + span;
        let mut at = from;
        // The last bin first: from there on the width is settled, and the walk has at most MAX_BINS steps.
        self.bin(end);
        while at < end {
            let since = at.saturating_since(self.start).as_nanos();
            let next = self.start
                + Span::from_nanos((since / self.width_ns + 1).saturating_mul(self.width_ns));
            let until = next.min(end);
            let area = u128::from(in_flight) * u128::from((until - at).as_nanos());
            self.bin(at).in_flight_ns += area;
            at = until;
        }
    }

    /// Adds another time line of the same phase. Its start may differ a little: bins are numbered from
    /// each one's own start.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.width_ns < other.width_ns {
            self.widen();
        }
        while other.width_ns < self.width_ns {
            other.widen();
        }
        self.start = self.start.min(other.start);
        if other.bins.len() > self.bins.len() {
            self.bins.resize_with(other.bins.len(), Bin::default);
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            mine.add(theirs);
        }
    }

    /// The columns of the result; `None` when nothing happened.
    pub(crate) fn over_time(&self) -> Option<OverTime> {
        let ms = |v: Option<u64>| v.map(|ns| ns as f64 / 1e6);
        let column = |get: fn(&Bin) -> u64| self.bins.iter().map(get).collect();
        (!self.bins.is_empty()).then(|| OverTime {
            interval_s: self.width_ns as f64 / 1e9,
            issued: column(|bin| bin.issued),
            succeeded: column(|bin| bin.succeeded),
            failed: column(|bin| bin.failed),
            output_tokens: column(|bin| bin.output_tokens),
            in_flight: (self.bins.iter())
                .map(|bin| bin.in_flight_ns as f64 / self.width_ns as f64)
                .collect(),
            latency_p50_ms: self.bins.iter().map(|bin| ms(bin.latency.percentile(50))).collect(),
            latency_p99_ms: self.bins.iter().map(|bin| ms(bin.latency.percentile(99))).collect(),
            lateness_p99_us: (self.bins.iter())
                .map(|bin| bin.lateness.percentile(99).map(|ns| ns as f64 / 1e3))
                .collect(),
        })
    }

    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let halved = self.bins.len().div_ceil(2);
        for place in 0..halved {
            let mut sum = std::mem::take(&mut self.bins[2 * place]);
            if let Some(odd) = self.bins.get(2 * place + 1) {
                sum.add(odd);
            }
            self.bins[place] = sum;
        }
        self.bins.truncate(halved);
    }
}

impl Bin {
    fn add(&mut self, other: &Self) {
        self.issued += other.issued;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.output_tokens += other.output_tokens;
        self.in_flight_ns += other.in_flight_ns;
        self.latency.merge(&other.latency);
        self.lateness.merge(&other.lateness);
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// Seconds of a phase before bins are joined.
const MAX_BINS: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn second(s: u64) -> Nanos {
        Nanos::from_nanos(7) + Span::from_secs(s)
    }

    #[test]
    fn a_long_phase_takes_no_more_bins_and_loses_nothing() {
        let mut line = Timeline::new(second(0));
        for s in 0..2_000 {
            line.bin(second(s)).issued += 1;
        }
        let table = line.over_time().unwrap();
        // 2000 s in 512 bins need bins of 4 s: 500 of them.
        assert_eq!((table.interval_s, table.issued.len()), (4.0, 500));
        assert!(table.issued.iter().all(|&issued| issued == 4));
    }

    #[test]
    fn dwelling_is_shared_out_over_the_bins_it_spans() {
        let mut line = Timeline::new(second(0));
        line.dwell(10, second(0) + Span::from_millis(500), Span::from_secs(2));
        // Half of the first second, all of the second, half of the third.
        assert_eq!(line.over_time().unwrap().in_flight, [5.0, 10.0, 5.0]);
    }

    #[test]
    fn lines_of_different_widths_merge() {
        let (mut short, mut long) = (Timeline::new(second(0)), Timeline::new(second(0)));
        short.bin(second(1)).failed += 1;
        long.bin(second(0)).failed += 1;
        long.bin(second(600)).failed += 1;
        short.merge(&long);
        let table = short.over_time().unwrap();
        assert_eq!((table.interval_s, table.failed[0], table.failed[300]), (2.0, 2, 1));
    }
}
