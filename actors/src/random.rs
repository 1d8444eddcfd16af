//! Random streams: one seed gives a phase its own stream for each purpose.
//!
//! xoshiro256++ (Blackman and Vigna, 2019) jumped 2^128 steps a purpose, so streams never overlap. Where a
//! run is to be compared sample by sample with the reference implementation, [`Mt19937`] stands in: there
//! each purpose has a generator of its own that begins at the same seed, because that is what is compared.

mod mt19937;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use mt19937::Mt19937;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Gaps between arrivals.
    Arrivals,
    /// The order of samples.
    Order,
    /// How long users think.
    Think,
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

/// Where the choices of an order come from.
#[derive(Clone, Debug)]
pub enum Chance {
    /// A stream of our own.
    Xoshiro(Xoshiro256PlusPlus),
    /// The reference implementation's generator.
    Mt19937(Box<Mt19937>),
}

impl Chance {
    /// A number below `n`, which is not 0, each as likely as any other.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        match self {
            Self::Xoshiro(rng) => rng.random_range(0..n),
            // Below `n`, so it fits.
            Self::Mt19937(rng) => rng.below(n.into()) as u32,
        }
    }
}

impl From<Xoshiro256PlusPlus> for Chance {
    fn from(rng: Xoshiro256PlusPlus) -> Self {
        Self::Xoshiro(rng)
    }
}

impl From<Mt19937> for Chance {
    fn from(rng: Mt19937) -> Self {
        Self::Mt19937(Box::new(rng))
    }
}
