//! A distribution while it grows: a histogram of three significant digits beside exact moments.
//!
//! Count, sum, sum of squares, least and greatest are kept as integers next to the histogram, so mean
//! and extremes are exact and do not depend on the order of records or on how folds were merged.
//! Percentiles are the histogram's, by nearest rank.
//!
//! A series that keeps its values ([`Series::of_values`]) counts its percentiles from them instead; it grows
//! with the number of values, and is for reports made after a run.
//!
//! A series takes no memory before its first value. When its phase is over it is frozen to the pairs
//! (value, count) that occur, which is a few kilobytes in place of a few hundred.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use takt_record::{Distribution, Percentiles, SeriesSnapshot};
use takt_time::Span;

/// Values of one kind: nanoseconds, tokens or requests in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    live: Option<Histogram<u64>>,
    frozen: Vec<(u64, u64)>,
    values: Option<Box<Values>>,
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

/// Every value of a series.
#[derive(Clone, Debug, Default)]
struct Values {
    once: Vec<u64>,
    sorted: bool,
    /// Values that came with a weight.
    weighted: BTreeMap<u64, u64>,
}

impl Series {
    /// A series that keeps every value.
    pub(crate) fn of_values() -> Self {
        Self { values: Some(Box::default()), ..Self::default() }
    }

    /// Whether it keeps every value.
    pub(crate) fn keeps_values(&self) -> bool {
        self.values.is_some()
    }

    /// Takes one value in.
    pub(crate) fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Takes a span in, in nanoseconds.
    pub(crate) fn record_span(&mut self, span: Span) {
        self.record_n(span.as_nanos(), 1);
    }

    /// Takes `value` in `weight` times. A value past [`MAX_VALUE`] counts as that.
    pub(crate) fn record_n(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        let value = value.min(MAX_VALUE);
        self.hold(value, weight);
        (self.min, self.max) = if self.count == 0 {
            (value, value)
        } else {
            (self.min.min(value), self.max.max(value))
        };
        self.count = self.count.saturating_add(weight);
        let total = u128::from(value) * u128::from(weight);
        self.sum = self.sum.saturating_add(total);
        self.squares = self.squares.saturating_add(total.saturating_mul(u128::from(value)));
    }

    /// Number of values.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of the values.
    pub(crate) fn sum(&self) -> u128 {
        self.sum
    }

    /// Gives the histogram's memory back; a later value brings it to life again.
    pub(crate) fn freeze(&mut self) {
        if let Some(values) = &mut self.values {
            values.once.sort_unstable();
            values.once.shrink_to_fit();
            values.sorted = true;
        }
        if self.live.is_some() {
            self.frozen = self.pairs();
            self.live = None;
        }
    }

