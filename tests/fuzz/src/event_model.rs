//! What a piece of an answer says, read off the tree that serde_json makes of it. Written from the rules
//! of the APIs, for clearness alone.

use serde_json::{Map, Value};
use takt_wire::reader::Shape;
use takt_wire::{Delta, FinishReason, Kinds, Text, Usage};

/// The delta and the texts in order, as `Debug` shows them; an error when it is no JSON object.
pub(crate) type Read = Result<(Delta, Vec<String>), ()>;

/// Reads the events of one answer in turn.
#[derive(Default)]
pub(crate) struct Model {
    grown: String,
    ids: u64,
    tokens: Option<u64>,
    apart: bool,
}

impl Model {
    /// What the next event says.
    pub(crate) fn read(&mut self, data: &[u8], shape: Shape) -> Read {
        let text = String::from_utf8_lossy(data);
        let Ok(Value::Object(top)) = serde_json::from_str(&text) else { return Err(()) };
        let mut out =
            Out { delta: Delta { error: error(&top), ..Delta::default() }, texts: Vec::new() };
        match shape {
            Shape::ChatEvent | Shape::ChatWhole | Shape::Completion => {
                for choice in list(top.get("choices")) {
                    out.delta.choice = true;
                    out.choice(choice, shape);
                }
                out.delta.usage = usage(top.get("usage"), "prompt", "completion");
            }
            Shape::Embeddings => {
                out.delta.choice = !list(top.get("data")).is_empty();
                out.delta.usage = usage(top.get("usage"), "prompt", "completion");
            }
            Shape::ResponsesEvent => out.responses_event(&top),
            Shape::ResponsesWhole => out.response(&top),
            Shape::Sglang => self.frame(&top, raw_text(&text), &mut out),
        }
        if out.delta.error.is_some() {
            out.texts.clear();
        }
        Ok((out.delta, out.texts))
    }

    /// A frame of SGLang: `raw` is its text as it is written there.
    fn frame(&mut self, top: &Map<String, Value>, raw: Option<String>, out: &mut Out) {
        let mut now = None;
        if let Some(Value::Object(meta)) = top.get("meta_info") {
            let count = |key| meta.get(key).and_then(count);
            now = count("completion_tokens").map(u64::from);
            out.delta.usage = Some(Usage {
                prompt: count("prompt_tokens"),
                completion: count("completion_tokens"),
                cached: count("cached_tokens"),
                reasoning: count("reasoning_tokens"),
            });
            let reason = meta.get("finish_reason");
            let of_object = reason.and_then(|reason| reason.get("type"));
            match string(reason).or(string(of_object)) {
                Some("abort") => {
                    let message = reason.and_then(|reason| reason.get("message"));
                    let message = message.filter(|message| !says_nothing(message));
                    let silent = "the server aborted the request";
                    let error = message.map_or_else(|| silent.into(), short);
                    out.delta.error.get_or_insert(error);
                }
                word => out.delta.finish = word.map(finish),
            }
        }
        let ids = top.get("output_ids").and_then(Value::as_array).map(|ids| ids.len() as u64);
        out.delta.choice = raw.is_some() || ids.is_some();
        if let (Some(ids), Some(now), Some(before)) = (ids, now, self.tokens)
            && ids != now
            && u128::from(before) + u128::from(ids) == u128::from(now)
        {
            self.apart = true;
        }
        self.tokens = now.or(self.tokens);
        let new = raw.as_ref().map(|raw| match raw.strip_prefix(&self.grown) {
            Some(new) if !self.apart => new.to_owned(),
            _ => {
                self.apart = true;
                raw.clone()
            }
        });
        if let (Some(raw), false) = (raw, self.apart) {
            self.grown = raw;
        }
        let new_ids =
            ids.map(|ids| if self.apart { ids } else { ids.checked_sub(self.ids).unwrap_or(ids) });
        if let (Some(ids), false) = (ids, self.apart) {
            self.ids = self.ids.max(ids);
        }
        out.delta.kinds.content = match &new {
            Some(new) => !new.is_empty(),
            None => new_ids.is_some_and(|ids| ids > 0),
        };
        out.delta.ids = if now.is_some() { None } else { new_ids };
        if let Some(new) = new.filter(|new| !new.is_empty()) {
            let text: String = serde_json::from_str(&format!("\"{new}\"")).expect("a string's end");
            out.texts.push(show(Text::Content(&text)));
        }
    }
}

