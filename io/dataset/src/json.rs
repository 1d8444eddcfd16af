//! One JSON array of objects.
//!
//! The array is cut into its rows here, by counting brackets outside strings, and only the rows are
//! given to the parser. So a file of any length, all on one line if it likes, needs no more memory
//! than its samples and one row, the bound on a row holds, and an error knows its physical line.
//! Whether the inside of a row is JSON is the parser's to say.

use crate::error::{At, Fault};
use crate::place::Place;
use crate::row::{TakeRow, kind_of, parse_object};
use crate::rows::Rows;
use crate::source::Source;

pub(crate) fn read(source: &mut Source<'_>, rows: &mut Rows<'_>) -> Result<(), At> {
    each(source, &mut |row, place| rows.take(row, place.line()))
}

/// Gives each row to `take`, with its place.
pub(crate) fn each(source: &mut Source<'_>, take: TakeRow<'_>) -> Result<(), At> {
    match after_space(source)? {
        None => return Ok(()),
        Some(b'[') => source.bump(b'['),
        first => {
            let fault = Fault::NotAnArray { found: kind_of(first) };
            return Err(At::line(source.line(), fault));
        }
    }
    let mut first = true;
    let mut row = Vec::new();
    loop {
        match after_space(source)? {
            Some(b']') if first => break,
            Some(b'{') => take_row(source, &mut row, &mut *take)?,
            other => return Err(no_row(source, other)),
        }
        first = false;
        match after_space(source)? {
            Some(b',') => source.bump(b','),
            Some(b']') => break,
            _ => return Err(syntax(source, "expected `,` or `]` after a row")),
        }
    }
    source.bump(b']');
    match after_space(source)? {
        None => Ok(()),
        Some(_) => Err(syntax(source, "expected nothing after the array")),
    }
}

/// Takes the object that starts at the next byte.
fn take_row(source: &mut Source<'_>, row: &mut Vec<u8>, take: TakeRow<'_>) -> Result<(), At> {
    let (line, column) = (source.line(), source.column());
    row.clear();
    let mut brackets = Brackets::default();
    // A row that is too long is the fault of the line where it starts, however far it was read.
    let closed =
        source.take_while(row, |byte| brackets.open_after(byte)).map_err(|at| match at {
            At { fault: fault @ Fault::RowTooLong { .. }, .. } => At::line(line, fault),
            other => other,
        })?;
    let text =
        std::str::from_utf8(row).map_err(|e| not_utf8(row, e.valid_up_to(), line, column))?;
    if !closed {
        let fault = Fault::Json {
            message: "the row that starts here is never closed".to_owned(),
            column: Some(column),
            remedy: REMEDY,
        };
        return Err(At::line(line, fault));
    }
    take(&parse_object(text, (line, column), REMEDY)?, Place::of_text(text, line, column))
}

/// Follows a value to its end.
#[derive(Default)]
struct Brackets {
    depth: u64,
    in_string: bool,
    escaped: bool,
}

impl Brackets {
    /// Whether anything is still open once `byte` is taken.
    fn open_after(&mut self, byte: u8) -> bool {
        match (self.in_string, byte) {
            (true, _) if self.escaped => self.escaped = false,
            (true, b'\\') => self.escaped = true,
            (_, b'"') => self.in_string = !self.in_string,
            (false, b'{' | b'[') => self.depth += 1,
            (false, b'}' | b']') => self.depth -= 1,
            _ => {}
        }
        self.depth > 0
    }
}

fn after_space(source: &mut Source<'_>) -> Result<Option<u8>, At> {
    loop {
        match source.peek()? {
            Some(space @ (b' ' | b'\t' | b'\r' | b'\n')) => source.bump(space),
            other => return Ok(other),
        }
    }
}

fn no_row(source: &Source<'_>, first: Option<u8>) -> At {
    match (first, kind_of(first)) {
        (None, _) => syntax(source, "the array is never closed"),
        (Some(b']'), _) => syntax(source, "expected a row after `,`"),
        (_, "not JSON") => syntax(source, "expected a row"),
        (_, found) => At::line(source.line(), Fault::NotAnObject { found }),
    }
}

fn syntax(source: &Source<'_>, message: &str) -> At {
    let column = Some(source.column());
    At::line(source.line(), Fault::Json { message: message.to_owned(), column, remedy: REMEDY })
}

fn not_utf8(row: &[u8], valid: usize, line: u64, column: u64) -> At {
    let good = &row[..valid];
    let line = line + memchr::memchr_iter(b'\n', good).count() as u64;
    let byte = match memchr::memrchr(b'\n', good) {
        Some(feed) => valid - feed,
        None => valid + column as usize,
    };
    At::line(line, Fault::NotUtf8 { byte })
}

const REMEDY: &str = "write an array of objects with commas between them";
