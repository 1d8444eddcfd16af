//! Frames that repeat the whole text so far: what is new in each.
//!
//! SGLang sends so unless its server was told to send each piece alone. Which of the two it does shows in the
//! frames: a text that does not begin with the one before, or ids that are just those of the tokens that came.

use super::{reference, scan};
use crate::delta::{BadJson, Delta, Text, TextSink};
use crate::reader::Shape;

/// The text of one answer so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Grown {
    /// As it stands in the JSON, escapes and all.
    text: Vec<u8>,
    ids: u64,
    tokens: Option<u64>,
    /// Each frame holds what is new and nothing else.
    apart: bool,
}

/// A frame as it stands.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    /// The inside of its text.
    pub(super) text: Option<&'a [u8]>,
    pub(super) ids: Option<u64>,
    /// All else that it says.
    pub(super) delta: Delta,
}

impl Grown {
    pub(super) fn reset(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT);
        (self.ids, self.tokens, self.apart) = (0, None, false);
    }

    /// Reads the next frame.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        let Some(found) = scan::scan(data, Shape::Sglang, text.is_some()) else {
            return reference::sglang(data, |frame| self.take(frame, text));
        };
        let frame = Frame { text: found.content, ids: found.ids, delta: found.into_delta() };
        Ok(self.take(frame, text))
    }

    /// [`Grown::read`] without the scan.
    #[cfg(test)]
    pub(super) fn read_slowly(
        &mut self,
        data: &[u8],
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        reference::sglang(data, |frame| self.take(frame, text))
    }

    /// What is new in `frame`.
    pub(super) fn take(&mut self, frame: Frame<'_>, text: Option<TextSink<'_>>) -> Delta {
        let Frame { text: raw, ids, mut delta } = frame;
        let tokens = delta.usage.and_then(|usage| usage.completion).map(u64::from);
        if let (Some(ids), Some(now), Some(before)) = (ids, tokens, self.tokens) {
            self.apart |= ids != now && before.checked_add(ids) == Some(now);
        }
        self.tokens = tokens.or(self.tokens);
        let new = raw.map(|raw| self.new_text(raw));
        let new_ids = ids.map(|ids| self.new_ids(ids));
        // Nothing is told of a frame that is an error.
        let told = new.filter(|raw| !raw.is_empty() && delta.error.is_none());
        if let (Some(raw), Some(text)) = (told, text) {
            reference::unescape(raw, &mut |s| text(Text::Content(s)));
        }
        // Without text there are only ids, when the server has no tokenizer.
        delta.kinds.content = match new {
            Some(raw) => !raw.is_empty(),
            None => new_ids.is_some_and(|ids| ids > 0),
        };
        // Where the server counts, its running count says the same.
        delta.ids = new_ids.filter(|_| tokens.is_none());
        delta
    }

    fn new_text<'r>(&mut self, raw: &'r [u8]) -> &'r [u8] {
        match raw.strip_prefix(&self.text[..]) {
            Some(new) if !self.apart => {
                self.text.extend_from_slice(new);
                new
            }
            _ => {
                self.apart = true;
                raw
            }
        }
    }

    fn new_ids(&mut self, ids: u64) -> u64 {
        match ids.checked_sub(self.ids) {
            Some(new) if !self.apart => {
                self.ids = ids;
                new
            }
            _ => ids,
        }
    }
}

/// Bytes of text that stay with an idle connection.
const KEPT: usize = 4 << 10;
