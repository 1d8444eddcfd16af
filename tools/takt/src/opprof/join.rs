//! `takt opprof join`: client latency beside what the server did.

use std::fmt::Display;

use anyhow::{Context as _, anyhow, ensure};
use takt_opprof::{ClientFold, Joined, join as join_sides};
use takt_record::fold_journal;
use takt_recorder::{journal_files, open_journal};

use super::records;
use crate::cli::JoinArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;

/// Joins the run with the records and prints both.
pub(crate) fn join(args: &JoinArgs, console: &Console) -> Result<Exit, Failure> {
    let joined = read(args, console).or_exit(Exit::Input)?;
    outcome::print(&joined.render())?;
    Ok(Exit::Done)
}

fn read(args: &JoinArgs, console: &Console) -> anyhow::Result<Joined> {
    let shown = args.run.display();
    let files = journal_files(&args.run).with_context(|| format!("{shown}: cannot be read"))?;
    ensure!(!files.is_empty(), "{shown}: holds no journal; join needs a run that kept one");
    let mut fold: Option<ClientFold> = None;
    for path in &files {
        let cannot = |error: &dyn Display| anyhow!("{}: {error}", path.display());
        let mut journal = open_journal(path).map_err(|error| cannot(&error))?;
        let fold =
            fold.get_or_insert_with(|| ClientFold::new(journal.plan(), args.slice, args.slowest));
        fold_journal(&mut journal, fold).map_err(|error| cannot(&error))?;
    }
    let fold = fold.context("no journal")?;
    let own = args.run.join(OWN_RECORDS);
    let paths = if args.records.is_empty() { std::slice::from_ref(&own) } else { &args.records };
    ensure!(
        !args.records.is_empty() || own.is_dir(),
        "{shown}: has no records of its own in {OWN_RECORDS}; name them with --records"
    );
    let steps = records::steps(paths, args.engine.as_deref(), console)?;
    Ok(join_sides(&fold, &steps)?)
}

/// The folder of a run in which the server's records are, when the run collected them.
const OWN_RECORDS: &str = "opprof";
