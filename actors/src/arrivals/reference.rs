//! The Poisson process of the reference implementation, gap for gap.

use takt_time::Span;

use super::{Arrivals, BadArrivals, usable};
use crate::random::Mt19937;

/// Exponential gaps as the reference implementation draws them: whole nanoseconds, cut off rather than
/// rounded, at least one.
#[derive(Clone, Debug)]
pub struct ReferencePoisson {
    rate_per_ns: f64,
    at_ns: u64,
    rng: Mt19937,
}

impl ReferencePoisson {
    /// `rate` arrivals a second on average, drawn from `rng`.
    ///
    /// # Errors
    /// When `rate` is no usable number.
    pub fn new(rate: f64, rng: Mt19937) -> Result<Self, BadArrivals> {
        Ok(Self { rate_per_ns: usable(rate)? / 1e9, at_ns: 0, rng })
    }
}

impl Arrivals for ReferencePoisson {
    fn next(&mut self) -> Option<Span> {
        let gap_ns = (self.rng.expovariate(self.rate_per_ns) as u64).max(1);
        self.at_ns = self.at_ns.saturating_add(gap_ns);
        Some(Span::from_nanos(self.at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_those_of_the_reference() {
        let mut arrivals = ReferencePoisson::new(100.0, Mt19937::new(42)).unwrap();
        let mut last = Span::ZERO;
        for gap_ns in [10_200_602, 253_288, 3_216_240, 2_525_861, 13_335_926, 11_291_730] {
            last += Span::from_nanos(gap_ns);
            assert_eq!(arrivals.next(), Some(last));
        }
    }

    #[test]
    fn no_gap_is_nothing() {
        // At 1e9 a second more than half of the gaps would be.
        let mut arrivals = ReferencePoisson::new(1e9, Mt19937::new(1)).unwrap();
        let all: Vec<_> = (0..1_000).filter_map(|_| arrivals.next()).collect();
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
