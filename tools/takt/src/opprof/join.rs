//! `takt opprof join`: client latency beside what the server did.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use takt_opprof::{ClientFold, join as join_sides};
use takt_record::{Joined, fold_journal};
use takt_recorder::{journal_files, open_journal};
use takt_time::Span;

use super::{during, records};
use crate::cli::JoinArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;

/// Joins the run with the records and prints both.
pub(crate) fn join(args: &JoinArgs, console: &Console) -> Result<Exit, Failure> {
    let joined = read(args, console).or_exit(Exit::Input)?;
    outcome::print(&takt_report::render_joined(&joined))?;
    Ok(Exit::Done)
}

fn read(args: &JoinArgs, console: &Console) -> anyhow::Result<Joined> {
    let own = args.run.join(during::OWN);
    let paths = if args.records.is_empty() { std::slice::from_ref(&own) } else { &args.records };
    ensure!(
        !args.records.is_empty() || own.is_dir(),
        "{}: has no records of its own in {}; name them with --records",
        args.run.display(),
        during::OWN
    );
    joined(&args.run, paths, args.engine.as_deref(), (args.slice, args.slowest), console)
}

/// The run in `folder` beside these records: slices of this length, and so many slow requests.
pub(super) fn joined(
    folder: &Path,
    records: &[PathBuf],
    engine: Option<&str>,
    (slice, slowest): (Span, usize),
    console: &Console,
) -> anyhow::Result<Joined> {
    let shown = folder.display();
    let files = journal_files(folder).with_context(|| format!("{shown}: cannot be read"))?;
    ensure!(!files.is_empty(), "{shown}: holds no journal; join needs a run that kept one");
    let mut fold: Option<ClientFold> = None;
    for path in &files {
        let cannot = |error: &dyn Display| anyhow!("{}: {error}", path.display());
        let mut journal = open_journal(path).map_err(|error| cannot(&error))?;
        let fold = fold.get_or_insert_with(|| ClientFold::new(journal.plan(), slice, slowest));
        fold_journal(&mut journal, fold).map_err(|error| cannot(&error))?;
    }
    let fold = fold.context("no journal")?;
    let steps = records::steps(records, engine, console)?;
    Ok(join_sides(&fold, &steps)?)
}
