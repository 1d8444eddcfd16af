//! JSON Lines: an object a line. Lines of nothing but white space are no rows and are skipped.

use crate::error::At;
use crate::place::Place;
use crate::row::{TakeRow, parse_object};
use crate::rows::Rows;
use crate::source::Source;

pub(crate) fn read(source: &mut Source<'_>, rows: &mut Rows<'_>) -> Result<(), At> {
    each(source, &mut |row, place| rows.take(row, place.line()))
}

/// Gives each row to `take`, with its place.
pub(crate) fn each(source: &mut Source<'_>, take: TakeRow<'_>) -> Result<(), At> {
    let mut line = String::new();
    while source.read_line(&mut line, 0)? {
        if !line.trim().is_empty() {
            let number = source.line();
            let row = parse_object(&line, (number, 1), REMEDY)?;
            take(&row, Place::of_text(&line, number, 1))?;
        }
    }
    Ok(())
}

const REMEDY: &str = "write one object a line, or set `dataset.format: json` for an array of rows";
