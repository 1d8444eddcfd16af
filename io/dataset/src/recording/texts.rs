//! Prompts of recorded lengths, made as they are needed.
//!
//! A prompt is a list of pieces: the blocks that were recorded, or one piece where nothing is shared. A
//! piece begins with words that spell its number, sent through a seeded one-to-one mapping, and goes on
//! with a stretch of a pool of words, beginning at a place that the number gives. So the same number gives
//! the same text, other numbers other text from their first words on, and a prompt of 100,000 words is some
//! two hundred copies out of memory.
//!
//! A piece shorter than the words that spell its number can be like another one of its length: a prompt of
//! one word has 256 forms. Words are common English ones, a little more than a token each for the usual
//! tokenizers; only the server knows exactly.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{BLOCK_TOKENS, Recording};
use crate::synthetic::{Mix, WORD_BITS, WORD_MASK, words_to_tell_apart};
use crate::words::WORDS;

/// The text of the prompts of a [`Recording`].
#[derive(Clone, Debug)]
pub struct Texts {
    /// Words, each with a space behind it.
    pool: Box<str>,
    /// Where each word of the pool begins, and where the last one ends.
    starts: Box<[u32]>,
    mix: Mix,
    tag_words: u32,
}

impl Texts {
    /// Texts for `recording`; another `seed` gives others.
    pub fn new(recording: &Recording, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let tag_words = words_to_tell_apart(recording.distinct);
        let mix = Mix::new(tag_words * WORD_BITS, &mut rng);
        let (mut pool, mut starts) = (String::new(), vec![0]);
        for _ in 0..POOL_WORDS {
            push_word(&mut pool, rng.next_u64() >> (u64::BITS - WORD_BITS));
            // Some hundred kilobytes.
            starts.push(pool.len() as u32);
        }
        let (pool, starts) = (pool.into_boxed_str(), starts.into_boxed_slice());
        Self { pool, starts, mix, tag_words }
    }

    /// Puts the prompt of the call at `index` into `out`, in place of what is there.
    pub fn write(&self, recording: &Recording, index: usize, out: &mut String) {
        out.clear();
        let mut left = recording.calls()[index].input_tokens;
        match recording.blocks(index) {
            [] => self.piece(index as u64, left, out),
            blocks => {
                for block in blocks {
                    let words = left.min(BLOCK_TOKENS);
                    self.piece(u64::from(*block), words, out);
                    left -= words;
                }
            }
        }
        out.truncate(out.trim_end().len());
    }

    /// Appends `words` words of the piece `number`.
    fn piece(&self, number: u64, words: u32, out: &mut String) {
        let tag = self.mix.apply(number);
        let tag_words = self.tag_words.min(words);
        for place in 0..tag_words {
            push_word(out, tag >> (place * WORD_BITS));
        }
        let mut left = (words - tag_words) as usize;
        let mut at = tag.wrapping_mul(SPREAD) as usize % POOL_WORDS;
        while left > 0 {
            let end = (at + left).min(POOL_WORDS);
            out.push_str(&self.pool[self.starts[at] as usize..self.starts[end] as usize]);
            left -= end - at;
            at = 0;
        }
    }
}

fn push_word(out: &mut String, word: u64) {
    out.push_str(WORDS[(word & WORD_MASK) as usize]);
    out.push(' ');
}

const POOL_WORDS: usize = 1 << 16;
/// 2^64 over the golden ratio: spreads.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::dataset::Limits;
    use crate::recording::RecordingFormat;

    fn prompts(recording: &Recording, seed: u64) -> Vec<String> {
        let texts = Texts::new(recording, seed);
        let prompt = |index| {
            let mut out = "of before".to_owned();
            texts.write(recording, index, &mut out);
            out
        };
        (0..recording.len()).map(prompt).collect()
    }

    fn mooncake(rows: &[(u32, Vec<u64>)]) -> Recording {
        let line = |(tokens, ids): &(u32, Vec<u64>)| {
            let ids = serde_json::to_string(ids).unwrap();
            format!(
                "{{\"timestamp\": 0, \"input_length\": {tokens}, \"output_length\": 1, \
                 \"hash_ids\": {ids}}}\n"
            )
        };
        let text: String = rows.iter().map(line).collect();
        let limits = Limits::default();
        Recording::read(text.as_bytes(), "f", RecordingFormat::Mooncake, &limits).unwrap()
    }

    fn azure(lengths: impl IntoIterator<Item = u32>) -> Recording {
        let mut text = "TIMESTAMP,ContextTokens,GeneratedTokens\n".to_owned();
        for tokens in lengths {
            text.push_str(&format!("2023-11-16 18:17:03,{tokens},1\n"));
        }
        let limits = Limits::default();
        Recording::read(text.as_bytes(), "f", RecordingFormat::Azure, &limits).unwrap()
    }

    fn words(text: &str) -> Vec<&str> {
        text.split(' ').collect()
    }

    fn shared_words(a: &str, b: &str) -> usize {
        words(a).iter().zip(words(b)).take_while(|(a, b)| *a == b).count()
    }

    #[test]
    fn prompts_have_the_words_that_were_recorded_also_beyond_the_pool() {
        let lengths = [1, 2, 3, 4808, POOL_WORDS as u32 + 9, 200_000];
        for (prompt, length) in prompts(&azure(lengths), 1).iter().zip(lengths) {
            assert_eq!(words(prompt).len(), length as usize);
            assert!(!prompt.contains("  ") && !prompt.ends_with(' '));
        }
    }

    #[test]
    fn k5_prompts_that_share_nothing_differ_in_their_first_words() {
        let all = prompts(&azure((0..2_000).map(|n| 2 + n % 50)), 3);
        let heads: BTreeSet<_> = all.iter().map(|prompt| words(prompt)[..2].to_vec()).collect();
        assert_eq!(heads.len(), all.len());
        let others = prompts(&azure((0..2_000).map(|n| 2 + n % 50)), 4);
        assert!(all.iter().filter(|prompt| others.contains(prompt)).count() < 10, "another seed");
    }

    #[test]
    fn a_last_block_that_is_not_whole_is_the_beginning_of_the_whole_one() {
        let all =
            prompts(&mooncake(&[(1024, vec![5, 6]), (600, vec![5, 6]), (600, vec![6, 5])]), 7);
        assert_eq!(shared_words(&all[0], &all[1]), 600);
        assert_eq!(shared_words(&all[0], &all[2]), 0, "blocks make other text in another place");
    }

    proptest! {
        /// As much as the lists of blocks have in common at their beginning, and not a word more of the
        /// next block.
        #[test]
        fn prompts_share_what_was_recorded_and_nothing_else(
            seed: u64,
            lists in prop::collection::vec(prop::collection::vec(0_u64..5, 1..5), 2..6),
            last in 1_u32..=512,
        ) {
            let rows: Vec<_> =
                lists.iter().map(|ids| ((ids.len() as u32 - 1) * 512 + last, ids.clone())).collect();
            let all = prompts(&mooncake(&rows), seed);
            for (a, b) in (0..rows.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let blocks = rows[a].1.iter().zip(&rows[b].1).take_while(|(a, b)| a == b).count();
                let shortest = rows[a].0.min(rows[b].0) as usize;
                let expected = (blocks * 512).min(shortest);
                prop_assert_eq!(shared_words(&all[a], &all[b]), expected);
                prop_assert_eq!(words(&all[a]).len(), rows[a].0 as usize);
            }
        }
    }
}
