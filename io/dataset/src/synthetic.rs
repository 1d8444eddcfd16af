//! Prompts made up from a seed, for runs without a data set.
//!
//! No two prompts of a set are the same, and none shares a beginning with another that a server's
//! prefix cache could use: the first few words of each spell its ordinal, sent through a seeded
//! one-to-one mapping, and the rest are drawn. So difference is a property of the construction, not
//! of luck. Another seed gives other prompts.
//!
//! The words are common English ones, so a word is a little more than a token for the usual
//! tokenizers; only the server knows exactly.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::dataset::Dataset;
use crate::error::{At, DatasetError, Fault};
use crate::params::Params;
use crate::sample::{Prompt, Sample};
use crate::words::WORDS;

/// How long prompts are, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// All the same.
    Fixed(u32),
    /// Each length from `min` to `max`, both included, as likely as any other.
    Uniform {
        /// The shortest, words.
        min: u32,
        /// The longest, words.
        max: u32,
    },
}

/// Makes `samples` prompts of the given `lengths`, all different. The same arguments give the same
/// prompts, on any machine.
///
/// # Errors
///
/// None asked for, an empty range of lengths, or lengths too short for that many different prompts
/// (one word tells 256 apart, two 65,536, and so on).
pub fn synthetic(samples: usize, lengths: Lengths, seed: u64) -> Result<Dataset, DatasetError> {
    make(samples, lengths, seed)
        .map(|made| Dataset::from_samples(NAME.to_owned(), made, None))
        .map_err(|fault| At::nowhere(fault).in_file(NAME))
}

fn make(samples: usize, lengths: Lengths, seed: u64) -> Result<Vec<Sample>, Fault> {
    let (min, max) = match lengths {
        Lengths::Fixed(words) => (words, words),
        Lengths::Uniform { min, max } => (min, max),
    };
    if samples == 0 {
        return Err(Fault::Empty);
    }
    if min > max {
        return Err(Fault::EmptyRange { min, max });
    }
    let tag_words = words_to_tell_apart(samples);
    if min < tag_words {
        return Err(Fault::TooFewWords { words: min, samples, needed: tag_words });
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mix = Mix::new(tag_words * WORD_BITS, &mut rng);
    let one = |ordinal: u64| {
        let words = min + below(max - min + 1, &mut rng);
        let tag = mix.apply(ordinal);
        let mut text = String::new();
        for place in 0..words {
            let word = if place < tag_words {
                tag >> (place * WORD_BITS)
            } else {
                rng.next_u64() >> (u64::BITS - WORD_BITS)
            };
            if place > 0 {
                text.push(' ');
            }
            text.push_str(WORDS[(word & WORD_MASK) as usize]);
        }
        Sample {
            prompt: Prompt::Text(text.into_boxed_str()),
            system: None,
            params: Params::default(),
            truth: None,
            row: ordinal + 1,
        }
    };
    Ok((0..samples as u64).map(one).collect())
}

/// The fewest words whose combinations are at least `samples`.
pub(crate) fn words_to_tell_apart(samples: usize) -> u32 {
    let bits = usize::BITS - (samples - 1).leading_zeros();
    bits.div_ceil(WORD_BITS).max(1)
}

/// A one-to-one mapping of the numbers of `bits` bits onto themselves: each step, an addition, a
/// product with an odd number, or a shift folded in, can be undone.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    mask: u64,
    shift: u32,
    rounds: [(u64, u64); 3],
}

impl Mix {
    pub(crate) fn new(bits: u32, rng: &mut Xoshiro256PlusPlus) -> Mix {
        let mask = u64::MAX >> (u64::BITS - bits);
        let rounds = std::array::from_fn(|_| (rng.next_u64(), rng.next_u64() | 1));
        Mix { mask, shift: bits / 2, rounds }
    }

    pub(crate) fn apply(&self, number: u64) -> u64 {
        self.rounds.iter().fold(number, |x, (add, odd)| {
            let x = x.wrapping_add(*add).wrapping_mul(*odd) & self.mask;
            x ^ (x >> self.shift)
        })
    }
}

