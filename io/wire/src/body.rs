//! Request bodies of the JSON APIs: [`BodyBuilder`] holds what all requests of a run share, a [`Prompt`] is what one
//! sample adds.
//!
//! Keys come in a fixed order (`model`, the prompt, then parameters in the order of [`ORDER`], the rest by
//! name), so that equal requests are equal bytes. A parameter is taken from the extra body if it is there, else
//! from the sample's row, else from the endpoint's `body`; a null leaves it out.

use serde_json::{Map, Value};

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

/// A body that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// `stream` is given and is not what the run asks for.
    #[error(
        "`stream` in {0} contradicts the run; turn streaming on or off with --stream or --no-stream"
    )]
    Stream(Source),
    /// The prompt is given a second time.
    #[error(
        "`{key}` in {source_of_key} would replace the prompt of every sample; take it from the dataset"
    )]
    Prompt {
        /// The key.
        key: String,
        /// Where it is given.
        source_of_key: Source,
    },
    /// `stream_options` without a stream.
    #[error("`stream_options` in {0} needs a stream; leave it out or use --stream")]
    StreamOptions(Source),
    /// Not a JSON array of messages.
    #[error("the messages of the sample are not a JSON array of objects: {0}")]
    Messages(String),
    /// The API does not take what the sample holds.
    #[error("{api} takes {takes}, and the sample holds {holds}")]
    Unfit {
        /// The API.
        api: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What is there.
        holds: &'static str,
    },
}

