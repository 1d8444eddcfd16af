//! Stepping over JSON: what is stepped over is checked, nothing is copied.
//!
//! `None` means "unsure", not "wrong": at a surrogate escape, a long number, deep nesting or what is not JSON the
//! caller leaves the whole text to serde_json.

use crate::delta::Usage;

/// A place in a JSON text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Keys that may stand once: a second one is a case for serde_json.
#[derive(Default)]
pub(super) struct Once(u32);

impl Once {
    pub(super) fn see(&mut self, key: u32) -> Option<()> {
        let bit = 1 << key;
        let new = self.0 & bit == 0;
        self.0 |= bit;
        new.then_some(())
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes are behind.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Nothing but blanks follows.
    pub(super) fn end(&mut self) -> Option<()> {
        self.blanks();
        (self.at == self.bytes.len()).then_some(())
    }

    /// A count, or null, or another number that is none.
    pub(super) fn count(&mut self) -> Option<Option<u32>> {
        if self.is(b'n') {
            return self.null().map(|()| None);
        }
        Some(self.number()?.and_then(Usage::count))
    }

    /// A string's raw bytes, or null.
    pub(super) fn text(&mut self) -> Option<Option<&'a [u8]>> {
        if self.is(b'n') {
            return self.null().map(|()| None);
        }
        self.string().map(Some)
    }

    /// An object: `field` is called behind each key and has to take the value.
    pub(super) fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a [u8]) -> Option<()>,
    ) -> Option<()> {
        self.take(b'{')?;
        self.blanks();
        if self.is(b'}') {
            return self.take(b'}');
        }
        loop {
            let key = self.plain_string()?;
            self.blanks();
            self.take(b':')?;
            self.blanks();
            field(self, key)?;
            self.blanks();
            if !self.is(b',') {
                return self.take(b'}');
            }
            self.at += 1;
            self.blanks();
        }
    }

    /// A list: `item` is called in front of each value and has to take it.
    pub(super) fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.take(b'[')?;
        self.blanks();
        if self.is(b']') {
            return self.take(b']');
        }
        loop {
            item(self)?;
            self.blanks();
            if !self.is(b',') {
                return self.take(b']');
            }
            self.at += 1;
            self.blanks();
        }
    }

    /// Any value, checked and left alone.
    pub(super) fn skip(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.bytes.get(self.at)? {
            b'"' => self.string().map(|_| ()),
            b'n' => self.null(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'{' => self.object(|json, _| json.skip(depth + 1)),
            b'[' => self.list(|json| json.skip(depth + 1)),
            _ => self.number().map(|_| ()),
        }
    }

    /// A number: `Some(Some(n))` when it is whole and not negative, `Some(None)` otherwise.
    pub(super) fn number(&mut self) -> Option<Option<u64>> {
        let negative = self.is(b'-');
        self.at += usize::from(negative);
        let start = self.at;
        let mut n = 0u64;
        while let Some(digit) = self.bytes.get(self.at).filter(|b| b.is_ascii_digit()) {
            n = n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - start;
        if digits == 0 || digits > 18 || (digits > 1 && self.bytes[start] == b'0') {
            return None;
        }
        let mut whole = !negative;
        if self.is(b'.') {
            whole = false;
            self.at += 1;
            let start = self.at;
            while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
                self.at += 1;
            }
            if self.at == start {
                return None;
            }
        }
        if self.is(b'e') || self.is(b'E') {
            whole = false;
            self.exponent()?;
        }
        Some(whole.then_some(n))
    }

    /// One of two digits at the most: with the 18 before it, no number is too large for serde_json.
    fn exponent(&mut self) -> Option<()> {
        self.at += 1;
        self.at += usize::from(self.is(b'-') || self.is(b'+'));
        let digits = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += digits;
        matches!(digits, 1 | 2).then_some(())
    }

    /// How many whole numbers a list holds; `None` within for null.
    pub(super) fn ids(&mut self) -> Option<Option<u64>> {
        if self.is(b'n') {
            return self.null().map(|()| None);
        }
        let mut count = 0;
        self.list(|json| {
            count += 1;
            json.number()?.map(drop)
        })?;
        Some(Some(count))
    }

    /// A string without escapes.
    pub(super) fn plain_string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        let end = start + plain_prefix(&self.bytes[start..]);
        self.at = end;
        self.take(b'"')?;
        Some(&self.bytes[start..end])
    }

    /// A string's raw bytes between its quotes.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        let end = string_end(self.bytes, start)?;
        self.at = end + 1;
        Some(&self.bytes[start..end])
    }

    pub(super) fn null(&mut self) -> Option<()> {
        self.word(b"null")
    }

    pub(super) fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    pub(super) fn is(&self, byte: u8) -> bool {
        self.bytes.get(self.at) == Some(&byte)
    }

    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        self.is(byte).then(|| self.at += 1)
    }

    pub(super) fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }
}

/// Where the string that starts behind a quote at `at` ends (the place of its closing quote). `None` when it does not,
/// or holds a control character, a broken escape or a surrogate.
pub(super) fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += plain_prefix(&bytes[at..]);
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += escape_len(&bytes[at..])?,
            _ => return None,
        }
    }
}

/// Length of the escape in front of `bytes`; `None` when it is broken or a surrogate.
pub(super) fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => {
            let hex = bytes.get(2..6)?;
            let surrogate = matches!(hex[0], b'd' | b'D') && !matches!(hex[1], b'0'..=b'7');
            (hex.iter().all(u8::is_ascii_hexdigit) && !surrogate).then_some(6)
        }
        _ => None,
    }
}

/// Number of bytes in front of the first quote, backslash or control character: eight at a time.
fn plain_prefix(bytes: &[u8]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (LOW * b'"' as u64);
        let slash = word ^ (LOW * b'\\' as u64);
        // The lowest bit set is exact: a borrow only ever runs upwards from a true hit.
        let hit = ((quote.wrapping_sub(LOW) & !quote)
            | (slash.wrapping_sub(LOW) & !slash)
            | (word.wrapping_sub(LOW * 0x20) & !word))
            & HIGH;
        if hit != 0 {
            return i * 8 + hit.trailing_zeros() as usize / 8;
        }
    }
    let plain = |b: &&u8| !matches!(**b, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().take_while(plain).count()
}

/// serde_json gives up at 128, so what is this deep is left to it.
const MAX_DEPTH: usize = 64;
