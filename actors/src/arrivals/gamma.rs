//! Bursts, or the want of them: gaps of a gamma distribution.

use rand_xoshiro::Xoshiro256PlusPlus;
use takt_time::Span;

use super::{Arrivals, BadArrivals, Gaps, usable};

/// Gamma gaps with mean 1/rate. At `burstiness` 1 this is [`Poisson`](super::Poisson) in law (and another
/// schedule: the draws differ), below it arrivals come in bursts, above it more evenly.
#[derive(Clone, Debug)]
pub struct Gamma {
    gaps: Gaps,
    mean_gap_ns: f64,
    at_ns: u64,
    /// What the last arrival was rounded by, so that rounding never adds up: small gaps are many here.
    rest_ns: f64,
}

impl Gamma {
    /// `rate` arrivals a second on average, gaps of coefficient of variation `1/sqrt(burstiness)`, drawn
    /// from `rng`.
    ///
    /// # Errors
    /// When `rate` or `burstiness` is no usable number.
    pub fn new(rate: f64, burstiness: f64, rng: Xoshiro256PlusPlus) -> Result<Self, BadArrivals> {
        let mean_gap_ns = 1e9 / usable(rate)?;
        let gaps = Gaps::gamma(burstiness, rng)?;
        Ok(Self { gaps, mean_gap_ns, at_ns: 0, rest_ns: 0.0 })
    }
}

impl Arrivals for Gamma {
    fn next(&mut self) -> Option<Span> {
        let gap_ns = self.gaps.draw() * self.mean_gap_ns + self.rest_ns;
        let whole_ns = gap_ns.floor();
        self.rest_ns = gap_ns - whole_ns;
        self.at_ns = self.at_ns.saturating_add(whole_ns as u64);
        Some(Span::from_nanos(self.at_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::{Purpose, stream};

    /// Mean and coefficient of variation of `n` gaps, in units of the mean gap asked for.
    fn observed(rate: f64, burstiness: f64, seed: u64, n: usize) -> (f64, f64) {
        let mut arrivals = Gamma::new(rate, burstiness, stream(seed, Purpose::Arrivals)).unwrap();
        let mut last = Span::ZERO;
        let gaps: Vec<f64> = (0..n)
            .map(|_| {
                let at = arrivals.next().expect("endless");
                let gap = (at.as_nanos() - last.as_nanos()) as f64 / 1e9 * rate;
                last = at;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / n as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n as f64;
        (mean, variance.sqrt() / mean)
    }

    proptest! {
        /// The error of a mean over n gaps is cv/sqrt(n), and of a coefficient of variation
        /// cv sqrt((1/2 + cv^2)/n) and a little (for shape 1/4: 1.5 % at n = 20,000); five of each are allowed.
        #[test]
        fn r8_gamma_burstiness_sets_the_coefficient_of_variation(
            seed: u64,
            (burstiness, cv) in prop_oneof![Just((0.25, 2.0)), Just((1.0, 1.0)), Just((4.0, 0.5))],
            rate in prop_oneof![Just(0.3), Just(12.5), Just(1e3), Just(1e5)],
        ) {
            let n = 20_000;
            let (mean, seen) = observed(rate, burstiness, seed, n);
            let error = cv / (n as f64).sqrt();
            prop_assert!((mean - 1.0).abs() < 5.0 * error, "mean {mean}");
            let error = cv * ((0.5 + cv * cv) / n as f64).sqrt();
            prop_assert!((seen - cv).abs() < 5.0 * error, "coefficient of variation {seen}, not {cv}");
        }
    }

    #[test]
    fn one_seed_gives_one_schedule_and_another_seed_another() {
        let draw = |seed| {
            let mut arrivals = Gamma::new(100.0, 0.5, stream(seed, Purpose::Arrivals)).unwrap();
            std::array::from_fn::<_, 50, _>(|_| arrivals.next())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn rounding_does_not_add_up_where_gaps_are_smaller_than_a_nanosecond() {
        // At 4e8 a second a gap is 2.5 ns: rounded one by one they would be 2 or 3.
        let mut arrivals = Gamma::new(4e8, 1e6, stream(1, Purpose::Arrivals)).unwrap();
        let n = 1_000_000_u64;
        let last = (0..n).filter_map(|_| arrivals.next()).last().expect("endless");
        // The deviation of the sum is 2.5 ns * 1e-3 * sqrt(n) = 2.5 ns.
        assert!(last.as_nanos().abs_diff(n * 5 / 2) < 15, "{last}");
    }

    #[test]
    fn a_burstiness_that_is_none_is_refused() {
        for burstiness in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
            let made = Gamma::new(1.0, burstiness, stream(1, Purpose::Arrivals));
            assert!(matches!(made, Err(BadArrivals::Burstiness(_))), "{burstiness}");
        }
    }
}
