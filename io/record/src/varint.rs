//! Numbers of one to nine bytes, written and read without a loop.
//!
//! The number of bytes stands in the first one, as trailing zero bits: `n` bytes hold `7 * n` bits,
//! and a first byte of zero means that eight whole bytes follow. It is as dense as LEB128, but a number is
//! one shift and one store of eight bytes rather than a branch a byte. Signed differences are zigzagged
//! and wrap, so that any two `u64` are told apart by their difference exactly.

use crate::codec::CodecErrorKind;

/// The most that one record takes, its text left out. The writer asks for that much room before
/// each record; `the_longest_record_fits_the_room` holds it to be enough.
pub(crate) const ROOM: usize = 512;

/// Writes the fixed part of one record. Always inlined: the count then stays in a register, and a completed
/// request takes a fifth less time.
pub(crate) struct Put<'a> {
    room: &'a mut [u8; ROOM],
    used: usize,
}

impl<'a> Put<'a> {
    #[inline(always)]
    pub(crate) fn new(room: &'a mut [u8; ROOM]) -> Self {
        Self { room, used: 0 }
    }

    #[inline(always)]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.room[self.used] = byte;
        self.used += 1;
    }

    #[inline(always)]
    pub(crate) fn u16(&mut self, value: u16) {
        self.room[self.used..self.used + 2].copy_from_slice(&value.to_le_bytes());
        self.used += 2;
    }

    #[inline(always)]
    pub(crate) fn number(&mut self, value: u64) {
        // Half of a request's numbers are so small, and mostly the same half.
        if value < 1 << 7 {
            return self.byte((value << 1) as u8 | 1);
        }
        let bits = 64 - (value | 1).leading_zeros();
        let length = bits.div_ceil(7);
        if length <= 8 {
            self.eight(value << length | 1 << (length - 1));
            self.used += length as usize;
        } else {
            self.byte(0);
            self.eight(value);
            self.used += 8;
        }
    }

    /// `to - from`, in either direction.
    #[inline(always)]
    pub(crate) fn step(&mut self, from: u64, to: u64) {
        let difference = to.wrapping_sub(from).cast_signed();
        self.number((difference << 1 ^ difference >> 63).cast_unsigned());
    }

    #[inline(always)]
    fn eight(&mut self, value: u64) {
        self.room[self.used..self.used + 8].copy_from_slice(&value.to_le_bytes());
    }
}

/// Reads what [`Put`] wrote; errors rather than reads past the end.
#[derive(Clone)]
pub(crate) struct Take<'a> {
    rest: &'a [u8],
}

impl<'a> Take<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, CodecErrorKind> {
        let (&first, rest) = self.rest.split_first().ok_or(CodecErrorKind::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, CodecErrorKind> {
        let (pair, rest) = self.rest.split_first_chunk().ok_or(CodecErrorKind::Truncated)?;
        self.rest = rest;
        Ok(u16::from_le_bytes(*pair))
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, CodecErrorKind> {
        let first = *self.rest.first().ok_or(CodecErrorKind::Truncated)?;
        let length = first.trailing_zeros() as usize + 1;
        if length > 8 {
            let (eight, rest) =
                self.rest[1..].split_first_chunk().ok_or(CodecErrorKind::Truncated)?;
            self.rest = rest;
            return Ok(u64::from_le_bytes(*eight));
        }
        let eight = match self.rest.first_chunk() {
            Some(eight) => *eight,
            None if length <= self.rest.len() => {
                let mut eight = [0; 8];
                eight[..self.rest.len()].copy_from_slice(self.rest);
                eight
            }
            None => return Err(CodecErrorKind::Truncated),
        };
        self.rest = &self.rest[length..];
        let unused = 64 - 8 * length;
        Ok(u64::from_le_bytes(eight) << unused >> unused >> length)
    }

    /// The number that lies a step from `from`.
    #[inline]
    pub(crate) fn step(&mut self, from: u64) -> Result<u64, CodecErrorKind> {
        let zigzag = self.number()?;
        let difference = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
        Ok(from.wrapping_add(difference))
    }

    #[inline]
    pub(crate) fn number_u32(&mut self) -> Result<u32, CodecErrorKind> {
        u32::try_from(self.number()?).map_err(|_| CodecErrorKind::Range)
    }

    #[inline]
    pub(crate) fn number_u16(&mut self) -> Result<u16, CodecErrorKind> {
        u16::try_from(self.number()?).map_err(|_| CodecErrorKind::Range)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], CodecErrorKind> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(CodecErrorKind::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes `value`, reads it back from exactly its bytes, and returns how many they were.
    fn round_trip(value: u64) -> usize {
        let mut room = [0xff; ROOM];
        let mut put = Put::new(&mut room);
        put.number(value);
        let used = put.used();
        let mut take = Take::new(&room[..used]);
        assert_eq!(take.number(), Ok(value));
        assert!(take.is_empty());
        for short in 0..used {
            let cut = Take::new(&room[..short]).number();
            assert_eq!(cut, Err(CodecErrorKind::Truncated), "{value} in {short} of {used}");
        }
        let mut longer = Take::new(&room[..used + 8]);
        assert_eq!(longer.number(), Ok(value), "what follows does not matter");
        used
    }

    #[test]
    fn seven_bits_a_byte_and_nine_bytes_at_most() {
        for bits in 1..=64u32 {
            let largest = u64::MAX >> (64 - bits);
            let expect = bits.div_ceil(7).min(9) as usize;
            assert_eq!(round_trip(largest), expect, "{bits} bits");
            assert_eq!(round_trip(1 << (bits - 1)), expect, "{bits} bits");
        }
        assert_eq!(round_trip(0), 1);
    }

    #[test]
    fn a_step_leads_from_any_number_to_any_other() {
        let ends = [0, 1, 63, 64, 1 << 31, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX];
        for from in ends {
            for to in ends {
                let mut room = [0; ROOM];
                let mut put = Put::new(&mut room);
                put.step(from, to);
                let used = put.used();
                assert_eq!(Take::new(&room[..used]).step(from), Ok(to));
            }
        }
    }

    #[test]
    fn small_steps_either_way_take_one_byte() {
        for (from, to) in [(100, 163), (100, 36), (0, u64::MAX)] {
            let mut room = [0; ROOM];
            let mut put = Put::new(&mut room);
            put.step(from, to);
            assert_eq!(put.used(), 1, "{from} to {to}");
        }
    }
}
