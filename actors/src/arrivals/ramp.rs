//! A rate that changes in a straight line.
//!
//! The number of arrivals expected up to `t` is the area under the rate: with `r` at the start, `s` at the
//! end, `D` between them and `a = (s - r)/D`
//!
//! ```text
//! n(t) = r t + a t^2 / 2            for t up to D
//! n(t) = n(D) + s (t - D)           after it: the rate stays where it came to
//! ```
//!
//! Arrivals of rate 1 at `n` become arrivals of this rate at `t(n)`, the inverse. It is solved, not stepped
//! through, and in the form that loses no digits when the ramp is nearly flat:
//!
//! ```text
//! t(n) = 2 n / (r + sqrt(r^2 + 2 a n))
//! ```

use takt_time::Span;

use super::{Arrivals, BadArrivals, Gaps, usable};

/// Arrivals at a rate that goes from one to another, and stays there.
#[derive(Clone, Debug)]
pub struct Ramp {
    gaps: Gaps,
    from: f64,
    to: f64,
    over_s: f64,
    /// Sum of the gaps of rate 1.
    at: f64,
    last: Span,
}

impl Ramp {
    /// From the rate `from` to the rate `to`, in arrivals a second, within `over`; spaced as `gaps` are.
    /// One of the rates may be 0. A ramp to 0 has an end.
    ///
    /// # Errors
    /// When a rate is no usable number, both are 0, or `over` is nothing.
    pub fn new(from: f64, to: f64, over: Span, gaps: Gaps) -> Result<Self, BadArrivals> {
        let rate = |rate: f64| if rate == 0.0 { Ok(rate) } else { usable(rate) };
        let (from, to, over_s) = (rate(from)?, rate(to)?, over.as_secs_f64());
        if over == Span::ZERO || from + to == 0.0 {
            return Err(BadArrivals::Ramp);
        }
        Ok(Self { gaps, from, to, over_s, at: 0.0, last: Span::ZERO })
    }

    /// When `n` arrivals are expected to have come, in seconds.
    fn time_of(&self, n: f64) -> Option<f64> {
        let Self { from, to, over_s, .. } = self;
        let within = (from + to) / 2.0 * over_s;
        if n > within {
            return (*to > 0.0).then(|| over_s + (n - within) / to);
        }
        let slope = (to - from) / over_s;
        // At the very end of a ramp to 0 rounding may leave a little less than nothing.
        let root = (from * from + 2.0 * slope * n).max(0.0).sqrt();
        Some(2.0 * n / (from + root))
    }
}

impl Arrivals for Ramp {
    fn next(&mut self) -> Option<Span> {
        self.at += self.gaps.draw();
        let at = Span::from_nanos((self.time_of(self.at)? * 1e9).round() as u64);
        // The last bit of a square root may go back where a gap is nearly nothing.
        self.last = self.last.max(at);
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::{Purpose, stream};

    fn even(from: f64, to: f64, secs: u64) -> Ramp {
        Ramp::new(from, to, Span::from_secs(secs), Gaps::even()).unwrap()
    }

    fn times(mut arrivals: impl Arrivals, n: usize) -> Vec<f64> {
        std::iter::from_fn(|| arrivals.next()).take(n).map(Span::as_secs_f64).collect()
    }

    #[test]
    fn even_arrivals_come_when_the_area_under_the_rate_is_whole() {
        for (from, to, secs) in
            [(10.0, 110.0, 10), (100.0, 1.0, 30), (0.0, 50.0, 7), (0.3, 12.5, 60)]
        {
            let area = |t: f64| {
                let d = secs as f64;
                let within = t.min(d);
                from * within + (to - from) / d * within * within / 2.0 + (t - within) * to
            };
            let all = times(even(from, to, secs), 3_000);
            assert_eq!(all.len(), 3_000);
            for (k, t) in all.iter().enumerate() {
                // A nanosecond of rounding at the rate of then, and the last digits of the area.
                let off = (area(*t) - (k + 1) as f64).abs();
                assert!(off < 1e-6, "{from} to {to}: arrival {k} at {t} is {off} off");
            }
        }
    }

    #[test]
    fn r5_r6_a_flat_ramp_is_the_constant_schedule() {
        for rate in [0.3, 12.5, 1e5] {
            let flat = times(even(rate, rate, 60), 10_000);
            let constant = times(super::super::Constant::new(rate).unwrap(), 10_000);
            for (k, (a, b)) in flat.iter().zip(&constant).enumerate() {
                assert!((a - b).abs() < 2e-9, "arrival {k} at {rate}/s: {a}, {b}");
            }
        }
    }

    #[test]
    fn a_ramp_to_nothing_ends_with_the_last_whole_arrival() {
        // 10/s to 0 in 10 s: 50 arrivals, the last one at the end.
        let all = times(even(10.0, 0.0, 10), 100);
        assert_eq!((all.len(), all.last()), (50, Some(&10.0)));
    }

    #[test]
    fn the_rate_stays_where_it_came_to() {
        let all = times(even(10.0, 30.0, 10), 200 + 60);
        let gaps: Vec<f64> = all[200..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (gap - 1.0 / 30.0).abs() < 3e-9), "{gaps:?}");
    }

    proptest! {
        /// Of an inhomogeneous Poisson process the counts in disjoint spans are independent with the areas
        /// as means: each is within five standard deviations.
        #[test]
        fn random_arrivals_are_as_many_in_each_tenth_as_the_area_says(
            seed: u64, from in 0.0..2000.0, to in 0.0..2000.0,
        ) {
            let (from, to): (f64, f64) = (from, to);
            prop_assume!(from + to > 100.0);
            let gaps = Gaps::exponential(stream(seed, Purpose::Arrivals));
            let mut ramp = Ramp::new(from, to, Span::from_secs(10), gaps).unwrap();
            let mut counts = [0_u32; 10];
            let mut last = Span::ZERO;
            while let Some(at) = ramp.next().filter(|at| *at < Span::from_secs(10)) {
                prop_assert!(at >= last);
                last = at;
                counts[at.as_secs_f64() as usize] += 1;
            }
            for (tenth, count) in counts.into_iter().enumerate() {
                let mean = from + (to - from) * (tenth as f64 + 0.5) / 10.0;
                let off = (f64::from(count) - mean).abs();
                prop_assert!(off < 5.0 * mean.sqrt() + 5.0, "second {tenth}: {count}, mean {mean}");
            }
        }

        #[test]
        fn arrivals_never_go_back(
            seed: u64, from in 0.0..1e6, to in 1.0..1e6, burstiness in 0.01..10.0,
        ) {
            let gaps = Gaps::gamma(burstiness, stream(seed, Purpose::Arrivals)).unwrap();
            let all = times(Ramp::new(from, to, Span::from_millis(20), gaps).unwrap(), 2_000);
            prop_assert!(all.is_sorted());
        }
    }

    #[test]
    fn a_ramp_that_is_none_is_refused() {
        let ramp = |from, to, ms| Ramp::new(from, to, Span::from_millis(ms), Gaps::even());
        assert!(matches!(ramp(0.0, 0.0, 10), Err(BadArrivals::Ramp)));
        assert!(matches!(ramp(1.0, 2.0, 0), Err(BadArrivals::Ramp)));
        assert!(matches!(ramp(-1.0, 2.0, 10), Err(BadArrivals::Rate(_))));
        assert!(matches!(ramp(1.0, f64::NAN, 10), Err(BadArrivals::Rate(_))));
    }
}
