//! The same reading by serde_json: slow, tolerant, and what the fast ways are held to.

mod responses;
mod sglang;

use serde_json::{Map, Value};

pub(super) use sglang::sglang;

use super::Shape;
use super::grown::Grown;
use crate::delta::{BadJson, Delta, FinishReason, Kinds, Text, TextSink, Usage};

/// [`super::read`] by way of a whole JSON tree.
pub(super) fn read(
    data: &[u8],
    shape: Shape,
    text: Option<TextSink<'_>>,
) -> Result<Delta, BadJson> {
    let mut nobody = |_: Text<'_>| {};
    let top = object(&String::from_utf8_lossy(data))?;
    let mut delta = Delta { error: error_of(&top), ..Delta::default() };
    // Nothing is told of an event that is an error.
    let text = text.filter(|_| delta.error.is_none()).unwrap_or(&mut nobody);
    match shape {
        Shape::ChatEvent | Shape::ChatWhole | Shape::Completion => {
            choices(&top, shape, &mut delta, text);
        }
        Shape::Embeddings => {
            delta.choice = !list(top.get("data")).is_empty();
            delta.usage = counts(top.get("usage"), &COUNTS);
        }
        Shape::ResponsesEvent => responses::event(&top, &mut delta, text),
        Shape::ResponsesWhole => responses::whole(&top, &mut delta, text),
        // A frame by itself: all of its text is new.
        Shape::Sglang => {
            let mut grown = Grown::default();
            return sglang(data, |frame| grown.take(frame, Some(text)));
        }
    }
    Ok(delta)
}

/// The object that a JSON text is.
fn object(text: &str) -> Result<Map<String, Value>, BadJson> {
    match serde_json::from_str(text)? {
        Value::Object(top) => Ok(top),
        _ => Err(BadJson::NotAnObject),
    }
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
    let found = object(&text).ok().and_then(|top| {
        error_of(&top)
            .or_else(|| ["message", "detail"].iter().find_map(|key| words(top.get(*key)?)))
    });
    found.unwrap_or_else(|| shortened(text.trim()).into())
}

fn choices(top: &Map<String, Value>, shape: Shape, delta: &mut Delta, text: TextSink<'_>) {
    let choices = list(top.get("choices"));
    delta.choice = !choices.is_empty();
    for choice in choices {
        let first = choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let text: TextSink<'_> = if first { text } else { &mut |_| {} };
        read_choice(choice, shape, delta, text);
        if let Some(ids) = choice.get("token_ids").and_then(Value::as_array) {
            delta.ids = Some(delta.ids.unwrap_or(0) + ids.len() as u64);
        }
    }
    delta.usage = counts(top.get("usage"), &COUNTS);
}

fn read_choice(choice: &Value, shape: Shape, delta: &mut Delta, text: TextSink<'_>) {
    let reason = choice.get("finish_reason").and_then(Value::as_str);
    if let Some(reason) = reason.and_then(|r| FinishReason::parse(r.as_bytes())) {
        delta.finish = Some(reason);
    }
    let message = match shape {
        Shape::ChatEvent => choice.get("delta"),
        Shape::ChatWhole => choice.get("message"),
        _ => {
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
    for (place, call) in list(message.get("tool_calls")).iter().enumerate() {
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

/// The names that an API has for its counts: of the input and the output, and of what they are made of.
struct CountNames {
    prompt: &'static str,
    completion: &'static str,
    prompt_details: &'static str,
    completion_details: &'static str,
}

/// An object of counts; `None` for anything else.
fn counts(usage: Option<&Value>, names: &CountNames) -> Option<Usage> {
    let usage = usage?.as_object()?;
    let detail = |of: &str, key: &str| count(usage.get(of)?.get(key)?);
    Some(Usage {
        prompt: usage.get(names.prompt).and_then(count),
        completion: usage.get(names.completion).and_then(count),
        cached: detail(names.prompt_details, "cached_tokens"),
        reasoning: detail(names.completion_details, "reasoning_tokens"),
    })
}

fn count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(Usage::count)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
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
fn error_of(top: &Map<String, Value>) -> Option<Box<str>> {
    match top.get("error") {
        Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Object(fields)) => Some(said(fields)),
        Some(other) => Some(words(other).unwrap_or_else(|| other.to_string().into())),
        None if top.get("object").and_then(Value::as_str) == Some("error") => Some(said(top)),
        None => None,
    }
}

/// What the fields of an error say, or all of them.
fn said(fields: &Map<String, Value>) -> Box<str> {
    let said =
        ["message", "detail", "type", "code"].iter().find_map(|key| words(fields.get(*key)?));
    said.unwrap_or_else(|| words(&Value::Object(fields.clone())).unwrap_or_default())
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

const COUNTS: CountNames = CountNames {
    prompt: "prompt_tokens",
    completion: "completion_tokens",
    prompt_details: "prompt_tokens_details",
    completion_details: "completion_tokens_details",
};
