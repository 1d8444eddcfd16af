//! The same reading by serde_json: slow, tolerant, and what the fast ways are held to.

use serde_json::Value;

use crate::chat::Shape;
use crate::delta::{BadJson, Delta, FinishReason, Kinds, Text, TextSink, Usage};

/// [`super::read`] by way of a whole JSON tree.
pub(super) fn read(
    data: &[u8],
    shape: Shape,
    text: Option<TextSink<'_>>,
) -> Result<Delta, BadJson> {
    let mut nobody = |_: Text<'_>| {};
    let text = text.unwrap_or(&mut nobody);
    let value: Value = serde_json::from_str(&String::from_utf8_lossy(data))?;
    let top = value.as_object().ok_or(BadJson::NotAnObject)?;
    let mut delta = Delta { error: error_of(&value), ..Delta::default() };
    let choices = top.get("choices").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    delta.choice = !choices.is_empty();
    for choice in choices {
        let first = choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let text: TextSink<'_> = if first { text } else { &mut |_| {} };
        read_choice(choice, shape, &mut delta, text);
    }
    delta.usage = top.get("usage").filter(|u| u.is_object()).map(read_usage);
    Ok(delta)
}

/// Gives the text of a string's raw inside, which was checked before; wrong UTF-8 becomes U+FFFD.
pub(super) fn unescape(raw: &[u8], text: &mut dyn FnMut(&str)) {
    let lossy = String::from_utf8_lossy(raw);
    if !lossy.contains('\\') {
        return text(&lossy);
    }
    if let Ok(whole) = serde_json::from_str::<String>(&format!("\"{lossy}\"")) {
        text(&whole);
    }
}

/// The server's words in an error's data: the message of JSON, otherwise the text itself.
pub(super) fn error_message(data: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(data);
    let found = serde_json::from_str::<Value>(&text).ok().and_then(|value| {
        error_of(&value)
            .or_else(|| ["message", "detail"].iter().find_map(|key| words(value.get(key)?)))
    });
    found.unwrap_or_else(|| shortened(text.trim()).into())
}

fn read_choice(choice: &Value, shape: Shape, delta: &mut Delta, text: TextSink<'_>) {
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    if let Some(reason) = reason.and_then(|r| FinishReason::parse(r.as_bytes())) {
        delta.finish = Some(reason);
    }
    let message = match shape {
        Shape::ChatEvent => choice.get("delta"),
        Shape::ChatWhole => choice.get("message"),
        Shape::Completion => {
            let content = pieces(choice.get("text"));
            delta.kinds.content |= !content.is_empty();
            content.iter().for_each(|piece| text(Text::Content(piece)));
            return;
        }
    };
    let Some(message) = message else { return };
    delta.role |= message.get("role").and_then(Value::as_str).is_some_and(|r| !r.is_empty());
    let mut reasoning = pieces(message.get("reasoning_content"));
    if reasoning.is_empty() {
        reasoning = pieces(message.get("reasoning"));
    }
    let mut content = pieces(message.get("content"));
    content.extend(pieces(message.get("refusal")));
    reasoning.iter().for_each(|piece| text(Text::Reasoning(piece)));
    content.iter().for_each(|piece| text(Text::Content(piece)));
    let mut kinds =
        Kinds { content: !content.is_empty(), reasoning: !reasoning.is_empty(), tool_call: false };
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (place, call) in calls.iter().enumerate() {
        let index = call.get("index").and_then(Value::as_u64).unwrap_or(place as u64);
        let id = filled(call.get("id"));
        kinds.tool_call |= read_call(index, id, call.get("function"), text);
    }
    kinds.tool_call |= read_call(0, None, message.get("function_call"), text);
    delta.kinds = delta.kinds | kinds;
}

/// Whether the function of a call has a name or arguments; hands them on.
fn read_call(index: u64, id: Option<&str>, function: Option<&Value>, text: TextSink<'_>) -> bool {
    let part = |key| filled(function?.get(key));
    let (name, arguments) = (part("name"), part("arguments"));
    if id.is_some() || name.is_some() || arguments.is_some() {
        text(Text::ToolCall { index, id, name, arguments });
    }
    name.is_some() || arguments.is_some()
}

fn read_usage(usage: &Value) -> Usage {
    let count = |object: Option<&Value>, key| object?.get(key)?.as_u64();
    Usage {
        prompt: count(Some(usage), "prompt_tokens"),
        completion: count(Some(usage), "completion_tokens"),
        cached: count(usage.get("prompt_tokens_details"), "cached_tokens"),
        reasoning: count(usage.get("completion_tokens_details"), "reasoning_tokens"),
    }
}

/// Texts that are not empty: of a string, or of an array of parts with a `text` each.
fn pieces(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| filled(part.get("text"))).collect()
        }
        other => filled(other).into_iter().collect(),
    }
}

fn filled(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
}

/// The error of `{"error": …}` or of `{"object": "error", "message": …}`.
fn error_of(value: &Value) -> Option<Box<str>> {
    let error = match value.get("error") {
        Some(error) => error,
        None if value.get("object").and_then(Value::as_str) == Some("error") => value,
        None => return None,
    };
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::Object(fields) => {
            let said =
                ["message", "detail", "type", "code"].iter().find_map(|k| words(fields.get(*k)?));
            Some(said.unwrap_or_else(|| shortened(&error.to_string()).into()))
        }
        other => Some(words(other).unwrap_or_else(|| other.to_string().into())),
    }
}

/// What a value says, when it says something.
fn words(value: &Value) -> Option<Box<str>> {
    match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(shortened(text).into()),
        other => Some(shortened(&other.to_string()).into()),
    }
}

/// At most 1000 characters of a text.
fn shortened(text: &str) -> &str {
    text.char_indices().nth(1000).map_or(text, |(end, _)| &text[..end])
}
