//! Sample orders: endless sequences of sample indices. What ends a phase is the session's business.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random::{Chance, Mt19937};

/// An endless order over the indices `0..n` of a dataset.
#[derive(Clone, Debug)]
pub struct Order {
    draws: Draws,
    /// How many were drawn.
    drawn: u64,
    /// The last that was drawn, if it was only looked at.
    foreseen: Option<u32>,
}

#[derive(Clone, Debug)]
enum Draws {
    /// Every sample once, shuffled, then all again in a new shuffle.
    WithoutReplacement(Shuffle),
    /// The same, in the orders of the reference implementation.
    AsReference(WholeShuffle),
    /// Any sample each time.
    WithReplacement { samples: u32, rng: Chance },
    /// As the dataset has them, over and over.
    Sequential { samples: u32, next: u32 },
    /// Always the same one.
    Single(u32),
}

/// A Fisher-Yates shuffle (Durstenfeld, 1964) that is drawn one sample at a time, so that a new pass over
/// a large dataset costs the reactor no pause.
#[derive(Clone, Debug)]
struct Shuffle {
    indices: Vec<u32>,
    /// Indices before this one are not drawn yet in this pass.
    left: usize,
    rng: Xoshiro256PlusPlus,
}

/// Whole shuffles as CPython makes them, each of the list that the one before left. The list of the next
/// pass is shuffled a step at a time while this one is used up, so that its beginning costs the reactor no
/// more than a copy of the list.
#[derive(Clone, Debug)]
struct WholeShuffle {
    pass: Vec<u32>,
    used: usize,
    next: Vec<u32>,
    rng: Box<Mt19937>,
}

impl Order {
    /// Shuffled passes over `samples` samples. From [`Mt19937`] they are those of the reference
    /// implementation.
    ///
    /// # Panics
    /// When there is no sample.
    #[must_use]
    pub fn without_replacement(samples: u32, rng: impl Into<Chance>) -> Self {
        assert!(samples > 0, "an order needs a sample");
        let indices: Vec<u32> = (0..samples).collect();
        Self::of(match rng.into() {
            Chance::Xoshiro(rng) => {
                Draws::WithoutReplacement(Shuffle { left: indices.len(), indices, rng })
            }
            Chance::Mt19937(rng) => Draws::AsReference(WholeShuffle::new(indices, rng)),
        })
    }

    /// Independent uniform choices among `samples` samples.
    ///
    /// # Panics
    /// When there is no sample.
    #[must_use]
    pub fn with_replacement(samples: u32, rng: impl Into<Chance>) -> Self {
        assert!(samples > 0, "an order needs a sample");
        Self::of(Draws::WithReplacement { samples, rng: rng.into() })
    }

    /// The order of the dataset.
    ///
    /// # Panics
    /// When there is no sample.
    #[must_use]
    pub fn sequential(samples: u32) -> Self {
        assert!(samples > 0, "an order needs a sample");
        Self::of(Draws::Sequential { samples, next: 0 })
    }

    /// Always `sample`.
    #[must_use]
    pub fn single(sample: u32) -> Self {
        Self::of(Draws::Single(sample))
    }

    fn of(draws: Draws) -> Self {
        Self { draws, drawn: 0, foreseen: None }
    }

    /// The next sample.
    pub fn draw(&mut self) -> u32 {
        if let Some(sample) = self.foreseen.take() {
            return sample;
        }
        self.drawn += 1;
        match &mut self.draws {
            Draws::WithoutReplacement(shuffle) => shuffle.draw(),
            Draws::AsReference(shuffle) => shuffle.draw(),
            Draws::WithReplacement { samples, rng } => rng.below(*samples),
            Draws::Sequential { samples, next } => {
                let index = *next;
                *next = (index + 1) % *samples;
                index
            }
            Draws::Single(index) => *index,
        }
    }

    /// The sample in place `place`, counted from 0, which lies behind all that were drawn. Those between are passed
    /// over: they go with requests of other sessions.
    pub fn sample(&mut self, place: u64) -> u32 {
        debug_assert!(self.next() <= place, "place {place} of an order is behind it");
        while self.next() < place {
            self.draw();
        }
        self.draw()
    }

    /// The same, which stays the next to be drawn.
    pub fn foresee(&mut self, place: u64) -> u32 {
        let sample = self.sample(place);
        self.foreseen = Some(sample);
        sample
    }

    /// The place of the next sample.
    fn next(&self) -> u64 {
        self.drawn - u64::from(self.foreseen.is_some())
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

impl WholeShuffle {
    fn new(mut pass: Vec<u32>, mut rng: Box<Mt19937>) -> Self {
        rng.shuffle(&mut pass);
        Self { next: pass.clone(), pass, used: 0, rng }
    }

    fn draw(&mut self) -> u32 {
        if self.used == self.pass.len() {
            std::mem::swap(&mut self.pass, &mut self.next);
            self.next.clone_from(&self.pass);
            self.used = 0;
        }
        let drawn = self.pass[self.used];
        self.used += 1;
        let last = self.pass.len() - self.used;
        if last > 0 {
            self.rng.shuffle_step(&mut self.next, last);
        }
        drawn
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
    fn looking_ahead_changes_no_order() {
        let orders = || {
            let rng = || stream(3, Purpose::Order);
            [
                Order::without_replacement(7, rng()),
                Order::without_replacement(7, Mt19937::new(9)),
                Order::with_replacement(7, rng()),
                Order::sequential(7),
                Order::single(4),
            ]
        };
        for (mut plain, mut looked) in orders().into_iter().zip(orders()) {
            // With places of other sessions between, looked at never, once and twice.
            for place in (0..60).filter(|place| place % 5 != 3) {
                let foreseen: Vec<u32> = (0..place % 3).map(|_| looked.foresee(place)).collect();
                let sample = looked.sample(place);
                assert!(foreseen.iter().all(|&seen| seen == sample));
                assert_eq!(sample, plain.sample(place));
            }
        }
    }

    #[test]
    fn passes_from_mt19937_are_those_of_the_reference() {
        let mut order = Order::without_replacement(1_000, Mt19937::new(42));
        let first = pass(&mut order, 1_000);
        assert_eq!(first[..12], [776, 507, 895, 922, 33, 483, 85, 750, 354, 523, 184, 809]);
        assert_eq!(pass(&mut order, 6), [134, 114, 160, 755, 441, 210]);
        for n in [1, 2, 7, 100] {
            let mut order = Order::without_replacement(n, Mt19937::new(9));
            let (mut rng, mut list) = (Mt19937::new(9), (0..n).collect::<Vec<_>>());
            for _ in 0..5 {
                rng.shuffle(&mut list);
                assert_eq!(pass(&mut order, n), list);
            }
        }
    }

    #[test]
    fn choices_from_mt19937_are_those_of_the_reference() {
        let mut order = Order::with_replacement(10, Mt19937::new(42));
        // CPython: [r.randrange(10) for _ in range(12)] of random.Random(42).
        assert_eq!(pass(&mut order, 12), [1, 0, 4, 3, 3, 2, 1, 8, 1, 9, 6, 0]);
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
        assert_eq!(pass(&mut Order::single(4), 3), [4, 4, 4]);
    }

    #[test]
    fn places_that_are_passed_over_change_nothing_behind_them() {
        let mut whole = Order::without_replacement(7, stream(3, Purpose::Order));
        let all = pass(&mut whole, 40);
        let mut order = Order::without_replacement(7, stream(3, Purpose::Order));
        for place in [0, 1, 5, 6, 13, 14, 39] {
            assert_eq!(order.sample(place), all[place as usize], "place {place}");
        }
    }
}
