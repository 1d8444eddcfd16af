//! Chat, completions and embeddings.

use super::{CountNames, no_error, noted_text, usage};
use crate::delta::FinishReason;
use crate::reader::Shape;
use crate::reader::cursor::{Cursor, Once};
use crate::reader::found::{Found, What};

pub(super) const COUNTS: CountNames = CountNames {
    prompt: b"prompt_tokens",
    completion: b"completion_tokens",
    prompt_details: b"prompt_tokens_details",
    completion_details: b"completion_tokens_details",
};

/// An object with `choices` and `usage`.
pub(super) fn choices<'a>(
    json: &mut Cursor<'a>,
    shape: Shape,
    keep_text: bool,
) -> Option<Found<'a>> {
    let mut found = Found::default();
    let mut once = Once::default();
    json.object(|json, key| match key {
        b"choices" => {
            once.see(0)?;
            choice_list(json, shape, keep_text, &mut found)
        }
        b"usage" => {
            once.see(1)?;
            found.usage = usage(json, &COUNTS, &mut found.holes)?;
            Some(())
        }
        _ => other(json, key, &mut once),
    })?;
    Some(found)
}

/// An object with `data` and `usage`.
pub(super) fn embeddings<'a>(json: &mut Cursor<'a>) -> Option<Found<'a>> {
    let mut found = Found::default();
    let mut once = Once::default();
    json.object(|json, key| match key {
        b"data" => {
            once.see(0)?;
            json.list(|json| {
                found.choice = true;
                json.skip(0)
            })
        }
        b"usage" => {
            once.see(1)?;
            found.usage = usage(json, &COUNTS, &mut found.holes)?;
            Some(())
        }
        _ => other(json, key, &mut once),
    })?;
    Some(found)
}

/// A key that says nothing but that there is no error.
pub(super) fn other(json: &mut Cursor<'_>, key: &[u8], once: &mut Once) -> Option<()> {
    if no_error(json, key, once)? { Some(()) } else { json.skip(0) }
}

fn choice_list<'a>(
    json: &mut Cursor<'a>,
    shape: Shape,
    keep_text: bool,
    found: &mut Found<'a>,
) -> Option<()> {
    if json.is(b'n') {
        return json.null();
    }
    json.list(|json| {
        if found.choice {
            // More than one.
            return None;
        }
        found.choice = true;
        choice(json, shape, keep_text, found)
    })
}

fn choice<'a>(
    json: &mut Cursor<'a>,
    shape: Shape,
    keep_text: bool,
    found: &mut Found<'a>,
) -> Option<()> {
    let mut once = Once::default();
    json.object(|json, key| match (key, shape) {
        (b"index", _) => {
            once.see(0)?;
            (json.number()? == Some(0)).then_some(())
        }
        (b"finish_reason", _) => {
            once.see(1)?;
            if json.is(b'n') {
                return json.null();
            }
            found.finish = FinishReason::parse(json.plain_string()?);
            Some(())
        }
        (b"delta", Shape::ChatEvent) | (b"message", Shape::ChatWhole) => {
            once.see(2)?;
            if json.is(b'n') { json.null() } else { message(json, keep_text, found) }
        }
        (b"text", Shape::Completion) => {
            once.see(2)?;
            found.content = noted_text(json, &mut found.holes, What::Content)?;
            Some(())
        }
        (b"token_ids", _) => {
            once.see(3)?;
            let start = json.at();
            found.ids = json.ids()?;
            if found.ids.is_some() {
                found.holes.note(start, json.at(), What::Ids);
            }
            Some(())
        }
        _ => json.skip(0),
    })
}

fn message<'a>(json: &mut Cursor<'a>, keep_text: bool, found: &mut Found<'a>) -> Option<()> {
    let mut once = Once::default();
    json.object(|json, key| {
        match key {
            b"role" => {
                once.see(0)?;
                found.role = json.text()?.is_some_and(|role| !role.is_empty());
            }
            b"content" => {
                once.see(1)?;
                found.content = noted_text(json, &mut found.holes, What::Content)?;
            }
            b"reasoning_content" => {
                once.see(2)?;
                found.reasoning_content = noted_text(json, &mut found.holes, What::Reasoning)?;
            }
            b"reasoning" => {
                once.see(3)?;
                found.reasoning = noted_text(json, &mut found.holes, What::Reasoning)?;
            }
            b"tool_calls" => {
                once.see(4)?;
                tool_calls(json, keep_text, found)?;
            }
            b"refusal" | b"function_call" => json.null()?,
            _ => json.skip(0)?,
        }
        Some(())
    })
}

fn tool_calls(json: &mut Cursor<'_>, keep_text: bool, found: &mut Found<'_>) -> Option<()> {
    if json.is(b'n') {
        return json.null();
    }
    json.list(|json| {
        if keep_text {
            return None;
        }
        let mut once = Once::default();
        json.object(|json, key| match key {
            b"function" => once.see(0).and_then(|()| function(json, found)),
            _ => json.skip(0),
        })
    })
}

fn function(json: &mut Cursor<'_>, found: &mut Found<'_>) -> Option<()> {
    if json.is(b'n') {
        return json.null();
    }
    let mut once = Once::default();
    json.object(|json, key| {
        let bit = match key {
            b"name" => 0,
            b"arguments" => 1,
            _ => return json.skip(0),
        };
        once.see(bit)?;
        let raw = noted_text(json, &mut found.holes, What::ToolCall)?;
        found.unkept.tool_call |= raw.is_some_and(|raw| !raw.is_empty());
        Some(())
    })
}
