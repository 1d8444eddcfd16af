//! One pass over an event's JSON: finds what a [`Delta`] needs, checks what it steps over, copies nothing.
//!
//! It answers only when it is sure to agree with serde_json: `None` means "unsure", not "wrong". It is
//! unsure about escapes in keys and in names, surrogate escapes, repeated keys that matter, more than one choice, values
//! of another type than usual, long numbers, deep nesting and everything that is not JSON.
//!
//! [`Delta`]: crate::Delta

mod openai;
mod responses;
mod sglang;

use super::Shape;
use super::cursor::{Cursor, Once};
use super::found::{Found, Holes, What};
use crate::delta::Usage;

/// Scans `data`. With `keep_text` it is unsure where texts have to be taken apart: tool calls, whole answers of many parts.
pub(super) fn scan(data: &[u8], shape: Shape, keep_text: bool) -> Option<Found<'_>> {
    let mut json = Cursor::new(data);
    json.blanks();
    let found = match shape {
        Shape::ChatEvent | Shape::ChatWhole | Shape::Completion => {
            openai::choices(&mut json, shape, keep_text)
        }
        Shape::Embeddings => openai::embeddings(&mut json),
        Shape::ResponsesEvent => responses::event(&mut json, keep_text),
        Shape::ResponsesWhole => responses::whole(&mut json, keep_text),
        Shape::Sglang => sglang::frame(&mut json),
    }?;
    json.end()?;
    Some(found)
}

/// The keys by which any API tells of an error: nothing but "there is none" is read here.
fn no_error(json: &mut Cursor<'_>, key: &[u8], once: &mut Once) -> Option<bool> {
    match key {
        b"error" => once.see(30).and_then(|()| json.null()).map(|()| true),
        b"object" => {
            once.see(31)?;
            (json.string()? != b"error").then_some(true)
        }
        _ => Some(false),
    }
}

/// The names that an API has for its counts.
struct CountNames {
    prompt: &'static [u8],
    completion: &'static [u8],
    prompt_details: &'static [u8],
    completion_details: &'static [u8],
}

/// An object of counts, or null.
fn usage<'a>(
    json: &mut Cursor<'a>,
    names: &CountNames,
    holes: &mut Holes,
) -> Option<Option<Usage>> {
    if json.is(b'n') {
        return json.null().map(|()| None);
    }
    let mut usage = Usage::default();
    let mut once = Once::default();
    json.object(|json, key| {
        if key == names.completion {
            once.see(0)?;
            usage.completion = noted_count(json, holes, What::Completion)?;
        } else if key == names.prompt {
            once.see(1)?;
            usage.prompt = json.count()?;
        } else if key == b"total_tokens" {
            noted_count(json, holes, What::Number)?;
        } else if key == names.prompt_details {
            once.see(2)?;
            usage.cached = detail(json, b"cached_tokens")?;
        } else if key == names.completion_details {
            once.see(3)?;
            usage.reasoning = detail(json, b"reasoning_tokens")?;
        } else {
            json.skip(0)?;
        }
        Some(())
    })?;
    Some(Some(usage))
}

/// One count of an object of counts, or of null.
fn detail(json: &mut Cursor<'_>, name: &[u8]) -> Option<Option<u32>> {
    if json.is(b'n') {
        return json.null().map(|()| None);
    }
    let (mut count, mut once) = (None, Once::default());
    json.object(|json, key| {
        if key != name {
            return json.skip(0);
        }
        once.see(0)?;
        count = json.count()?;
        Some(())
    })?;
    Some(count)
}

/// A whole number, or null; the place of a number is noted.
fn noted_count(json: &mut Cursor<'_>, holes: &mut Holes, what: What) -> Option<Option<u32>> {
    let start = json.at();
    let count = json.count()?;
    if count.is_some() {
        holes.note(start, json.at(), what);
    }
    Some(count)
}

/// A string or null; the place of its inside is noted.
fn noted_text<'a>(
    json: &mut Cursor<'a>,
    holes: &mut Holes,
    what: What,
) -> Option<Option<&'a [u8]>> {
    let raw = json.text()?;
    holes.note_text(json.at(), raw, what);
    Some(raw)
}
