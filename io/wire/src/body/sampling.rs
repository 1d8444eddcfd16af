//! SGLang's `sampling_params`: what other APIs have beside the prompt stands in an object of its own there.

use serde_json::{Map, Value};

use super::{BodyError, Source};
use crate::api::Api;

/// The key of the object.
pub(super) const KEY: &str = "sampling_params";

/// Whether `key` belongs into the object, or is the object.
pub(super) fn takes(key: &str) -> bool {
    key == KEY || name_of(key).is_some()
}

/// The object, from maps of parameters of which later ones count more. Within a map the name that is meant for
/// here counts most, as everywhere. A null leaves a parameter out.
pub(super) fn sampling(maps: [Option<&Map<String, Value>>; 3]) -> Map<String, Value> {
    let mut sampling = Map::new();
    for map in maps.into_iter().flatten() {
        if let Some(Value::Object(inner)) = map.get(KEY) {
            sampling.extend(inner.clone());
        }
        for (key, name) in RENAMED.into_iter().chain(SAME.map(|name| (name, name))) {
            if let Some(value) = map.get(key) {
                sampling.insert(name.to_owned(), value.clone());
            }
        }
    }
    sampling.retain(|_, value| !value.is_null());
    sampling
}

/// Refuses what cannot be sent so, or whose answer could not be read.
pub(super) fn check(map: &Map<String, Value>, source: Source) -> Result<(), BodyError> {
    let has_no = |key: &str, why| {
        let (key, api) = (key.to_owned(), Api::SglangGenerate.as_str());
        Err(BodyError::HasNo { key, source_of_key: source, api, why })
    };
    let inner = match map.get(KEY) {
        None | Some(Value::Null) => None,
        Some(Value::Object(inner)) => Some(inner),
        Some(_) => return has_no(KEY, "takes an object there"),
    };
    let several = |n: &Value| n.as_u64().is_some_and(|n| n > 1);
    if [Some(map), inner].into_iter().flatten().filter_map(|map| map.get("n")).any(several) {
        return has_no(
            "n",
            "answers several samples with a list, which takt does not read; leave it out",
        );
    }
    Ok(())
}

/// What the object calls the parameter that other APIs call `key`.
fn name_of(key: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(other, _)| *other == key).map(|(_, name)| *name);
    renamed.or_else(|| SAME.iter().find(|name| **name == key).copied())
}

/// Of two names for one thing the later one counts more.
const RENAMED: [(&str, &str); 4] = [
    ("max_tokens", "max_new_tokens"),
    ("max_completion_tokens", "max_new_tokens"),
    ("min_tokens", "min_new_tokens"),
    ("seed", "sampling_seed"),
];
const SAME: [&str; 25] = [
    "max_new_tokens",
    "min_new_tokens",
    "sampling_seed",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "stop",
    "stop_token_ids",
    "stop_regex",
    "ignore_eos",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "json_schema",
    "regex",
    "ebnf",
    "structural_tag",
    "logit_bias",
    "custom_params",
    "no_stop_trim",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stream_interval",
];
