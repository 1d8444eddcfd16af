//! How bytes arrive: all at once, one by one, or in pieces drawn from one byte of the input.

/// Cuts `data`. `how` is `0` for one piece, `1` for single bytes (the digits, as they are typed); any other
/// byte is a seed for pieces of 1 to 61 bytes.
pub(crate) fn pieces(data: &[u8], how: u8) -> Vec<&[u8]> {
    match how {
        b'0' => vec![data],
        b'1' => data.chunks(1).collect(),
        seed => drawn(data, seed),
    }
}

fn drawn(mut data: &[u8], seed: u8) -> Vec<&[u8]> {
    let most = [2, 5, 17, 61][usize::from(seed & 3)];
    let mut state = u32::from(seed) << 8 | 1;
    let mut out = Vec::new();
    while !data.is_empty() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let (piece, rest) = data.split_at((1 + state as usize % most).min(data.len()));
        out.push(piece);
        data = rest;
    }
    out
}

/// Takes the first bytes of an input off, as options. They are capital letters, so that zero is `@`.
pub(crate) fn options<const N: usize>(data: &[u8]) -> Option<([u8; N], &[u8])> {
    data.split_first_chunk().map(|(options, rest)| (*options, rest))
}

/// Whether bit `bit` of an option is set.
pub(crate) fn bit(option: u8, bit: u32) -> bool {
    option >> bit & 1 != 0
}
