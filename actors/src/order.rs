//! Sample orders: endless sequences of sample indices. What ends a phase is the session's business.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// An endless order over the indices `0..n` of a dataset.
#[derive(Clone, Debug)]
pub enum Order {
    /// Every sample once, shuffled, then all again in a new shuffle.
    WithoutReplacement(Shuffle),
    /// Any sample each time.
    WithReplacement {
        /// Samples to choose from.
        samples: u32,
        /// Where choices come from.
        rng: Xoshiro256PlusPlus,
    },
    /// As the dataset has them, over and over.
    Sequential {
        /// Samples in the dataset.
        samples: u32,
        /// The next one.
        next: u32,
    },
    /// Always the same one.
    Single(u32),
}

/// A Fisher-Yates shuffle (Durstenfeld, 1964) that is drawn one sample at a time, so that a new pass over
/// a large dataset costs the reactor no pause.
#[derive(Clone, Debug)]
pub struct Shuffle {
    indices: Vec<u32>,
    /// Indices before this one are not drawn yet in this pass.
    left: usize,
    rng: Xoshiro256PlusPlus,
}

impl Order {
    /// Shuffled passes over `samples` samples.
    ///
    /// # Panics
    /// When there is no sample.
    #[must_use]
    pub fn without_replacement(samples: u32, rng: Xoshiro256PlusPlus) -> Self {
        assert!(samples > 0, "an order needs a sample");
        let indices: Vec<u32> = (0..samples).collect();
        Self::WithoutReplacement(Shuffle { left: indices.len(), indices, rng })
    }

    /// Independent uniform choices among `samples` samples.
    ///
    /// # Panics
    /// When there is no sample.
    #[must_use]
    pub fn with_replacement(samples: u32, rng: Xoshiro256PlusPlus) -> Self {
        assert!(samples > 0, "an order needs a sample");
        Self::WithReplacement { samples, rng }
    }

    /// The order of the dataset.
    ///
    /// # Panics
    /// When there is no sample.
    #[must_use]
    pub fn sequential(samples: u32) -> Self {
        assert!(samples > 0, "an order needs a sample");
        Self::Sequential { samples, next: 0 }
    }

    /// The next sample.
    pub fn draw(&mut self) -> u32 {
        match self {
            Self::WithoutReplacement(shuffle) => shuffle.draw(),
            Self::WithReplacement { samples, rng } => rng.random_range(0..*samples),
            Self::Sequential { samples, next } => {
                let index = *next;
                *next = (index + 1) % *samples;
                index
            }
            Self::Single(index) => *index,
        }
    }
}

impl Shuffle {
    fn draw(&mut self) -> u32 {
        if self.left == 0 {
            self.left = self.indices.len();
        }
        let chosen = self.rng.random_range(0..self.left);
        self.left -= 1;
        self.indices.swap(chosen, self.left);
        self.indices[self.left]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, stream};

    fn pass(order: &mut Order, n: u32) -> Vec<u32> {
        (0..n).map(|_| order.draw()).collect()
    }

    #[test]
    fn a_pass_without_replacement_has_every_sample_once_and_the_next_another_order() {
        for n in [1, 2, 7, 1000] {
            let mut order = Order::without_replacement(n, stream(3, Purpose::Order));
            let (first, second) = (pass(&mut order, n), pass(&mut order, n));
            for pass in [&first, &second] {
                let mut sorted = pass.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            }
            assert!(n < 7 || first != second, "the second pass is shuffled anew");
        }
    }

    #[test]
    fn every_order_of_three_samples_is_about_as_frequent() {
        let mut order = Order::without_replacement(3, stream(5, Purpose::Order));
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            *counts.entry(pass(&mut order, 3)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // 1000 expected each, standard deviation 29: five of them.
        assert!(counts.into_values().all(|count| (855..1145).contains(&count)));
    }

    #[test]
    fn with_replacement_repeats_and_reaches_all() {
        let mut order = Order::with_replacement(10, stream(5, Purpose::Order));
        let drawn = pass(&mut order, 1_000);
        assert!((0..10).all(|index| drawn.contains(&index)));
        assert!(drawn.windows(2).any(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn sequential_and_single_are_what_they_say() {
        assert_eq!(pass(&mut Order::sequential(3), 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(pass(&mut Order::Single(4), 3), [4, 4, 4]);
    }
}
