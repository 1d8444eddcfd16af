//! Where the readers hand their rows: gives columns their meaning, checks, counts, collects.

use std::sync::Arc;

use crate::columns::{self, ColumnsUsed, Role};
use crate::dataset::Options;
use crate::error::{At, Fault};
use crate::params::{self, Params};
use crate::row::{Cell, Row, has_system};
use crate::sample::{Prompt, Sample};

/// The samples so far, and what was settled on the way.
pub(crate) struct Rows<'o> {
    options: &'o Options,
    samples: Vec<Sample>,
    used: Option<ColumnsUsed>,
    system_before: Option<Arc<str>>,
}

impl<'o> Rows<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Rows { options, samples: Vec::new(), used: None, system_before: None }
    }

    pub(crate) fn options(&self) -> &'o Options {
        self.options
    }

    /// Takes a row of named cells that starts on `line`.
    pub(crate) fn take(&mut self, row: &Row<'_>, line: u64) -> Result<(), At> {
        let sample = self.sample(row, line).map_err(|fault| At::line(line, fault))?;
        self.push(sample)
    }

    /// Takes a sample that is ready.
    pub(crate) fn push(&mut self, sample: Sample) -> Result<(), At> {
        let max = self.options.limits.rows_max;
        if self.samples.len() >= max {
            return Err(At::line(sample.row, Fault::TooManyRows { max }));
        }
        self.samples.push(sample);
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(Vec<Sample>, Option<ColumnsUsed>), At> {
        if self.samples.is_empty() {
            return Err(At::nowhere(Fault::Empty));
        }
        Ok((self.samples, self.used))
    }

    fn sample(&mut self, row: &Row<'_>, line: u64) -> Result<Sample, Fault> {
        let mapped = &self.options.columns;
        let chosen = self.used.as_ref().map(|used| used.prompt.as_str());
        let prompt_at = columns::find_prompt(row, mapped.prompt.as_deref(), chosen)?;
        let system_at = columns::find_system(row, mapped.system.as_deref())?;
        let truth_at = match mapped.truth.as_deref() {
            Some(column) => Some(columns::find_mapped(row, Role::Truth, column)?),
            None => None,
        };
        let (name, cell) = &row[prompt_at];
        let prompt = cell.prompt(name)?;
        let used = self
            .used
            .get_or_insert_with(|| ColumnsUsed { prompt: name.to_string(), ..Default::default() });

        let mut system = None;
        if let Some((name, cell)) = system_at.map(|at| &row[at]) {
            system = system_text(name, *cell, &prompt, self.system_before.as_ref())?;
            if system.is_some() {
                used.system.get_or_insert_with(|| name.to_string());
                self.system_before.clone_from(&system);
            }
        }
        let mut truth = None;
        if let Some((name, cell)) = truth_at.map(|at| &row[at]) {
            truth = Some(truth_text(name, *cell)?);
            used.truth.get_or_insert_with(|| name.to_string());
        }
        let taken = [Some(prompt_at), system_at, truth_at];
        let params = params(row, &taken, used)?;
        Ok(Sample { prompt, system, params, truth, row: line })
    }
}

/// The system prompt, shared with the row before when it is the same; an empty one is none.
fn system_text(
    name: &str,
    cell: Cell<'_>,
    prompt: &Prompt,
    before: Option<&Arc<str>>,
) -> Result<Option<Arc<str>>, Fault> {
    if cell.is_null() {
        return Ok(None);
    }
    let text = cell.text()?.ok_or_else(|| cell.wrong_kind(name, "text"))?;
    if text.is_empty() {
        return Ok(None);
    }
    if matches!(prompt, Prompt::Messages(list) if has_system(list)) {
        return Err(Fault::TwoSystems { column: name.to_owned() });
    }
    match before {
        Some(before) if **before == *text => Ok(Some(Arc::clone(before))),
        _ => Ok(Some(text.into())),
    }
}

/// The truth as text; a JSON number or boolean keeps its spelling.
fn truth_text(name: &str, cell: Cell<'_>) -> Result<Box<str>, Fault> {
    let text = match (cell.text()?, cell) {
        (Some(text), _) => text.into_owned().into_boxed_str(),
        (None, Cell::Json(raw)) if raw.get() == "null" => "".into(),
        (None, Cell::Json(raw)) if !raw.get().starts_with(['[', '{']) => raw.get().into(),
        (None, _) => return Err(cell.wrong_kind(name, "text or a number")),
    };
    if text.trim().is_empty() {
        return Err(Fault::EmptyTruth { column: name.to_owned() });
    }
    Ok(text)
}

/// The parameters among the columns without a role; notes what was used and what was not.
fn params(
    row: &Row<'_>,
    taken: &[Option<usize>; 3],
    used: &mut ColumnsUsed,
) -> Result<Params, Fault> {
    let mut list = Vec::new();
    for (place, (name, cell)) in row.iter().enumerate() {
        if taken.contains(&Some(place)) {
            continue;
        }
        let Some((param, kind)) = params::find(name) else {
            if used.ignored.len() < IGNORED_MAX && !used.ignored.iter().any(|seen| seen == name) {
                used.ignored.push(name.to_string());
            }
            continue;
        };
        if list.iter().any(|(seen, _)| *seen == param) {
            return Err(Fault::DuplicateColumn { column: param.to_owned() });
        }
        if let Some(value) = kind.read(param, *cell)? {
            list.push((param, value));
            if !used.params.contains(&param) {
                used.params.push(param);
            }
        }
    }
    Ok(Params::new(list))
}

/// Unused columns that are remembered by name.
const IGNORED_MAX: usize = 32;
