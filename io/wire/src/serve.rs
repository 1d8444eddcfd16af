//! The server's side of an exchange: [`RequestParser`] reads requests, pipelined ones included, and hands each on
//! whole. Our reference server is made of it.
//!
//! A request that lies whole in one read is borrowed from it: head by httparse, body by its length, nothing
//! copied. Only a request that comes in pieces, or chunked, is gathered first.

use crate::chunked::Chunked;
use crate::framing::{FramingError, Limits};
use crate::head::{self, Framing, RequestHead};

/// Reads the requests of one connection.
#[derive(Clone, Debug)]
pub struct RequestParser {
    limits: Limits,
    stage: Stage,
    /// Head and body, or a part of them, of a request that came in pieces.
    held: Vec<u8>,
    /// Length of the head within `held`.
    head_len: usize,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Method, as sent.
    pub method: &'a str,
    /// Path and query, as sent.
    pub target: &'a str,
    /// `X-Request-Id`.
    pub id: Option<&'a [u8]>,
    /// The body without its framing.
    pub body: &'a [u8],
    /// Whether the client wants the connection kept.
    pub keep_alive: bool,
    /// The whole head, for [`Request::header`].
    head: &'a [u8],
}

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A whole request; `used` bytes of the input are done with, the rest may hold the next one.
    Request {
        /// Bytes of the input that are done with.
        used: usize,
        /// The request.
        request: Request<'a>,
    },
    /// The client waits for `100 Continue` ([`CONTINUE`]) before it sends the body.
    Continue {
        /// Bytes of the input that are done with.
        used: usize,
    },
    /// All bytes are used, and the request is not whole yet.
    More,
}

/// The interim answer that a client which sent `Expect: 100-continue` waits for.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Nothing, or a part of a head, is held.
    Head,
    /// The head is held; the body is gathered.
    Body(Gather),
    /// The request in `held` was handed on.
    Whole,
}

#[derive(Clone, Copy, Debug)]
enum Gather {
    Length(usize),
    Chunked(Chunked),
}

impl RequestParser {
    /// A parser at the start of a connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, stage: Stage::Head, held: Vec::new(), head_len: 0 }
    }

    /// Whether the next byte would be the first of a request: the connection may be closed without harm.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        match self.stage {
            Stage::Head => self.held.is_empty(),
            Stage::Body(_) => false,
            Stage::Whole => true,
        }
    }

    /// Reads on. Call again with the rest of the input until it says [`Step::More`].
    ///
    /// # Errors
    /// [`FramingError`]; the connection is to be closed.
    pub fn next<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a>, FramingError> {
        if matches!(self.stage, Stage::Whole) {
            self.held.clear();
            self.stage = Stage::Head;
        }
        let mut used = 0;
        if matches!(self.stage, Stage::Head) {
            used = head::skip_blank_lines(&mut self.held, input);
            if used == input.len() {
                return Ok(Step::More);
            }
            if self.held.is_empty() {
                if let Some((len, head)) = head::request(&input[used..])? {
                    self.check_head(len)?;
                    let rest = &input[used + len..];
                    match head.framing {
                        Framing::Length(body)
                            if body <= self.limits.body.min(rest.len() as u64) =>
                        {
                            // No larger than a slice, so the cast keeps the value.
                            let (head_bytes, body) = (&input[used..used + len], body as usize);
                            let used = used + len + body;
                            let request = Request::new(&head, head_bytes, &rest[..body]);
                            return Ok(Step::Request { used, request });
                        }
                        Framing::None => {
                            let head_bytes = &input[used..used + len];
                            let request = Request::new(&head, head_bytes, &[]);
                            return Ok(Step::Request { used: used + len, request });
                        }
                        framing => {
                            let waits = head.expects_continue && rest.is_empty();
                            self.gather(framing)?;
                            self.held.extend_from_slice(&input[used..used + len]);
                            self.head_len = len;
                            used += len;
                            if waits {
                                return Ok(Step::Continue { used });
                            }
                        }
                    }
                } else {
                    head::hold(&mut self.held, &input[used..]);
                    self.check_head(self.held.len())?;
                    return Ok(Step::More);
                }
            } else {
                let before = self.held.len();
                let parsed = if head::hold(&mut self.held, &input[used..]) {
                    head::request(&self.held)?.map(|(len, h)| (len, h.framing, h.expects_continue))
                } else {
                    None
                };
                let Some((len, framing, waits)) = parsed else {
                    self.check_head(self.held.len())?;
                    return Ok(Step::More);
                };
                self.check_head(len)?;
                self.held.truncate(len);
                self.head_len = len;
                used += len - before;
                self.gather(framing)?;
                if waits && used == input.len() && framing != Framing::None {
                    return Ok(Step::Continue { used });
                }
            }
        }
        used += self.read_body(&input[used..])?;
        if !matches!(self.stage, Stage::Whole) {
            return Ok(Step::More);
        }
        let (head_bytes, body) = self.held.split_at(self.head_len);
        // The head was read before, from these very bytes.
        let (_, head) = head::request(head_bytes)?.ok_or(FramingError::ClosedInHead)?;
        Ok(Step::Request { used, request: Request::new(&head, head_bytes, body) })
    }

    /// Gets ready for a body that is not in the same read as its head.
    fn gather(&mut self, framing: Framing) -> Result<(), FramingError> {
        self.stage = Stage::Body(match framing {
            Framing::Length(length) => match usize::try_from(length) {
                Ok(left) if length <= self.limits.body => Gather::Length(left),
                _ => return Err(FramingError::BodyTooLarge { limit: self.limits.body }),
            },
            Framing::Chunked => Gather::Chunked(Chunked::new()),
            Framing::None | Framing::UntilClose => Gather::Length(0),
        });
        Ok(())
    }

    fn read_body(&mut self, input: &[u8]) -> Result<usize, FramingError> {
        let Self { limits, stage, held, head_len } = self;
        let Stage::Body(gather) = stage else { return Ok(0) };
        let (used, whole) = match gather {
            Gather::Length(left) => {
                let here = (*left).min(input.len());
                held.extend_from_slice(&input[..here]);
                *left -= here;
                (here, *left == 0)
            }
            Gather::Chunked(chunked) => chunked.feed(input, limits.head, &mut |data| {
                if (held.len() - *head_len + data.len()) as u64 > limits.body {
                    return Err(FramingError::BodyTooLarge { limit: limits.body });
                }
                held.extend_from_slice(data);
                Ok(())
            })?,
        };
        if whole {
            *stage = Stage::Whole;
        }
        Ok(used)
    }

    fn check_head(&self, len: usize) -> Result<(), FramingError> {
        let limit = self.limits.head;
        if len > limit { Err(FramingError::HeadTooLarge { limit }) } else { Ok(()) }
    }
}

impl<'a> Request<'a> {
    fn new(head: &RequestHead<'a>, head_bytes: &'a [u8], body: &'a [u8]) -> Self {
        Self {
            method: head.method,
            target: head.target,
            id: head.id,
            body,
            keep_alive: head.keep_alive,
            head: head_bytes,
        }
    }

    /// The target without its query.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The value of the first header of this name, in any case. Searches: not for the hot path.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.head.split(|&b| b == b'\n').skip(1).find_map(|line| {
            let colon = line.iter().position(|&b| b == b':')?;
            let matches = line[..colon].eq_ignore_ascii_case(name.as_bytes());
            matches.then(|| line[colon + 1..].trim_ascii())
        })
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
