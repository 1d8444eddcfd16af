//! Random streams: one seed gives a phase its own stream for each purpose.
//!
//! xoshiro256++ (Blackman and Vigna, 2019) jumped 2^128 steps a purpose, so streams never overlap.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Gaps between arrivals.
    Arrivals,
    /// The order of samples.
    Order,
}

/// The stream of `purpose` under `seed`.
#[must_use]
pub fn stream(seed: u64, purpose: Purpose) -> Xoshiro256PlusPlus {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..purpose as usize {
        rng.jump();
    }
    rng
}