/// A number from 0 to `end - 1`. `end` 0 stands for 2^32 (a range of all lengths). The bias, less
/// than one in 2^32, is of no account here.
fn below(end: u32, rng: &mut Xoshiro256PlusPlus) -> u32 {
    let end = if end == 0 { 1 << 32 } else { u64::from(end) };
    ((u128::from(rng.next_u64()) * u128::from(end)) >> 64) as u32
}

const NAME: &str = "synthetic";
/// Bits that a word tells: there are 2^8 of them.
pub(crate) const WORD_BITS: u32 = WORDS.len().ilog2();
pub(crate) const WORD_MASK: u64 = WORDS.len() as u64 - 1;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn prompts(samples: usize, lengths: Lengths, seed: u64) -> Vec<String> {
        let made = synthetic(samples, lengths, seed).unwrap();
        let text = |s: &Sample| match &s.prompt {
            Prompt::Text(text) => text.to_string(),
            Prompt::Messages(_) => panic!("synthetic prompts are text"),
        };
        made.samples().iter().map(text).collect()
    }

    fn refused(samples: usize, lengths: Lengths) -> Fault {
        synthetic(samples, lengths, 1).unwrap_err().fault
    }

    #[test]
    fn words_are_a_power_of_two_and_all_different() {
        assert!(WORDS.len().is_power_of_two());
        assert_eq!(WORDS.iter().collect::<BTreeSet<_>>().len(), WORDS.len());
    }

    #[test]
    fn k5_all_prompts_that_a_length_can_tell_apart_are_told_apart() {
        let all = prompts(WORDS.len(), Lengths::Fixed(1), 7);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), WORDS.len());
        let two = prompts(WORDS.len() * WORDS.len(), Lengths::Fixed(2), 7);
        assert_eq!(two.iter().collect::<BTreeSet<_>>().len(), two.len());
    }

    #[test]
    fn k5_no_two_prompts_share_their_first_words() {
        let all = prompts(10_000, Lengths::Fixed(50), 42);
        let tag = words_to_tell_apart(10_000) as usize;
        assert_eq!(tag, 2);
        let heads: BTreeSet<Vec<&str>> =
            all.iter().map(|p| p.split(' ').take(tag).collect()).collect();
        assert_eq!(heads.len(), all.len());
    }

    #[test]
    fn k5_another_seed_gives_other_prompts() {
        let one: BTreeSet<_> = prompts(1_000, Lengths::Fixed(20), 1).into_iter().collect();
        let two: BTreeSet<_> = prompts(1_000, Lengths::Fixed(20), 2).into_iter().collect();
        assert!(one.is_disjoint(&two));
    }

    #[test]
    fn words_needed_grow_by_one_each_time_the_words_run_out() {
        let n = WORDS.len();
        let needed = [1, n, n + 1, n * n, n * n + 1].map(words_to_tell_apart);
        assert_eq!(needed, [1, 1, 2, 2, 3]);
    }

    #[test]
    fn what_cannot_be_distinct_is_refused() {
        let fault = refused(WORDS.len() + 1, Lengths::Fixed(1));
        assert!(matches!(fault, Fault::TooFewWords { words: 1, needed: 2, .. }), "{fault}");
        assert!(matches!(refused(0, Lengths::Fixed(9)), Fault::Empty));
        let range = Lengths::Uniform { min: 9, max: 8 };
        assert!(matches!(refused(1, range), Fault::EmptyRange { min: 9, max: 8 }));
    }

    proptest! {
        #[test]
        fn same_seed_same_prompts_and_lengths_in_range(
            samples in 1usize..400, min in 2u32..9, more in 0u32..9, seed: u64,
        ) {
            let lengths = Lengths::Uniform { min, max: min + more };
            let all = prompts(samples, lengths, seed);
            prop_assert_eq!(&all, &prompts(samples, lengths, seed));
            for prompt in &all {
                let words = prompt.split(' ').count() as u32;
                prop_assert!((min..=min + more).contains(&words));
            }
            prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), samples);
        }

        #[test]
        fn every_length_of_a_range_occurs(seed: u64) {
            let all = prompts(500, Lengths::Uniform { min: 2, max: 5 }, seed);
            let lengths: BTreeSet<_> = all.iter().map(|p| p.split(' ').count()).collect();
            prop_assert_eq!(lengths, BTreeSet::from([2, 3, 4, 5]));
        }
    }
}
