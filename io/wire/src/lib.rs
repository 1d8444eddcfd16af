//! Wire formats as pure state machines.
#![forbid(unsafe_code)]

pub mod chat;
mod chunked;
mod delta;
mod framing;
mod head;
mod header;
mod method;
mod reply;
mod request;
mod response;
mod secret;
mod serve;
mod sse;
#[cfg(test)]
mod testing;
mod url;

pub use delta::{BadJson, Delta, FinishReason, Kinds, Text, TextSink, Usage};
pub use framing::{FramingError, Limits};
pub use head::{ContentType, Framing, ResponseHead};
pub use header::HeaderError;
pub use method::Method;
pub use reply::{
    reason, write_chunk, write_event, write_event_chunk, write_head, write_last_chunk,
};
pub use request::{ID_LEN, PreparedRequest, RequestBuilder, RequestError};
pub use response::{Part, ResponseParser};
pub use secret::{REDACTED, is_secret_name};
pub use serve::{CONTINUE, Request, RequestParser, Step};
pub use sse::{SseEvent, SseParser, SseTooLarge};
pub use url::{Endpoint, Route, Scheme, UrlError, UrlReason};
