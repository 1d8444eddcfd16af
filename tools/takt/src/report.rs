//! `takt report`: the report of a run from what its folder holds.
//!
//! The journal is the truth, so the report is made from it again; a run that was killed has one up to its
//! last whole block. A run that kept no journal still has its result.

use std::path::Path;

use takt_record::{JournalEnd, RESULT_SCHEMA, ResultDoc, fold_journal};
use takt_recorder::{journal_files, open_journal};
use takt_report::{Limits, RunFold};

use crate::cli::{Format, ReportArgs};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::{outcome, said};

/// Prints the report of the folder.
pub(crate) fn report(args: &ReportArgs, console: &Console) -> Result<Exit, Failure> {
    let result = read(&args.folder, console)?;
    let text = match args.format {
        Format::Text => said::text(&result),
        Format::Json => outcome::to_json(&result),
    };
    outcome::print(&text)?;
    Ok(Exit::Done)
}

fn read(folder: &Path, console: &Console) -> Result<ResultDoc, Failure> {
    let shown = folder.display();
    if !folder.is_dir() {
        return Err(Failure::says(Exit::Input, format!("{shown}: is no folder")));
    }
    if !journal_files(folder).or_exit(Exit::Input)?.is_empty() {
        return Ok(fold(folder, console).or_exit(Exit::Input)?.result(&Limits::default()));
    }
    let path = folder.join("result.json");
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let says = if error.kind() == std::io::ErrorKind::NotFound {
            format!("{shown}: holds no run: neither a journal nor result.json")
        } else {
            format!("{}: cannot be read: {error}", path.display())
        };
        Failure::says(Exit::Input, says)
    })?;
    let no_result = |why: &dyn std::fmt::Display| {
        Failure::says(Exit::Input, format!("{}: is no result of takt: {why}", path.display()))
    };
    let result: ResultDoc = serde_json::from_str(&text).map_err(|error| no_result(&error))?;
    if result.schema != RESULT_SCHEMA {
        let why = format!("its schema is {}, this version reads {RESULT_SCHEMA}", result.schema);
        return Err(no_result(&why));
    }
    console.debug("no journal: the result as it was written");
    Ok(result)
}

/// The fold of the run's journal.
fn fold(folder: &Path, console: &Console) -> anyhow::Result<RunFold> {
    let mut all: Option<RunFold> = None;
    for path in journal_files(folder)? {
        let shown = path.display();
        let mut reader =
            open_journal(&path).map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
        let mut fold = RunFold::new(reader.plan().clone());
        let summary = fold_journal(&mut reader, &mut fold)
            .map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
        if let JournalEnd::Torn { at, lost, reason } = summary.end {
            console.warn(format!("{shown}: {reason}, at byte {at}; {lost} bytes are left out"));
        }
        if summary.thinned {
            console.warn(format!("{shown}: requests were left out on purpose: counts are too low"));
        }
        match &mut all {
            None => all = Some(fold),
            Some(all) => all.merge(&fold),
        }
    }
    all.ok_or_else(|| anyhow::anyhow!("{}: holds no journal", folder.display()))
}

/// The fold of the run's journal, when it has one that can be read.
pub(crate) fn from_journal(folder: &Path, console: &Console) -> Option<RunFold> {
    match fold(folder, console) {
        Ok(fold) => Some(fold),
        Err(error) => {
            console.warn(format!("{error:#}"));
            None
        }
    }
}
