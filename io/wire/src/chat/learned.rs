//! The shape of a stream's events, learned from the last one.
//!
//! The events of one answer differ in their text alone: id, model, names, order and blanks stay. So an event that
//! starts and ends as the last one did, with the inside of a JSON string between, says what the last one said.
//! That is exact, not a guess: the bytes around were checked when they were learned, and the inside is checked now.

use crate::chat::{Shape, hand_on, reference, scan};
use crate::delta::{BadJson, Delta, Kinds, Text, TextSink};

/// Reads the events of one answer after the other; remembers the shape of the last.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// What stands before the text and behind it, joined.
    around: Vec<u8>,
    /// Length of the part before.
    before: usize,
    kind: Option<Kind>,
    role: bool,
    /// The shape it was learned for.
    shape: Option<Shape>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Content,
    Reasoning,
}

impl Learned {
    /// Forgets the shape; the memory stays.
    pub fn reset(&mut self) {
        self.kind = None;
    }

    /// [`super::read`], with the shape of the last event tried first.
    ///
    /// # Errors
    /// [`BadJson`] when it is not a JSON object.
    pub fn read(
        &mut self,
        data: &[u8],
        shape: Shape,
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        if let Some((kind, raw)) = self.matches(data, shape) {
            let is = |k| kind == k && !raw.is_empty();
            let (content, reasoning) = (is(Kind::Content), is(Kind::Reasoning));
            if let (Some(text), false) = (text, raw.is_empty()) {
                reference::unescape(raw, &mut |s| {
                    text(if content { Text::Content(s) } else { Text::Reasoning(s) });
                });
            }
            let kinds = Kinds { content, reasoning, tool_call: false };
            return Ok(Delta { kinds, role: self.role, choice: true, ..Delta::default() });
        }
        let Some(found) = scan::scan(data, shape, text.is_some()) else {
            return reference::read(data, shape, text);
        };
        self.learn(data, shape, &found);
        if let Some(text) = text {
            hand_on(&found, text);
        }
        Ok(found.into_delta())
    }

    fn matches<'a>(&self, data: &'a [u8], shape: Shape) -> Option<(Kind, &'a [u8])> {
        let kind = self.kind?;
        let (before, behind) = self.around.split_at(self.before);
        if self.shape != Some(shape) || data.len() < self.around.len() {
            return None;
        }
        let raw = data.strip_prefix(before)?.strip_suffix(behind)?;
        is_string_inside(raw).then_some((kind, raw))
    }

    /// Learns from an event that holds one piece of text and nothing else that could change.
    fn learn(&mut self, data: &[u8], shape: Shape, found: &scan::Found<'_>) {
        let (raw, kind) = match (found.content_text(), found.reasoning_text()) {
            (Some(raw), None) => (raw, Kind::Content),
            (None, Some(raw)) => (raw, Kind::Reasoning),
            _ => return,
        };
        let both_names = found.reasoning.is_some() && found.reasoning_content.is_some();
        if found.tool_call
            || found.finish.is_some()
            || found.usage.is_some()
            || (kind == Kind::Reasoning && both_names)
            || data.len() - raw.len() > MAX_AROUND
        {
            return;
        }
        // `raw` is a part of `data`, so the addresses say where.
        let start = raw.as_ptr().addr() - data.as_ptr().addr();
        self.around.clear();
        self.around.extend_from_slice(&data[..start]);
        self.around.extend_from_slice(&data[start + raw.len()..]);
        self.before = start;
        self.kind = Some(kind);
        self.role = found.role;
        self.shape = Some(shape);
    }
}

/// Whether these bytes may stand between the quotes of a JSON string.
fn is_string_inside(raw: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        match byte {
            b'"' | 0..0x20 => return false,
            b'\\' => match scan::escape_len(&raw[at..]) {
                Some(len) => at += len,
                None => return false,
            },
            _ => at += 1,
        }
    }
    true
}

/// A larger frame is not worth the memory of each open stream.
const MAX_AROUND: usize = 1024;
