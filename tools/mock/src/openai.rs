//! The answers of the OpenAI routes, chunk by chunk: what a good server sends.
//!
//! Text is a chain of common English words, each with a space in front; one word counts as one token.

use std::ops::Range;

use takt_wire::Request;

use crate::asked::Asked;
use crate::json;
use crate::said::Said;

/// Which of the generating routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Completions,
    /// `/v1/responses`
    Responses,
    /// `/v1/embeddings`
    Embeddings,
    /// `/generate`, SGLang's own
    Sglang,
}

/// What all objects of one answer say of themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voice<'a> {
    /// Chat, or text completion.
    pub(crate) chat: bool,
    /// Without its prefix.
    pub(crate) id: &'a [u8],
    /// Unix seconds.
    pub(crate) created_s: u64,
    /// The model's name, escaped.
    pub(crate) model: &'a [u8],
    /// What is said, if not prepared words.
    pub(crate) said: Option<&'a Said>,
    /// The ids of tokens are told with them.
    pub(crate) ids: bool,
}

/// Token counts as the server states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u64,
    pub(crate) completion: u64,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It had said all.
    Stop,
    /// The request's limit was reached.
    Length,
}

impl Voice<'_> {
    /// The chunk that says who speaks; no token in it. Only chat has one.
    pub(crate) fn role(&self, out: &mut Vec<u8>) {
        self.open(out, self.chunk_object());
        out.extend_from_slice(b"\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",");
        out.extend_from_slice(b"\"content\":\"\"},\"finish_reason\":null}]}");
    }

    /// A chunk with the words of `tokens`; `with_role` when it is the first and no role chunk went before. With
    /// the counts so far, where those are asked for.
    pub(crate) fn tokens(
        &self,
        out: &mut Vec<u8>,
        tokens: Range<u32>,
        with_role: bool,
        so_far: Option<Usage>,
    ) {
        self.open(out, self.chunk_object());
        match (self.chat, with_role) {
            (true, false) => {
                out.extend_from_slice(b"\"choices\":[{\"index\":0,\"delta\":{\"content\":\"");
            }
            (true, true) => {
                out.extend_from_slice(b"\"choices\":[{\"index\":0,\"delta\":{\"role\":");
                out.extend_from_slice(b"\"assistant\",\"content\":\"");
            }
            (false, _) => {
                out.extend_from_slice(b"\"choices\":[{\"index\":0,\"text\":\"");
            }
        }
        words(out, tokens.clone(), self.said);
        out.extend_from_slice(match self.chat {
            true => b"\"},\"finish_reason\":null" as &[u8],
            false => b"\",\"finish_reason\":null",
        });
        self.token_ids(out, tokens);
        out.extend_from_slice(b"}]");
        if let Some(usage) = so_far {
            out.push(b',');
            usage.write(out);
        }
        out.push(b'}');
    }

    /// The chunk that says why the generation ended; no token in it.
    pub(crate) fn finish(&self, out: &mut Vec<u8>, finish: Finish) {
        self.open(out, self.chunk_object());
        out.extend_from_slice(match self.chat {
            true => b"\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" as &[u8],
            false => b"\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"",
        });
        out.extend_from_slice(finish.as_bytes());
        out.extend_from_slice(b"\"}]}");
    }

    /// The chunk with token counts and no choices.
    pub(crate) fn usage(&self, out: &mut Vec<u8>, usage: Usage) {
        self.open(out, self.chunk_object());
        out.extend_from_slice(b"\"choices\":[],");
        usage.write(out);
        out.push(b'}');
    }

    /// The whole answer, for a request that does not stream.
    pub(crate) fn whole(&self, out: &mut Vec<u8>, tokens: u32, finish: Finish, usage: Usage) {
        self.open(out, self.whole_object());
        out.extend_from_slice(match self.chat {
            true => {
                b"\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\""
                    as &[u8]
            }
            false => b"\"choices\":[{\"index\":0,\"text\":\"",
        });
        words(out, 0..tokens, self.said);
        out.extend_from_slice(match self.chat {
            true => b"\"},\"finish_reason\":\"" as &[u8],
            false => b"\",\"finish_reason\":\"",
        });
        out.extend_from_slice(finish.as_bytes());
        out.push(b'"');
        self.token_ids(out, 0..tokens);
        out.extend_from_slice(b"}],");
        usage.write(out);
        out.push(b'}');
    }

    fn token_ids(&self, out: &mut Vec<u8>, tokens: Range<u32>) {
        if self.ids {
            out.extend_from_slice(b",\"token_ids\":[");
            ids(out, tokens);
            out.push(b']');
        }
    }

    fn open(&self, out: &mut Vec<u8>, object: &[u8]) {
        out.extend_from_slice(match self.chat {
            true => b"{\"id\":\"chatcmpl-" as &[u8],
            false => b"{\"id\":\"cmpl-",
        });
        json::text(out, self.id);
        out.extend_from_slice(b"\",\"object\":\"");
        out.extend_from_slice(object);
        out.extend_from_slice(b"\",\"created\":");
        json::number(out, self.created_s);
        out.extend_from_slice(b",\"model\":\"");
        out.extend_from_slice(self.model);
        out.extend_from_slice(b"\",");
    }

    fn chunk_object(&self) -> &'static [u8] {
        match self.chat {
            true => b"chat.completion.chunk",
            false => b"text_completion",
        }
    }

    fn whole_object(&self) -> &'static [u8] {
        match self.chat {
            true => b"chat.completion",
            false => b"text_completion",
        }
    }
}

