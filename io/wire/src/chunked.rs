//! The chunked transfer coding (RFC 9112, section 7.1), decoded as it arrives and without copying.
//!
//! ```text
//!      hex digits        CRLF             bytes            CRLF
//! Size ----------> SizeLf ----> Data(left) ----> DataEnd -> DataLf ----> Size
//!   \  ; or blank   ^              size 0: TrailerStart <-> TrailerLine, blank line -> Done
//!    `--> Extension '
//! ```
//!
//! Extensions and trailers are skipped. A bare LF is taken for CRLF.

use memchr::memchr;

use crate::framing::FramingError;

/// The decoder's place in a chunked body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Bytes of framing lines since the last chunk of data; bounds extensions and trailers.
    line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size { size: u64, digits: bool },
    Extension { size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataEnd,
    DataLf,
    TrailerStart,
    TrailerLine,
    TrailerEnd,
    Done,
}

impl Chunked {
    pub(crate) const fn new() -> Self {
        Self { state: State::Size { size: 0, digits: false }, line: 0 }
    }

    /// Decodes what is there; gives the bytes used and whether the body has ended.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        line_limit: usize,
        sink: &mut impl FnMut(&[u8]) -> Result<(), FramingError>,
    ) -> Result<(usize, bool), FramingError> {
        let mut at = 0;
        while at < input.len() && self.state != State::Done {
            if let State::Data { left } = self.state {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len() - at);
                sink(&input[at..at + here])?;
                at += here;
                let left = left - here as u64;
                self.state = if left == 0 { State::DataEnd } else { State::Data { left } };
                self.line = 0;
                continue;
            }
            let used = self.framing(&input[at..])?;
            at += used;
            self.line += used;
            if self.line > line_limit {
                return Err(FramingError::HeadTooLarge { limit: line_limit });
            }
        }
        Ok((at, self.state == State::Done))
    }

    /// Takes at least one byte of framing; `rest` is not empty.
    fn framing(&mut self, rest: &[u8]) -> Result<usize, FramingError> {
        match self.state {
            State::Size { digits: false, .. } => {
                if let Some((size, used)) = size_line(rest) {
                    self.state = after_size(size);
                    return Ok(used);
                }
            }
            State::DataEnd if rest.starts_with(b"\r\n") => {
                self.state = State::Size { size: 0, digits: false };
                return Ok(2);
            }
            _ => {}
        }
        let byte = rest[0];
        self.state = match (self.state, byte) {
            (State::Size { size, .. }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if size >> 60 != 0 {
                    return Err(FramingError::BadChunk("a chunk size does not fit in 64 bits"));
                }
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                State::Size { size: (size << 4) | u64::from(digit), digits: true }
            }
            (State::Size { digits: false, .. }, _) => {
                return Err(FramingError::BadChunk("a chunk size is not hexadecimal"));
            }
            (State::Size { size, .. }, b'\r') => State::SizeLf { size },
            (State::Size { size, .. } | State::SizeLf { size }, b'\n') => after_size(size),
            (State::Size { size, .. }, b';' | b' ' | b'\t') => State::Extension { size },
            (State::Size { .. } | State::SizeLf { .. }, _) => {
                return Err(FramingError::BadChunk("a chunk size is not hexadecimal"));
            }
            (State::Extension { size }, _) => {
                return Ok(self.skip_line(rest, after_size(size)));
            }
            (State::DataEnd, b'\r') => State::DataLf,
            (State::DataEnd | State::DataLf, b'\n') => State::Size { size: 0, digits: false },
            (State::DataEnd | State::DataLf, _) => {
                return Err(FramingError::BadChunk("a chunk is longer than its size says"));
            }
            (State::TrailerStart, b'\r') => State::TrailerEnd,
            (State::TrailerStart | State::TrailerEnd, b'\n') => State::Done,
            (State::TrailerEnd, _) => {
                return Err(FramingError::BadChunk("a line of the trailer starts with CR"));
            }
            (State::TrailerStart | State::TrailerLine, _) => {
                return Ok(self.skip_line(rest, State::TrailerStart));
            }
            (state @ (State::Data { .. } | State::Done), _) => state,
        };
        Ok(1)
    }

    fn skip_line(&mut self, rest: &[u8], after: State) -> usize {
        match memchr(b'\n', rest) {
            Some(end) => {
                self.state = after;
                end + 1
            }
            None => {
                if self.state == State::TrailerStart {
                    self.state = State::TrailerLine;
                }
                rest.len()
            }
        }
    }
}

/// The size that stands on a whole plain line in front of `rest`, and the line's length. The rest, which is rare, goes
/// byte by byte.
fn size_line(rest: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (at, &byte) in rest.iter().enumerate().take(16) {
        match (byte as char).to_digit(16) {
            Some(digit) => size = size << 4 | u64::from(digit),
            None => return (at > 0 && rest[at..].starts_with(b"\r\n")).then_some((size, at + 2)),
        }
    }
    None
}

fn after_size(size: u64) -> State {
    if size == 0 { State::TrailerStart } else { State::Data { left: size } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the slices in turn; the body, the bytes used in the last slice, and the end.
    fn decode(slices: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), FramingError> {
        let mut chunked = Chunked::new();
        let (mut body, mut last) = (Vec::new(), (0, false));
        for slice in slices {
            last = chunked.feed(slice, 64, &mut |bytes| {
                body.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        Ok((body, last.0, last.1))
    }

    #[test]
    fn chunks_extensions_and_f15_trailers() {
        let wire: &[u8] =
            b"5;a=\"b\"\r\nhello\r\n00A \r\n, chunked!\r\n0\r\nX-T: 1\r\nY: 2\r\n\r\nrest";
        let expect = (b"hello, chunked!".to_vec(), wire.len() - 4, true);
        assert_eq!(decode(&[wire]), Ok(expect.clone()));
        let bytes: Vec<&[u8]> = wire[..expect.1].chunks(1).collect();
        assert_eq!(decode(&bytes), Ok((expect.0, 1, true)));
    }

    #[test]
    fn bare_line_feeds_are_read() {
        assert_eq!(decode(&[b"2\nab\n0\n\n"]), Ok((b"ab".to_vec(), 8, true)));
    }

    #[test]
    fn what_is_broken_is_said() {
        for wire in [
            &b"x\r\n"[..],
            b"\r\n",
            b";\r\n",
            b"-1\r\n",
            b"2\r\nabc\r\n",
            b"2\rab",
            b"10000000000000000\r\n",
            b"0\r\n\rX",
        ] {
            let text = String::from_utf8_lossy(wire);
            assert!(matches!(decode(&[wire]), Err(FramingError::BadChunk(_))), "{text}");
        }
    }

    #[test]
    fn endless_extension_or_trailer_is_bounded() {
        for start in ["5;", "0\r\n", "0\r\nX: "] {
            let wire = format!("{start}{}", "a: b".repeat(30));
            let too_large = Err(FramingError::HeadTooLarge { limit: 64 });
            assert_eq!(decode(&[wire.as_bytes()]), too_large, "{start}");
        }
    }
}
