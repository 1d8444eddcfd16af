//! Salts: marks in a system message, by which a server's prefix cache tells the passes of a phase apart.
//!
//! `[salt: R]`, a blank line, the message, a blank line, `[salt: C]`: `R` is the pass over the dataset and
//! `C` the conversation, each as the BLAKE2b digest of two bytes of its text, in hexadecimal, as the
//! reference implementation has it. Nothing else is in them: another phase over the same conversations, and
//! another run, say the same.

/// Where in what [`salted`] gives the four bytes of `R` go.
pub const SALT_AT: usize = br#""[salt: "#.len();

/// What a system message says, with salts in it: that of its conversation, and a place for that of the pass.
/// A JSON string.
#[must_use]
pub fn salted(system: &str, conversation: &str) -> String {
    let of = salt_of(conversation);
    let of = of.iter().copied().map(char::from).collect::<String>();
    serde_json::Value::from(format!("[salt: 0000]\n\n{system}\n\n[salt: {of}]")).to_string()
}

/// The salt of a text: four hexadecimal digits.
#[must_use]
pub fn salt_of(text: &str) -> [u8; 4] {
    let digest = blake2b_16(text.as_bytes());
    let hex = |nibble: u8| char::from_digit(nibble.into(), 16).map_or(b'0', |digit| digit as u8);
    let [a, b] = digest;
    [hex(a >> 4), hex(a & 15), hex(b >> 4), hex(b & 15)]
}

/// BLAKE2b without a key and with a digest of two bytes (RFC 7693, section 3).
fn blake2b_16(data: &[u8]) -> [u8; 2] {
    let mut state = IV;
    // Parameters: digest length 2, no key, fanout 1, depth 1.
    state[0] ^= 0x0101_0000 ^ 2;
    let blocks = data.chunks(BLOCK);
    let last = blocks.len().max(1) - 1;
    let mut counted = 0u128;
    for at in 0..=last {
        let part = data.chunks(BLOCK).nth(at).unwrap_or_default();
        let mut block = [0; BLOCK];
        block[..part.len()].copy_from_slice(part);
        counted += part.len() as u128;
        compress(&mut state, &block, counted, at == last);
    }
    let [a, b, ..] = state[0].to_le_bytes();
    [a, b]
}

fn compress(state: &mut [u64; 8], block: &[u8; BLOCK], counted: u128, last: bool) {
    let mut words = [0u64; 16];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    let mut v = [0u64; 16];
    v[..8].copy_from_slice(state);
    v[8..].copy_from_slice(&IV);
    v[12] ^= counted as u64;
    v[13] ^= (counted >> 64) as u64;
    if last {
        v[14] = !v[14];
    }
    let mut mix = |[a, b, c, d]: [usize; 4], x: u64, y: u64| {
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
        v[d] = (v[d] ^ v[a]).rotate_right(32);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(24);
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
        v[d] = (v[d] ^ v[a]).rotate_right(16);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(63);
    };
    for round in 0..12 {
        let order = &SIGMA[round % 10];
        for (lane, at) in LANES.into_iter().enumerate() {
            mix(at, words[order[2 * lane]], words[order[2 * lane + 1]]);
        }
    }
    for (at, word) in state.iter_mut().enumerate() {
        *word ^= v[at] ^ v[at + 8];
    }
}

const BLOCK: usize = 128;
const LANES: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];
const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];
const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        String::from_utf8(salt_of(text).to_vec()).unwrap()
    }

    #[test]
    fn salts_are_those_of_the_reference() {
        for (text, salt) in [
            ("1", "4461"),
            ("2", "ba75"),
            ("c1", "6d82"),
            ("c2", "87c4"),
            ("c3", "b725"),
            ("c4", "2e1e"),
            ("c5", "c556"),
        ] {
            assert_eq!(of(text), salt, "{text}");
        }
    }

    #[test]
    fn lengths_around_a_block_are_hashed_whole() {
        // Python: hashlib.blake2b(b"a" * n, digest_size=2).hexdigest()
        for (length, salt) in LENGTHS {
            assert_eq!(of(&"a".repeat(length)), salt, "{length}");
        }
    }

    #[test]
    fn a_salted_text_is_json_with_its_place_where_it_is_said_to_be() {
        let text = salted("be \"nice\"", "c1");
        assert_eq!(&text[SALT_AT..SALT_AT + 4], "0000");
        let text: String = serde_json::from_str(&text).unwrap();
        assert_eq!(text, "[salt: 0000]\n\nbe \"nice\"\n\n[salt: 6d82]");
    }

    const LENGTHS: [(usize, &str); 6] =
        [(0, "b1fe"), (127, "b063"), (128, "cfc7"), (129, "08be"), (256, "8769"), (1000, "6e79")];
}