    /// Adds all values of another series.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for (value, count) in other.pairs() {
            self.hold(value, count);
        }
        (self.min, self.max) = if self.count == 0 {
            (other.min, other.max)
        } else {
            (self.min.min(other.min), self.max.max(other.max))
        };
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The value at the nearest rank of `permille` thousandths; `None` of nothing.
    pub(crate) fn quantile(&self, permille: u64) -> Option<u64> {
        let [value] = self.quantiles([permille])?;
        Some(value)
    }

    /// The distribution in units of `unit`; `None` of nothing.
    pub(crate) fn distribution(&self, unit: f64) -> Option<Distribution> {
        Some(Distribution {
            p: self.percentiles(unit)?,
            count: self.count,
            mean: self.sum as f64 / self.count as f64 / unit,
            stddev: self.stddev() / unit,
            min: self.min as f64 / unit,
            max: self.max as f64 / unit,
        })
    }

    /// The series under `name` as a snapshot holds it; `None` of nothing.
    pub(crate) fn snapshot(&self, name: &'static str) -> Option<SeriesSnapshot> {
        Some(SeriesSnapshot {
            name: name.into(),
            percentiles: self.percentiles(1.0)?,
            count: self.count,
            total: u64::try_from(self.sum).unwrap_or(u64::MAX),
            min: self.min,
            max: self.max,
            sum_sq: self.squares as f64,
        })
    }

    fn percentiles(&self, unit: f64) -> Option<Percentiles> {
        let values = self.quantiles([10, 50, 100, 250, 500, 750, 900, 950, 990, 999])?;
        let [p1, p5, p10, p25, p50, p75, p90, p95, p99, p99_9] = values.map(|v| v as f64 / unit);
        Some(Percentiles { p1, p5, p10, p25, p50, p75, p90, p95, p99, p99_9 })
    }

    /// Square root of n * sum of squares - square of sum, over n: exact while it fits 128 bits.
    fn stddev(&self) -> f64 {
        let n = u128::from(self.count);
        match (n.checked_mul(self.squares), self.sum.checked_mul(self.sum)) {
            (Some(a), Some(b)) => (a.saturating_sub(b) as f64).sqrt() / self.count as f64,
            _ => {
                let mean = self.sum as f64 / self.count as f64;
                (self.squares as f64 / self.count as f64 - mean * mean).max(0.0).sqrt()
            }
        }
    }

    /// Nearest ranks, ascending: the least value with at least that share of all at or below it.
    fn quantiles<const N: usize>(&self, permille: [u64; N]) -> Option<[u64; N]> {
        if self.count == 0 {
            return None;
        }
        let mut out = [self.max; N];
        let (mut next, mut seen) = (0, 0u64);
        let total = u128::from(self.count);
        self.each_pair(|value, count| {
            seen = seen.saturating_add(count);
            while next < N {
                let rank = (total * u128::from(permille[next])).div_ceil(1000).max(1);
                if u128::from(seen) < rank {
                    break;
                }
                out[next] = value.clamp(self.min, self.max);
                next += 1;
            }
        });
        Some(out)
    }

    /// The pairs (value, count) that occur, ascending.
    fn pairs(&self) -> Vec<(u64, u64)> {
        let mut pairs = Vec::new();
        self.each_pair(|value, count| pairs.push((value, count)));
        pairs
    }

    fn each_pair(&self, mut take: impl FnMut(u64, u64)) {
        if let Some(values) = &self.values {
            return values.each_pair(take);
        }
        match &self.live {
            Some(histogram) => histogram
                .iter_recorded()
                .for_each(|step| take(step.value_iterated_to(), step.count_at_value())),
            None => self.frozen.iter().for_each(|&(value, count)| take(value, count)),
        }
    }

    /// Puts the value where percentiles are counted from.
    #[inline]
    fn hold(&mut self, value: u64, weight: u64) {
        if let Some(values) = &mut self.values {
            return values.hold(value, weight);
        }
        let histogram = match &mut self.live {
            Some(histogram) => histogram,
            None => self.thaw(),
        };
        histogram.record_n(value, weight).expect("the histogram grows up to MAX_VALUE");
    }

    #[cold]
    fn thaw(&mut self) -> &mut Histogram<u64> {
        let mut histogram = Histogram::new(DIGITS).expect("three digits are allowed");
        for (value, count) in std::mem::take(&mut self.frozen) {
            histogram.record_n(value, count).expect("the histogram grows up to MAX_VALUE");
        }
        self.live.insert(histogram)
    }
}

impl Values {
    fn hold(&mut self, value: u64, weight: u64) {
        if weight == 1 {
            self.sorted = false;
            self.once.push(value);
        } else {
            let count = self.weighted.entry(value).or_default();
            *count = count.saturating_add(weight);
        }
    }

    /// The values ascending, each with how often it stands there; one value may come more than once.
    fn each_pair(&self, mut take: impl FnMut(u64, u64)) {
        let mut copy;
        let once = if self.sorted {
            &self.once
        } else {
            copy = self.once.clone();
            copy.sort_unstable();
            &copy
        };
        let mut weighted = self.weighted.iter().peekable();
        for &value in once {
            while let Some((&value, &count)) = weighted.next_if(|&(&other, _)| other <= value) {
                take(value, count);
            }
            take(value, 1);
        }
        weighted.for_each(|(&value, &count)| take(value, count));
    }
}

