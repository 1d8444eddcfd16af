//! Arrival processes: when an open loop sends.
//!
//! A process yields absolute offsets from the start of the phase: offset k is the sum of the first k
//! gaps, drawn once and never moved. A send that is late goes out at once and the next one keeps its own
//! moment, so a stall of the client or the server cannot thin out the load (coordinated omission).
//!
//! | process | gaps |
//! | --- | --- |
//! | [`Poisson`], [`ReferencePoisson`] | exponential: independent users |
//! | [`Constant`] | equal |
//! | [`Gamma`] | more or less bursty than independent users |
//! | [`Ramp`] | any of these, at a rate that goes in a straight line from one to another |
//! | [`Trace`] | those of a recording |

mod gamma;
mod gaps;
mod ramp;
mod reference;
mod trace;

use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use takt_time::Span;

pub use gamma::Gamma;
pub use gaps::Gaps;
pub use ramp::Ramp;
pub use reference::ReferencePoisson;
pub use trace::Trace;

/// A source of arrivals.
pub trait Arrivals {
    /// Offset of the next arrival from the start of the phase; `None` when there are no more. Never less
    /// than the one before.
    fn next(&mut self) -> Option<Span>;
}

/// Independent arrivals: exponential gaps with mean 1/rate.
#[derive(Clone, Debug)]
pub struct Poisson {
    mean_gap_ns: f64,
    at_ns: u64,
    rng: Xoshiro256PlusPlus,
}

/// Equal gaps of 1/rate.
#[derive(Clone, Debug)]
pub struct Constant {
    rate: f64,
    count: u64,
}

/// An arrival process that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BadArrivals {
    /// A rate must be a positive finite number of arrivals a second, one in 30 years at the least.
    #[error("a rate of {0} a second cannot be kept; give a number between 1e-9 and 1e9")]
    Rate(f64),
    /// A burstiness must be a positive number, and neither nothing nor all.
    #[error("a burstiness of {0} is none; give a number between 1e-3 and 1e6 (1 is poisson)")]
    Burstiness(f64),
    /// A ramp that takes no time, or has no arrivals.
    #[error("a ramp needs some time, and a rate above 0 at one of its ends")]
    Ramp,
    /// A speed must be a positive number.
    #[error("a speed of {0} is none; give a number between 1e-6 and 1e6 (1 is as recorded)")]
    Speed(f64),
}

impl Poisson {
    /// `rate` arrivals a second on average, drawn from `rng`.
    ///
    /// # Errors
    /// When `rate` is no usable number.
    pub fn new(rate: f64, rng: Xoshiro256PlusPlus) -> Result<Self, BadArrivals> {
        Ok(Self { mean_gap_ns: 1e9 / usable(rate)?, at_ns: 0, rng })
    }
}

impl Arrivals for Poisson {
    fn next(&mut self) -> Option<Span> {
        let gap: f64 = Exp1.sample(&mut self.rng);
        // Rounding each gap to the nanosecond is unbiased; the sum stays an integer and never drifts.
        self.at_ns = self.at_ns.saturating_add((gap * self.mean_gap_ns).round() as u64);
        Some(Span::from_nanos(self.at_ns))
    }
}

impl Constant {
    /// `rate` arrivals a second, the first after one gap.
    ///
    /// # Errors
    /// When `rate` is no usable number.
    pub fn new(rate: f64) -> Result<Self, BadArrivals> {
        Ok(Self { rate: usable(rate)?, count: 0 })
    }
}

impl Arrivals for Constant {
    fn next(&mut self) -> Option<Span> {
        self.count += 1;
        // From the count, not from a sum of rounded gaps: the millionth arrival is as exact as the first.
        Some(Span::from_nanos((self.count as f64 * 1e9 / self.rate).round() as u64))
    }
}

fn usable(rate: f64) -> Result<f64, BadArrivals> {
    if (1e-9..=1e9).contains(&rate) { Ok(rate) } else { Err(BadArrivals::Rate(rate)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    fn gaps(mut arrivals: impl Arrivals, n: usize) -> Vec<f64> {
        let mut last = Span::ZERO;
        let mut gaps = Vec::with_capacity(n);
        for _ in 0..n {
            let at = arrivals.next().expect("endless");
            assert!(at >= last, "arrivals never go back");
            gaps.push((at.as_nanos() - last.as_nanos()) as f64 / 1e9);
            last = at;
        }
        gaps
    }

    #[test]
    fn poisson_gaps_have_mean_and_deviation_of_one_over_the_rate() {
        for rate in [0.3, 12.5, 1e3, 1e5] {
            let n = 100_000;
            let gaps = gaps(Poisson::new(rate, stream(7, Purpose::Arrivals)).unwrap(), n);
            let mean = gaps.iter().sum::<f64>() / n as f64;
            let var = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n as f64;
            // Standard error of the mean is 1/(rate sqrt(n)) = 0.32 %; of the deviation about 0.45 %.
            assert!((mean * rate - 1.0).abs() < 0.015, "rate {rate}: mean {mean}");
            assert!(
                (var.sqrt() * rate - 1.0).abs() < 0.02,
                "rate {rate}: deviation {}",
                var.sqrt()
            );
        }
    }

    #[test]
    fn r5_r6_constant_arrivals_are_exact_at_any_rate_and_do_not_drift() {
        for (rate, gap_ns) in [(12.5, 80_000_000), (0.5, 2_000_000_000), (1e5, 10_000)] {
            let mut arrivals = Constant::new(rate).unwrap();
            for k in 1..=10_000u64 {
                assert_eq!(arrivals.next(), Some(Span::from_nanos(k * gap_ns)), "rate {rate}");
            }
        }
        let mut third = Constant::new(0.3).unwrap();
        let third_ns = |k: f64| Some(Span::from_nanos((k * 1e10 / 3.0).round() as u64));
        for k in 1..=1000 {
            assert_eq!(third.next(), third_ns(f64::from(k)));
        }
    }

    #[test]
    fn one_seed_gives_one_schedule_and_another_seed_another() {
        let draw = |seed| gaps(Poisson::new(100.0, stream(seed, Purpose::Arrivals)).unwrap(), 50);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn a_rate_that_is_no_rate_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert!(Constant::new(rate).is_err(), "{rate}");
        }
    }
}
