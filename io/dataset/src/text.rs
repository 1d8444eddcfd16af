//! Plain text: a prompt a line, taken as it is, white space and all.
//!
//! Empty lines at the end of the file are an editor's habit and are no rows. One between prompts is
//! refused: it may mean that prompts of several lines were meant, which this format cannot hold.

use crate::error::{At, Fault};
use crate::params::Params;
use crate::rows::Rows;
use crate::sample::{Prompt, Sample};
use crate::source::Source;

pub(crate) fn read(source: &mut Source<'_>, rows: &mut Rows<'_>) -> Result<(), At> {
    if let Some(role) = rows.options().columns.mapped() {
        return Err(At::nowhere(Fault::NoColumns { role }));
    }
    let mut line = String::new();
    let mut blanks = Blanks::default();
    while source.read_line(&mut line, 0)? {
        let text = line.strip_suffix('\r').unwrap_or(&line);
        if text.trim().is_empty() {
            blanks.see(source.line());
        } else {
            blanks.refuse_before_a_row()?;
            rows.push(Sample {
                prompt: Prompt::Text(text.into()),
                system: None,
                params: Params::default(),
                truth: None,
                row: source.line(),
            })?;
        }
    }
    Ok(())
}

/// Empty lines, which are nothing at the end of a file and a fault before a row.
#[derive(Default)]
pub(crate) struct Blanks(Option<u64>);

impl Blanks {
    pub(crate) fn see(&mut self, line: u64) {
        self.0.get_or_insert(line);
    }

    pub(crate) fn refuse_before_a_row(&self) -> Result<(), At> {
        self.0.map_or(Ok(()), |line| Err(At::line(line, Fault::BlankLine)))
    }
}
