//! What became of a request, as its answer tells it.

use takt_time::Nanos;

use crate::delta::{FinishReason, Kinds, Usage};
use crate::request::PreparedRequest;

/// The end of an answer: what it was, and what was seen of it. What was not seen is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Status of the final head.
    pub status: Option<u16>,
    /// How the answer came.
    pub form: Form,
    /// Streamed although a whole answer was asked for (the API allows it, and it was read).
    pub unasked_form: bool,
    /// Kinds of text seen.
    pub kinds: Kinds,
    /// Last finish reason.
    pub finish: Option<FinishReason>,
    /// The server's token counts, later ones put over earlier ones.
    pub usage: Option<Usage>,
    /// How many tokens came out, and who counted them.
    pub output: Option<(u64, CountedBy)>,
    /// First event with data; streams, and bodies that are not read.
    pub first_event: Option<Nanos>,
    /// First event with text of any kind.
    pub first_token: Option<Nanos>,
    /// First event with visible text.
    pub first_content: Option<Nanos>,
    /// Last event with text.
    pub last_token: Option<Nanos>,
    /// Last byte that belonged to the answer.
    pub last_byte: Option<Nanos>,
    /// Events with text.
    pub token_events: u64,
    /// Events with text that share their stamp with the one before: no gap is known between the two.
    pub coalesced: u64,
    /// Bytes of body, without chunked framing.
    pub body_bytes: u64,
    /// `[DONE]` came.
    pub done: bool,
    /// The connection ended before the body's own end, which `[DONE]` or a finish reason made harmless.
    pub closed_early: bool,
}

/// Who counted the output of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountedBy {
    /// The server, at the end.
    Usage,
    /// The server, in each event with text, so that the tokens of each event are known.
    ContinuousUsage,
    /// The ids of the tokens, which came with each event with text; the server's own count, if there is one, is the
    /// same.
    TokenIds,
    /// Nobody: one token for each event with text, an estimate.
    Events,
}

/// How an answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// No body was read.
    #[default]
    None,
    /// A stream of events.
    Stream,
    /// One piece of JSON.
    Whole,
    /// Bytes, not looked into.
    Bytes,
}

/// Why an answer is a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub kind: FailKind,
    /// How far the answer had come.
    pub stage: Stage,
    /// What happened, with the server's words where there are any; bounded.
    pub message: String,
}

/// The kinds of failure that an answer itself can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailKind {
    /// A status that is no success.
    HttpStatus,
    /// An error told by the API in an answer that began well.
    ApiError,
    /// The answer ended before it was complete.
    Truncated,
    /// Something that should be JSON is not.
    BadJson,
    /// What came is not HTTP, or breaks its own framing.
    BadFraming,
    /// Another kind of body than was asked for.
    ContentType,
    /// A limit on head, body or event was passed.
    TooLarge,
}

/// How far an answer had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The head was not complete.
    Head,
    /// The head was there, and no text yet.
    Body,
    /// Text had come.
    Tokens,
}

impl Outcome {
    /// Whether the request succeeded.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.failure.is_none()
    }
}

impl Failure {
    /// Names what was asked, where the answer is that there is no such thing.
    #[must_use]
    pub fn to(mut self, request: &PreparedRequest, status: Option<u16>) -> Self {
        if let (FailKind::HttpStatus, Some(status @ (404 | 405))) = (self.kind, status) {
            let said = format!("HTTP {status}");
            if let Some(rest) = self.message.strip_prefix(&said) {
                self.message = format!("{said} for {}{rest}", request.asked());
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, Method, RequestBuilder};

    #[test]
    fn what_is_not_there_is_named_without_its_query_and_nothing_else_is() {
        let endpoint = Endpoint::parse("http://h").expect("an address");
        let builder = RequestBuilder::new(Method::Post, &endpoint, "/v1/x?key=s3cret");
        let request = builder.expect("a target").build(b"{}");
        let failure = |message: &str| Failure {
            kind: FailKind::HttpStatus,
            stage: Stage::Body,
            message: message.to_owned(),
        };
        for (status, said, expect) in [
            (404, "HTTP 404: none", "HTTP 404 for POST /v1/x: none"),
            (405, "HTTP 405", "HTTP 405 for POST /v1/x"),
            (500, "HTTP 500: no", "HTTP 500: no"),
        ] {
            assert_eq!(failure(said).to(&request, Some(status)).message, expect);
        }
    }
}
