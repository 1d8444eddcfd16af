//! JSON, piece by piece, into bytes.
//!
//! Every method returns the writer, so that a line of JSON is a line of code. Commas and braces are the
//! caller's.

use serde::Serialize;

/// Appends to bytes.
pub(super) struct Json<'a>(pub(super) &'a mut Vec<u8>);

impl Json<'_> {
    /// Text that is JSON already.
    #[inline]
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.bytes(json.as_bytes())
    }

    /// Bytes that are JSON already.
    #[inline]
    pub(super) fn bytes(&mut self, json: &[u8]) -> &mut Self {
        self.0.extend_from_slice(json);
        self
    }

    /// A whole number.
    #[inline]
    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        let mut digits = itoa::Buffer::new();
        self.raw(digits.format(number.into()))
    }

    /// A whole number, or `null`.
    #[inline]
    pub(super) fn maybe(&mut self, number: Option<impl Into<u64>>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => self.raw("null"),
        }
    }

    /// `true` or `false`.
    #[inline]
    pub(super) fn flag(&mut self, flag: bool) -> &mut Self {
        self.raw(if flag { "true" } else { "false" })
    }

    /// A word of ours, which has nothing to escape.
    #[inline]
    pub(super) fn word(&mut self, word: &str) -> &mut Self {
        debug_assert!(word.bytes().all(|c| matches!(c, b'a'..=b'z' | b'_')), "{word}");
        self.raw("\"").raw(word).raw("\"")
    }

    /// A word of ours, or `null`.
    #[inline]
    pub(super) fn maybe_word(&mut self, word: Option<&str>) -> &mut Self {
        match word {
            Some(word) => self.word(word),
            None => self.raw("null"),
        }
    }

    /// Any text.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.value(text)
    }

    /// Any text, or `null`.
    #[inline]
    pub(super) fn maybe_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.raw("null"),
        }
    }

    /// Text or a value, whose keys are text: neither can fail, nor can memory.
    pub(super) fn value(&mut self, value: &(impl Serialize + ?Sized)) -> &mut Self {
        let written = serde_json::to_writer(&mut *self.0, value);
        debug_assert!(written.is_ok(), "{written:?}");
        self
    }
}
