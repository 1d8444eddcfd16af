//! Request bodies of the JSON APIs: [`BodyBuilder`] holds what all requests of a run share, a [`Prompt`] is what one
//! sample adds.
//!
//! Keys come in a fixed order (`model`, the prompt, then parameters in the order of [`ORDER`], the rest by
//! name), so that equal requests are equal bytes. A parameter is taken from the extra body if it is there, else
//! from the sample's row, else from the endpoint's `body`; a null leaves it out.

mod error;
mod sampling;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use error::{BodyError, Source};

use crate::api::Api;

/// What all bodies of a run share.
#[derive(Clone, Debug)]
pub struct BodyBuilder {
    api: Api,
    model: String,
    stream: bool,
    include_usage: bool,
    params: Map<String, Value>,
    extra: Map<String, Value>,
}

/// What a sample asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt<'a> {
    /// One text, with a system text before it if there is one.
    Text {
        /// The user's text.
        text: &'a str,
        /// The system's text.
        system: Option<&'a str>,
    },
    /// A conversation: a JSON array of messages, sent byte for byte.
    Messages {
        /// The array, as JSON text.
        json: &'a str,
        /// A system text put before it.
        system: Option<&'a str>,
    },
}

impl BodyBuilder {
    /// Bodies for `api` and `model` (left out when empty), streamed or not.
    #[must_use]
    pub fn new(api: Api, model: &str, stream: bool) -> Self {
        Self {
            api,
            model: model.to_owned(),
            stream: stream && api.streams(),
            include_usage: true,
            params: Map::new(),
            extra: Map::new(),
        }
    }

    /// Whether a stream is asked to end with its usage (`stream_options.include_usage`; it is by default).
    #[must_use]
    pub fn include_usage(mut self, include_usage: bool) -> Self {
        self.include_usage = include_usage;
        self
    }

    /// Parameters of every request, such as `temperature`.
    ///
    /// # Errors
    /// [`BodyError`] for the keys that are not parameters.
    pub fn params(mut self, params: Map<String, Value>) -> Result<Self, BodyError> {
        self.check(&params, Source::Endpoint)?;
        self.params = params;
        Ok(self)
    }

    /// Parameters that override all others.
    ///
    /// # Errors
    /// [`BodyError`] for the keys that are not parameters.
    pub fn extra(mut self, extra: Map<String, Value>) -> Result<Self, BodyError> {
        self.check(&extra, Source::Extra)?;
        self.extra = extra;
        Ok(self)
    }

