//! What went wrong, in the words of the records: kind, blame and stage of each way to fail.
//!
//! Blame follows what can be seen from here: the *server* when it answered wrongly, or took the whole request
//! and did not answer in time; the *client* when this machine had no descriptor or port, or the request was
//! still waiting for one of the client's own connections; the *network* for whatever happened to a connection.

use std::io;

use takt_record::{Blame, ErrorKind, Failure, Stage};
use takt_wire::FailKind;

use super::TimeOut;
use super::flight::{Flight, Place};

/// A failure and what is said about it.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) failure: Failure,
    pub(super) message: Box<str>,
}

/// How a connection ended under a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The peer closed its side.
    End,
    /// It broke.
    Broken(io::ErrorKind),
}

impl Loss {
    /// In words.
    pub(super) fn words(self) -> String {
        match self {
            Self::End => "the server closed the connection".to_owned(),
            Self::Broken(io::ErrorKind::UnexpectedEof) => {
                "the connection was closed without TLS's own end (close_notify)".to_owned()
            }
            Self::Broken(kind) => format!("the connection broke: {kind}"),
        }
    }
}

impl Fault {
    fn new(kind: ErrorKind, blame: Blame, stage: Stage, message: impl Into<Box<str>>) -> Self {
        Self { failure: Failure { kind, blame, stage, status: None }, message: message.into() }
    }

    /// No attempt to connect could be made.
    pub(super) fn no_attempt(error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::InvalidInput => ErrorKind::Internal,
            _ => ErrorKind::LocalLimit,
        };
        Self::new(kind, Blame::Client, Stage::Connect, format!("no connection was tried: {error}"))
    }

    /// An attempt to connect failed.
    pub(super) fn not_connected(kind: io::ErrorKind) -> Self {
        let (what, blame) = match kind {
            io::ErrorKind::TimedOut => (ErrorKind::ConnectTimeout, Blame::Network),
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::OutOfMemory => {
                (ErrorKind::LocalLimit, Blame::Client)
            }
            _ => (ErrorKind::ConnectRefused, Blame::Network),
        };
        Self::new(what, blame, Stage::Connect, format!("no connection: {kind}"))
    }

    /// Its TLS handshake failed, or its TLS was broken off later.
    pub(super) fn tls(message: &str) -> Self {
        Self::new(ErrorKind::Tls, Blame::Server, Stage::Tls, format!("TLS: {message}"))
    }

    /// Whether a new attempt would come to the same at once: then it must not be made at once.
    pub(super) fn is_quick(&self) -> bool {
        self.failure.kind != ErrorKind::ConnectTimeout
    }

    /// No connection in time; `secures` says that it stood and its TLS handshake was under way.
    pub(super) fn connect_timeout(secures: bool) -> Self {
        let (stage, message) = if secures {
            (Stage::Tls, "no end of the TLS handshake within the connect timeout")
        } else {
            (Stage::Connect, "no connection within the connect timeout")
        };
        Self::new(ErrorKind::ConnectTimeout, Blame::Network, stage, message)
    }

    /// The connection was lost before a byte of the answer.
    pub(super) fn unanswered(flight: &Flight, loss: Loss) -> Self {
        let message = format!("{} before it answered", loss.words());
        Self::new(ErrorKind::Reset, Blame::Network, stage(flight), message)
    }

    /// A request had no more time for something.
    pub(super) fn timed_out(kind: TimeOut, flight: &Flight) -> Self {
        let (kind, message) = match kind {
            TimeOut::FirstByte => {
                (ErrorKind::FirstByteTimeout, "no byte of an answer within the first byte timeout")
            }
            TimeOut::Request => {
                (ErrorKind::RequestTimeout, "no end of the answer within the request timeout")
            }
            TimeOut::Turn(_) => {
                (ErrorKind::TurnTimeout, "no end of the turn within the turn timeout")
            }
        };
        let stage = stage(flight);
        Self::new(kind, blame(stage), stage, message)
    }

    /// The request names a phase that this client has no route for.
    pub(super) fn no_route() -> Self {
        let message = "the client was not told about this phase";
        Self::new(ErrorKind::Internal, Blame::Client, Stage::Queue, message)
    }

    /// The answer itself is a failure; `lost` says that its connection was lost under it.
    pub(super) fn in_answer(failure: takt_wire::Failure, lost: bool) -> Self {
        let kind = match failure.kind {
            FailKind::HttpStatus => ErrorKind::HttpStatus,
            FailKind::ApiError => ErrorKind::ApiError,
            FailKind::Truncated => ErrorKind::Truncated,
            FailKind::BadJson => ErrorKind::BadJson,
            FailKind::BadFraming => ErrorKind::BadFraming,
            FailKind::ContentType => ErrorKind::ContentType,
            FailKind::TooLarge => ErrorKind::TooLarge,
        };
        let blame = match kind {
            ErrorKind::Truncated if lost => Blame::Network,
            _ => Blame::Server,
        };
        let stage = match failure.stage {
            takt_wire::Stage::Head => Stage::Head,
            takt_wire::Stage::Body => Stage::Body,
            takt_wire::Stage::Tokens => Stage::Stream,
        };
        Self::new(kind, blame, stage, failure.message)
    }
}

/// How far a request has come.
fn stage(flight: &Flight) -> Stage {
    match flight.place {
        Place::Waiting if flight.limited => Stage::Queue,
        Place::Waiting | Place::Connecting(_) => Stage::Connect,
        Place::On(_) if flight.times.written.is_none() => Stage::Write,
        Place::On(_) if flight.times.first_byte.is_none() => Stage::Wait,
        Place::On(_) if flight.status.is_none() => Stage::Head,
        Place::On(_) if flight.times.first_token.is_none() => Stage::Body,
        Place::On(_) => Stage::Stream,
    }
}

/// Whose fault it is when a request has not come further than `stage` in its time.
fn blame(stage: Stage) -> Blame {
    match stage {
        Stage::Queue => Blame::Client,
        Stage::Connect | Stage::Tls | Stage::Write => Blame::Network,
        Stage::Wait | Stage::Head | Stage::Body | Stage::Stream => Blame::Server,
    }
}