/// The value of the last `text` of an object, as it is written, without its quotes.
fn raw_text(json: &str) -> Option<String> {
    let fields: std::collections::HashMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(json).ok()?;
    let raw = fields.get("text")?.get();
    raw.starts_with('"').then(|| raw[1..raw.len() - 1].to_owned())
}

struct Out {
    delta: Delta,
    texts: Vec<String>,
}

impl Out {
    fn responses_event(&mut self, top: &Map<String, Value>) {
        let index = top.get("output_index").and_then(Value::as_u64).unwrap_or(0);
        let kind = string(top.get("type")).unwrap_or_default();
        let piece = string(top.get("delta"));
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.delta.kinds.content = piece.is_some();
                self.texts.extend(piece.map(|text| show(Text::Content(text))));
            }
            "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_summary.delta" => {
                self.delta.kinds.reasoning = piece.is_some();
                self.texts.extend(piece.map(|text| show(Text::Reasoning(text))));
            }
            "response.function_call_arguments.delta"
            | "response.mcp_call_arguments.delta"
            | "response.mcp_call.arguments_delta"
            | "response.custom_tool_call_input.delta"
            | "response.code_interpreter_call_code.delta" => {
                self.delta.kinds.tool_call = piece.is_some();
                let call = |arguments| Text::ToolCall { index, id: None, name: None, arguments };
                self.texts.extend(piece.map(|text| show(call(Some(text)))));
            }
            "response.output_item.added" => {
                if let Some(item) = top.get("item")
                    && string(item.get("type")).is_some_and(|kind| kind.ends_with("_call"))
                {
                    self.delta.kinds.tool_call = self.item_call(index, item);
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let nothing = Map::new();
                let response = top.get("response").and_then(Value::as_object).unwrap_or(&nothing);
                self.response_end(response, &kind["response.".len()..]);
            }
            "error" | "response.error" => {
                self.delta.error.get_or_insert_with(|| said(top));
            }
            _ => {}
        }
    }

    fn response(&mut self, top: &Map<String, Value>) {
        self.delta.choice = top.get("output").is_some_and(Value::is_array);
        for (place, item) in list(top.get("output")).iter().enumerate() {
            let kind = string(item.get("type")).unwrap_or_default();
            if kind.ends_with("_call") {
                self.delta.kinds.tool_call |= self.item_call(place as u64, item);
            }
            let mut parts = of_parts(item.get("content"));
            if kind == "message" {
                self.delta.kinds.content |= !parts.is_empty();
                self.texts.extend(parts.into_iter().map(|text| show(Text::Content(text))));
            } else if kind == "reasoning" {
                if parts.is_empty() {
                    parts = of_parts(item.get("summary"));
                }
                self.delta.kinds.reasoning |= !parts.is_empty();
                self.texts.extend(parts.into_iter().map(|text| show(Text::Reasoning(text))));
            }
        }
        match string(top.get("status")) {
            Some(state) => self.response_end(top, state),
            None => self.delta.usage = usage(top.get("usage"), "input", "output"),
        }
    }

    fn response_end(&mut self, response: &Map<String, Value>, state: &str) {
        self.delta.usage = usage(response.get("usage"), "input", "output");
        let calls = list(response.get("output")).iter().any(|item| {
            matches!(string(item.get("type")), Some("function_call" | "custom_tool_call"))
        });
        let details = response.get("incomplete_details");
        let reason = details.and_then(|details| details.get("reason")).and_then(Value::as_str);
        self.delta.finish = match (state, reason) {
            ("completed", _) if calls => Some(FinishReason::ToolCalls),
            ("completed", _) => Some(FinishReason::Stop),
            ("incomplete", Some("max_output_tokens" | "max_tokens")) => Some(FinishReason::Length),
            ("incomplete", Some("content_filter")) => Some(FinishReason::ContentFilter),
            ("incomplete", _) => Some(FinishReason::Other),
            _ => None,
        };
        if self.delta.error.is_none() {
            self.delta.error = error(response);
        }
        if self.delta.error.is_none() && self.delta.finish.is_none() {
            self.delta.error = Some(short(&Value::from(format!("the response is {state}"))));
        }
    }

    fn item_call(&mut self, index: u64, item: &Value) -> bool {
        let id = string(item.get("call_id")).or(string(item.get("id")));
        let name = string(item.get("name"));
        let arguments = string(item.get("arguments")).or(string(item.get("input")));
        if id.or(name).or(arguments).is_some() {
            self.texts.push(show(Text::ToolCall { index, id, name, arguments }));
        }
        name.or(arguments).is_some()
    }

    fn choice(&mut self, choice: &Value, shape: Shape) {
        if let Some(reason) = string(choice.get("finish_reason")) {
            self.delta.finish = Some(finish(reason));
        }
        if let Some(Value::Array(ids)) = choice.get("token_ids") {
            *self.delta.ids.get_or_insert(0) += ids.len() as u64;
        }
        // The text of the first choice is the answer's; the others count, but are not kept.
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let mut texts = Vec::new();
        let kinds = match shape {
            Shape::ChatEvent => self.message(choice.get("delta"), &mut texts),
            Shape::ChatWhole => self.message(choice.get("message"), &mut texts),
            _ => {
                let parts = parts(choice.get("text"));
                texts.extend(parts.iter().map(|part| show(Text::Content(part))));
                Kinds { content: !parts.is_empty(), ..Kinds::default() }
            }
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

fn finish(word: &str) -> FinishReason {
    match word {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        "function_call" => FinishReason::FunctionCall,
        _ => FinishReason::Other,
    }
}

/// Counts; `input` and `output` are the API's words for the two.
fn usage(usage: Option<&Value>, input: &str, output: &str) -> Option<Usage> {
    let usage = usage?.as_object()?;
    let whole = |of: &str| count(usage.get(&format!("{of}_tokens"))?);
    let detail =
        |of: &str, name: &str| count(usage.get(&format!("{of}_tokens_details"))?.get(name)?);
    Some(Usage {
        prompt: whole(input),
        completion: whole(output),
        cached: detail(input, "cached_tokens"),
        reasoning: detail(output, "reasoning_tokens"),
    })
}

/// A whole number that can be a count.
fn count(value: &Value) -> Option<u32> {
    value.as_u64().filter(|n| *n <= u32::MAX.into()).map(|n| n as u32)
}

/// Texts and refusals of a list of parts.
fn of_parts(value: Option<&Value>) -> Vec<&str> {
    let mut texts = Vec::new();
    for part in list(value) {
        texts.extend(string(part.get("text")));
        texts.extend(string(part.get("refusal")));
    }
    texts
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
    match top.get("error") {
        Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Object(fields)) => Some(said(fields)),
        // The words of one that has none are the JSON itself.
        Some(other) if says_nothing(other) => Some(other.to_string().into()),
        Some(other) => Some(short(other)),
        None => (string(top.get("object")) == Some("error")).then(|| said(top)),
    }
}

fn said(fields: &Map<String, Value>) -> Box<str> {
    let words = ["message", "detail", "type", "code"].iter();
    let words = words.filter_map(|key| fields.get(*key)).find(|value| !says_nothing(value));
    words.map_or_else(|| short(&Value::Object(fields.clone())), short)
}

fn says_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || value.as_str() == Some("")
}

fn short(value: &Value) -> Box<str> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().take(1000).collect::<String>().into()
}
