//! Request ids: 128 bits, 32 hex characters, unlike each other to the eye.
//!
//! An id is a bijection of (phase, ordinal) keyed by the session, so phase and ordinal of an id need no
//! map. It is a four-round Feistel network over two 64-bit halves (Luby and Rackoff, 1988) with
//! SplitMix64's finalizer (Steele, Lea, Flood, 2014) as its round function. It hides nothing; it only
//! spreads.

use std::fmt;

use crate::records::{PhaseId, RequestKey};

/// The id of a request, as it goes out in `X-Request-Id`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    high: u64,
    low: u64,
}

impl RequestId {
    /// The id of `key` in the session whose key is `session`.
    #[must_use]
    pub fn new(session: u64, key: RequestKey) -> Self {
        let (mut high, mut low) = (u64::from(key.phase.0), key.ordinal);
        for round in 0..ROUNDS {
            (high, low) = (low, high ^ mix(low, session, round));
        }
        Self { high, low }
    }

    /// The request that this id names; `None` when it is no id of that session.
    #[must_use]
    pub fn key(self, session: u64) -> Option<RequestKey> {
        let (mut high, mut low) = (self.high, self.low);
        for round in (0..ROUNDS).rev() {
            (high, low) = (low ^ mix(high, session, round), high);
        }
        let phase = PhaseId(u16::try_from(high).ok()?);
        Some(RequestKey { phase, ordinal: low })
    }

    /// 32 lower-case hex characters.
    #[must_use]
    pub fn hex(self) -> [u8; 32] {
        let mut out = [0; 32];
        let bytes = (u128::from(self.high) << 64 | u128::from(self.low)).to_be_bytes();
        for (pair, byte) in out.as_chunks_mut().0.iter_mut().zip(bytes) {
            *pair = HEX[usize::from(byte)];
        }
        out
    }

    /// Reads 32 hex characters.
    #[must_use]
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        if text.len() != 32 {
            return None;
        }
        let half = |part: &[u8]| {
            part.iter()
                .try_fold(0u64, |sum, &c| Some(sum << 4 | u64::from(char::from(c).to_digit(16)?)))
        };
        Some(Self { high: half(&text[..16])?, low: half(&text[16..])? })
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The round function: SplitMix64's finalizer on half, session and round.
fn mix(half: u64, session: u64, round: u64) -> u64 {
    let mut z = half ^ session.wrapping_add((round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const ROUNDS: u64 = 4;

/// The two characters of each byte.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_id_leads_back_to_its_request_and_no_two_are_alike() {
        let session = 0x1234_5678_9abc_def0;
        let mut seen = BTreeSet::new();
        for phase in [0, 1, 7, u16::MAX] {
            for ordinal in (0..500).chain([u64::MAX, 1 << 40]) {
                let key = RequestKey { phase: PhaseId(phase), ordinal };
                let id = RequestId::new(session, key);
                assert_eq!(id.key(session), Some(key));
                assert_eq!(id.to_string().as_bytes(), id.hex());
                assert_eq!(RequestId::from_hex(&id.hex()), Some(id));
                assert!(seen.insert(id));
            }
        }
    }

    #[test]
    fn an_id_of_another_session_is_not_taken_for_ours() {
        let key = RequestKey { phase: PhaseId(3), ordinal: 9 };
        assert_eq!(RequestId::new(1, key).key(2), None);
        assert_eq!(RequestId::from_hex(b"zz"), None);
        assert_eq!(RequestId::from_hex(&[b'g'; 32]), None);
    }

    #[test]
    fn neighbours_differ_in_about_half_of_their_bits() {
        let id = |ordinal| RequestId::new(42, RequestKey { phase: PhaseId(0), ordinal });
        for ordinal in 0..200 {
            let (a, b) = (id(ordinal), id(ordinal + 1));
            let bits = (a.high ^ b.high).count_ones() + (a.low ^ b.low).count_ones();
            assert!((30..98).contains(&bits), "{a} and {b} differ in {bits} bits");
        }
    }
}
