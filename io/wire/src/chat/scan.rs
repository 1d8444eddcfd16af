//! One pass over an event's JSON: finds what a [`Delta`] needs, checks what it steps over, copies nothing.
//!
//! It answers only when it is sure to agree with serde_json: `None` means "unsure", not "wrong". It is
//! unsure about escapes in keys and in names, surrogate escapes, repeated keys that matter, more than one choice, values
//! of another type than usual, long numbers, deep nesting and everything that is not JSON.

use crate::chat::Shape;
use crate::delta::{Delta, FinishReason, Kinds, Usage};

/// What the scan found. Strings are the raw bytes between their quotes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found<'a> {
    pub(super) role: bool,
    pub(super) choice: bool,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<Usage>,
    pub(super) content: Option<&'a [u8]>,
    pub(super) reasoning_content: Option<&'a [u8]>,
    pub(super) reasoning: Option<&'a [u8]>,
    pub(super) tool_call: bool,
}

impl<'a> Found<'a> {
    /// Visible text, if it is not empty.
    pub(super) fn content_text(&self) -> Option<&'a [u8]> {
        self.content.filter(|raw| !raw.is_empty())
    }

    /// Reasoning, if it is not empty; servers that send both names send the same text twice.
    pub(super) fn reasoning_text(&self) -> Option<&'a [u8]> {
        let not_empty = |raw: &&[u8]| !raw.is_empty();
        self.reasoning_content.filter(not_empty).or(self.reasoning.filter(not_empty))
    }

    pub(super) fn into_delta(self) -> Delta {
        Delta {
            kinds: Kinds {
                content: self.content_text().is_some(),
                reasoning: self.reasoning_text().is_some(),
                tool_call: self.tool_call,
            },
            role: self.role,
            choice: self.choice,
            finish: self.finish,
            usage: self.usage,
            error: None,
        }
    }
}

/// Scans `data`. With `keep_text` it is unsure about tool calls, whose pieces serde_json has to take apart.
pub(super) fn scan(data: &[u8], shape: Shape, keep_text: bool) -> Option<Found<'_>> {
    let mut found = Found::default();
    let mut scan = Scan { bytes: data, at: 0, shape, keep_text };
    let mut once = Once::default();
    scan.blanks();
    scan.object(|scan, key| match key {
        b"choices" => once.see(0).and_then(|()| scan.choices(&mut found)),
        b"usage" => {
            once.see(1)?;
            found.usage = scan.usage()?;
            Some(())
        }
        b"error" => once.see(2).and_then(|()| scan.null()),
        b"object" => {
            once.see(3)?;
            (scan.string()? != b"error").then_some(())
        }
        _ => scan.skip(0),
    })?;
    scan.blanks();
    (scan.at == data.len()).then_some(found)
}

/// Keys that may stand once: a second one is a case for serde_json.
#[derive(Default)]
struct Once(u32);

impl Once {
    fn see(&mut self, key: u32) -> Option<()> {
        let bit = 1 << key;
        let new = self.0 & bit == 0;
        self.0 |= bit;
        new.then_some(())
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    shape: Shape,
    keep_text: bool,
}

impl<'a> Scan<'a> {
    fn choices(&mut self, found: &mut Found<'a>) -> Option<()> {
        if self.is(b'n') {
            return self.null();
        }
        self.take(b'[')?;
        self.blanks();
        if self.is(b']') {
            return self.take(b']');
        }
        found.choice = true;
        let mut once = Once::default();
        self.object(|scan, key| match (key, scan.shape) {
            (b"index", _) => {
                once.see(0)?;
                (scan.number()? == Some(0)).then_some(())
            }
            (b"finish_reason", _) => {
                once.see(1)?;
                if scan.is(b'n') {
                    return scan.null();
                }
                found.finish = FinishReason::parse(scan.plain_string()?);
                Some(())
            }
            (b"delta", Shape::ChatEvent) | (b"message", Shape::ChatWhole) => {
                once.see(2)?;
                if scan.is(b'n') { scan.null() } else { scan.message(found) }
            }
            (b"text", Shape::Completion) => {
                once.see(2)?;
                found.content = scan.text()?;
                Some(())
            }
            _ => scan.skip(0),
        })?;
        self.blanks();
        self.take(b']')
    }

    fn message(&mut self, found: &mut Found<'a>) -> Option<()> {
        let mut once = Once::default();
        self.object(|scan, key| {
            match key {
                b"role" => {
                    once.see(0)?;
                    found.role = scan.text()?.is_some_and(|role| !role.is_empty());
                }
                b"content" => {
                    once.see(1)?;
                    found.content = scan.text()?;
                }
                b"reasoning_content" => {
                    once.see(2)?;
                    found.reasoning_content = scan.text()?;
                }
                b"reasoning" => {
                    once.see(3)?;
                    found.reasoning = scan.text()?;
                }
                b"tool_calls" => {
                    once.see(4)?;
                    scan.tool_calls(found)?;
                }
                b"refusal" | b"function_call" => scan.null()?,
                _ => scan.skip(0)?,
            }
            Some(())
        })
    }

