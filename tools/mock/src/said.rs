//! What an answer says, cut into tokens: prepared words, a text that was given, or the prompt again.

use std::ops::Range;

use serde_json::Value;

use crate::json;

/// What answers say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Saying {
    /// Common words, as many as the plan has tokens.
    #[default]
    Words,
    /// This text. A token is a word and the white space before it; their number is the answer's length.
    Text(Box<str>),
    /// The last message of the prompt, cut in the same way.
    Echo,
}

/// A text in tokens, escaped for JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    escaped: Vec<u8>,
    /// Where each token ends; at least one.
    ends: Vec<usize>,
}

impl Saying {
    /// What the answer to `body` says; `None` for prepared words.
    pub(crate) fn to(&self, body: &[u8]) -> Option<Said> {
        match self {
            Self::Words => None,
            Self::Text(text) => Some(Said::new(text)),
            Self::Echo => Some(Said::new(&last_message(body))),
        }
    }
}

impl Said {
    fn new(text: &str) -> Self {
        let (mut said, mut rest) = (Self::default(), text);
        loop {
            let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
            let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |at| word + at);
            json::text(&mut said.escaped, &rest.as_bytes()[..end]);
            said.ends.push(said.escaped.len());
            rest = &rest[end..];
            // An empty text is one empty token: what a model says that says nothing.
            if rest.is_empty() {
                return said;
            }
        }
    }

    /// How many tokens it has.
    pub(crate) fn tokens(&self) -> u32 {
        u32::try_from(self.ends.len()).unwrap_or(u32::MAX)
    }

    /// The tokens of `range`, which lies within them.
    pub(crate) fn range(&self, range: Range<u32>) -> &[u8] {
        let place = |token: u32| match token.checked_sub(1) {
            None => 0,
            Some(before) => self.ends[before as usize],
        };
        &self.escaped[place(range.start)..place(range.end)]
    }
}

/// What a prompt is called, API by API.
fn first_of(body: &Value) -> &Value {
    let given = ["prompt", "input", "text"].iter().find_map(|key| body.get(*key));
    given.unwrap_or(&Value::Null)
}

/// The text of the last message, or the prompt; empty when there is neither.
fn last_message(body: &[u8]) -> String {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let messages = body["messages"].as_array().or_else(|| body["input"].as_array());
    let content = messages.and_then(|messages| messages.last()).map(|message| &message["content"]);
    match content.unwrap_or_else(|| first_of(&body)) {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(saying: &Saying, body: &str, tokens: &[&str]) {
        let said = saying.to(body.as_bytes()).unwrap();
        let each = (0..said.tokens()).map(|n| String::from_utf8_lossy(said.range(n..n + 1)));
        assert_eq!(each.collect::<Vec<_>>(), tokens, "{body}");
        assert_eq!(String::from_utf8_lossy(said.range(0..said.tokens())), tokens.concat());
    }

    #[test]
    fn a_text_is_cut_before_its_white_space_and_escaped() {
        let text = Saying::Text("So \"18\".\n#### 18\n".into());
        check(&text, "{}", &["So", " \\\"18\\\".", "\\u000a####", " 18", "\\u000a"]);
        check(&Saying::Text("".into()), "{}", &[""]);
        assert_eq!(Saying::Words.to(b"{}"), None);
    }

    #[test]
    fn an_echo_is_the_last_message_or_the_prompt() {
        for (body, tokens) in [
            (r#"{"messages":[{"content":"a"},{"content":"b c"}]}"#, &["b", " c"][..]),
            (r#"{"messages":[{"content":[{"text":"x"},{"text":" y"}]}]}"#, &["x", " y"]),
            (r#"{"prompt":"p"}"#, &["p"]),
            (r#"{"text":"t"}"#, &["t"]),
            (r#"{"input":"i","text":{}}"#, &["i"]),
            (r#"{"input":[{"role":"user","content":"b"}]}"#, &["b"]),
            (r#"{"messages":[]}"#, &[""]),
            ("no JSON", &[""]),
        ] {
            check(&Saying::Echo, body, tokens);
        }
    }
}
