//! Lines of a stream that may have been cut off anywhere.
//!
//! A file whose writer was killed ends in the middle of a line, one that was compressed in the middle of
//! a block; both are read as far as they are whole. Memory is one line, and a line has a limit.

use std::io::{self, BufRead, Read as _};

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A whole line without its end.
    Whole(&'a [u8]),
    /// The input ends in the middle of this line.
    Torn(&'a [u8]),
    /// The input is over.
    End,
}

/// Reads lines and counts them.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    cut: bool,
}

impl<R: BufRead> Lines<R> {
    /// The longest line that is read, in bytes; real records have about a thousand.
    pub const BYTES_MAX: u64 = 1 << 20;

    /// From the first line on.
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0, cut: false }
    }

    /// The number of the latest line, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the input itself ended too early, as a compressed file does that was cut.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    /// The next line.
    ///
    /// # Errors
    /// The input's, other than that it ends too early, and a line over [`Self::BYTES_MAX`].
    pub fn next_line(&mut self) -> io::Result<Line<'_>> {
        self.line.clear();
        if !self.cut {
            match self.input.by_ref().take(Self::BYTES_MAX).read_until(b'\n', &mut self.line) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.cut = true,
                Err(error) => return Err(error),
            }
        }
        if self.line.is_empty() {
            return Ok(Line::End);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(Line::Whole(self.line.strip_suffix(b"\r").unwrap_or(&self.line)));
        }
        if self.line.len() as u64 >= Self::BYTES_MAX {
            let says = format!("line {} has more than {} bytes", self.number, Self::BYTES_MAX);
            return Err(io::Error::new(io::ErrorKind::InvalidData, says));
        }
        Ok(Line::Torn(&self.line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_and_a_torn_one() {
        let mut lines = Lines::new(&b"a\r\n\nb"[..]);
        assert_eq!(lines.next_line().unwrap(), Line::Whole(b"a"));
        assert_eq!(lines.next_line().unwrap(), Line::Whole(b""));
        assert_eq!(lines.next_line().unwrap(), Line::Torn(b"b"));
        assert_eq!(lines.next_line().unwrap(), Line::End);
        assert_eq!(lines.number(), 3);
    }

    #[test]
    fn a_line_without_an_end_has_a_limit() {
        let mut lines = Lines::new(io::BufReader::new(io::repeat(b'x')));
        assert_eq!(lines.next_line().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
