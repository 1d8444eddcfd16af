//! The responses API: events named by their `type`, and response objects.

use super::openai::other;
use super::{CountNames, no_error, noted_count, noted_text, usage};
use crate::delta::{FinishReason, Kinds, Usage};
use crate::reader::cursor::{Cursor, Once};
use crate::reader::found::{Found, Holes, What};
use crate::reader::responses::{Says, ends_at, hands_over, is_call, says};

const COUNTS: CountNames = CountNames {
    prompt: b"input_tokens",
    completion: b"output_tokens",
    prompt_details: b"input_tokens_details",
    completion_details: b"output_tokens_details",
};

/// What a response object says, its texts apart.
#[derive(Default)]
struct Response<'a> {
    status: Option<&'a [u8]>,
    incomplete: Option<&'a [u8]>,
    usage: Option<Usage>,
    /// There is a list of what came out.
    output: bool,
    kinds: Kinds,
    /// The client is to run a tool.
    hands_over: bool,
}

/// An event of a stream.
pub(super) fn event<'a>(json: &mut Cursor<'a>, keep_text: bool) -> Option<Found<'a>> {
    let (mut found, mut once) = (Found::default(), Once::default());
    let (mut kind, mut delta, mut response) = (None, None, None);
    json.object(|json, key| {
        match key {
            b"type" => {
                once.see(0)?;
                kind = Some(json.plain_string()?);
            }
            b"delta" => {
                once.see(1)?;
                // What kind of text it is comes with the type.
                delta = noted_text(json, &mut found.holes, What::Content)?;
            }
            b"sequence_number" => {
                once.see(2)?;
                noted_count(json, &mut found.holes, What::Number)?;
            }
            b"obfuscation" => {
                once.see(3)?;
                noted_text(json, &mut found.holes, What::Noise)?;
            }
            b"response" => {
                once.see(4)?;
                response = Some(object(json)?);
            }
            b"item" => {
                once.see(5)?;
                // What is added may be a call; the texts of others come in events of their own.
                json.object(|json, key| match key {
                    b"type" => {
                        let kind = json.plain_string()?;
                        (!is_call(kind)).then_some(())
                    }
                    _ => json.skip(0),
                })?;
            }
            _ => other(json, key, &mut once)?,
        }
        Some(())
    })?;
    let says = says(kind.unwrap_or_default());
    if !matches!(says, Says::Text(_)) {
        found.holes = Holes::default();
    }
    match says {
        Says::Text(what) => {
            found.holes.texts_are(what);
            match what {
                What::Reasoning => found.reasoning = delta,
                What::ToolCall => {
                    if keep_text {
                        return None;
                    }
                    found.unkept.tool_call = delta.is_some_and(|raw| !raw.is_empty());
                }
                _ => found.content = delta,
            }
        }
        Says::End(word) => {
            let response = response?;
            found.usage = response.usage;
            found.finish = finish(word, &response)?;
        }
        Says::Error => return None,
        // Calls were left to serde_json above.
        Says::Added | Says::Nothing => {}
    }
    Some(found)
}

/// A whole answer.
pub(super) fn whole<'a>(json: &mut Cursor<'a>, keep_text: bool) -> Option<Found<'a>> {
    if keep_text {
        return None;
    }
    let response = object(json)?;
    let word = response.status.unwrap_or_default();
    let finish = if word.is_empty() { None } else { finish(word, &response)? };
    Some(Found {
        choice: response.output,
        finish,
        usage: response.usage,
        unkept: response.kinds,
        ..Found::default()
    })
}

/// Why a response ended; unsure when it failed or has not ended.
fn finish(word: &[u8], response: &Response<'_>) -> Option<Option<FinishReason>> {
    ends_at(word, response.incomplete, response.hands_over).map(Some)
}

/// A response object.
fn object<'a>(json: &mut Cursor<'a>) -> Option<Response<'a>> {
    let (mut response, mut once) = (Response::default(), Once::default());
    let mut holes = Holes::default();
    json.object(|json, key| {
        match key {
            b"status" => {
                once.see(0)?;
                if json.is(b'n') {
                    json.null()?;
                } else {
                    response.status = Some(json.plain_string()?);
                }
            }
            b"incomplete_details" => {
                once.see(1)?;
                response.incomplete = reason(json)?;
            }
            b"usage" => {
                once.see(2)?;
                response.usage = usage(json, &COUNTS, &mut holes)?;
            }
            b"output" => {
                once.see(3)?;
                response.output = true;
                json.list(|json| item(json, &mut response))?;
            }
            _ if no_error(json, key, &mut once)? => {}
            _ => json.skip(0)?,
        }
        Some(())
    })?;
    Some(response)
}

/// `{"reason": …}`, or null.
fn reason<'a>(json: &mut Cursor<'a>) -> Option<Option<&'a [u8]>> {
    if json.is(b'n') {
        return json.null().map(|()| None);
    }
    let (mut reason, mut once) = (None, Once::default());
    json.object(|json, key| {
        if key != b"reason" {
            return json.skip(0);
        }
        once.see(0)?;
        reason = Some(json.plain_string()?);
        Some(())
    })?;
    Some(reason)
}

/// One thing that came out.
fn item(json: &mut Cursor<'_>, response: &mut Response<'_>) -> Option<()> {
    let mut once = Once::default();
    let (mut kind, mut text, mut summary, mut call) = (&b""[..], false, false, false);
    json.object(|json, key| {
        match key {
            b"type" => {
                once.see(0)?;
                kind = json.plain_string()?;
            }
            b"content" => {
                once.see(1)?;
                text = parts(json)?;
            }
            b"summary" => {
                once.see(2)?;
                summary = parts(json)?;
            }
            b"name" | b"arguments" | b"input" => {
                once.see(3 + u32::from(key[0] == b'a') + 2 * u32::from(key[0] == b'i'))?;
                call |= json.text()?.is_some_and(|raw| !raw.is_empty());
            }
            _ => json.skip(0)?,
        }
        Some(())
    })?;
    match kind {
        b"message" => response.kinds.content |= text,
        b"reasoning" => response.kinds.reasoning |= text || summary,
        _ if is_call(kind) => response.kinds.tool_call |= call,
        _ => {}
    }
    response.hands_over |= hands_over(kind);
    Some(())
}

/// Whether a list of parts holds text; null and no list at all hold none.
fn parts(json: &mut Cursor<'_>) -> Option<bool> {
    if json.is(b'n') {
        return json.null().map(|()| false);
    }
    let mut any = false;
    json.list(|json| {
        let mut once = Once::default();
        json.object(|json, key| {
            let bit = match key {
                b"text" => 0,
                b"refusal" => 1,
                _ => return json.skip(0),
            };
            once.see(bit)?;
            any |= json.text()?.is_some_and(|raw| !raw.is_empty());
            Some(())
        })
    })?;
    Some(any)
}
