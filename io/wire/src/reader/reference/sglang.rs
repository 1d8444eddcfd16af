//! SGLang's own route by way of a JSON tree.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{count, error_of, object, words};
use crate::delta::{BadJson, Delta, FinishReason, Usage};
use crate::reader::grown::Frame;

/// Reads a frame, and gives what `take` makes of it.
pub(crate) fn sglang(data: &[u8], take: impl FnOnce(Frame<'_>) -> Delta) -> Result<Delta, BadJson> {
    let json = String::from_utf8_lossy(data);
    let top = object(&json)?;
    let mut delta = Delta { error: error_of(&top), ..Delta::default() };
    if let Some(Value::Object(meta)) = top.get("meta_info") {
        let count = |key| meta.get(key).and_then(count);
        delta.usage = Some(Usage {
            prompt: count("prompt_tokens"),
            completion: count("completion_tokens"),
            cached: count("cached_tokens"),
            reasoning: count("reasoning_tokens"),
        });
        let reason = meta.get("finish_reason").unwrap_or(&Value::Null);
        let word = reason.as_str().or_else(|| reason.get("type")?.as_str()).unwrap_or_default();
        delta.finish = FinishReason::parse(word.as_bytes());
        if word == "abort" && delta.error.is_none() {
            // The server gave it up: what it says is an error's message, not an answer's end.
            delta.finish = None;
            let message = reason.get("message").and_then(words);
            delta.error = Some(message.unwrap_or_else(|| "the server aborted the request".into()));
        }
    }
    let ids = top.get("output_ids").and_then(Value::as_array).map(|ids| ids.len() as u64);
    // The text as it stands there, since it is compared with those of other frames.
    let raw: BTreeMap<String, &RawValue> = serde_json::from_str(&json)?;
    let text = raw.get("text").and_then(|raw| raw.get().strip_prefix('"')?.strip_suffix('"'));
    delta.choice = text.is_some() || ids.is_some();
    Ok(take(Frame { text: text.map(str::as_bytes), ids, delta }))
}
