//! The server's side: requests of one connection, the same in every split, and each reads as itself when it is
//! written out again.
//!
//! Input: options, split, then the bytes of the connection. Option bit 0: small limits.

use takt_wire::{Limits, Request, RequestParser, Step};

use super::pieces::{bit, options, pieces};

/// The target.
pub fn request_parser(data: &[u8]) {
    let Some(([flags, how], wire)) = options(data) else { return };
    let limits = if bit(flags, 0) { SMALL } else { Limits::default() };
    let whole = read(&[wire], limits);
    for how in [b'1', how] {
        let split = read(&pieces(wire, how), limits);
        assert_eq!(split.requests, whole.requests, "split {how}");
        // A fault within a line is told when the read shows it, at the latest when the line ends.
        assert_eq!(split.idle == Some(true), whole.idle == Some(true), "split {how}");
    }
    for request in &whole.requests {
        let again = read(&[&request.wire()], Limits::default());
        assert_eq!(again.requests.as_slice(), std::slice::from_ref(request));
    }
}

#[derive(Debug, Default)]
struct Seen {
    requests: Vec<Owned>,
    /// Whether the connection is between two requests; `None` when it is broken.
    idle: Option<bool>,
}

#[derive(Debug, PartialEq, Eq)]
struct Owned {
    method: String,
    target: String,
    id: Option<Vec<u8>>,
    body: Vec<u8>,
    keep_alive: bool,
}

impl Owned {
    fn of(request: &Request<'_>) -> Self {
        assert!(request.target.starts_with(request.path()));
        Self {
            method: request.method.to_owned(),
            target: request.target.to_owned(),
            id: request.id.map(<[u8]>::to_vec),
            body: request.body.to_vec(),
            keep_alive: request.keep_alive,
        }
    }

    /// The request as another client would write it.
    fn wire(&self) -> Vec<u8> {
        let Self { method, target, id, body, keep_alive } = self;
        let mut wire = format!("{method} {target} HTTP/1.1\r\nHost: h\r\n").into_bytes();
        if let Some(id) = id {
            wire.extend([b"X-Request-ID:\t", id.as_slice(), b"\r\n"].concat());
        }
        if !keep_alive {
            wire.extend_from_slice(b"connection: Close\r\n");
        }
        wire.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
        wire.extend_from_slice(body);
        wire
    }
}

fn read(pieces: &[&[u8]], limits: Limits) -> Seen {
    let mut parser = RequestParser::new(limits);
    let mut seen = Seen::default();
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let before = rest.len();
            match parser.next(rest) {
                Ok(Step::Request { used, request }) => {
                    assert!(request.body.len() as u64 <= limits.body.max(rest.len() as u64));
                    seen.requests.push(Owned::of(&request));
                    rest = &rest[used..];
                }
                Ok(Step::Continue { used }) => rest = &rest[used..],
                Ok(Step::More) => break,
                Err(_) => return seen,
            }
            assert!(rest.len() <= before);
        }
    }
    seen.idle = Some(parser.is_idle());
    seen
}

const SMALL: Limits = Limits { head: 96, body: 24, event: 24 };
