//! Server-sent events as the WHATWG standard has them (HTML, section 9.2), from any split of the bytes.
//!
//! ```text
//! bytes -> lines (LF, CRLF or CR) -> fields (data, event, id, retry; `:` comments) -> blank line: an event
//! ```
//!
//! An event that lies whole in one slice is handed on as a part of that slice, not copied; only the rest of
//! a slice that ends within an event is kept. An event without a data line is none. Text is handed on
//! as bytes: the standard reads wrong UTF-8 as U+FFFD, which [`SseEvent::text`] does.

use std::borrow::Cow;

use memchr::memchr2;
use takt_time::Span;

/// Splits one stream into events.
#[derive(Clone, Debug)]
pub struct SseParser {
    limit: usize,
    start: Start,
    /// The last slice ended in CR: a LF in front of the next one belongs to it.
    skip_lf: bool,
    /// A data line of the current event is in `data`.
    has_data: bool,
    /// The part of a line that has come.
    line: Vec<u8>,
    /// Data lines of the current event, joined.
    data: Vec<u8>,
    name: Vec<u8>,
    last_id: Vec<u8>,
    retry: Option<Span>,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; empty where there is none (which means `message`).
    pub name: &'a [u8],
    /// The `data` lines, joined by LF.
    pub data: &'a [u8],
}

/// An event or a line of a stream is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than the limit of {limit} bytes")]
pub struct SseTooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// A byte order mark in front of the stream is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Mark(u8),
    Past,
}

impl SseParser {
    /// A parser at the start of a stream, for lines and events of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            start: Start::Mark(0),
            skip_lf: false,
            has_data: false,
            line: Vec::new(),
            data: Vec::new(),
            name: Vec::new(),
            last_id: Vec::new(),
            retry: None,
        }
    }

    /// Goes to the start of another stream; memory is kept unless one event needed much of it.
    pub fn reset(&mut self) {
        self.start = Start::Mark(0);
        self.skip_lf = false;
        self.has_data = false;
        self.retry = None;
        for held in [&mut self.line, &mut self.data, &mut self.name, &mut self.last_id] {
            held.clear();
            held.shrink_to(KEPT);
        }
    }

    /// Reads on and hands each event to `sink`.
    ///
    /// # Errors
    /// [`SseTooLarge`]; the stream cannot be read on.
    pub fn feed(
        &mut self,
        input: &[u8],
        sink: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), SseTooLarge> {
        let mut rest = if self.start == Start::Past { input } else { self.skip_mark(input) };
        if self.skip_lf && !rest.is_empty() {
            self.skip_lf = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        if !self.line.is_empty() {
            let Some(end) = memchr2(b'\n', b'\r', rest) else { return self.hold(rest) };
            self.hold(&rest[..end])?;
            let mut line = std::mem::take(&mut self.line);
            let added = match self.field(&line) {
                Some(value) => self.add_data(value),
                None => Ok(()),
            };
            line.clear();
            self.line = line;
            added?;
            rest = self.after_line(rest, end);
        }
        // The first data line of the current event, as long as it can be borrowed from `input`.
        let mut borrowed: Option<&[u8]> = None;
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let line = &rest[..end];
            if line.is_empty() {
                self.dispatch(borrowed.take(), sink);
            } else if line.len() > self.limit {
                return Err(SseTooLarge { limit: self.limit });
            } else if let Some(value) = self.field(line) {
                if borrowed.is_none() && !self.has_data {
                    borrowed = Some(value);
                } else {
                    if let Some(first) = borrowed.take() {
                        self.add_data(first)?;
                    }
                    self.add_data(value)?;
                }
            }
            rest = self.after_line(rest, end);
        }
        if let Some(first) = borrowed {
            self.add_data(first)?;
        }
        self.hold(rest)
    }

    /// Whether something that may become an event is waiting for the blank line behind it. At the end of a
    /// stream the standard throws it away; some servers leave the last blank line out: [`SseParser::finish`].
    #[must_use]
    pub fn pending(&self) -> bool {
        self.has_data || self.line.starts_with(b"data")
    }

    /// Reads what is waiting as if its line and its event had been ended.
    ///
    /// # Errors
    /// [`SseTooLarge`], as in [`SseParser::feed`].
    pub fn finish(&mut self, sink: &mut impl FnMut(SseEvent<'_>)) -> Result<(), SseTooLarge> {
        let line = std::mem::take(&mut self.line);
        if let Some(value) = self.field(&line) {
            self.add_data(value)?;
        }
        self.dispatch(None, sink);
        Ok(())
    }

    /// Bytes of the largest line or event that is read.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The last `id` field of the stream; empty where there was none.
    #[must_use]
    pub fn last_id(&self) -> &[u8] {
        &self.last_id
    }

    /// The last `retry` field: how long a reader that was cut off should wait before it comes again.
    #[must_use]
    pub fn retry(&self) -> Option<Span> {
        self.retry
    }

    /// Takes in a whole line that is not blank; gives the value of a data line.
    fn field<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        if let Some(value) = line.strip_prefix(b"data:") {
            return Some(without_space(value));
        }
        let (name, value) = match line.iter().position(|&b| b == b':') {
            Some(0) => return None,
            Some(colon) => (&line[..colon], without_space(&line[colon + 1..])),
            None => (line, &line[line.len()..]),
        };
        match name {
            b"data" => return Some(value),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.last_id.clear();
                self.last_id.extend_from_slice(value);
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                self.retry = digits.parse().ok().map(Span::from_millis);
            }
            _ => {}
        }
        None
    }

    /// A blank line: an event, if there was a data line.
    fn dispatch(&mut self, borrowed: Option<&[u8]>, sink: &mut impl FnMut(SseEvent<'_>)) {
        if let Some(data) = borrowed {
            sink(SseEvent { name: &self.name, data });
        } else if self.has_data {
            sink(SseEvent { name: &self.name, data: &self.data });
            self.data.clear();
            self.has_data = false;
        }
        self.name.clear();
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseTooLarge> {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        self.check(self.data.len())
    }

    /// Keeps a part of a line.
    fn hold(&mut self, part: &[u8]) -> Result<(), SseTooLarge> {
        self.check(self.line.len() + part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn check(&self, len: usize) -> Result<(), SseTooLarge> {
        if len > self.limit { Err(SseTooLarge { limit: self.limit }) } else { Ok(()) }
    }

    /// What follows the line that ends at `end`.
    fn after_line<'a>(&mut self, rest: &'a [u8], end: usize) -> &'a [u8] {
        let after = &rest[end + 1..];
        if rest[end] == b'\n' {
            return after;
        }
        self.skip_lf = after.is_empty();
        after.strip_prefix(b"\n").unwrap_or(after)
    }

    fn skip_mark<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let mut rest = input;
        while let (Start::Mark(seen), Some(&byte)) = (self.start, rest.first()) {
            let matched = &MARK[..usize::from(seen)];
            if byte != MARK[matched.len()] {
                // Not a mark after all: what looked like one is the start of a line.
                self.line.extend_from_slice(matched);
                self.start = Start::Past;
            } else {
                self.start = if seen == 2 { Start::Past } else { Start::Mark(seen + 1) };
                rest = &rest[1..];
            }
        }
        rest
    }
}

impl<'a> SseEvent<'a> {
    /// The data as text; what is not UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.data)
    }
}

fn without_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
/// Bytes of each buffer that stay with an idle parser.
const KEPT: usize = 4096;

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
