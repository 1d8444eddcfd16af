//! Are step records what they say they are?
//!
//! ```text
//! line --parse--> record --rules--> holds within itself?
//!                    └----stream--> follows the one before?
//!                 footer ---------> adds up with all before?
//! ```
//!
//! A failed check is a [`Finding`] with line, field and both values, and reading goes on. What a kill
//! leaves behind, a torn last line or no footer, is no finding: the file is *truncated*, and what is
//! whole counts. A stream may run over several files, when its writer rotates them.

mod file;
mod rules;
mod stream;
#[cfg(test)]
mod tests;

pub use file::{
    Ending, FINDINGS_MAX, FileCheck, FileReport, Heading, check_file, check_part, heading,
};
pub use stream::StreamEnd;

use std::fmt;

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Counted from 1.
    pub line: u64,
    /// Path of the field, such as `kv.used_blocks`; `line` for the line as a whole.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What must, and why.
    pub expected: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, field, found, expected } = self;
        write!(f, "line {line}: {field}: {found}, expected {expected}")
    }
}

/// Where failed checks of one line go: field, what was found, what was expected.
type Report<'a> = dyn FnMut(&'static str, String, String) + 'a;
