//! SGLang's own route: the text so far, and what there is to say of it.

use super::openai::other;
use crate::delta::{FinishReason, Usage};
use crate::reader::cursor::{Cursor, Once};
use crate::reader::found::Found;

/// A frame of a stream, or a whole answer: `content` is the text so far, `ids` those of the frame.
pub(super) fn frame<'a>(json: &mut Cursor<'a>) -> Option<Found<'a>> {
    let (mut found, mut once) = (Found::default(), Once::default());
    json.object(|json, key| {
        match key {
            b"text" => {
                once.see(0)?;
                found.content = json.text()?;
                // What is compared with the next frame must not depend on how it is mended.
                std::str::from_utf8(found.content.unwrap_or_default()).ok()?;
            }
            b"output_ids" => {
                once.see(1)?;
                found.ids = json.ids()?;
            }
            b"meta_info" => {
                once.see(2)?;
                meta(json, &mut found)?;
            }
            _ => other(json, key, &mut once)?,
        }
        Some(())
    })?;
    found.choice = found.content.is_some() || found.ids.is_some();
    Some(found)
}

fn meta(json: &mut Cursor<'_>, found: &mut Found<'_>) -> Option<()> {
    let (mut usage, mut once) = (Usage::default(), Once::default());
    json.object(|json, key| {
        match key {
            b"finish_reason" => {
                once.see(0)?;
                found.finish = finish(json)?;
            }
            b"prompt_tokens" => {
                once.see(1)?;
                usage.prompt = json.count()?;
            }
            b"completion_tokens" => {
                once.see(2)?;
                usage.completion = json.count()?;
            }
            b"cached_tokens" => {
                once.see(3)?;
                usage.cached = json.count()?;
            }
            b"reasoning_tokens" => {
                once.see(4)?;
                usage.reasoning = json.count()?;
            }
            _ => json.skip(0)?,
        }
        Some(())
    })?;
    found.usage = Some(usage);
    Some(())
}

/// Null, or an object with a `type`; unsure about a generation that was given up.
fn finish(json: &mut Cursor<'_>) -> Option<Option<FinishReason>> {
    if json.is(b'n') {
        return json.null().map(|()| None);
    }
    let (mut reason, mut once) = (None, Once::default());
    json.object(|json, key| {
        if key != b"type" {
            return json.skip(0);
        }
        once.see(0)?;
        let word = json.plain_string()?;
        reason = FinishReason::parse(word);
        (word != b"abort").then_some(())
    })?;
    Some(reason)
}
