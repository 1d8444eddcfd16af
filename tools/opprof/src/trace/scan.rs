//! A Chrome trace cut into its values, one at a time, in memory that does not grow with it.
//!
//! ```text
//! { "key": value, …, "traceEvents": [ event, event, … ], "key": value, … }
//! ```
//!
//! Only the outermost level is understood here: where a value begins and ends. Keys may stand before and
//! after the events, and the events may be all there is (`[ event, … ]`). When the input ends too early
//! everything whole before that place has been handed over.

use std::io::{self, BufRead};

/// What stands next in a trace.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A key of the outermost object other than `traceEvents`, and its value.
    Key(&'a [u8], &'a [u8]),
    /// One event.
    Event(&'a [u8]),
    /// An event or a key's value of more than [`VALUE_BYTES_MAX`] bytes, passed over.
    TooLong,
    /// The end, and how it came.
    End(ScanEnd),
}

/// How a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanEnd {
    /// With its last bracket.
    Whole,
    /// Before it.
    Cut,
    /// The compressed data is damaged from here on.
    Damaged,
    /// With something that is no trace.
    Foreign,
}

/// The scanner.
#[derive(Debug)]
pub(super) struct Scanner<R> {
    input: R,
    place: Place,
    /// The events stand within an object, which goes on after them.
    framed: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    end: ScanEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Keys,
    Events,
    End,
}

/// Values longer than this are passed over; events have some hundred bytes.
pub(super) const VALUE_BYTES_MAX: usize = 1 << 20;

impl<R: BufRead> Scanner<R> {
    pub(super) fn new(input: R) -> Self {
        let (key, value) = (Vec::new(), Vec::new());
        Self { input, place: Place::Start, framed: false, key, value, end: ScanEnd::Cut }
    }

    /// The next piece. After the end, the end again.
    ///
    /// # Errors
    /// The input's, other than that it ends too early or is damaged.
    pub(super) fn next_piece(&mut self) -> io::Result<Piece<'_>> {
        match self.find_piece() {
            Ok(Found::Key) => Ok(Piece::Key(&self.key, &self.value)),
            Ok(Found::Event) => Ok(Piece::Event(&self.value)),
            Ok(Found::TooLong) => Ok(Piece::TooLong),
            Ok(Found::End) => Ok(Piece::End(self.end)),
            Err(error) => {
                self.place = Place::End;
                self.end = match error.kind() {
                    io::ErrorKind::UnexpectedEof => ScanEnd::Cut,
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => ScanEnd::Damaged,
                    _ => return Err(error),
                };
                Ok(Piece::End(self.end))
            }
        }
    }

    fn find_piece(&mut self) -> io::Result<Found> {
        loop {
            if self.place == Place::End {
                return Ok(Found::End);
            }
            let next = self.next_byte_of_interest()?;
            match (self.place, next) {
                (Place::Start, b'{') => {
                    self.input.consume(1);
                    self.framed = true;
                    self.place = Place::Keys;
                }
                (Place::Start, b'[') => {
                    self.input.consume(1);
                    self.place = Place::Events;
                }
                (Place::Keys, b'}') => return Ok(self.ends(ScanEnd::Whole)),
                (Place::Keys, b'"') => {
                    self.read_value(VALUE_BYTES_MAX)?;
                    std::mem::swap(&mut self.key, &mut self.value);
                    if self.next_byte_of_interest()? == b'[' && self.key == EVENTS {
                        self.input.consume(1);
                        self.place = Place::Events;
                        continue;
                    }
                    let whole = self.read_value(VALUE_BYTES_MAX)?;
                    return Ok(if whole { Found::Key } else { Found::TooLong });
                }
                (Place::Events, b']') => {
                    self.input.consume(1);
                    if !self.framed {
                        return Ok(self.ends(ScanEnd::Whole));
                    }
                    self.place = Place::Keys;
                }
                (Place::Events, b'}') | (Place::Start | Place::Keys, _) => {
                    return Ok(self.ends(ScanEnd::Foreign));
                }
                (Place::Events, _) => {
                    let whole = self.read_value(VALUE_BYTES_MAX)?;
                    return Ok(if whole { Found::Event } else { Found::TooLong });
                }
                (Place::End, _) => return Ok(Found::End),
            }
        }
    }

    fn ends(&mut self, how: ScanEnd) -> Found {
        self.place = Place::End;
        self.end = how;
        Found::End
    }

    /// The next byte that is no space, comma, colon or byte-order mark; it is not consumed.
    fn next_byte_of_interest(&mut self) -> io::Result<u8> {
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let skip = |byte: &u8| b" \t\r\n,:\xef\xbb\xbf".contains(byte);
            match bytes.iter().position(|byte| !skip(byte)) {
                Some(at) => {
                    let byte = bytes[at];
                    self.input.consume(at);
                    return Ok(byte);
                }
                None => {
                    let all = bytes.len();
                    self.input.consume(all);
                }
            }
        }
    }

    /// Reads one value into `self.value`; `false` when it was longer than `most`, and was passed over.
    fn read_value(&mut self, most: usize) -> io::Result<bool> {
        self.value.clear();
        let mut shape = Shape::default();
        let mut kept = true;
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let end = shape.end(bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            kept &= self.value.len() + part.len() <= most;
            if kept {
                self.value.extend_from_slice(part);
            }
            let used = part.len();
            self.input.consume(used);
            if end.is_some() {
                return Ok(kept);
            }
        }
    }
}

