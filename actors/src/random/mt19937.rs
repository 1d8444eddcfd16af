//! The generator of CPython's `random.Random`, number for number.
//!
//! The core is MT19937 (Matsumoto and Nishimura, 1998) seeded by an array, from a crate. What turns its
//! words into numbers, choices and bytes is the recipe of CPython, the same from 3.11 to 3.13; the tests
//! hold it to values that CPython printed.

use std::fmt;

use rand_mt::Mt;

/// `random.Random(seed)`.
#[derive(Clone)]
pub struct Mt19937(Mt);

impl Mt19937 {
    /// Seeded as CPython seeds with a whole number: by the array of its 32-bit words, the lowest first.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> u32::BITS) as u32);
        let words = if high == 0 { 1 } else { 2 };
        Self(Mt::new_with_key([low, high].into_iter().take(words)))
    }

    /// `random()`: from 0 to below 1, in steps of 2^-53.
    pub fn random(&mut self) -> f64 {
        let (a, b) = (self.0.next_u32() >> 5, self.0.next_u32() >> 6);
        (f64::from(a) * f64::from(1 << 26) + f64::from(b)) / (1_u64 << f64::MANTISSA_DIGITS) as f64
    }

    /// `getrandbits(bits)`, for 1 to 64 bits: words with the lowest first, of the last one its top bits.
    ///
    /// # Panics
    /// When `bits` is out of range.
    pub fn bits(&mut self, bits: u32) -> u64 {
        assert!((1..=u64::BITS).contains(&bits), "from 1 to 64 bits");
        let low = bits.min(u32::BITS);
        let word = u64::from(self.0.next_u32() >> (u32::BITS - low));
        match bits - low {
            0 => word,
            high => word | u64::from(self.0.next_u32() >> (u32::BITS - high)) << u32::BITS,
        }
    }

    /// `_randbelow(n)`: draws as many bits as `n` has until they are below it.
    ///
    /// # Panics
    /// When `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "nothing is below 0");
        let bits = u64::BITS - n.leading_zeros();
        loop {
            let drawn = self.bits(bits);
            if drawn < n {
                return drawn;
            }
        }
    }

    /// `shuffle(list)`.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            self.shuffle_step(list, last);
        }
    }

    /// The step of `shuffle` that settles place `last`; steps go from the last place down to place 1.
    pub(crate) fn shuffle_step<T>(&mut self, list: &mut [T], last: usize) {
        let chosen = self.below(last as u64 + 1);
        list.swap(last, chosen as usize);
    }

    /// `expovariate(rate)`: exponential with mean 1/rate.
    pub fn expovariate(&mut self, rate: f64) -> f64 {
        -(1.0 - self.random()).ln() / rate
    }

    /// `randbytes(n)`, into `out`.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(size_of::<u32>()) {
            // A last word that is not whole gives its top bytes.
            let word = self.0.next_u32().to_le_bytes();
            chunk.copy_from_slice(&word[word.len() - chunk.len()..]);
        }
    }
}

/// Not its 624 words.
impl fmt::Debug for Mt19937 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mt19937")
    }
}

#[cfg(test)]
mod tests {
    //! Every expected value was printed by CPython 3.11 and 3.13.

    use super::*;

    fn draw<T, const N: usize>(seed: u64, mut one: impl FnMut(&mut Mt19937) -> T) -> [T; N] {
        let mut rng = Mt19937::new(seed);
        std::array::from_fn(|_| one(&mut rng))
    }

    #[test]
    #[allow(clippy::excessive_precision, reason = "as CPython prints them")]
    fn random_gives_the_numbers_of_cpython() {
        let expected = [0.6394267984578837, 0.025010755222666936, 0.27502931836911926];
        assert_eq!(draw(42, Mt19937::random), expected);
    }

    #[test]
    fn a_seed_of_two_words_is_an_array_of_two() {
        let expected = [0.635_956_930_056_549_7, 0.912_226_282_057_432_8];
        assert_eq!(draw(16_159_082_839_903_944_936, Mt19937::random), expected);
    }

    #[test]
    fn below_gives_the_numbers_of_randint_of_cpython() {
        let drawn: [u64; 6] = draw(42, |rng| rng.below(1_000));
        assert_eq!(drawn, [654, 114, 25, 759, 281, 250]);
    }

    #[test]
    fn shuffle_gives_the_orders_of_cpython_and_goes_on_from_the_last_one() {
        let mut ten: Vec<u32> = (0..10).collect();
        Mt19937::new(42).shuffle(&mut ten);
        assert_eq!(ten, [7, 3, 2, 8, 5, 6, 9, 4, 0, 1]);

        let (mut rng, mut list) = (Mt19937::new(42), (0..1000).collect::<Vec<u32>>());
        rng.shuffle(&mut list);
        assert_eq!(list[..12], [776, 507, 895, 922, 33, 483, 85, 750, 354, 523, 184, 809]);
        rng.shuffle(&mut list);
        assert_eq!(list[..6], [134, 114, 160, 755, 441, 210]);
    }

    #[test]
    fn randbytes_gives_the_salts_of_the_reference() {
        let salts: [u64; 3] = draw(44, |rng| {
            let mut bytes = [0; 8];
            rng.fill_bytes(&mut bytes);
            u64::from_be_bytes(bytes)
        });
        let expected = [0xa8ce_9568_1110_2085, 0x78ad_be8a_4bfd_9cb3, 0x9f6e_aedc_0621_dd1d];
        assert_eq!(salts, expected);
    }

    #[test]
    fn bytes_and_bits_are_the_same_draws() {
        for n in 1..=8 {
            let mut bytes = [0; 8];
            Mt19937::new(7).fill_bytes(&mut bytes[..n]);
            let bits = Mt19937::new(7).bits(8 * n as u32);
            assert_eq!(u64::from_le_bytes(bytes), bits, "{n} bytes");
        }
    }

    #[test]
    fn below_a_power_of_two_draws_a_bit_more_than_is_needed() {
        // CPython takes the bit length of n, not of n - 1: half of the draws are thrown away.
        let mut rng = Mt19937::new(42);
        let mut raw = Mt19937::new(42);
        for _ in 0..100 {
            let expected = std::iter::repeat_with(|| raw.bits(4)).find(|drawn| *drawn < 8);
            assert_eq!(Some(rng.below(8)), expected);
        }
    }
}
