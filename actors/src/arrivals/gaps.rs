//! Gaps of mean 1 between arrivals: what a process is apart from its rate.

use rand_distr::{Distribution, Exp1, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::BadArrivals;

/// Independent gaps of mean 1, all of one distribution.
#[derive(Clone, Debug)]
pub struct Gaps(Law);

#[derive(Clone, Debug)]
enum Law {
    Even,
    Exponential(Xoshiro256PlusPlus),
    Gamma(Gamma<f64>, Xoshiro256PlusPlus),
}

impl Gaps {
    /// All the same.
    #[must_use]
    pub fn even() -> Self {
        Self(Law::Even)
    }

    /// Exponential, drawn from `rng`: arrivals do not know of each other.
    #[must_use]
    pub fn exponential(rng: Xoshiro256PlusPlus) -> Self {
        Self(Law::Exponential(rng))
    }

    /// Gamma of shape `burstiness`, drawn from `rng`: their coefficient of variation (deviation over mean)
    /// is `1/sqrt(burstiness)`. At 1 they are exponential, below it arrivals come in bursts, above it
    /// evenly.
    ///
    /// # Errors
    /// When `burstiness` is no usable number.
    pub fn gamma(burstiness: f64, rng: Xoshiro256PlusPlus) -> Result<Self, BadArrivals> {
        let usable = (1e-3..=1e6).contains(&burstiness);
        let gamma = Gamma::new(burstiness, 1.0 / burstiness).ok().filter(|_| usable);
        gamma.map(|gamma| Self(Law::Gamma(gamma, rng))).ok_or(BadArrivals::Burstiness(burstiness))
    }

    /// The next gap.
    pub(super) fn draw(&mut self) -> f64 {
        match &mut self.0 {
            Law::Even => 1.0,
            Law::Exponential(rng) => Exp1.sample(rng),
            Law::Gamma(gamma, rng) => gamma.sample(rng),
        }
    }
}
