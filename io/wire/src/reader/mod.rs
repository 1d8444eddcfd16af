//! What one event of a stream, or a whole answer, holds, for each API whose answers are JSON.
//!
//! Three ways lead to the same [`Delta`], each falling back to the next when it is unsure:
//!
//! 1. `learned`: the event is the last one but for its text and a few numbers. A compare for each part between.
//! 2. `scan`: one pass over the bytes that checks the JSON it steps over and copies nothing.
//! 3. `reference`: serde_json, for escapes in keys, repeated keys, several choices, odd types and errors.
//!
//! Property tests hold the three equal. Wrong UTF-8 is read as U+FFFD in all of them, as event streams have it.

mod cursor;
mod found;
mod grown;
mod learned;
mod reference;
mod responses;
mod scan;
#[cfg(test)]
mod tests;

use crate::delta::{BadJson, Delta, Text, TextSink};
use grown::Grown;
use learned::Learned;

/// What is where in the JSON of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `choices[].delta`: an event of a chat stream.
    ChatEvent,
    /// `choices[].message`: a whole chat answer.
    ChatWhole,
    /// `choices[].text`: completions, streamed or whole.
    Completion,
    /// `type` and `delta`: an event of a stream of the responses API.
    ResponsesEvent,
    /// `output[]`: a whole answer of the responses API.
    ResponsesWhole,
    /// `data[]`: embeddings.
    Embeddings,
    /// `text` and `meta_info`: SGLang's own, a frame of a stream or whole. The text of a frame is the whole text
    /// so far.
    Sglang,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::ChatEvent,
        Self::ChatWhole,
        Self::Completion,
        Self::ResponsesEvent,
        Self::ResponsesWhole,
        Self::Embeddings,
        Self::Sglang,
    ];
}

/// Reads the events of one answer one after the other; remembers what the last ones were like.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    learned: Learned,
    grown: Grown,
}

impl Reader {
    /// Forgets the events of one answer; the memory stays.
    pub fn reset(&mut self) {
        self.learned.reset();
        self.grown.reset();
    }

    /// [`read`], with what the events before have taught: of a text that grows, only what is new counts and is
    /// handed on.
    ///
    /// # Errors
    /// [`BadJson`] when it is not a JSON object.
    pub fn read(
        &mut self,
        data: &[u8],
        shape: Shape,
        text: Option<TextSink<'_>>,
    ) -> Result<Delta, BadJson> {
        if shape == Shape::Sglang {
            return self.grown.read(data, text);
        }
        if let Some((known, raw)) = self.learned.matches(data, shape, text.is_some()) {
            if let (Some(text), false) = (text, raw.is_empty()) {
                let reasoning = known.kinds.reasoning;
                reference::unescape(raw, &mut |s| {
                    text(if reasoning { Text::Reasoning(s) } else { Text::Content(s) });
                });
            }
            return Ok(known);
        }
        let Some(found) = scan::scan(data, shape, text.is_some()) else {
            return reference::read(data, shape, text);
        };
        self.learned.learn(data, shape, &found);
        if let Some(text) = text {
            hand_on(&found, text);
        }
        Ok(found.into_delta())
    }
}

/// Reads one piece of JSON; hands its text to `text` when given. Of several choices all count, and the
/// text of the first (`index` 0) is handed on.
///
/// # Errors
/// [`BadJson`] when it is not a JSON object.
pub fn read(data: &[u8], shape: Shape, text: Option<TextSink<'_>>) -> Result<Delta, BadJson> {
    if shape == Shape::Sglang {
        return Grown::default().read(data, text);
    }
    match scan::scan(data, shape, text.is_some()) {
        Some(found) => {
            if let Some(text) = text {
                hand_on(&found, text);
            }
            Ok(found.into_delta())
        }
        None => reference::read(data, shape, text),
    }
}

/// The message of an error event, or of an error body: the server's words where they can be found.
#[must_use]
pub fn error_message(data: &[u8]) -> Box<str> {
    reference::error_message(data)
}

fn hand_on(found: &found::Found<'_>, text: TextSink<'_>) {
    if let Some(raw) = found.reasoning_text() {
        reference::unescape(raw, &mut |s| text(Text::Reasoning(s)));
    }
    if let Some(raw) = found.content_text() {
        reference::unescape(raw, &mut |s| text(Text::Content(s)));
    }
}
