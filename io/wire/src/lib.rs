//! HTTP/1.1 exchanges, server-sent events and inference API answers, as pure state machines: bytes and
//! times come in as arguments, facts go out through a sink. Nothing here sees a socket, a clock or an actor.
//!
//! # The tour
//!
//! | to | use |
//! | --- | --- |
//! | take a server's address apart and join a route to it | [`Endpoint`], [`Route`] |
//! | build the JSON of a request | [`BodyBuilder`], [`Prompt`] |
//! | build a request's bytes once and patch its id a million times | [`RequestBuilder`], [`PreparedRequest`] |
//! | read a request's answer, whatever became of it | [`Answer`], [`AnswerEvent`], [`Outcome`] |
//! | only its HTTP, only its events, only its JSON | [`ResponseParser`], [`SseParser`], [`reader`] |
//! | be the server | [`RequestParser`], [`write_head`], [`write_event_chunk`], … |
//!
//! Three promises hold throughout, each with a property test: the same facts come out for every split of the
//! bytes; a fast path says what the plain one says; and whatever comes in is bounded by [`Limits`]. Once warm, nothing
//! allocates per message on the usual path.
//!
//! ```
//! use takt_time::Nanos;
//! use takt_wire::{
//!     Answer, AnswerEvent, Api, Ask, BodyBuilder, Endpoint, Limits, Method, Prompt, RequestBuilder,
//! };
//!
//! // Once for a run: where requests go and what they share.
//! let endpoint = Endpoint::parse("http://127.0.0.1:8000/v1")?;
//! let api = Api::OpenaiChat;
//! let bodies = BodyBuilder::new(api, "tiny", true);
//! let requests = RequestBuilder::new(Method::Post, &endpoint, &endpoint.target(api.route()))?
//!     .streaming(true)
//!     .bearer("secret")?;
//!
//! // Once for a sample; then only the id changes.
//! let body = bodies.build(&Prompt::Text { text: "Hello", system: None }, None)?;
//! let mut request = requests.build(&body);
//! request.patch_id(b"00000000000000000000000000000001");
//! assert!(request.bytes().starts_with(b"POST /v1/chat/completions HTTP/1.1\r\n"));
//!
//! // What came back, in two reads.
//! let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 74\r\n\r\n";
//! let stream = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n\n\n";
//! let ask = Ask { api, stream: true, keep_text: false, no_body: false };
//! let mut answer = Answer::new(ask, Limits::default());
//! let mut outcome = None;
//! for (bytes, at) in [(&head[..], 1_000), (&stream[..], 2_000)] {
//!     answer.feed(bytes, Nanos::from_nanos(at), &mut |event| match event {
//!         AnswerEvent::Token(token) => assert!(token.first && token.kinds.content),
//!         AnswerEvent::End(end) => outcome = Some(end.clone()),
//!         _ => {}
//!     });
//! }
//! let outcome = outcome.expect("the answer is whole");
//! assert!(outcome.is_ok() && answer.is_reusable());
//! assert_eq!(outcome.first_token, Some(Nanos::from_nanos(2_000)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod answer;
mod api;
mod body;
mod chunked;
mod delta;
mod framing;
mod head;
mod header;
mod last_head;
mod method;
mod outcome;
pub mod reader;
mod reply;
mod request;
mod response;
mod secret;
mod serve;
mod sse;
#[cfg(test)]
mod testing;
mod url;

pub use answer::{Answer, AnswerEvent, Ask, Fed, Token};
pub use api::Api;
pub use body::{BodyBuilder, BodyError, ORDER, Prompt, Source};
pub use delta::{BadJson, Delta, FinishReason, Kinds, Text, TextSink, Usage};
pub use framing::{FramingError, Limits};
pub use head::{ContentType, Framing, ResponseHead};
pub use header::{HeaderError, check_header_name};
pub use last_head::LastHead;
pub use method::Method;
pub use outcome::{CountedBy, FailKind, Failure, Form, Outcome, Stage};
pub use reply::{
    reason, write_chunk, write_event, write_event_chunk, write_head, write_last_chunk,
    write_named_event_chunk,
};
pub use request::{ID_LEN, PreparedRequest, RequestBuilder, RequestError};
pub use response::{Part, ResponseParser};
pub use secret::{REDACTED, is_secret_name};
pub use serve::{CONTINUE, Request, RequestParser, Step};
pub use sse::{SseEvent, SseParser, SseTooLarge};
pub use url::{Endpoint, Route, Scheme, UrlError, UrlReason};
