//! The client's side of an exchange: [`ResponseParser`] reads one HTTP/1.1 answer from any split of its bytes.
//!
//! ```text
//!          head (1xx: again)        body                    end
//! Head ----------------------> Length | Chunked | UntilClose ------> Done      reset() -> Head
//!                         no body: --------------------------------> Done
//! ```
//!
//! Body bytes are handed on as slices of the input. Only a head that arrives in pieces is copied, and into
//! memory that is used again. The same parts come out for every split, but for where body slices
//! are cut.

use crate::chunked::Chunked;
use crate::framing::{FramingError, Limits};
use crate::head::{self, Framing, ResponseHead};
use crate::last_head::LastHead;

/// Reads one answer after the other from a connection; [`ResponseParser::reset`] starts the next.
#[derive(Clone, Debug)]
pub struct ResponseParser {
    limits: Limits,
    state: State,
    /// The answer has no body whatever its head says.
    no_body: bool,
    /// At least one byte of this answer has come.
    touched: bool,
    keep_alive: bool,
    /// Bytes in front of the final head that are done with: 1xx heads and empty lines.
    head_bytes: usize,
    body_bytes: u64,
    /// A head of which only a part has come.
    held: Vec<u8>,
    last: LastHead,
}

/// A part of an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The final head; comes once.
    Head(&'a ResponseHead<'a>),
    /// Some bytes of the body, never empty.
    Body(&'a [u8]),
    /// The answer has ended; comes once.
    End,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Done,
}