    /// What its API calls the limit of an answer's length; `None` where answers have no length.
    #[must_use]
    pub fn tokens_max_key(&self) -> Option<&'static str> {
        self.api.tokens_max_key()
    }

    /// The body for a sample; `row` holds the parameters of its own.
    ///
    /// # Errors
    /// [`BodyError`] when the row contradicts the run, or the prompt does not fit the API.
    pub fn build(
        &self,
        prompt: &Prompt<'_>,
        row: Option<&Map<String, Value>>,
    ) -> Result<Vec<u8>, BodyError> {
        Ok(self.build_marked(prompt, row)?.0)
    }

    /// What stands around the messages of a chat request: up to the bracket that opens them, and from the one
    /// that closes them.
    ///
    /// # Errors
    /// [`BodyError`] when the row contradicts the run, or the API takes no messages.
    pub fn around_messages(
        &self,
        row: Option<&Map<String, Value>>,
    ) -> Result<(Vec<u8>, Vec<u8>), BodyError> {
        let none = Prompt::Messages { json: "[]", system: None };
        let (mut body, prompt_end) = self.build_marked(&none, row)?;
        let after = body.split_off(prompt_end - "]".len());
        Ok((body, after))
    }

    /// The body, and where its prompt ends.
    fn build_marked(
        &self,
        prompt: &Prompt<'_>,
        row: Option<&Map<String, Value>>,
    ) -> Result<(Vec<u8>, usize), BodyError> {
        if let Some(row) = row {
            self.check(row, Source::Row)?;
        }
        let mut out = Vec::with_capacity(256);
        out.push(b'{');
        let named = self.find("model", row);
        match named {
            Some(model) => entry(&mut out, "model", model),
            None if self.model.is_empty() => {}
            None => entry(&mut out, "model", &Value::from(self.model.as_str())),
        }
        self.prompt(&mut out, prompt, row)?;
        let prompt_end = out.len();
        if self.api == Api::SglangGenerate {
            let sampling = sampling::sampling(self.maps(row));
            if !sampling.is_empty() {
                entry(&mut out, sampling::KEY, &Value::Object(sampling));
            }
        }
        for key in ORDER {
            match key {
                _ if self.is_elsewhere(key) => {}
                "stream" if self.stream => entry(&mut out, key, &Value::Bool(true)),
                "stream" => {}
                "stream_options" => self.stream_options(&mut out, row),
                "max_tokens" if self.api == Api::OpenaiResponses => {
                    let mut maps = self.maps(row).into_iter().rev().flatten();
                    let limit =
                        |map: &'_ Map<_, _>| LIMITS.iter().find(|key| map.contains_key(**key));
                    let given = maps.find_map(|map| map.get(*limit(map)?));
                    if let Some(value) = given.filter(|value| !value.is_null()) {
                        entry(&mut out, "max_output_tokens", value);
                    }
                }
                _ => {
                    if let Some(value) = self.find(key, row) {
                        entry(&mut out, key, value);
                    }
                }
            }
        }
        let maps = self.maps(row);
        let mut rest: Vec<&str> =
            maps.into_iter().flatten().flat_map(Map::keys).map(String::as_str).collect();
        rest.retain(|key| *key != "model" && !ORDER.contains(key));
        rest.sort_unstable();
        rest.dedup();
        for key in rest {
            if let Some(value) = self.find(key, row).filter(|_| !self.is_elsewhere(key)) {
                entry(&mut out, key, value);
            }
        }
        out.push(b'}');
        Ok((out, prompt_end))
    }

    /// What is given, from what counts least to what counts most.
    fn maps<'a>(
        &'a self,
        row: Option<&'a Map<String, Value>>,
    ) -> [Option<&'a Map<String, Value>>; 3] {
        [Some(&self.params), row, Some(&self.extra)]
    }

    /// Whether the API has this parameter under another name or in another place.
    fn is_elsewhere(&self, key: &str) -> bool {
        match self.api {
            Api::OpenaiResponses => {
                key == "instructions" || (key != "max_tokens" && LIMITS.contains(&key))
            }
            Api::SglangGenerate => sampling::takes(key),
            _ => false,
        }
    }

    /// The value that holds for a key, if it is not null.
    fn find<'a>(&'a self, key: &str, row: Option<&'a Map<String, Value>>) -> Option<&'a Value> {
        let given = self.extra.get(key).or_else(|| row?.get(key)).or_else(|| self.params.get(key));
        given.filter(|value| !value.is_null())
    }

    fn prompt(
        &self,
        out: &mut Vec<u8>,
        prompt: &Prompt<'_>,
        row: Option<&Map<String, Value>>,
    ) -> Result<(), BodyError> {
        match (self.api, *prompt) {
            (Api::OpenaiChat, Prompt::Text { text, system }) => {
                key(out, "messages");
                out.push(b'[');
                if let Some(system) = system {
                    message(out, "system", system);
                    out.push(b',');
                }
                message(out, "user", text);
                out.push(b']');
            }
            (Api::OpenaiChat, Prompt::Messages { json, system }) => {
                let inside = inside_of_array(json)?;
                key(out, "messages");
                out.push(b'[');
                if let Some(system) = system {
                    message(out, "system", system);
                    if !inside.is_empty() {
                        out.push(b',');
                    }
                }
                out.extend_from_slice(inside.as_bytes());
                out.push(b']');
            }
            (
                Api::OpenaiResponses,
                Prompt::Text { system, .. } | Prompt::Messages { system, .. },
            ) => {
                match (self.find("instructions", row), system) {
                    (Some(given), _) => entry(out, "instructions", given),
                    (None, Some(system)) => entry(out, "instructions", &Value::from(system)),
                    (None, None) => {}
                }
                match *prompt {
                    Prompt::Text { text, .. } => entry(out, "input", &Value::from(text)),
                    Prompt::Messages { json, .. } => {
                        let inside = inside_of_array(json)?;
                        key(out, "input");
                        out.push(b'[');
                        out.extend_from_slice(inside.as_bytes());
                        out.push(b']');
                    }
                }
            }
            (Api::OpenaiCompletions, Prompt::Text { text, system: None }) => {
                entry(out, "prompt", &Value::from(text));
            }
            (Api::OpenaiEmbeddings, Prompt::Text { text, system: None }) => {
                entry(out, "input", &Value::from(text));
            }
            (Api::SglangGenerate, Prompt::Text { text, system: None }) => {
                entry(out, "text", &Value::from(text));
            }
            (
                Api::OpenaiCompletions | Api::OpenaiEmbeddings | Api::SglangGenerate,
                Prompt::Text { .. },
            ) => {
                return Err(self.unfit("a prompt alone", "a system text"));
            }
            (
                Api::OpenaiCompletions | Api::OpenaiEmbeddings | Api::SglangGenerate,
                Prompt::Messages { .. },
            ) => {
                return Err(self.unfit("a prompt", "messages"));
            }
            (Api::Raw, _) => {
                return Err(self.unfit("a body that is taken as it is", "a prompt"));
            }
        }
        Ok(())
    }

    fn stream_options(&self, out: &mut Vec<u8>, row: Option<&Map<String, Value>>) {
        if !self.stream {
            return;
        }
        let mut options = match self.find("stream_options", row) {
            Some(Value::Object(options)) => options.clone(),
            Some(other) => return entry(out, "stream_options", other),
            None => Map::new(),
        };
        let asks = matches!(self.api, Api::OpenaiChat | Api::OpenaiCompletions);
        if asks && self.include_usage && !options.contains_key("include_usage") {
            options.insert("include_usage".to_owned(), Value::Bool(true));
        }
        if !options.is_empty() {
            entry(out, "stream_options", &Value::Object(options));
        }
    }

    fn check(&self, map: &Map<String, Value>, source: Source) -> Result<(), BodyError> {
        let has_no = |key: &str, why| {
            let (key, api) = (key.to_owned(), self.api.as_str());
            Err(BodyError::HasNo { key, source_of_key: source, api, why })
        };
        for (key, value) in map {
            let given = !value.is_null();
            match key.as_str() {
                "stream" if given && *value == Value::Bool(true) && !self.api.streams() => {
                    return Err(BodyError::NeverStreams(source, self.api.as_str()));
                }
                "stream" if given && *value != Value::Bool(self.stream) => {
                    return Err(BodyError::Stream(source));
                }
                _ if self.prompt_keys().contains(&key.as_str()) => {
                    let key = key.clone();
                    return Err(BodyError::Prompt { key, source_of_key: source });
                }
                "stream_options" if given && self.api == Api::SglangGenerate => {
                    return has_no(key, "has no options of a stream; each frame counts its tokens");
                }
                "stream_options" if given && !self.stream => {
                    return Err(BodyError::StreamOptions(source));
                }
                "model" if given && !self.api.names_model() => {
                    return has_no(key, "names no model");
                }
                _ if given && self.api == Api::OpenaiEmbeddings && LIMITS.contains(&&**key) => {
                    return has_no(key, "has no output whose length could be limited");
                }
                _ => {}
            }
        }
        if self.api == Api::SglangGenerate {
            sampling::check(map, source)?;
        }
        Ok(())
    }

    /// Keys that would put another prompt into every request.
    fn prompt_keys(&self) -> &'static [&'static str] {
        match self.api {
            Api::OpenaiResponses => &["messages", "input"],
            Api::OpenaiEmbeddings => &["messages", "prompt", "input"],
            Api::SglangGenerate => &["messages", "prompt", "text", "input_ids", "input_embeds"],
            Api::OpenaiChat | Api::OpenaiCompletions | Api::Raw => &["messages", "prompt"],
        }
    }

    fn unfit(&self, takes: &'static str, holds: &'static str) -> BodyError {
        BodyError::Unfit { api: self.api.as_str(), takes, holds }
    }
}

