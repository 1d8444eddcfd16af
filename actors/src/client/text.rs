//! Text of answers, where a phase keeps it: records that concatenate to what the server said.

use std::borrow::Cow;

use serde_json::json;
use takt_record::{Record, SharedPublisher, TextKind};
use takt_time::Nanos;
use takt_wire::Text;

use super::flight::Flight;

/// Records one piece of text that was complete at `at`. Tool calls become one JSON object a line, as the parts came.
/// A body of bytes is read as UTF-8, characters that are split over two pieces included; what is none
/// becomes U+FFFD.
pub(super) fn record(text: &Text<'_>, flight: &mut Flight, publisher: &SharedPublisher, at: Nanos) {
    let key = flight.key();
    let write = |kind, text: &str| {
        if !text.is_empty() {
            publisher.push(&Record::Text(takt_record::Text { at, key, kind, text }));
        }
    };
    match *text {
        Text::Content(text) => write(TextKind::Content, text),
        Text::Reasoning(text) => write(TextKind::Reasoning, text),
        Text::ToolCall { index, id, name, arguments } => {
            let call = json!({ "index": index, "id": id, "name": name, "arguments": arguments });
            write(TextKind::ToolCalls, &format!("{call}\n"));
        }
        Text::Body(bytes) => utf8(bytes, &mut flight.split, |text| write(TextKind::Content, text)),
    }
}

/// The start of a character: three bytes at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Split {
    bytes: [u8; 3],
    len: u8,
}

impl Split {
    fn new(part: &[u8]) -> Self {
        let mut split = Self { len: part.len() as u8, ..Self::default() };
        split.bytes[..part.len()].copy_from_slice(part);
        split
    }

    fn part(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Hands on `bytes` as text; the start of a character at their end waits in `split` for its rest.
fn utf8(bytes: &[u8], split: &mut Split, mut sink: impl FnMut(&str)) {
    let whole = if split.part().is_empty() {
        Cow::Borrowed(bytes)
    } else {
        Cow::Owned([split.part(), bytes].concat())
    };
    *split = Split::default();
    let mut chunks = whole.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        sink(chunk.valid());
        let broken = chunk.invalid();
        let unfinished = || std::str::from_utf8(broken).is_err_and(|e| e.error_len().is_none());
        if broken.is_empty() {
            continue;
        }
        if chunks.peek().is_none() && unfinished() {
            *split = Split::new(broken);
        } else {
            sink("\u{fffd}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_of_a_body_gives_the_same_text() {
        let body = "aé漢🦀".bytes().chain([0xff, b'z']).collect::<Vec<u8>>();
        for at in 0..=body.len() {
            let (mut split, mut text) = (Split::default(), String::new());
            utf8(&body[..at], &mut split, |piece| text.push_str(piece));
            utf8(&body[at..], &mut split, |piece| text.push_str(piece));
            assert_eq!(text, "aé漢🦀\u{fffd}z", "split at {at}");
        }
    }
}