impl Usage {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"usage\":{\"prompt_tokens\":");
        json::number(out, self.prompt);
        out.extend_from_slice(b",\"completion_tokens\":");
        json::number(out, self.completion);
        out.extend_from_slice(b",\"total_tokens\":");
        json::number(out, self.prompt + self.completion);
        out.push(b'}');
    }
}

impl Finish {
    pub(crate) fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Stop => b"stop",
            Self::Length => b"length",
        }
    }
}

impl Api {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Chat, Self::Completions, Self::Responses, Self::Embeddings, Self::Sglang];

    /// The route's path.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Responses => "/v1/responses",
            Self::Embeddings => "/v1/embeddings",
            Self::Sglang => "/generate",
        }
    }

    /// What a body that asks for this leaves out, in the words that clients know from real servers.
    pub(crate) fn missing(self, asked: &Asked) -> Option<&'static str> {
        let (has, says) = match self {
            Self::Chat => (asked.messages, "Missing required parameter: 'messages'."),
            Self::Completions => (asked.prompt, "Missing required parameter: 'prompt'."),
            Self::Responses | Self::Embeddings => {
                (asked.input, "Missing required parameter: 'input'.")
            }
            Self::Sglang => {
                (asked.text, "Either text, input_ids or input_embeds should be provided.")
            }
        };
        (!has).then_some(says)
    }

    /// The API that answers `request`, whatever its method.
    #[inline]
    pub(crate) fn of(request: &Request<'_>) -> Option<Self> {
        // Few targets have a query, and to look for one costs more than this.
        Self::at(request.target).or_else(|| Self::at(request.path()))
    }

    fn at(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/completions" => Some(Self::Completions),
            "/v1/responses" => Some(Self::Responses),
            "/v1/embeddings" => Some(Self::Embeddings),
            "/generate" => Some(Self::Sglang),
            _ => None,
        }
    }
}

/// How many tokens a prompt counts as: one for every four bytes of the body, one at least. An estimate
/// that depends on nothing but the request, so that anybody can make it again.
pub(crate) fn prompt_tokens(body: &[u8]) -> u64 {
    (body.len() as u64 / 4).max(1)
}

/// The error object that OpenAI's servers send.
pub(crate) fn error(out: &mut Vec<u8>, message: &str, kind: &str, status: u16) {
    out.extend_from_slice(b"{\"error\":{\"message\":\"");
    json::text(out, message.as_bytes());
    out.extend_from_slice(b"\",\"type\":\"");
    json::text(out, kind.as_bytes());
    out.extend_from_slice(b"\",\"code\":");
    json::number(out, u64::from(status));
    out.extend_from_slice(b"}}");
}

/// The list of one model, `model` escaped.
pub(crate) fn models(out: &mut Vec<u8>, model: &[u8], created_s: u64) {
    out.extend_from_slice(b"{\"object\":\"list\",\"data\":[{\"id\":\"");
    out.extend_from_slice(model);
    out.extend_from_slice(b"\",\"object\":\"model\",\"created\":");
    json::number(out, created_s);
    out.extend_from_slice(b",\"owned_by\":\"takt\"}]}");
}

/// Appends the words of `tokens`, of what is `said` or else prepared ones.
pub(crate) fn words(out: &mut Vec<u8>, tokens: Range<u32>, said: Option<&Said>) {
    if let Some(said) = said {
        return out.extend_from_slice(said.range(tokens));
    }
    for token in tokens {
        out.extend_from_slice(WORDS[token as usize % WORDS.len()]);
    }
}

/// Appends the ids of `tokens`, with commas between: they go round like the words.
pub(crate) fn ids(out: &mut Vec<u8>, tokens: Range<u32>) {
    for token in tokens.clone() {
        if token > tokens.start {
            out.push(b',');
        }
        json::number(out, u64::from(FIRST_ID + token % IDS));
    }
}

/// No special token has one of these.
const FIRST_ID: u32 = 1_000;
const IDS: u32 = WORDS.len() as u32;
const WORDS: [&[u8]; 16] = [
    b" the",
    b" time",
    b" to",
    b" answer",
    b" a",
    b" question",
    b" is",
    b" known",
    b" before",
    b" it",
    b" has",
    b" been",
    b" sent",
    b" and",
    b" after",
    b" that",
];