/// The greatest value that is told from greater ones: 2^50 ns are 13 days.
pub(crate) const MAX_VALUE: u64 = 1 << 50;
/// Significant decimal digits of percentiles.
const DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = u64>) -> Series {
        let mut series = Series::default();
        values.into_iter().for_each(|value| series.record(value));
        series
    }

    #[test]
    fn of_nothing_there_is_no_distribution() {
        assert_eq!(Series::default().distribution(1.0), None);
    }

    #[test]
    fn ranks_are_nearest_and_moments_exact() {
        // 1..=100: sum 5050, sum of squares 338350, variance 3383.5 - 50.5^2 = 833.25.
        let d = series(1..=100).distribution(1.0).unwrap();
        assert_eq!((d.count, d.mean, d.min, d.max), (100, 50.5, 1.0, 100.0));
        assert!((d.stddev - 833.25f64.sqrt()).abs() < 1e-9);
        assert_eq!((d.p.p1, d.p.p50, d.p.p99, d.p.p99_9), (1.0, 50.0, 99.0, 100.0));
    }

    #[test]
    fn percentiles_keep_three_digits_at_every_size() {
        for scale in [1_000, 1_000_000, 1_000_000_000, 1_000_000_000_000] {
            let d = series((1..=1000).map(|i| i * scale)).distribution(1.0).unwrap();
            for (got, want) in [(d.p.p50, 500), (d.p.p90, 900), (d.p.p99_9, 999)] {
                let want = (want * scale) as f64;
                assert!((got - want).abs() <= want / 1000.0, "{got} for {want}");
            }
        }
    }

    #[test]
    fn freezing_changes_nothing_and_a_frozen_series_grows_on() {
        let values = (0..5_000).map(|i| i * i * 7_919);
        let (mut frozen, whole) = (series(values.clone().take(2_500)), series(values.clone()));
        frozen.freeze();
        assert_eq!(frozen.distribution(1.0), series(values.clone().take(2_500)).distribution(1.0));
        values.skip(2_500).for_each(|value| frozen.record(value));
        assert_eq!(frozen.distribution(1.0), whole.distribution(1.0));
    }

    #[test]
    fn merged_series_equal_the_whole_one() {
        let values = || (0..3_000u64).map(|i| i.wrapping_mul(0x9e37_79b9) % 4_000_000_000);
        let mut left = series(values().step_by(2));
        left.freeze();
        left.merge(&series(values().skip(1).step_by(2)));
        left.merge(&Series::default());
        assert_eq!(left.distribution(1e6), series(values()).distribution(1e6));
    }

    #[test]
    fn a_series_that_keeps_its_values_has_exact_percentiles() {
        let mut exact = Series::of_values();
        let mut values: Vec<u64> = (0..997).map(|i| 1_000_003 + i * i * 7_919).collect();
        // In any order, frozen half-way, some with a weight.
        values.iter().rev().skip(1).for_each(|&value| exact.record(value));
        exact.freeze();
        exact.record_n(values[996], 3);
        values.extend([values[996]; 2]);
        assert_eq!(exact.count(), 999);
        for permille in [10, 500, 990, 999] {
            let rank = (values.len() as u64 * permille).div_ceil(1000) as usize;
            assert_eq!(exact.quantile(permille), Some(values[rank - 1]), "{permille}");
        }
        let mut merged = Series::of_values();
        merged.merge(&exact);
        assert_eq!(merged.distribution(1.0), exact.distribution(1.0));
    }

    #[test]
    fn weights_count_as_repeats() {
        let mut weighted = Series::default();
        weighted.record_n(3, 40);
        weighted.record_n(9, 60);
        let repeated = series([3; 40].into_iter().chain([9; 60]));
        assert_eq!(weighted.distribution(1.0), repeated.distribution(1.0));
    }
}
