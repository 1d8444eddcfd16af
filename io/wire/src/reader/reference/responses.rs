//! The responses API by way of a JSON tree.

use serde_json::{Map, Value};

use super::{CountNames, counts, error_of, filled, list, said, words};
use crate::delta::{Delta, Kinds, Text, TextSink};
use crate::reader::found::What;
use crate::reader::responses::{Says, ends_at, hands_over, is_call, says};

/// An event of a stream.
pub(super) fn event(top: &Map<String, Value>, delta: &mut Delta, text: TextSink<'_>) {
    let kind = top.get("type").and_then(Value::as_str).unwrap_or_default();
    let index = top.get("output_index").and_then(Value::as_u64).unwrap_or(0);
    match says(kind.as_bytes()) {
        Says::Text(what) => {
            let Some(piece) = filled(top.get("delta")) else { return };
            delta.kinds = what.kinds();
            text(match what {
                What::Reasoning => Text::Reasoning(piece),
                What::ToolCall => {
                    Text::ToolCall { index, id: None, name: None, arguments: Some(piece) }
                }
                _ => Text::Content(piece),
            });
        }
        Says::Added => {
            if let Some(item) = top.get("item").filter(|item| is_call(item_type(item).as_bytes())) {
                delta.kinds.tool_call = call(item, index, text);
            }
        }
        Says::End(state) => {
            let empty = Map::new();
            let response = top.get("response").and_then(Value::as_object).unwrap_or(&empty);
            end(response, state, delta);
        }
        Says::Error => {
            if delta.error.is_none() {
                delta.error = Some(said(top));
            }
        }
        Says::Nothing => {}
    }
}

/// A whole answer. Of one that failed, no text is told: its state stands behind its output.
pub(super) fn whole(top: &Map<String, Value>, delta: &mut Delta, text: TextSink<'_>) {
    match filled(top.get("status")) {
        Some(state) => end(top, state.as_bytes(), delta),
        None => delta.usage = counts(top.get("usage"), &COUNTS),
    }
    let output = top.get("output").and_then(Value::as_array);
    delta.choice = output.is_some();
    let text: TextSink<'_> = if delta.error.is_none() { text } else { &mut |_| {} };
    for (place, item) in output.map_or(&[][..], Vec::as_slice).iter().enumerate() {
        delta.kinds = delta.kinds | read_item(item, place as u64, text);
    }
}

/// What a response says that is in `state`.
fn end(response: &Map<String, Value>, state: &[u8], delta: &mut Delta) {
    delta.usage = counts(response.get("usage"), &COUNTS);
    let reason = response.get("incomplete_details").and_then(|details| details.get("reason"));
    let reason = reason.and_then(Value::as_str).map(str::as_bytes);
    let output = list(response.get("output"));
    let hands_over = output.iter().any(|item| hands_over(item_type(item).as_bytes()));
    delta.finish = ends_at(state, reason, hands_over);
    if delta.error.is_none() {
        delta.error = error_of(response);
    }
    if delta.error.is_none() && delta.finish.is_none() {
        let state = String::from_utf8_lossy(state);
        delta.error = words(&Value::from(format!("the response is {state}")));
    }
}

/// The kinds of text that an item holds; hands it on.
fn read_item(item: &Value, place: u64, text: TextSink<'_>) -> Kinds {
    let kind = item_type(item);
    if is_call(kind.as_bytes()) {
        return Kinds { tool_call: call(item, place, text), ..Kinds::default() };
    }
    let mut parts = parts(item.get("content"));
    if kind == "reasoning" && parts.is_empty() {
        parts = self::parts(item.get("summary"));
    }
    let mut kinds = Kinds::default();
    for part in parts {
        match kind {
            "message" => {
                kinds.content = true;
                text(Text::Content(part));
            }
            "reasoning" => {
                kinds.reasoning = true;
                text(Text::Reasoning(part));
            }
            _ => {}
        }
    }
    kinds
}

/// The texts of a list of parts.
fn parts(value: Option<&Value>) -> Vec<&str> {
    let mut texts = Vec::new();
    for part in list(value) {
        texts.extend(["text", "refusal"].iter().filter_map(|key| filled(part.get(*key))));
    }
    texts
}

/// Whether a call has a name, arguments or another input; hands them on.
fn call(item: &Value, index: u64, text: TextSink<'_>) -> bool {
    let id = filled(item.get("call_id")).or_else(|| filled(item.get("id")));
    let name = filled(item.get("name"));
    let arguments = filled(item.get("arguments")).or_else(|| filled(item.get("input")));
    if id.is_some() || name.is_some() || arguments.is_some() {
        text(Text::ToolCall { index, id, name, arguments });
    }
    name.is_some() || arguments.is_some()
}

fn item_type(item: &Value) -> &str {
    item.get("type").and_then(Value::as_str).unwrap_or_default()
}

const COUNTS: CountNames = CountNames {
    prompt: "input_tokens",
    completion: "output_tokens",
    prompt_details: "input_tokens_details",
    completion_details: "output_tokens_details",
};
