//! What can go wrong with the framing of a message, and the limits that keep outside input bounded.

/// Bounds on what a peer may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all heads of one message (1xx heads and trailers included), and of one chunk-size line.
    pub head: usize,
    /// Bytes of one body, its chunked framing not counted.
    pub body: u64,
    /// Bytes of one server-sent event, and of one JSON body that has to be held as a whole.
    pub event: usize,
}

impl Default for Limits {
    /// 64 KiB of head, 1 GiB of body, 16 MiB of event.
    fn default() -> Self {
        Self { head: 64 << 10, body: 1 << 30, event: 16 << 20 }
    }
}

/// A message that cannot be read on. The connection it came from is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The head is not HTTP/1.
    #[error("the head is not valid HTTP/1: {0}")]
    BadHead(&'static str),
    /// `Content-Length` is not one number.
    #[error("Content-Length is not a number, or stands there twice with two values")]
    BadLength,
    /// A chunked body does not follow its own sizes.
    #[error("the chunked body is broken: {0}")]
    BadChunk(&'static str),
    /// The head is larger than the limit.
    #[error("the head is larger than the limit of {limit} bytes")]
    HeadTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The body is larger than the limit.
    #[error("the body is larger than the limit of {limit} bytes")]
    BodyTooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The peer closed before it sent a byte of this message.
    #[error("the connection was closed before the first byte of the message")]
    ClosedBeforeHead,
    /// The peer closed within the head.
    #[error("the connection was closed within the head")]
    ClosedInHead,
    /// The peer closed before the body's end.
    #[error("the connection was closed before the end of the body")]
    ClosedInBody,
}

impl FramingError {
    /// Whether the message ended too early, rather than being wrong.
    #[must_use]
    pub fn is_truncation(self) -> bool {
        matches!(self, Self::ClosedBeforeHead | Self::ClosedInHead | Self::ClosedInBody)
    }

    /// Whether a limit was reached.
    #[must_use]
    pub fn is_too_large(self) -> bool {
        matches!(self, Self::HeadTooLarge { .. } | Self::BodyTooLarge { .. })
    }
}
