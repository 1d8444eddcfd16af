//! What a request's body asks for, found by one pass over its bytes.
//!
//! The pass knows strings and the depth of objects and nothing else of JSON: a key counts only where it
//! stands, never inside a prompt or a tool's schema. A body that is not JSON asks for nothing. Keys
//! written with escapes (`"str\u0065am"`) are not recognised.

use memchr::{memchr2, memchr3};

/// The fields of a body that change the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// `"stream": true`
    pub(crate) stream: bool,
    /// `"stream_options": {"include_usage": true}`
    pub(crate) include_usage: bool,
    /// `"stream_options": {"continuous_usage_stats": true}`
    pub(crate) continuous_usage: bool,
    /// `"return_token_ids": true`
    pub(crate) token_ids: bool,
    /// The smallest of `max_tokens`, `max_completion_tokens`, `max_output_tokens` and SGLang's
    /// `"sampling_params": {"max_new_tokens": …}`.
    pub(crate) tokens_max: Option<u32>,
    /// `messages` is there, and not null; the others likewise.
    pub(crate) messages: bool,
    pub(crate) prompt: bool,
    pub(crate) input: bool,
    /// `text`, `input_ids` or `input_embeds`
    pub(crate) text: bool,
}

impl Asked {
    /// Reads `body`. Time is linear in its length; long strings go by at the speed of a memchr.
    pub(crate) fn scan(body: &[u8]) -> Self {
        let mut asked = Self::default();
        let (mut at, mut depth, mut within) = (0, 0u32, &b""[..]);
        while let Some(step) = memchr3(b'"', b'{', b'}', &body[at..]) {
            at += step + 1;
            match body[at - 1] {
                b'{' => depth = depth.saturating_add(1),
                b'}' => depth = depth.saturating_sub(1),
                _ => {
                    let Some(len) = string_len(&body[at..]) else { break };
                    let text = &body[at..at + len];
                    at += len + 1;
                    // Only a key is followed by a colon.
                    let Some(value) = after_colon(&body[at..]) else { continue };
                    match depth {
                        1 => {
                            within = text;
                            asked.note(b"", text, value);
                        }
                        2 => asked.note(within, text, value),
                        _ => {}
                    }
                }
            }
        }
        asked
    }

    /// Takes in `key`, which stands in the object of the top-level key `within`.
    fn note(&mut self, within: &[u8], key: &[u8], value: &[u8]) {
        match (within, key) {
            (b"", b"stream") => self.stream = value.starts_with(b"true"),
            (b"stream_options", b"include_usage") => {
                self.include_usage = value.starts_with(b"true");
            }
            (b"stream_options", b"continuous_usage_stats") => {
                self.continuous_usage = value.starts_with(b"true");
            }
            (b"", b"messages") => self.messages = !value.starts_with(b"null"),
            (b"", b"prompt") => self.prompt = !value.starts_with(b"null"),
            (b"", b"input") => self.input = !value.starts_with(b"null"),
            (b"", b"text" | b"input_ids" | b"input_embeds") => {
                self.text |= !value.starts_with(b"null");
            }
            (b"", b"return_token_ids") => self.token_ids = value.starts_with(b"true"),
            (b"", b"max_tokens" | b"max_completion_tokens" | b"max_output_tokens")
            | (b"sampling_params", b"max_new_tokens") => {
                if let Some(tokens) = leading_number(value) {
                    self.tokens_max = Some(self.tokens_max.unwrap_or(u32::MAX).min(tokens));
                }
            }
            _ => {}
        }
    }
}

/// Length of a string whose opening quote is behind us; `None` when it does not end.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

fn after_colon(bytes: &[u8]) -> Option<&[u8]> {
    bytes.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start)
}

/// The digits at the start, saturating; `None` for what is no unsigned integer.
fn leading_number(value: &[u8]) -> Option<u32> {
    let digits = value.iter().take_while(|b| b.is_ascii_digit());
    digits.fold(None, |number: Option<u32>, &b| {
        Some(number.unwrap_or(0).saturating_mul(10).saturating_add(u32::from(b - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, stream: bool, include_usage: bool, tokens_max: Option<u32>) {
        let Asked { messages, prompt, input, text, .. } = Asked::scan(body.as_bytes());
        let expect = Asked {
            stream,
            include_usage,
            tokens_max,
            messages,
            prompt,
            input,
            text,
            ..Asked::default()
        };
        assert_eq!(Asked::scan(body.as_bytes()), expect, "{body}");
    }

    #[test]
    fn fields_are_found_at_the_top_level() {
        check(r#"{"model":"m","stream":true,"max_tokens":7}"#, true, false, Some(7));
        check("{ \"stream\" :\n true }", true, false, None);
        check(r#"{"stream":false,"max_completion_tokens": 12 }"#, false, false, Some(12));
        check(r#"{"max_tokens":9,"max_completion_tokens":3}"#, false, false, Some(3));
        check(r#"{"input_ids":[1],"sampling_params":{"max_new_tokens":5}}"#, false, false, Some(5));
        check(r#"{"max_tokens":null}"#, false, false, None);
        check(r#"{"max_output_tokens":4}"#, false, false, Some(4));
        check(
            r#"{"stream":true,"stream_options":{"a":{},"include_usage":true},"n":1}"#,
            true,
            true,
            None,
        );
    }

    #[test]
    fn counts_and_ids_are_asked_for_beside_the_stream() {
        let body = r#"{"stream_options":{"continuous_usage_stats":true},"return_token_ids":true}"#;
        let asked = Asked::scan(body.as_bytes());
        assert!(asked.continuous_usage && asked.token_ids && !asked.include_usage);
    }

    #[test]
    fn prompts_and_schemas_do_not_decide() {
        check(r#"{"prompt":"\"stream\":true, \\","stream":false}"#, false, false, None);
        check(r#"{"messages":[{"stream":true,"max_tokens":1}]}"#, false, false, None);
        check(r#"{"metadata":{"include_usage":true}}"#, false, false, None);
        check(r#"{"max_new_tokens":1,"sampling_params":{"max_tokens":1}}"#, false, false, None);
        check(r#"{"stop":["stream"],"prompt":[1,2,3]}"#, false, false, None);
    }

    #[test]
    fn what_is_not_json_asks_for_nothing() {
        for body in ["", "stream", "\"stream\":true", "{\"stream", "{\"a\\", "}}}{{", "{\"stream\""]
        {
            check(body, false, false, None);
        }
    }
}
