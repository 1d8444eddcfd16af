//! What a piece of an OpenAI answer says, read off the tree that serde_json makes of it. Written from the rules
//! of the APIs, for clearness alone.

use serde_json::{Map, Value};
use takt_wire::chat::Shape;
use takt_wire::{Delta, FinishReason, Kinds, Text, Usage};

/// The delta and the texts in order, as `Debug` shows them; an error when it is no JSON object.
pub(crate) type Read = Result<(Delta, Vec<String>), ()>;

pub(crate) fn model(data: &[u8], shape: Shape) -> Read {
    let text = String::from_utf8_lossy(data);
    let Ok(Value::Object(top)) = serde_json::from_str(&text) else { return Err(()) };
    let mut out =
        Out { delta: Delta { error: error(&top), ..Delta::default() }, texts: Vec::new() };
    for choice in list(top.get("choices")) {
        out.delta.choice = true;
        out.choice(choice, shape);
    }
    if let Some(Value::Object(usage)) = top.get("usage") {
        let detail = |of: &str, name: &str| usage.get(of)?.get(name)?.as_u64();
        out.delta.usage = Some(Usage {
            prompt: usage.get("prompt_tokens").and_then(Value::as_u64),
            completion: usage.get("completion_tokens").and_then(Value::as_u64),
            cached: detail("prompt_tokens_details", "cached_tokens"),
            reasoning: detail("completion_tokens_details", "reasoning_tokens"),
        });
    }
    Ok((out.delta, out.texts))
}

struct Out {
    delta: Delta,
    texts: Vec<String>,
}

impl Out {
    fn choice(&mut self, choice: &Value, shape: Shape) {
        if let Some(reason) = string(choice.get("finish_reason")) {
            self.delta.finish = Some(match reason {
                "stop" => FinishReason::Stop,
                "length" => FinishReason::Length,
                "tool_calls" => FinishReason::ToolCalls,
                "content_filter" => FinishReason::ContentFilter,
                "function_call" => FinishReason::FunctionCall,
                _ => FinishReason::Other,
            });
        }
        // The text of the first choice is the answer's; the others count, but are not kept.
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let mut texts = Vec::new();
        let kinds = match shape {
            Shape::Completion => {
                let parts = parts(choice.get("text"));
                texts.extend(parts.iter().map(|part| show(Text::Content(part))));
                Kinds { content: !parts.is_empty(), ..Kinds::default() }
            }
            Shape::ChatEvent => self.message(choice.get("delta"), &mut texts),
            Shape::ChatWhole => self.message(choice.get("message"), &mut texts),
        };
        self.delta.kinds = self.delta.kinds | kinds;
        if index == 0 {
            self.texts.append(&mut texts);
        }
    }

    fn message(&mut self, message: Option<&Value>, texts: &mut Vec<String>) -> Kinds {
        let Some(message) = message else { return Kinds::default() };
        self.delta.role |= string(message.get("role")).is_some();
        // Two names for the same text; servers that send both send it twice.
        let mut reasoning = parts(message.get("reasoning_content"));
        if reasoning.is_empty() {
            reasoning = parts(message.get("reasoning"));
        }
        let content = [parts(message.get("content")), parts(message.get("refusal"))].concat();
        texts.extend(reasoning.iter().map(|part| show(Text::Reasoning(part))));
        texts.extend(content.iter().map(|part| show(Text::Content(part))));
        let mut tool_call = false;
        for (place, call) in list(message.get("tool_calls")).iter().enumerate() {
            let index = call.get("index").and_then(Value::as_u64).unwrap_or(place as u64);
            tool_call |= self.call(index, string(call.get("id")), call.get("function"), texts);
        }
        tool_call |= self.call(0, None, message.get("function_call"), texts);
        Kinds { content: !content.is_empty(), reasoning: !reasoning.is_empty(), tool_call }
    }

    fn call(
        &mut self,
        index: u64,
        id: Option<&str>,
        function: Option<&Value>,
        texts: &mut Vec<String>,
    ) -> bool {
        let name = function.and_then(|f| string(f.get("name")));
        let arguments = function.and_then(|f| string(f.get("arguments")));
        if id.or(name).or(arguments).is_some() {
            texts.push(show(Text::ToolCall { index, id, name, arguments }));
        }
        name.or(arguments).is_some()
    }
}

fn show(text: Text<'_>) -> String {
    format!("{text:?}")
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A string with something in it.
fn string(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty())
}

/// Text, or an array of objects with a `text` each.
fn parts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(parts)) => parts.iter().filter_map(|p| string(p.get("text"))).collect(),
        other => string(other).into_iter().collect(),
    }
}

/// `{"error": …}`, or `{"object": "error"}` with the words beside it.
fn error(top: &Map<String, Value>) -> Option<Box<str>> {
    let said = match top.get("error") {
        Some(error) => error.clone(),
        None if string(top.get("object")) == Some("error") => Value::Object(top.clone()),
        None => return None,
    };
    let says_nothing = |value: &Value| {
        matches!(value, Value::Null | Value::Bool(false)) || value.as_str() == Some("")
    };
    match &said {
        Value::Null | Value::Bool(false) => None,
        Value::Object(fields) => {
            let words = ["message", "detail", "type", "code"].iter();
            let words = words.filter_map(|key| fields.get(*key)).find(|value| !says_nothing(value));
            Some(short(words.unwrap_or(&said)))
        }
        other => Some(short(other)),
    }
}

fn short(value: &Value) -> Box<str> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().take(1000).collect::<String>().into()
}