impl ResponseParser {
    /// A parser at the start of an answer.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self::sharing(limits, LastHead::default())
    }

    /// The same, one of several that read the answers of like servers: none reads a head that another has just read.
    #[must_use]
    pub fn sharing(limits: Limits, last: LastHead) -> Self {
        Self {
            limits,
            state: State::Head,
            no_body: false,
            touched: false,
            keep_alive: false,
            head_bytes: 0,
            body_bytes: 0,
            held: Vec::new(),
            last,
        }
    }

    /// Goes to the start of the next answer; `no_body` when it answers a HEAD request.
    pub fn reset(&mut self, no_body: bool) {
        self.state = State::Head;
        self.no_body = no_body;
        self.touched = false;
        self.keep_alive = false;
        self.head_bytes = 0;
        self.body_bytes = 0;
        self.held.clear();
    }

    /// Reads on and hands each part to `sink`. Gives the bytes used: fewer than there are only when
    /// the answer has ended, and then the rest belongs to nobody.
    ///
    /// # Errors
    /// [`FramingError`]; nothing more can be read from this connection.
    pub fn feed(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<usize, FramingError> {
        let result = self.read(input, sink);
        if result.is_err() {
            self.state = State::Done;
            self.keep_alive = false;
        }
        result
    }

    /// The peer has closed its side: ends a body that ends so.
    ///
    /// # Errors
    /// One of the three truncations, or what is wrong with the head that was there.
    pub fn eof(&mut self, sink: &mut impl FnMut(Part<'_>)) -> Result<(), FramingError> {
        self.keep_alive = false;
        let state = std::mem::replace(&mut self.state, State::Done);
        match state {
            State::Done => Ok(()),
            State::UntilClose => {
                sink(Part::End);
                Ok(())
            }
            State::Head if !self.touched => Err(FramingError::ClosedBeforeHead),
            // What is there may be no HTTP at all, which says more than that it was cut.
            State::Head => match head::response(&self.held, false) {
                Err(error) => Err(error),
                Ok(_) => Err(FramingError::ClosedInHead),
            },
            State::Length(_) | State::Chunked(_) => Err(FramingError::ClosedInBody),
        }
    }

    /// Whether the answer has ended, well or not.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether a byte of this answer has come.
    #[must_use]
    pub fn is_touched(&self) -> bool {
        self.touched
    }

    /// Whether the connection may carry another request: the answer has ended well and its head allows it.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        self.is_done() && self.keep_alive
    }

    /// Bytes of body so far, without chunked framing.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    fn read(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<usize, FramingError> {
        self.touched |= !input.is_empty();
        let mut at = 0;
        while matches!(self.state, State::Head) {
            if at == input.len() {
                return Ok(at);
            }
            at += self.read_head(&input[at..], sink)?;
        }
        at += self.read_body(&input[at..], sink)?;
        Ok(at)
    }

    /// Reads a head or a part of one; gives the bytes of `input` used.
    fn read_head(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<usize, FramingError> {
        let before = self.held.len();
        let blank = head::skip_blank_lines(&mut self.held, input);
        if blank > 0 {
            self.head_bytes += blank + before - self.held.len();
            return self.check_head_len(0).map(|()| blank);
        }
        if self.held.is_empty() {
            if let Some((len, head)) = self.last.find(input, self.no_body) {
                self.enter(len, &head, sink)?;
                return Ok(len);
            }
            if let Some((len, head)) = head::response(input, self.no_body)? {
                self.last.keep(&input[..len], self.no_body, &head);
                self.enter(len, &head, sink)?;
                return Ok(len);
            }
            head::hold(&mut self.held, input);
            self.check_head_len(self.held.len())?;
            return Ok(input.len());
        }
        let mut held = std::mem::take(&mut self.held);
        let before = held.len();
        let try_it = head::hold(&mut held, input);
        let parsed = if try_it { head::response(&held, self.no_body) } else { Ok(None) };
        let used = match parsed {
            Err(error) => Err(error),
            Ok(Some((len, head))) => self.enter(len, &head, sink).map(|()| len - before),
            Ok(None) => {
                let checked = self.check_head_len(held.len());
                self.held = held;
                return checked.map(|()| input.len());
            }
        };
        held.clear();
        self.held = held;
        used
    }

    /// Goes on from a whole head of `len` bytes.
    fn enter(
        &mut self,
        len: usize,
        head: &ResponseHead<'_>,
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<(), FramingError> {
        self.check_head_len(len)?;
        self.head_bytes += len;
        match head.status {
            101 => return Err(FramingError::BadHead("an upgrade that nobody asked for")),
            // Informational: the answer is still to come. The head limit bounds how many.
            100..200 => return Ok(()),
            _ => {}
        }
        self.keep_alive = head.keep_alive;
        self.state = match head.framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => {
                if length > self.limits.body {
                    return Err(FramingError::BodyTooLarge { limit: self.limits.body });
                }
                State::Length(length)
            }
            Framing::Chunked => State::Chunked(Chunked::new()),
            Framing::UntilClose => State::UntilClose,
        };
        sink(Part::Head(head));
        if self.is_done() {
            sink(Part::End);
        }
        Ok(())
    }

    fn read_body(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<usize, FramingError> {
        if input.is_empty() {
            return Ok(0);
        }
        let limit = self.limits.body;
        match &mut self.state {
            State::Head | State::Done => Ok(0),
            State::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= here as u64;
                let ended = *left == 0;
                self.body_bytes += here as u64;
                sink(Part::Body(&input[..here]));
                if ended {
                    self.state = State::Done;
                    sink(Part::End);
                }
                Ok(here)
            }
            State::Chunked(chunked) => {
                let body_bytes = &mut self.body_bytes;
                let (used, ended) = chunked.feed(input, self.limits.head, &mut |data| {
                    take(body_bytes, data, limit, sink)
                })?;
                if ended {
                    self.state = State::Done;
                    sink(Part::End);
                }
                Ok(used)
            }
            State::UntilClose => {
                take(&mut self.body_bytes, input, limit, sink)?;
                Ok(input.len())
            }
        }
    }

    fn check_head_len(&self, len: usize) -> Result<(), FramingError> {
        let limit = self.limits.head;
        if self.head_bytes + len > limit {
            return Err(FramingError::HeadTooLarge { limit });
        }
        Ok(())
    }
}

/// Counts and hands on body bytes whose number is not known ahead. What lies within the limit is handed on
/// even when the rest does not, so that no split makes a difference.
fn take(
    so_far: &mut u64,
    data: &[u8],
    limit: u64,
    sink: &mut impl FnMut(Part<'_>),
) -> Result<(), FramingError> {
    let room = usize::try_from(limit - *so_far).unwrap_or(usize::MAX);
    let here = room.min(data.len());
    *so_far += here as u64;
    if here > 0 {
        sink(Part::Body(&data[..here]));
    }
    if here < data.len() {
        return Err(FramingError::BodyTooLarge { limit });
    }
    Ok(())
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
