//! The intervals of one open stream, four bytes each.
//!
//! Whether a stream's intervals count is known only at its end, so they are held until then. A gap is
//! held as its 26 leading bits and a shift: exact below 67 ms, above within one part in 2^27.
//!
//! One entry is one read with token events; an entry that brought other than one token is followed by
//! a mark with the number.

/// Gaps between the reads of one stream, each with the tokens that came at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    words: Vec<u32>,
}

impl Packed {
    /// Adds a gap that ended in `tokens` tokens; `false` when there is no room for it.
    pub(crate) fn push(&mut self, gap_ns: u64, tokens: u32) -> bool {
        if self.words.len() + 2 > MAX_WORDS {
            return false;
        }
        self.words.push(pack(gap_ns));
        if tokens != 1 {
            self.words.push(mark(tokens));
        }
        true
    }

    /// More tokens came in the read of the last gap; `false` when there is none.
    pub(crate) fn more_tokens(&mut self, tokens: u32) -> bool {
        match self.words.last_mut() {
            Some(word) if *word >= MARK => *word = mark((*word - MARK).saturating_add(tokens)),
            Some(_) => self.words.push(mark(tokens.saturating_add(1))),
            None => return false,
        }
        true
    }

    /// Every gap with its tokens, in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u64, u32)> {
        let mut words = self.words.iter().copied().peekable();
        std::iter::from_fn(move || {
            let gap_ns = unpack(words.next()?);
            let tokens = words.next_if(|&word| word >= MARK).map_or(1, |word| word - MARK);
            Some((gap_ns, tokens))
        })
    }

    /// Forgets the gaps and keeps ordinary memory for the next stream.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.words.shrink_to(KEEP_WORDS);
    }
}

fn pack(value: u64) -> u32 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    (shift << BITS) + (value >> shift) as u32
}

fn unpack(word: u32) -> u64 {
    let shift = (word >> BITS).saturating_sub(1);
    let head = u64::from(word - (shift << BITS));
    (head << shift) + ((1 << shift) >> 1)
}

fn mark(tokens: u32) -> u32 {
    MARK + tokens.min(MARK - 1)
}

/// Bits kept below the leading one. The greatest word for a gap is (38 + 2) * 2^25 - 1, below the mark.
const BITS: u32 = 25;
/// From here on a word is a number of tokens.
const MARK: u32 = 1 << 31;
/// A stream's room: 512 KiB, at least 65,536 events.
const MAX_WORDS: usize = 128 * 1024;
/// Room that a finished stream leaves to the next one: 4 KiB.
const KEEP_WORDS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_comes_back_as_good_as_exact() {
        for bit in 0..64 {
            for value in [1u64 << bit, (1 << bit) + (1 << bit) / 3, u64::MAX >> (63 - bit)] {
                let back = unpack(pack(value));
                assert!(back.abs_diff(value) <= value >> 26, "{value} came back as {back}");
                assert!(pack(value) < MARK);
            }
        }
        for value in (0..1 << 26).step_by(99_991) {
            assert_eq!(unpack(pack(value)), value);
        }
    }

    #[test]
    fn gaps_keep_their_tokens_in_order() {
        let mut packed = Packed::default();
        assert!(!packed.more_tokens(1), "tokens of the first read belong to no gap");
        for (gap, tokens) in [(5, 1), (7, 4), (9, 0), (11, 1)] {
            assert!(packed.push(gap, tokens));
        }
        assert!(packed.more_tokens(2) && packed.more_tokens(3));
        let held: Vec<_> = packed.each().collect();
        assert_eq!(held, [(5, 1), (7, 4), (9, 0), (11, 6)]);
    }

    #[test]
    fn an_endless_stream_takes_bounded_memory() {
        let mut packed = Packed::default();
        let taken = (0..1_000_000).take_while(|&gap| packed.push(gap, 2)).count();
        assert_eq!(taken, MAX_WORDS / 2);
        packed.clear();
        assert!(packed.words.capacity() <= KEEP_WORDS);
    }
}
