//! What faults know of the JSON in answers: where the text is, and what an event is for. Found by shape, so
//! that all routes are served alike.

use serde_json::{Value, json};

use super::answer::{Bytes, Part, What};

/// Where text stands, in the events and whole answers of the APIs.
const TEXTS: [&str; 5] = [
    "/choices/0/delta/content",
    "/choices/0/message/content",
    "/choices/0/text",
    "/delta",
    "/text",
];

/// The text of an event or a whole answer.
pub(super) fn text(value: &mut Value) -> Option<&mut String> {
    let place = TEXTS.iter().find(|place| value.pointer(place).is_some_and(Value::is_string))?;
    match value.pointer_mut(place)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The delta or the message of a chat answer.
pub(super) fn message(value: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let choice = value.pointer_mut("/choices/0")?;
    let key = if choice.get("delta").is_some() { "delta" } else { "message" };
    choice.get_mut(key)?.as_object_mut()
}

/// The counts of an event or a whole answer.
pub(super) fn usage(value: &mut Value) -> Option<&mut Value> {
    if value.get("usage").is_some_and(Value::is_object) {
        return value.get_mut("usage");
    }
    value.get_mut("meta_info")
}

/// Whether each event repeats the text of those before it, as SGLang's do.
pub(super) fn is_cumulative(part: &Part) -> bool {
    matches!(&part.bytes, Bytes::Event { data, .. } if data.starts_with("{\"text\""))
}

/// Sets why it ended.
pub(super) fn finish(value: &mut Value, reason: &str) {
    if let Some(choice) = value.pointer_mut("/choices/0") {
        choice["finish_reason"] = json!(reason);
    }
}

/// What an event with this data is.
pub(super) fn what(data: &str) -> What {
    if data == "[DONE]" {
        return What::Done;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(data) else { return What::Other };
    if text(&mut value).is_some_and(|text| !text.is_empty()) {
        return What::Token;
    }
    let choices = value.get("choices").and_then(Value::as_array);
    if choices.is_some_and(Vec::is_empty) && value.get("usage").is_some() {
        return What::Usage;
    }
    let ended = value.pointer("/choices/0/finish_reason").is_some_and(|reason| !reason.is_null());
    if ended || value["type"] == "response.completed" { What::Finish } else { What::Other }
}

/// JSON in several lines: each comma outside of strings begins a new one.
pub(super) fn lines(data: &str) -> Vec<String> {
    let (mut lines, mut line, mut within, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in data.chars() {
        line.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' if within => escaped = true,
            '"' => within = !within,
            ',' if !within => lines.push(std::mem::take(&mut line)),
            _ => {}
        }
    }
    lines.push(line);
    lines
}
