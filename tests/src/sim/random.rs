//! Chance: one seed, and a stream of its own for each purpose.
//!
//! xoshiro256++ (Blackman and Vigna, 2019), jumped 2^128 steps a purpose, so that streams never overlap
//! and one more draw for one purpose moves nothing of another.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use takt_time::Span;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// What a scenario is made of.
    Scenario,
    /// What happens to a connection as a whole: refusals, accidents.
    Accidents,
    /// Where the network cuts a stream of bytes, and how long pieces take.
    Segments,
    /// What the receiver of records does.
    Records,
    /// Which of the rarer load patterns and orders a phase has.
    Patterns,
    /// Which phases are of conversations, and what these are.
    Talks,
    /// How long before its moment a request is rehearsed.
    Rehearsal,
}

/// A stream of chance.
#[derive(Clone, Debug)]
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The stream of `purpose` under `seed`.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..purpose as usize {
            rng.jump();
        }
        Self(rng)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.random()
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high)
    }

    /// The same for sizes.
    pub fn size(&mut self, low: usize, high: usize) -> usize {
        self.0.random_range(low..=high)
    }

    /// Of any order of magnitude between `low` and `high`: small ones as often as large ones.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1), high.max(1));
        let bits = self.between(u64::from(low.ilog2()), u64::from(high.ilog2()));
        self.between((1 << bits).max(low), ((2 << bits) - 1).min(high).max(low))
    }

    /// A span of any order of magnitude between the two.
    pub fn span(&mut self, low: Span, high: Span) -> Span {
        Span::from_nanos(self.magnitude(low.as_nanos(), high.as_nanos()))
    }

    /// True so often out of a thousand times. Draws nothing for 0.
    pub fn per_mille(&mut self, often: u32) -> bool {
        often > 0 && self.0.random_range(0..1000) < often
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.0.random()
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.size(0, all.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_magnitude_stays_within_its_bounds_and_reaches_both_ends() {
        let mut chance = Chance::new(1, Purpose::Scenario);
        let drawn: Vec<u64> = (0..4_000).map(|_| chance.magnitude(3, 100)).collect();
        assert!(drawn.iter().all(|n| (3..=100).contains(n)));
        assert!(drawn.contains(&3) && drawn.iter().any(|&n| n > 90));
        // Four to seven is one magnitude of five or six: far more than its four numbers of 98.
        assert!(drawn.iter().filter(|&&n| (4..8).contains(&n)).count() > 400);
    }

    #[test]
    fn purposes_have_streams_of_their_own() {
        let first = |purpose| Chance::new(7, purpose).any();
        assert_ne!(first(Purpose::Scenario), first(Purpose::Accidents));
        assert_ne!(first(Purpose::Accidents), first(Purpose::Segments));
        assert_eq!(first(Purpose::Segments), first(Purpose::Segments));
    }
}
