//! The answers of `/v1/responses`: events that are named by what they say, and the response as it stands.
//!
//! ```text
//! response.created, response.in_progress, response.output_item.added, response.content_part.added
//! response.output_text.delta ...
//! response.output_text.done, response.content_part.done, response.output_item.done, response.completed
//! ```

use std::ops::Range;

use crate::json;
use crate::openai::{Finish, Usage, words};
use crate::said::Said;

/// What all objects of one answer say of themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Responding<'a> {
    /// Without its prefix.
    pub(crate) id: &'a [u8],
    /// Unix seconds.
    pub(crate) created_s: u64,
    /// The model's name, escaped.
    pub(crate) model: &'a [u8],
    /// What is said, if not prepared words.
    pub(crate) said: Option<&'a Said>,
}

/// Takes an event: its name and its data, which an appender writes.
pub(crate) type Event<'a> = &'a mut dyn FnMut(&str, &dyn Fn(&mut Vec<u8>));

/// How a response stands.
#[derive(Clone, Copy, Debug)]
enum State {
    InProgress,
    Ended(u32, Finish, Usage),
}

impl Responding<'_> {
    /// The events before the first token; they are [`OPENING`].
    pub(crate) fn opening(&self, event: Event<'_>) {
        for (number, name) in ["response.created", "response.in_progress"].into_iter().enumerate() {
            event(name, &|out| {
                begin(out, name, number as u64);
                out.extend_from_slice(b",\"response\":");
                self.response(out, State::InProgress);
                out.push(b'}');
            });
        }
        self.item_event(event, "response.output_item.added", 2, None);
        self.part_event(event, "response.content_part.added", 3, None);
    }

    /// The event number `number` with the words of `tokens`.
    pub(crate) fn tokens(&self, out: &mut Vec<u8>, number: u64, tokens: Range<u32>) {
        begin(out, DELTA, number);
        self.place(out);
        out.extend_from_slice(b",\"delta\":\"");
        words(out, tokens, self.said);
        out.extend_from_slice(b"\",\"logprobs\":[]}");
    }

    /// The events behind the last token, from number `number` on.
    pub(crate) fn closing(
        &self,
        event: Event<'_>,
        number: u64,
        tokens: u32,
        finish: Finish,
        usage: Usage,
    ) {
        event("response.output_text.done", &|out| {
            begin(out, "response.output_text.done", number);
            self.place(out);
            out.extend_from_slice(b",\"text\":\"");
            words(out, 0..tokens, self.said);
            out.extend_from_slice(b"\",\"logprobs\":[]}");
        });
        self.part_event(event, "response.content_part.done", number + 1, Some(tokens));
        self.item_event(event, "response.output_item.done", number + 2, Some(tokens));
        let name = match finish {
            Finish::Stop => "response.completed",
            Finish::Length => "response.incomplete",
        };
        event(name, &|out| {
            begin(out, name, number + 3);
            out.extend_from_slice(b",\"response\":");
            self.response(out, State::Ended(tokens, finish, usage));
            out.push(b'}');
        });
    }

    /// The whole answer, for a request that does not stream.
    pub(crate) fn whole(&self, out: &mut Vec<u8>, tokens: u32, finish: Finish, usage: Usage) {
        self.response(out, State::Ended(tokens, finish, usage));
    }

    fn item_event(&self, event: Event<'_>, name: &str, number: u64, tokens: Option<u32>) {
        event(name, &|out| {
            begin(out, name, number);
            out.extend_from_slice(b",\"output_index\":0,\"item\":");
            self.item(out, tokens);
            out.push(b'}');
        });
    }

    fn part_event(&self, event: Event<'_>, name: &str, number: u64, tokens: Option<u32>) {
        event(name, &|out| {
            begin(out, name, number);
            self.place(out);
            out.extend_from_slice(b",\"part\":");
            self.part(out, tokens.unwrap_or(0));
            out.push(b'}');
        });
    }

    fn response(&self, out: &mut Vec<u8>, state: State) {
        out.extend_from_slice(b"{\"id\":\"resp_");
        json::text(out, self.id);
        out.extend_from_slice(b"\",\"object\":\"response\",\"created_at\":");
        json::number(out, self.created_s);
        out.extend_from_slice(b",\"model\":\"");
        out.extend_from_slice(self.model);
        out.extend_from_slice(b"\",\"error\":null,\"status\":\"");
        let State::Ended(tokens, finish, usage) = state else {
            out.extend_from_slice(b"in_progress\",\"incomplete_details\":null,");
            out.extend_from_slice(b"\"output\":[],\"usage\":null}");
            return;
        };
        out.extend_from_slice(match finish {
            Finish::Stop => b"completed\",\"incomplete_details\":null" as &[u8],
            Finish::Length => {
                b"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}"
            }
        });
        out.extend_from_slice(b",\"output\":[");
        self.item(out, Some(tokens));
        out.extend_from_slice(b"],\"usage\":{\"input_tokens\":");
        json::number(out, usage.prompt);
        out.extend_from_slice(
            b",\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":",
        );
        json::number(out, usage.completion);
        out.extend_from_slice(b",\"output_tokens_details\":{\"reasoning_tokens\":0}");
        out.extend_from_slice(b",\"total_tokens\":");
        json::number(out, usage.prompt + usage.completion);
        out.extend_from_slice(b"}}");
    }

    /// The message, with its text when it has come.
    fn item(&self, out: &mut Vec<u8>, tokens: Option<u32>) {
        out.extend_from_slice(b"{\"id\":\"msg_");
        json::text(out, self.id);
        out.extend_from_slice(b"\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"");
        match tokens {
            None => out.extend_from_slice(b"in_progress\",\"content\":["),
            Some(tokens) => {
                out.extend_from_slice(b"completed\",\"content\":[");
                self.part(out, tokens);
            }
        }
        out.extend_from_slice(b"]}");
    }

    fn part(&self, out: &mut Vec<u8>, tokens: u32) {
        out.extend_from_slice(b"{\"type\":\"output_text\",\"annotations\":[],\"text\":\"");
        words(out, 0..tokens, self.said);
        out.extend_from_slice(b"\"}");
    }

    /// Which part of which item an event is about.
    fn place(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"item_id\":\"msg_");
        json::text(out, self.id);
        out.extend_from_slice(b"\",\"output_index\":0,\"content_index\":0");
    }
}

/// The embedding of a text: there is no model, so it says nothing.
pub(crate) fn embedding(out: &mut Vec<u8>, model: &[u8], prompt_tokens: u64) {
    out.extend_from_slice(b"{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,");
    out.extend_from_slice(b"\"embedding\":[");
    for n in 0..DIMENSIONS {
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"0.0");
        json::number(out, 10 + n * 7 % 90);
    }
    out.extend_from_slice(b"]}],\"model\":\"");
    out.extend_from_slice(model);
    out.extend_from_slice(b"\",\"usage\":{\"prompt_tokens\":");
    json::number(out, prompt_tokens);
    out.extend_from_slice(b",\"total_tokens\":");
    json::number(out, prompt_tokens);
    out.extend_from_slice(b"}}");
}

fn begin(out: &mut Vec<u8>, name: &str, number: u64) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\",\"sequence_number\":");
    json::number(out, number);
}

/// The name of an event with words.
pub(crate) const DELTA: &str = "response.output_text.delta";
/// Events before the first token.
pub(crate) const OPENING: u64 = 4;
/// Numbers of an embedding, a small model's.
const DIMENSIONS: u64 = 64;
