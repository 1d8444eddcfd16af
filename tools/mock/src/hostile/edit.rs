//! What faults know of the JSON in answers: where the text is, and what an event is for. Found by shape, so
//! that all routes are served alike.

use serde_json::{Map, Value, json};

use super::answer::{Part, What};
use crate::responses::DELTA;

/// Where text stands, in the events and whole answers of the APIs.
const TEXTS: [&str; 6] = [
    "/choices/0/delta/content",
    "/choices/0/message/content",
    "/choices/0/text",
    "/output/0/content/0/text",
    "/delta",
    "/text",
];
/// Where events of `/v1/responses` say all of the text again.
const TOLD_AGAIN: [&str; 4] =
    ["/text", "/part/text", "/item/content/0/text", "/response/output/0/content/0/text"];

/// The text of an event or a whole answer. Events that are named have it where they bring something new.
pub(super) fn text(value: &mut Value) -> Option<&mut String> {
    if is_named(value) && value["type"] != DELTA {
        return None;
    }
    let place = TEXTS.iter().find(|place| value.pointer(place).is_some_and(Value::is_string))?;
    string(value, place)
}

/// Changes the text of an event or a whole answer, and what it says again.
pub(super) fn each_text(value: &mut Value, change: impl Fn(&mut String)) {
    text(value).into_iter().for_each(&change);
    if is_named(value) && value["type"] != DELTA {
        for place in TOLD_AGAIN {
            string(value, place).into_iter().for_each(&change);
        }
    }
}

fn string<'v>(value: &'v mut Value, place: &str) -> Option<&'v mut String> {
    match value.pointer_mut(place)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The object that holds the text of an event, and under which key.
pub(super) fn holder(value: &mut Value) -> Option<(&mut Map<String, Value>, &'static str)> {
    let (place, key) =
        [("/choices/0/delta", "content"), ("/choices/0", "text"), ("", "delta"), ("", "text")]
            .into_iter()
            .find(|(place, key)| value.pointer(place).is_some_and(|of| of[*key].is_string()))?;
    Some((value.pointer_mut(place)?.as_object_mut()?, key))
}

/// Whether it is an event of an API that names its events.
fn is_named(value: &Value) -> bool {
    value.get("type").is_some_and(Value::is_string)
}

/// The delta or the message of a chat answer.
pub(super) fn message(value: &mut Value) -> Option<&mut Map<String, Value>> {
    let choice = value.pointer_mut("/choices/0")?;
    let key = if choice.get("delta").is_some() { "delta" } else { "message" };
    choice.get_mut(key)?.as_object_mut()
}

/// The counts of an event or a whole answer.
pub(super) fn usage(value: &mut Value) -> Option<&mut Value> {
    let places = ["/usage", "/response/usage", "/meta_info"];
    let place = places.iter().find(|place| value.pointer(place).is_some_and(Value::is_object))?;
    value.pointer_mut(place)
}

/// Whether each event repeats the text of those before it, as SGLang's do.
pub(super) fn is_cumulative(part: &Part) -> bool {
    part.value().is_some_and(|value| value.get("meta_info").is_some())
}

/// Sets why it ended.
pub(super) fn finish(value: &mut Value, reason: &str) {
    if let Some(choice) = value.pointer_mut("/choices/0") {
        choice["finish_reason"] = json!(reason);
    }
}

/// Takes away why it ended, where that stands beside text.
pub(super) fn unfinish(value: &mut Value) {
    if let Some(reason) = value.pointer_mut("/meta_info/finish_reason") {
        *reason = Value::Null;
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
    let last = ["response.completed", "response.incomplete", "response.failed"];
    let ended = ended || value["type"].as_str().is_some_and(|name| last.contains(&name));
    if ended { What::Finish } else { What::Other }
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