enum Found {
    Key,
    Event,
    TooLong,
    End,
}

/// How far into a value the scan is.
#[derive(Debug, Default)]
struct Shape {
    depth: usize,
    in_string: bool,
    escaped: bool,
    begun: bool,
}

impl Shape {
    /// The place after the value's last byte, when that is in `bytes`.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at = self.skip_string(bytes, at);
                if !self.in_string && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match bytes[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => {
                    // A number or a word ends before what follows it.
                    return Some(if self.begun { at } else { at + 1 });
                }
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            self.begun = true;
            at += 1;
        }
        None
    }

    /// From within a string to after its end, or to the end of `bytes`.
    fn skip_string(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at..]) else {
                return bytes.len();
            };
            at += found + 1;
            if bytes[at - 1] == b'"' {
                self.in_string = false;
                return at;
            }
            self.escaped = true;
        }
        at
    }
}

/// The key of the events, as it stands in the input.
const EVENTS: &[u8] = b"\"traceEvents\"";

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn pieces(text: &[u8], buffer: usize) -> (Vec<String>, ScanEnd) {
        let mut scanner = Scanner::new(BufReader::with_capacity(buffer, text));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut all = Vec::new();
        loop {
            all.push(match scanner.next_piece().unwrap() {
                Piece::Key(key, value) => format!("{}={}", text(key), text(value)),
                Piece::Event(event) => text(event),
                Piece::TooLong => "too long".to_owned(),
                Piece::End(end) => return (all, end),
            });
        }
    }

    const TRACE: &[u8] = br#" {"schema": 1, "a": [1, {"b": "]}"}], "traceEvents": [
        {"name": "x\"}{", "args": {"l": [1, "\\"]}}, {} ,
        {"ts": 1.5}], "s": "q\\", "base": 17 , "deep": {"traceEvents": []}
        } "#;

    const PIECES: [&str; 8] = [
        r#""schema"=1"#,
        r#""a"=[1, {"b": "]}"}]"#,
        r#"{"name": "x\"}{", "args": {"l": [1, "\\"]}}"#,
        "{}",
        r#"{"ts": 1.5}"#,
        r#""s"="q\\""#,
        r#""base"=17"#,
        r#""deep"={"traceEvents": []}"#,
    ];

    #[test]
    fn keys_before_and_after_the_events_are_found_at_any_buffer_size() {
        for buffer in [1, 2, 3, 7, 64, 4096] {
            let (found, end) = pieces(TRACE, buffer);
            assert_eq!(
                (found.as_slice(), end),
                (PIECES.map(str::to_owned).as_slice(), ScanEnd::Whole)
            );
        }
    }

    #[test]
    fn a_cut_trace_gives_what_is_whole() {
        for cut in 0..TRACE.len() - 2 {
            let (found, end) = pieces(&TRACE[..cut], 16);
            assert_eq!(end, ScanEnd::Cut, "cut at {cut}");
            // A number is whole only when something follows it.
            assert_eq!(found, PIECES[..found.len()], "cut at {cut}");
        }
    }

    #[test]
    fn events_alone_are_a_trace_and_other_things_are_none() {
        let (found, end) = pieces(b"[{\"a\":1},{\"b\":2}]", 8);
        assert_eq!((found.len(), end), (2, ScanEnd::Whole));
        assert_eq!(pieces(b"hello", 8).1, ScanEnd::Foreign);
        assert_eq!(pieces(b"{\"traceEvents\": [}", 8).1, ScanEnd::Foreign);
        assert_eq!(pieces(b"", 8).1, ScanEnd::Cut);
    }

    #[test]
    fn a_value_that_is_too_long_is_passed_over() {
        let long = "x".repeat(VALUE_BYTES_MAX);
        let text = format!("{{\"traceEvents\":[{{\"a\":\"{long}\"}},{{\"b\":1}}]}}");
        let (found, end) = pieces(text.as_bytes(), 4096);
        assert_eq!(
            (found, end),
            (vec!["too long".to_owned(), "{\"b\":1}".to_owned()], ScanEnd::Whole)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200), buffer in 1_usize..32) {
            pieces(&bytes, buffer);
        }
    }
}