/// What stands between the brackets of an array of objects.
fn inside_of_array(json: &str) -> Result<&str, BodyError> {
    let messages: Vec<Map<String, Value>> =
        serde_json::from_str(json).map_err(|e| BodyError::Messages(e.to_string()))?;
    let bare = json.trim();
    let inside = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inside = inside.unwrap_or_default().trim();
    // An array that parsed has its brackets at its ends.
    debug_assert_eq!(messages.is_empty(), inside.is_empty());
    Ok(inside)
}

fn message(out: &mut Vec<u8>, role: &str, content: &str) {
    out.push(b'{');
    entry(out, "role", &Value::from(role));
    entry(out, "content", &Value::from(content));
    out.push(b'}');
}

fn entry(out: &mut Vec<u8>, name: &str, value: &Value) {
    key(out, name);
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Appends a key, with a comma before it unless it is the first of its object.
fn key(out: &mut Vec<u8>, name: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(Value::from(name).to_string().as_bytes());
    out.push(b':');
}

/// The order of the parameters that servers know, behind `model` and the prompt.
pub const ORDER: [&str; 22] = [
    "temperature",
    "max_completion_tokens",
    "max_tokens",
    "min_tokens",
    "stream",
    "stream_options",
    "seed",
    "top_p",
    "top_k",
    "repetition_penalty",
    "n",
    "stop",
    "ignore_eos",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "user",
    "chat_template",
    "chat_template_kwargs",
    "tools",
    "tool_choice",
    "response_format",
];

/// The names by which the length of an answer is limited, the one that counts most first.
const LIMITS: [&str; 3] = ["max_output_tokens", "max_completion_tokens", "max_tokens"];