    fn tool_calls(&mut self, found: &mut Found<'a>) -> Option<()> {
        if self.is(b'n') {
            return self.null();
        }
        self.take(b'[')?;
        self.blanks();
        if self.is(b']') {
            return self.take(b']');
        }
        if self.keep_text {
            return None;
        }
        loop {
            self.blanks();
            let mut once = Once::default();
            self.object(|scan, key| match key {
                b"function" => once.see(0).and_then(|()| scan.function(found)),
                _ => scan.skip(0),
            })?;
            self.blanks();
            if !self.is(b',') {
                return self.take(b']');
            }
            self.at += 1;
        }
    }

    fn function(&mut self, found: &mut Found<'a>) -> Option<()> {
        if self.is(b'n') {
            return self.null();
        }
        let mut once = Once::default();
        self.object(|scan, key| {
            let bit = match key {
                b"name" => 0,
                b"arguments" => 1,
                _ => return scan.skip(0),
            };
            once.see(bit)?;
            found.tool_call |= scan.text()?.is_some_and(|text| !text.is_empty());
            Some(())
        })
    }

    fn usage(&mut self) -> Option<Option<Usage>> {
        if self.is(b'n') {
            return self.null().map(|()| None);
        }
        let mut usage = Usage::default();
        let mut once = Once::default();
        self.object(|scan, key| {
            match key {
                b"prompt_tokens" => {
                    once.see(0)?;
                    usage.prompt = scan.count()?;
                }
                b"completion_tokens" => {
                    once.see(1)?;
                    usage.completion = scan.count()?;
                }
                b"prompt_tokens_details" => {
                    once.see(2)?;
                    usage.cached = scan.detail(b"cached_tokens")?;
                }
                b"completion_tokens_details" => {
                    once.see(3)?;
                    usage.reasoning = scan.detail(b"reasoning_tokens")?;
                }
                _ => scan.skip(0)?,
            }
            Some(())
        })?;
        Some(Some(usage))
    }

    /// One count of an object of counts, or of null.
    fn detail(&mut self, name: &[u8]) -> Option<Option<u64>> {
        if self.is(b'n') {
            return self.null().map(|()| None);
        }
        let (mut count, mut once) = (None, Once::default());
        self.object(|scan, key| {
            if key != name {
                return scan.skip(0);
            }
            once.see(0)?;
            count = scan.count()?;
            Some(())
        })?;
        Some(count)
    }

    /// A whole number, or null.
    fn count(&mut self) -> Option<Option<u64>> {
        if self.is(b'n') {
            return self.null().map(|()| None);
        }
        self.number()?.map(Some)
    }

    /// A string's raw bytes, or null.
    fn text(&mut self) -> Option<Option<&'a [u8]>> {
        if self.is(b'n') {
            return self.null().map(|()| None);
        }
        self.string().map(Some)
    }

    /// An object: `field` is called behind each key and has to take the value.
    fn object(&mut self, mut field: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
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

    /// Any value, checked and left alone.
    fn skip(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.bytes.get(self.at)? {
            b'"' => self.string().map(|_| ()),
            b'n' => self.null(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'{' => self.object(|scan, _| scan.skip(depth + 1)),
            b'[' => {
                self.at += 1;
                self.blanks();
                if self.is(b']') {
                    return self.take(b']');
                }
                loop {
                    self.skip(depth + 1)?;
                    self.blanks();
                    if !self.is(b',') {
                        return self.take(b']');
                    }
                    self.at += 1;
                    self.blanks();
                }
            }
            _ => self.number().map(|_| ()),
        }
    }

    /// A number: `Some(Some(n))` when it is whole and not negative, `Some(None)` otherwise.
    fn number(&mut self) -> Option<Option<u64>> {
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
            return None;
        }
        Some(whole.then_some(n))
    }

    /// A string without escapes.
    fn plain_string(&mut self) -> Option<&'a [u8]> {
        let raw = self.string()?;
        (!raw.contains(&b'\\')).then_some(raw)
    }

    /// A string's raw bytes between its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let start = self.at;
        let end = string_end(self.bytes, start)?;
        self.at = end + 1;
        Some(&self.bytes[start..end])
    }

    fn null(&mut self) -> Option<()> {
        self.word(b"null")
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn is(&self, byte: u8) -> bool {
        self.bytes.get(self.at) == Some(&byte)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.is(byte).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
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
