//! Comma-separated values with a header row, read strictly as RFC 4180 has them.
//!
//! The well-known CSV library is not used to read, because it is lenient by design: a quote left
//! open takes in the rest of the file without a word, however long that is, and the rows in it
//! become one prompt. Here a quote is either the first character of a field, doubled inside such a
//! field, or its end; anything else is refused with the line where the quote opened. The tests hold
//! the two readers equal on every file that is well-formed.
//!
//! ```text
//!            "             "                 , or end of line
//!  Start ────────► Quoted ───► QuoteSeen ──────────────────► Start / row done
//!    │ other         ▲            │ "  (a doubled quote)
//!    ▼               └────────────┘
//!  Unquoted ── , or end of line ──► Start / row done
//! ```
//!
//! Empty lines at the end of the file are no rows; before a row they are refused.

use std::borrow::Cow;

use crate::error::{At, Fault};
use crate::place::Place;
use crate::row::{Cell, TakeRow};
use crate::rows::Rows;
use crate::source::Source;
use crate::text::Blanks;

pub(crate) fn read(source: &mut Source<'_>, rows: &mut Rows<'_>) -> Result<(), At> {
    each(source, &mut |row, place| rows.take(row, place.line()))
}

/// Gives each row below the header to `take`, with the line where it starts.
pub(crate) fn each(source: &mut Source<'_>, take: TakeRow<'_>) -> Result<(), At> {
    let mut record = Record::default();
    let mut blanks = Blanks::default();
    let mut header: Option<Vec<String>> = None;
    while let Some(line) = record.read(source)? {
        if record.blank {
            blanks.see(line);
            continue;
        }
        blanks.refuse_before_a_row()?;
        let Some(header) = &header else {
            header = Some(record.fields().map(str::to_owned).collect());
            continue;
        };
        let (want, got) = (header.len(), record.ends.len());
        if want != got {
            return Err(At::line(line, Fault::FieldCount { want, got }));
        }
        let names = header.iter().map(|name| Cow::Borrowed(name.as_str()));
        let row: Vec<_> = names.zip(record.fields().map(Cell::Text)).collect();
        take(&row, Place::of_line(line))?;
    }
    Ok(())
}

/// One row; its buffers serve for all.
#[derive(Default)]
struct Record {
    /// The last physical line, as it came.
    raw: String,
    /// The fields' text, one after the other.
    text: String,
    /// Where each field ends in `text`.
    ends: Vec<usize>,
    /// Whether the row is an empty line.
    blank: bool,
}

impl Record {
    fn fields(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }

    /// Reads the next row and gives the line where it starts; `None` at the end.
    fn read(&mut self, source: &mut Source<'_>) -> Result<Option<u64>, At> {
        self.text.clear();
        self.ends.clear();
        let mut state = State::Start;
        let mut first = None;
        let mut bytes = 0;
        while source.read_line(&mut self.raw, bytes).map_err(|at| blame(at, state))? {
            let line = source.line();
            let first = *first.get_or_insert(line);
            state = self.take_line(line, state)?;
            if !matches!(state, State::Quoted { .. }) {
                self.ends.push(self.text.len());
                self.blank = matches!(state, State::Start) && self.ends.len() == 1;
                return Ok(Some(first));
            }
            self.text.push('\n');
            bytes += self.raw.len() + 1;
        }
        match state {
            State::Quoted { opened } => Err(At::line(opened, Fault::QuoteLeftOpen)),
            _ => Ok(None),
        }
    }

    /// Takes the line in `raw`, up to its end.
    fn take_line(&mut self, line: u64, mut state: State) -> Result<State, At> {
        let mut chars = self.raw.chars().peekable();
        while let Some(char) = chars.next() {
            let last = chars.peek().is_none();
            state = match (state, char) {
                (State::Quoted { opened }, '"') => State::QuoteSeen { opened },
                (State::Quoted { .. }, _) => {
                    self.text.push(char);
                    state
                }
                (State::QuoteSeen { opened }, '"') => {
                    self.text.push('"');
                    State::Quoted { opened }
                }
                (_, '\r') if last => state,
                (_, ',') => {
                    self.ends.push(self.text.len());
                    State::Start
                }
                (State::QuoteSeen { opened }, _) => {
                    return Err(At::line(line, Fault::TextAfterQuote { opened }));
                }
                (State::Start, '"') => State::Quoted { opened: line },
                (State::Unquoted, '"') => return Err(At::line(line, Fault::StrayQuote)),
                (State::Start | State::Unquoted, '\r') => {
                    return Err(At::line(line, Fault::BareCarriageReturn));
                }
                (State::Start | State::Unquoted, _) => {
                    self.text.push(char);
                    State::Unquoted
                }
            };
        }
        Ok(state)
    }
}

/// Where in a field the next character stands.
#[derive(Clone, Copy)]
enum State {
    Start,
    Unquoted,
    Quoted { opened: u64 },
    QuoteSeen { opened: u64 },
}

/// A row that grew too long inside quotes is the fault of the line where they opened.
fn blame(at: At, state: State) -> At {
    match (at.fault, state) {
        (fault @ Fault::RowTooLong { .. }, State::Quoted { opened }) => At::line(opened, fault),
        (fault, _) => At { line: at.line, column: at.column, fault },
    }
}
