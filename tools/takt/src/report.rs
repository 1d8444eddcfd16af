//! `takt report`: the report of a run from what its folder holds.
//!
//! The journal is the truth, so the report is made from it again; a run that was killed has one up to its
//! last whole block. Where the journal is not all of the run (none was kept, a sample, a size cap, a full
//! disk) and the run lived to write its result, that result is the better witness. Where there is none, the
//! journal's part is reported as the part that it is.

use std::io::{self, Read};
use std::path::Path;

use anyhow::anyhow;
use takt_record::{
    JournalNote, JournalReader, JournalStats, JournalSummary, LeftOut, RESULT_SCHEMA, ResultDoc,
    RunState, fold_journal,
};
use takt_recorder::JOURNAL_FOLDER;
use takt_report::RunFold;

use crate::accuracy::{self, Programs};
use crate::cli::{Format, ReportArgs};
use crate::config::verdict_limits;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::journals::{self, Journal, Journals};
use crate::tokens::{self, Counting};
use crate::{opprof, outcome, said};

/// Prints the report of the folder.
pub(crate) fn report(args: &ReportArgs, console: &Console) -> Result<Exit, Failure> {
    let result = read(args, console)?;
    let text = match args.format {
        Format::Text => said::text(&result),
        Format::Json => outcome::to_json(&result),
    };
    outcome::print(&text)?;
    Ok(Exit::Done)
}

/// The result of the run in `folder`, from its journal if it has one.
pub(crate) fn of_folder(folder: &Path, console: &Console) -> Result<ResultDoc, Failure> {
    let folder = folder.to_owned();
    read(&ReportArgs { folder, format: Format::Json, exact: false, run_programs: false }, console)
}

fn read(args: &ReportArgs, console: &Console) -> Result<ResultDoc, Failure> {
    let (folder, exact) = (&*args.folder, args.exact);
    if !folder.is_dir() {
        return Err(Failure::says(Exit::Input, format!("{}: is no folder", folder.display())));
    }
    let wrote = written(folder);
    let known = wrote.as_ref().ok().and_then(Option::as_ref);
    let journals = Journals::open(folder, known).or_exit(Exit::Input)?;
    if journals.is_empty() {
        if exact {
            let says = "--exact counts from the journal, and this run kept none";
            return Err(Failure::says(Exit::Input, format!("{}: {says}", folder.display())));
        }
        console.debug("no journal: the result as it was written");
        return wrote?.ok_or_else(|| {
            let says = "holds no run: neither a journal nor result.json";
            Failure::says(Exit::Input, format!("{}: {says}", folder.display()))
        });
    }
    if journals.files.is_empty() && !exact {
        let refused = journals.refused(folder);
        let Some(written) = wrote? else { return Err(refused).or_exit(Exit::Input) };
        let note = JournalNote {
            left_out: journals.left_out,
            foreign: journals.foreign,
            ..JournalNote::default()
        };
        warn(folder, &note, console);
        return Ok(beside(written, note, console));
    }
    let mut folded = fold(folder, journals, exact, console).or_exit(Exit::Input)?;
    if exact && let Some(known) = known {
        if let Some(lost) = cut(known, &folded.note) {
            console.warn(format!("{}/{lost}", folder.display()));
            folded.fold.leave_out(lost.bytes.unwrap_or(0));
            folded.note.left_out.push(lost);
        }
        if !folded.note.left_out.is_empty() {
            folded.fold.set_partial();
        }
        folded.fold.ended_as(known.state, known.failed_by);
    }
    let mut result = folded.fold.result(&verdict_limits(&folded.fold.plan().config));
    result.journal = Some(folded.note);
    opprof::attach(folder, &mut result, console);
    let whole = !folded.fold.is_partial() && result.state != RunState::Killed;
    let programs = if args.run_programs { Programs::Run } else { Programs::Recorded };
    let scored = |mut result| {
        // Figures do not need scores. A phase without one says so; it has been told on stderr, too.
        let plan = folded.fold.plan();
        if let Err(error) = accuracy::score(folder, plan, programs, &mut result, console) {
            console.warn(format!("the answers cannot be scored: {error:#}"));
        }
        Ok(result)
    };
    if whole || exact {
        return scored(result);
    }
    // A result that cannot be read is no witness.
    match wrote {
        Ok(Some(written)) => {
            let mut note = result.journal.unwrap_or_default();
            if shorter_by(&written, &note) == 0 {
                // A journal that stopped in the middle of a block was so when the run ended.
                note.left_out.retain(|left_out| left_out.at == 0);
            } else if let Some(lost) = cut(&written, &note) {
                console.warn(format!("{}/{lost}", folder.display()));
                note.left_out.push(lost);
            }
            Ok(beside(written, note, console))
        }
        _ => scored(result),
    }
}

/// Bytes of the journal that the run had written and that were not read.
fn shorter_by(written: &ResultDoc, read: &JournalNote) -> u64 {
    written.journal.as_ref().map_or(0, |wrote| wrote.bytes).saturating_sub(read.bytes)
}

