//! Which column plays which role.
//!
//! A role that the user maps is taken from that column alone. A role left open is looked for by
//! name: exactly one of [`PROMPT_COLUMNS`] must be in the first row, and that one is then needed
//! in all rows; a choice that changed on the way down would mix two things in one measurement. A
//! column whose value is JSON `null` counts as not there.

use std::fmt;

use crate::error::Fault;
use crate::format::nearest;
use crate::row::Row;

/// The mapping that the user gave; `None` is automatic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The column of the prompt. Automatic: the one of [`PROMPT_COLUMNS`] that is there.
    pub prompt: Option<String>,
    /// The column of the system prompt. Automatic: the one of [`SYSTEM_COLUMNS`] that is there, if
    /// any. A mapped one must be in every row, but may be empty or `null` in some.
    pub system: Option<String>,
    /// The column of the right answer. Never automatic. Must hold a value in every row.
    pub truth: Option<String>,
}

impl Columns {
    /// The first role that is mapped, if any.
    pub(crate) fn mapped(&self) -> Option<Role> {
        [(Role::Prompt, &self.prompt), (Role::System, &self.system), (Role::Truth, &self.truth)]
            .into_iter()
            .find_map(|(role, column)| column.as_ref().map(|_| role))
    }
}

/// What a column can be for a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// What is asked.
    Prompt,
    /// The system prompt.
    System,
    /// The right answer.
    Truth,
}

impl Role {
    /// The configuration key that maps it.
    pub fn key(self) -> &'static str {
        match self {
            Role::Prompt => "dataset.prompt",
            Role::System => "dataset.system",
            Role::Truth => "dataset.truth",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Prompt => "prompt",
            Role::System => "system prompt",
            Role::Truth => "truth",
        })
    }
}

/// What was taken from where in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnsUsed {
    /// The column of the prompt.
    pub prompt: String,
    /// The column of the system prompt, if any row had one.
    pub system: Option<String>,
    /// The column of the truth, if one was mapped.
    pub truth: Option<String>,
    /// The parameters that any row brought, in the order first met.
    pub params: Vec<&'static str>,
    /// Columns that were not used, in the order first met, 32 at the most.
    pub ignored: Vec<String>,
}

/// The place of the prompt in `row`. `chosen` is what the rows before settled on.
pub(crate) fn find_prompt(
    row: &Row<'_>,
    mapped: Option<&str>,
    chosen: Option<&str>,
) -> Result<usize, Fault> {
    if let Some(column) = mapped {
        return find_mapped(row, Role::Prompt, column);
    }
    let found = find_one_of(row, Role::Prompt, &PROMPT_COLUMNS)?;
    match (found, chosen) {
        (Some(found), None) => Ok(found),
        (Some(found), Some(chosen)) if row[found].0 == chosen => Ok(found),
        (_, Some(chosen)) => Err(missing(row, Role::Prompt, chosen)),
        (None, None) => Err(Fault::NoPromptColumn { present: names(row) }),
    }
}

/// The place of the system prompt in `row`, if it has one.
pub(crate) fn find_system(row: &Row<'_>, mapped: Option<&str>) -> Result<Option<usize>, Fault> {
    match mapped {
        Some(column) => find_mapped(row, Role::System, column).map(Some),
        None => find_one_of(row, Role::System, &SYSTEM_COLUMNS),
    }
}

/// The place in `row` of a column that must be there.
pub(crate) fn find_mapped(row: &Row<'_>, role: Role, column: &str) -> Result<usize, Fault> {
    find(row, column)?.ok_or_else(|| missing(row, role, column))
}

fn find_one_of(
    row: &Row<'_>,
    role: Role,
    candidates: &[&'static str],
) -> Result<Option<usize>, Fault> {
    let mut found: Option<(usize, &'static str)> = None;
    for &candidate in candidates {
        match (find(row, candidate)?, found) {
            (Some(here), _) if row[here].1.is_null() => {}
            (Some(here), None) => found = Some((here, candidate)),
            (Some(_), Some((_, first))) => {
                return Err(Fault::Ambiguous { role, first, second: candidate });
            }
            (None, _) => {}
        }
    }
    Ok(found.map(|(here, _)| here))
}

fn find(row: &Row<'_>, column: &str) -> Result<Option<usize>, Fault> {
    let mut places = row.iter().enumerate().filter(|(_, (name, _))| name == column);
    let first = places.next().map(|(place, _)| place);
    match places.next() {
        Some(_) => Err(Fault::DuplicateColumn { column: column.to_owned() }),
        None => Ok(first),
    }
}

fn missing(row: &Row<'_>, role: Role, column: &str) -> Fault {
    if row.iter().any(|(name, _)| name == column) {
        // A column that no mapping names is passed over when it is null, so that another may serve.
        return Fault::NullColumn { role, column: column.to_owned() };
    }
    let present = names(row);
    let like = nearest(column, present.iter()).map(|name| name.as_str().into());
    Fault::MissingColumn { role, column: column.to_owned(), present, nearest: like }
}

fn names(row: &Row<'_>) -> Vec<String> {
    row.iter().map(|(name, _)| name.clone().into_owned()).collect()
}

/// Columns taken for the prompt when none is named. More than one of them in a row is an error.
pub const PROMPT_COLUMNS: [&str; 11] = [
    "prompt",
    "question",
    "messages",
    "user_prompt",
    "input",
    "input_text",
    "text_input",
    "text",
    "problem",
    "query",
    "instruction",
];

/// Columns taken for the system prompt when none is named.
pub const SYSTEM_COLUMNS: [&str; 2] = ["system", "system_prompt"];

#[cfg(test)]
mod tests {
    use crate::{Dataset, Format, Options};

    #[test]
    fn a_null_prompt_is_called_null_and_not_missing() {
        for rows in [
            "{\"prompt\":\"a\"}\n{\"prompt\":null}",
            "{\"prompt\":\"a\"}\n{\"prompt\":null,\"question\":\"b\"}",
        ] {
            let error = Dataset::read(rows.as_bytes(), "f", Format::Jsonl, &Options::default());
            let says = error.unwrap_err().to_string();
            assert!(
                says.starts_with("f:2: column `prompt` for the prompt is null here;"),
                "{says}"
            );
        }
    }
}
