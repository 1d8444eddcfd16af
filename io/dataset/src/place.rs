//! Where in a file a row stands, and a piece of the row.

use std::num::NonZeroU64;

use crate::error::{At, Fault};

/// The place of a row, and its text where its cells are pieces of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    line: u64,
    column: u64,
    text: &'a str,
}

impl<'a> Place<'a> {
    /// A row whose `text` starts on `line` at its byte `column`, both from 1.
    pub(crate) fn of_text(text: &'a str, line: u64, column: u64) -> Self {
        Self { line, column, text }
    }

    /// A row of which only the line is known.
    pub(crate) fn of_line(line: u64) -> Self {
        Self { line, column: 1, text: "" }
    }

    /// The physical line where the row starts, from 1.
    pub(crate) fn line(self) -> u64 {
        self.line
    }

    /// A fault of the row as a whole.
    pub(crate) fn row(self, fault: Fault) -> At {
        At::line(self.line, fault)
    }

    /// A fault of `part`, a piece of the row's text.
    pub(crate) fn part(self, part: &str, fault: Fault) -> At {
        let offset = part.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        let before = offset.and_then(|offset| self.text.as_bytes().get(..offset));
        let Some(before) = before else { return self.row(fault) };
        let line = self.line + memchr::memchr_iter(b'\n', before).count() as u64;
        let column = match memchr::memrchr(b'\n', before) {
            Some(feed) => (before.len() - feed) as u64,
            None => before.len() as u64 + self.column,
        };
        At { line: Some(line), column: NonZeroU64::new(column), fault }
    }
}