/// What was cut off between two blocks, which leaves nothing that is not whole: the run knew how long its journal was.
fn cut(written: &ResultDoc, read: &JournalNote) -> Option<LeftOut> {
    let bytes = Some(shorter_by(written, read)).filter(|&lost| lost > 0);
    let (file, why) = (JOURNAL_FOLDER.to_owned(), "shorter than the run left it".to_owned());
    let lost = LeftOut { file, at: read.bytes, bytes, why };
    (bytes.is_some() && read.left_out.is_empty()).then_some(lost)
}

/// The result that the run wrote, with what `holds` says of its journal since.
fn beside(mut written: ResultDoc, holds: JournalNote, console: &Console) -> ResultDoc {
    console.info("the journal is not all of the run: the result as it was written");
    if let Some(note) = &mut written.journal {
        (note.left_out, note.foreign) = (holds.left_out, holds.foreign);
    }
    written
}

/// Says what is not read.
fn warn(folder: &Path, note: &JournalNote, console: &Console) {
    journals::warn(folder, &note.left_out, console);
    journals::warn(folder, &note.foreign, console);
}

/// The result that the run wrote; `None` when it did not.
pub(crate) fn written(folder: &Path) -> Result<Option<ResultDoc>, Failure> {
    let path = folder.join("result.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let says = format!("{}: cannot be read: {error}", path.display());
            return Err(Failure::says(Exit::Input, says));
        }
    };
    let no_result = |why: &dyn std::fmt::Display| {
        Failure::says(Exit::Input, format!("{}: is no result of takt: {why}", path.display()))
    };
    let result: ResultDoc = serde_json::from_str(&text).map_err(|error| no_result(&error))?;
    if result.schema != RESULT_SCHEMA {
        let why = format!("its schema is {}, this version reads {RESULT_SCHEMA}", result.schema);
        return Err(no_result(&why));
    }
    Ok(Some(result))
}

/// What a journal came to.
pub(crate) struct Folded {
    pub(crate) fold: RunFold,
    pub(crate) note: JournalNote,
}

/// The fold of the run's journal.
fn fold(
    folder: &Path,
    journals: Journals,
    exact: bool,
    console: &Console,
) -> anyhow::Result<Folded> {
    let several = journals.files.len() + journals.left_out.len() > 1;
    if journals.files.is_empty() {
        return Err(journals.refused(folder));
    }
    let (mut all, mut left_out): (Option<Folded>, _) = (None, journals.left_out);
    for Journal { file, mut reader } in journals.files {
        let plan = reader.plan().clone();
        let mut fold = if exact { RunFold::of_values(plan) } else { RunFold::new(plan) };
        let summary = counted(&mut reader, &mut fold, console)
            .map_err(|error| anyhow!("{}/{file}: {error}", folder.display()))?;
        left_out.extend(journals::torn(&file, summary.end));
        if summary.thinned() {
            fold.set_partial();
        }
        let (sampled, capped) = (summary.sampled, summary.capped);
        let note = JournalNote { sampled, capped, ..note(summary.read) };
        match &mut all {
            None => all = Some(Folded { fold, note }),
            Some(all) => {
                all.fold.merge(&fold);
                all.note.bytes += note.bytes;
                all.note.records += note.records;
                all.note.sampled |= note.sampled;
                all.note.capped |= note.capped;
            }
        }
    }
    let mut all = all.ok_or_else(|| anyhow!("{}: holds no journal", folder.display()))?;
    left_out.sort_by(|a, b| a.file.cmp(&b.file));
    for left_out in &left_out {
        all.fold.leave_out(left_out.bytes.unwrap_or(0));
        // Of several, the others go on where one breaks off.
        if several {
            all.fold.set_partial();
        }
    }
    (all.note.left_out, all.note.foreign) = (left_out, journals.foreign);
    warn(folder, &all.note, console);
    Ok(all)
}

/// Folds a journal, its tokens counted if the run has a tokenizer that is still there.
fn counted<R: Read>(
    reader: &mut JournalReader<R>,
    fold: &mut RunFold,
    console: &Console,
) -> io::Result<JournalSummary> {
    match tokens::of_plan(fold.plan()) {
        Ok(Some(tokenizer)) => {
            console.debug("the tokenizer counts");
            let mut counting = Counting::by(|text: &str| tokenizer.count(text), fold);
            let summary = fold_journal(reader, &mut counting)?;
            counting.finish();
            return Ok(summary);
        }
        Ok(None) => {}
        Err(error) => console.warn(format!("tokens are not counted: {error:#}")),
    }
    fold_journal(reader, fold)
}

/// A note of a journal of this size.
pub(crate) fn note(stats: JournalStats) -> JournalNote {
    JournalNote { bytes: stats.bytes, records: stats.records, ..JournalNote::default() }
}

/// The run's journal folded, when it has one that can be read.
pub(crate) fn from_journal(folder: &Path, console: &Console) -> Option<Folded> {
    let folded = Journals::open(folder, None)
        .map_err(Into::into)
        .and_then(|journals| fold(folder, journals, false, console));
    folded.map_err(|error| console.warn(format!("{error:#}"))).ok()
}
