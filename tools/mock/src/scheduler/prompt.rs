//! A prompt as the scheduler sees it: how many tokens, and which blocks of them it shares with others.
//!
//! Four bytes of text are a token, so that anybody can count them again; a prompt of token ids has those.
//! The text of a chat is each message's role and content in turn: chats that begin alike share blocks.

use serde_json::Value;

/// What a request's body says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// At least one.
    pub(crate) tokens: u32,
    /// A hash for each whole block, of the block and all before it.
    pub(crate) blocks: Vec<u64>,
    /// The answer has to follow a grammar.
    pub(crate) grammar: bool,
}

impl Prompt {
    /// Reads `body`. One that is no JSON counts as text.
    pub(crate) fn read(body: &[u8], block_tokens: u32) -> Self {
        let parsed: Option<Value> = serde_json::from_slice(body).ok();
        let mut units = Vec::new();
        match &parsed {
            Some(body) => gather(body, &mut units),
            None => units.extend_from_slice(body),
        }
        let bytes = TOKEN_BYTES * block_tokens as usize;
        let mut hash = FNV_BASIS;
        let blocks = units.chunks_exact(bytes).map(|block| {
            hash = block
                .iter()
                .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
            hash
        });
        let grammar = parsed.as_ref().is_some_and(|body| {
            body["response_format"]["type"].as_str().is_some_and(|kind| kind != "text")
        });
        Self {
            blocks: blocks.collect(),
            tokens: u32::try_from(units.len().div_ceil(TOKEN_BYTES)).unwrap_or(u32::MAX).max(1),
            grammar,
        }
    }
}

/// Appends the prompt, four bytes a token.
fn gather(body: &Value, units: &mut Vec<u8>) {
    for message in body["messages"].as_array().into_iter().flatten() {
        content(&message["role"], units);
        content(&message["content"], units);
    }
    for key in ["prompt", "text", "input", "input_ids"] {
        content(&body[key], units);
    }
}

fn content(value: &Value, units: &mut Vec<u8>) {
    match value {
        Value::String(text) => units.extend_from_slice(text.as_bytes()),
        Value::Number(id) => {
            let id = id.as_u64().unwrap_or(0) as u32;
            units.extend_from_slice(&id.to_le_bytes());
        }
        Value::Array(parts) => parts.iter().for_each(|part| content(part, units)),
        Value::Object(part) => {
            for key in ["text", "content"] {
                if let Some(value) = part.get(key) {
                    content(value, units);
                }
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

const TOKEN_BYTES: usize = 4;
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Prompt {
        Prompt::read(body.as_bytes(), 2)
    }

    #[test]
    fn prompts_that_begin_alike_share_blocks_whatever_else_the_body_says() {
        let one = read(r#"{"max_tokens":1,"messages":[{"role":"user","content":"abcdefghijkl"}]}"#);
        let other =
            read(r#"{"messages":[{"content":"abcdefghiwww","role":"user"}],"stream":true}"#);
        // "user" and twelve letters: four tokens, two blocks of eight bytes.
        assert_eq!((one.tokens, one.blocks.len()), (4, 2));
        assert_eq!(
            (one.blocks[0] == other.blocks[0], one.blocks[1] == other.blocks[1]),
            (true, false)
        );
        assert!(!one.grammar);
    }

    #[test]
    fn every_form_of_a_prompt_has_tokens() {
        for (body, tokens) in [
            (r#"{"prompt":"abcdefghi"}"#, 3),
            (r#"{"prompt":[1,2,3]}"#, 3),
            (r#"{"input_ids":[[1,2],[3]]}"#, 3),
            (r#"{"text":"abcd"}"#, 1),
            (
                r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"abcdefgh"}]}]}"#,
                2,
            ),
            ("no json", 2),
            ("{}", 1),
        ] {
            assert_eq!(read(body).tokens, tokens, "{body}");
        }
        assert!(read(r#"{"prompt":"a","response_format":{"type":"json_schema"}}"#).grammar);
        assert!(!read(r#"{"prompt":"a","response_format":{"type":"text"}}"#).grammar);
    }
}
