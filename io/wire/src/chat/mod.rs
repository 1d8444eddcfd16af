//! OpenAI chat and completion answers: what one event, or a whole answer, holds.
//!
//! Three ways lead to the same [`Delta`], each falling back to the next when it is unsure:
//!
//! 1. [`Learned`]: the event is the last one but for the text in its middle. Two compares.
//! 2. `scan`: one pass over the bytes that checks the JSON it steps over and copies nothing.
//! 3. `reference`: serde_json, for escapes in keys, repeated keys, several choices, odd types and errors.
//!
//! Property tests hold the three equal. Wrong UTF-8 is read as U+FFFD in all of them, as event streams have it.

mod learned;
mod reference;
mod scan;
#[cfg(test)]
mod tests;

pub use learned::Learned;

use crate::delta::{BadJson, Delta, Text, TextSink};

/// Where in the JSON the text of a choice stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `choices[].delta`: an event of a chat stream.
    ChatEvent,
    /// `choices[].message`: a whole chat answer.
    ChatWhole,
    /// `choices[].text`: completions, streamed or whole.
    Completion,
}

/// Reads one piece of JSON; hands its text to `text` when given. Of several choices all count, and the
/// text of the first (`index` 0) is handed on.
///
/// # Errors
/// [`BadJson`] when it is not a JSON object.
pub fn read(data: &[u8], shape: Shape, text: Option<TextSink<'_>>) -> Result<Delta, BadJson> {
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

fn hand_on(found: &scan::Found<'_>, text: TextSink<'_>) {
    if let Some(raw) = found.reasoning_text() {
        reference::unescape(raw, &mut |s| text(Text::Reasoning(s)));
    }
    if let Some(raw) = found.content_text() {
        reference::unescape(raw, &mut |s| text(Text::Content(s)));
    }
}
