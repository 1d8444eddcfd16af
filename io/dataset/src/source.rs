//! Bytes with their place: physical lines, a bound on what one row may hold, no byte order mark.
//!
//! Two ways to read, not to be mixed within a file: by line, for formats that are made of lines,
//! and by byte, for JSON, which is not. Neither depends on how the reader cuts the bytes.

use std::io::{BufRead, ErrorKind};

use crate::error::{At, Fault};

/// A reader that knows where it is.
pub(crate) struct Source<'r> {
    input: &'r mut dyn BufRead,
    row_bytes_max: usize,
    line: u64,
    column: u64,
}

impl<'r> Source<'r> {
    pub(crate) fn new(input: &'r mut dyn BufRead, row_bytes_max: usize) -> Self {
        Source { input, row_bytes_max, line: 0, column: 0 }
    }

    /// By line: the number of the line last read. By byte: of the line the next byte is on.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// By byte: the place of the next byte in its line, from 1.
    pub(crate) fn column(&self) -> u64 {
        self.column
    }

    /// Puts the next physical line into `line`, without its line feed but with what stands before
    /// it; false at the end of the input. `before` is how many bytes of the same row the lines
    /// before had; with this line they may not pass the bound.
    pub(crate) fn read_line(&mut self, line: &mut String, before: usize) -> Result<bool, At> {
        let max = self.row_bytes_max.saturating_sub(before);
        let mut bytes = std::mem::take(line).into_bytes();
        bytes.clear();
        let mut any = false;
        loop {
            let chunk = fill(self.input).map_err(|f| At::line(self.line + 1, f))?;
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            // A mark before the row and a CR after it are not its own; what is over in spite of
            // them is not read any further.
            if bytes.len() + part.len() > max.saturating_add(BOM.len() + 1) {
                return Err(At::line(self.line + 1, self.too_long()));
            }
            bytes.extend_from_slice(part);
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() {
                break;
            }
        }
        self.line += u64::from(any);
        if self.line == 1 && (bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF")) {
            return Err(At::line(1, Fault::Utf16));
        }
        *line = String::from_utf8(bytes).map_err(|e| {
            At::line(self.line, Fault::NotUtf8 { byte: e.utf8_error().valid_up_to() + 1 })
        })?;
        if self.line == 1 && line.starts_with('\u{FEFF}') {
            line.drain(..BOM.len());
        }
        if line.strip_suffix('\r').unwrap_or(line).len() > max {
            return Err(At::line(self.line, self.too_long()));
        }
        Ok(any)
    }

    /// By byte: the next one, not yet taken.
    pub(crate) fn peek(&mut self) -> Result<Option<u8>, At> {
        if self.line == 0 {
            (self.line, self.column) = (1, 1);
            self.skip_mark()?;
        }
        let chunk = fill(self.input).map_err(|f| At::line(self.line, f))?;
        Ok(chunk.first().copied())
    }

    /// By byte: takes the one that was peeked at.
    pub(crate) fn bump(&mut self, peeked: u8) {
        self.input.consume(1);
        if peeked == b'\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
    }

    /// By byte: takes bytes into `row` for as long as `more` says so of each, the last one taken
    /// too. False when the input ends first.
    pub(crate) fn take_while(
        &mut self,
        row: &mut Vec<u8>,
        mut more: impl FnMut(u8) -> bool,
    ) -> Result<bool, At> {
        loop {
            let chunk = fill(self.input).map_err(|f| At::line(self.line, f))?;
            if chunk.is_empty() {
                return Ok(false);
            }
            let last = chunk.iter().position(|&byte| !more(byte));
            let part = &chunk[..last.map_or(chunk.len(), |last| last + 1)];
            if row.len() + part.len() > self.row_bytes_max {
                return Err(At::line(self.line, self.too_long()));
            }
            row.extend_from_slice(part);
            self.line += memchr::memchr_iter(b'\n', part).count() as u64;
            match memchr::memrchr(b'\n', part) {
                Some(feed) => self.column = (part.len() - feed) as u64,
                None => self.column += part.len() as u64,
            }
            let taken = part.len();
            self.input.consume(taken);
            if last.is_some() {
                return Ok(true);
            }
        }
    }

    fn too_long(&self) -> Fault {
        Fault::RowTooLong { max: self.row_bytes_max }
    }

    /// Skips the byte order mark. Its first byte starts nothing that may stand outside a string.
    fn skip_mark(&mut self) -> Result<(), At> {
        for (i, &byte) in BOM.iter().enumerate() {
            match self.peek()? {
                Some(0xFF | 0xFE) if i == 0 => return Err(At::line(1, Fault::Utf16)),
                Some(b) if b == byte => self.input.consume(1),
                _ if i == 0 => return Ok(()),
                _ => return Err(At::line(1, Fault::NotUtf8 { byte: i + 1 })),
            }
        }
        Ok(())
    }
}

fn fill(input: &mut dyn BufRead) -> Result<&[u8], Fault> {
    // Asked twice, since a borrow that is returned from inside a loop is held through all of it;
    // the second answer comes out of the buffer.
    loop {
        match input.fill_buf() {
            Ok([]) => return Ok(&[]),
            Ok(_) => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(Fault::Read(e)),
        }
    }
    input.fill_buf().map_err(Fault::Read)
}

const BOM: &[u8] = b"\xEF\xBB\xBF";