/// Where a parameter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The endpoint's `body`.
    Endpoint,
    /// A row of the dataset.
    Row,
    /// The extra body.
    Extra,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Endpoint => "endpoint.body",
            Self::Row => "the dataset's row",
            Self::Extra => "the extra body",
        })
    }
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

    /// The body for a sample; `row` holds the parameters of its own.
    ///
    /// # Errors
    /// [`BodyError`] when the row contradicts the run, or the prompt does not fit the API.
    pub fn build(
        &self,
        prompt: &Prompt<'_>,
        row: Option<&Map<String, Value>>,
    ) -> Result<Vec<u8>, BodyError> {
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
        self.prompt(&mut out, prompt)?;
        for key in ORDER {
            match key {
                "stream" if self.stream => entry(&mut out, key, &Value::Bool(true)),
                "stream" => {}
                "stream_options" => self.stream_options(&mut out, row),
                _ => {
                    if let Some(value) = self.find(key, row) {
                        entry(&mut out, key, value);
                    }
                }
            }
        }
        let maps = [Some(&self.params), row, Some(&self.extra)];
        let mut rest: Vec<&str> =
            maps.into_iter().flatten().flat_map(Map::keys).map(String::as_str).collect();
        rest.retain(|key| *key != "model" && !ORDER.contains(key));
        rest.sort_unstable();
        rest.dedup();
        for key in rest {
            if let Some(value) = self.find(key, row) {
                entry(&mut out, key, value);
            }
        }
        out.push(b'}');
        Ok(out)
    }

    /// The value that holds for a key, if it is not null.
    fn find<'a>(&'a self, key: &str, row: Option<&'a Map<String, Value>>) -> Option<&'a Value> {
        let given = self.extra.get(key).or_else(|| row?.get(key)).or_else(|| self.params.get(key));
        given.filter(|value| !value.is_null())
    }

    fn prompt(&self, out: &mut Vec<u8>, prompt: &Prompt<'_>) -> Result<(), BodyError> {
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
            (Api::OpenaiCompletions, Prompt::Text { text, system: None }) => {
                entry(out, "prompt", &Value::from(text));
            }
            (Api::OpenaiCompletions, Prompt::Text { .. }) => {
                return Err(self.unfit("a prompt alone", "a system text"));
            }
            (Api::OpenaiCompletions, Prompt::Messages { .. }) => {
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
        if self.include_usage && !options.contains_key("include_usage") {
            options.insert("include_usage".to_owned(), Value::Bool(true));
        }
        if !options.is_empty() {
            entry(out, "stream_options", &Value::Object(options));
        }
    }

    fn check(&self, map: &Map<String, Value>, source: Source) -> Result<(), BodyError> {
        for (key, value) in map {
            match key.as_str() {
                "stream" if !value.is_null() && *value != Value::Bool(self.stream) => {
                    return Err(BodyError::Stream(source));
                }
                "messages" | "prompt" => {
                    let key = key.clone();
                    return Err(BodyError::Prompt { key, source_of_key: source });
                }
                "stream_options" if !value.is_null() && !self.stream => {
                    return Err(BodyError::StreamOptions(source));
                }
                _ => {}
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    fn text(text: &str) -> Prompt<'_> {
        Prompt::Text { text, system: None }
    }

    fn built(builder: &BodyBuilder, prompt: &Prompt<'_>, row: Value) -> String {
        let body = builder.build(prompt, Some(&map(row))).expect("body");
        serde_json::from_slice::<Value>(&body).expect("JSON");
        String::from_utf8(body).expect("UTF-8")
    }

    #[test]
    fn keys_come_in_a_fixed_order() {
        let params = map(json!({"zeta": 1, "top_p": 0.5, "alpha": [1], "temperature": 0}));
        let builder = BodyBuilder::new(Api::OpenaiChat, "m", true).params(params).expect("params");
        assert_eq!(
            built(&builder, &Prompt::Text { text: "a\"b", system: Some("s") }, json!({})),
            concat!(
                r#"{"model":"m","messages":[{"role":"system","content":"s"},"#,
                r#"{"role":"user","content":"a\"b"}],"temperature":0,"stream":true,"#,
                r#""stream_options":{"include_usage":true},"top_p":0.5,"alpha":[1],"zeta":1}"#
            )
        );
    }

    #[test]
    fn body_without_stream_names_no_stream() {
        let builder = BodyBuilder::new(Api::OpenaiChat, "", false);
        let expect = r#"{"messages":[{"role":"user","content":"x"}]}"#;
        assert_eq!(built(&builder, &text("x"), json!({})), expect);
    }

    #[test]
    fn row_overrides_endpoint_and_extra_overrides_both() {
        let builder = BodyBuilder::new(Api::OpenaiCompletions, "m", false)
            .params(map(json!({"max_tokens": 1, "seed": 1, "stop": "x", "top_k": 1})))
            .and_then(|b| b.extra(map(json!({"seed": 3, "model": "other", "top_k": null}))))
            .expect("builder");
        assert_eq!(
            built(&builder, &text("p"), json!({"max_tokens": 2, "seed": 2, "stop": null})),
            r#"{"model":"other","prompt":"p","max_tokens":2,"seed":3}"#
        );
    }

    #[test]
    fn messages_are_sent_byte_for_byte() {
        let builder = BodyBuilder::new(Api::OpenaiChat, "", false);
        let json = "\n[ {\"role\":\"user\", \"content\":\"\\u00e9\"} ] ";
        assert_eq!(
            built(&builder, &Prompt::Messages { json, system: None }, json!({})),
            "{\"messages\":[{\"role\":\"user\", \"content\":\"\\u00e9\"}]}"
        );
        let system = Some("s");
        assert_eq!(
            built(&builder, &Prompt::Messages { json: "[]", system }, json!({})),
            r#"{"messages":[{"role":"system","content":"s"}]}"#
        );
        for bad in ["{}", "[1]", "[", "\"x\""] {
            let prompt = Prompt::Messages { json: bad, system: None };
            assert!(matches!(builder.build(&prompt, None), Err(BodyError::Messages(_))), "{bad}");
        }
    }

    #[test]
    fn usage_can_be_turned_off_and_options_are_kept() {
        let builder = BodyBuilder::new(Api::OpenaiChat, "", true).include_usage(false);
        assert!(!built(&builder, &text("x"), json!({})).contains("stream_options"));
        let row = json!({"stream_options": {"continuous_usage_stats": true}});
        let builder = builder.include_usage(true);
        assert!(
            built(&builder, &text("x"), row).contains(
                r#""stream_options":{"continuous_usage_stats":true,"include_usage":true}"#
            )
        );
    }

    #[test]
    fn what_contradicts_the_run_is_refused() {
        let new = || BodyBuilder::new(Api::OpenaiChat, "m", true);
        let stream = new().extra(map(json!({"stream": false}))).expect_err("stream");
        assert_eq!(stream, BodyError::Stream(Source::Extra));
        assert!(new().extra(map(json!({"stream": true}))).is_ok());
        let messages = new().params(map(json!({"messages": []}))).expect_err("messages");
        assert!(messages.to_string().contains("`messages` in endpoint.body"), "{messages}");
        let row = map(json!({"prompt": "x"}));
        assert!(matches!(new().build(&text("x"), Some(&row)), Err(BodyError::Prompt { .. })));
        let options = map(json!({"stream_options": {}}));
        let error = BodyBuilder::new(Api::OpenaiChat, "m", false).params(options);
        assert_eq!(error.expect_err("no stream"), BodyError::StreamOptions(Source::Endpoint));
        let prompt = Prompt::Messages { json: "[]", system: None };
        let unfit = BodyBuilder::new(Api::OpenaiCompletions, "m", true).build(&prompt, None);
        assert!(matches!(unfit, Err(BodyError::Unfit { .. })));
    }

    #[test]
    fn k4_prompt_of_digits_stays_text() {
        let builder = BodyBuilder::new(Api::OpenaiCompletions, "", false);
        assert_eq!(built(&builder, &text("00123"), json!({})), r#"{"prompt":"00123"}"#);
    }
}
