//! How long a user thinks before the next turn.

use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use takt_time::Span;

use crate::random::{Purpose, stream};

/// A distribution of think times, drawn from a stream of its own.
#[derive(Clone, Debug)]
pub struct Think {
    time: ThinkTime,
    rng: Xoshiro256PlusPlus,
}

/// What think times are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkTime {
    /// Always this long.
    Fixed(Span),
    /// Anything from the first to the second, equally likely.
    Uniform(Span, Span),
    /// Exponential with this mean.
    Exponential(Span),
}

impl Think {
    /// Think times of a phase with this seed.
    #[must_use]
    pub fn new(time: ThinkTime, seed: u64) -> Self {
        Self { time, rng: stream(seed, Purpose::Think) }
    }

    /// The next one.
    pub(crate) fn draw(&mut self) -> Span {
        match self.time {
            ThinkTime::Fixed(span) => span,
            ThinkTime::Uniform(least, most) => {
                Span::from_nanos(self.rng.random_range(least.as_nanos()..=most.as_nanos()))
            }
            ThinkTime::Exponential(mean) => {
                let times: f64 = Exp1.sample(&mut self.rng);
                Span::from_nanos((times * mean.as_nanos() as f64) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of many draws, in seconds.
    fn mean(time: ThinkTime) -> f64 {
        let mut think = Think::new(time, 7);
        (0..100_000).map(|_| think.draw().as_secs_f64()).sum::<f64>() / 100_000.0
    }

    #[test]
    fn means_are_those_of_the_distributions() {
        let s = |seconds| Span::from_secs(seconds);
        assert!((mean(ThinkTime::Fixed(s(3))) - 3.0).abs() < 1e-9);
        // Standard errors: 2/sqrt(12)/316 = 0.0018, and 2/316 = 0.0063; five of them.
        assert!((mean(ThinkTime::Uniform(s(1), s(3))) - 2.0).abs() < 0.01);
        assert!((mean(ThinkTime::Exponential(s(2))) - 2.0).abs() < 0.032);
    }

    #[test]
    fn uniform_keeps_its_bounds() {
        let (least, most) = (Span::from_nanos(5), Span::from_nanos(7));
        let mut think = Think::new(ThinkTime::Uniform(least, most), 1);
        let drawn: std::collections::BTreeSet<_> = (0..200).map(|_| think.draw()).collect();
        assert_eq!(drawn, [5, 6, 7].map(Span::from_nanos).into());
    }
}
