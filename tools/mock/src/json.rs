//! JSON by hand: the answers have a fixed shape and are written straight into a buffer.

/// Appends the digits of `number`.
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends `text` as the inside of a JSON string. What is not UTF-8 becomes U+FFFD, so that the result
/// always is.
pub(crate) fn text(out: &mut Vec<u8>, text: &[u8]) {
    // As ids are: all at once.
    if text.iter().fold(true, |plain, &byte| plain & is_plain(byte)) {
        return out.extend_from_slice(text);
    }
    for chunk in text.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                0..0x20 | 0x7f => {
                    out.extend_from_slice(b"\\u00");
                    out.push(HEX[usize::from(byte >> 4)]);
                    out.push(HEX[usize::from(byte & 15)]);
                }
                _ => out.push(byte),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Stands for itself, and is no part of another character.
fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..0x7f) & (byte != b'"') & (byte != b'\\')
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_stand_for_themselves() {
        let mut out = Vec::new();
        text(&mut out, b"req-7f ~");
        assert_eq!(out, b"req-7f ~");
        for byte in [b'"', b'\\', 0, 0x1f, 0x7f, 0x80, 0xff] {
            assert!(!is_plain(byte), "{byte}");
        }
    }

    #[test]
    fn any_bytes_become_a_valid_string() {
        let mut out = Vec::new();
        text(&mut out, b"a\"b\\c\nd\xc3\xa4\xff");
        assert_eq!(out, "a\\\"b\\\\c\\u000ad\u{e4}\u{fffd}".as_bytes());
    }
}
