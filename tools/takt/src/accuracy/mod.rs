//! Accuracy phases: answers kept, scored and written down.
//!
//! ```text
//! before the first send:  dataset ──> questions.jsonl (prompt and truth of each sample)
//! after the last answer:  journal ──> rows ──> a program ──> marks   (scored by `command` only)
//!                         journal + questions.jsonl + marks ──> responses.jsonl, sample_idx_map.json, score
//! ```
//!
//! The journal is the only place where answers wait, and it is read through, not into memory: what is held
//! are the answers that were under way at one moment of the run. Whatever a score needs is in the run
//! folder, so that `takt report` finds the same one as the run did.

mod program;
mod questions;
mod write;

use std::path::Path;

use anyhow::Context as _;
use takt_dataset::Dataset;
use takt_record::{Fold, PhaseKind, ResultDoc, Score, SessionPlan, fold_journal};
use takt_recorder::{journal_files, open_journal};
use takt_score::{Keep, Of, Responses, Scorer};

use crate::config::{By, Phase, Program, Scoring};
use crate::console::Console;

pub(crate) use questions::write as write_questions;

/// What is done about phases that a program scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    /// It runs.
    Run,
    /// Its marks are those that were written down when it ran.
    Recorded,
    /// It does not run, for this reason.
    Not(&'static str),
}

/// A phase whose answers are kept.
pub(crate) struct Kept {
    /// Its place in the plan.
    place: usize,
    name: String,
    scoring: Option<Scoring>,
    scorer: Option<Scorer>,
}

/// Refuses a dataset with a row whose truth no answer could equal.
pub(crate) fn check_truths(phase: &Phase, dataset: &Dataset) -> anyhow::Result<()> {
    let requests = dataset.len() as u64 * u64::from(phase.repeats);
    anyhow::ensure!(
        requests <= u64::from(u32::MAX),
        "phase {}: {requests} requests are too many; lower `repeats`",
        phase.name
    );
    if phase.load.agentic().is_some() {
        return Ok(());
    }
    let Some(scorer) = phase.score.as_ref().and_then(Scoring::scorer) else { return Ok(()) };
    for sample in dataset.samples() {
        let truth = sample.truth.as_deref().unwrap_or_default();
        if let Err(error) = scorer.truth(truth) {
            anyhow::bail!("{}: row at line {}: {error}", dataset.name, sample.row);
        }
    }
    Ok(())
}

/// Scores the phases of `result` from what the run folder holds. Writes the responses down, unless that was
/// done and nothing has changed since. Says whether every score could be had.
pub(crate) fn score(
    folder: &Path,
    plan: &SessionPlan,
    programs: Programs,
    result: &mut ResultDoc,
    console: &Console,
) -> anyhow::Result<bool> {
    let kept = kept(plan)?;
    if kept.is_empty() || journal_files(folder)?.is_empty() {
        return Ok(true);
    }
    let mut sheets = Vec::new();
    for phase in &kept {
        let sheet = match (&phase.scoring, programs) {
            (Some(Scoring { by: By::Command(program), .. }), Programs::Run) => {
                console.info(format!("phase {}: {} scores", phase.name, program.command[0]));
                program_sheet(folder, plan, phase, program)
            }
            (Some(Scoring { by: By::Command(_), .. }), Programs::Recorded) => {
                write::Sheet::recorded(folder)
            }
            (Some(Scoring { by: By::Command(_), .. }), Programs::Not(why)) => {
                write::Sheet::None(why.to_owned())
            }
            _ => write::Sheet::Unused,
        };
        sheets.push(sheet);
    }
    let write = programs != Programs::Recorded || !folder.join(write::RESPONSES).exists();
    let writer = write::Writer::new(folder, plan, &kept, sheets, write)?;
    let tallies = through(folder, plan, &kept, writer)?.finish()?;
    let mut all = true;
    for (phase, (tally, error)) in kept.iter().zip(tallies) {
        let (Some(scoring), Some(found)) = (&phase.scoring, result.phases.get_mut(phase.place))
        else {
            continue;
        };
        let of = scoring.of().map(Of::as_str);
        let score = tally.score(scoring.word(), of, scoring.truth.as_deref(), found.issued);
        if let Some(error) = &error {
            console.error(format!("phase {}: there is no score: {error}", phase.name));
            all = false;
        }
        found.score = Some(match error {
            Some(_) => {
                Score { value: None, sum: None, repeats: Vec::new(), spread: None, error, ..score }
            }
            None => score,
        });
    }
    Ok(all)
}

/// The phases of `plan` whose answers are kept, by the configuration in it.
fn kept(plan: &SessionPlan) -> anyhow::Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for (place, phase) in plan.phases.iter().enumerate() {
        let scoring = Scoring::of_phase(&plan.config, place)?;
        if phase.kind == PhaseKind::Accuracy || scoring.is_some() {
            let scorer = scoring.as_ref().and_then(Scoring::scorer);
            kept.push(Kept { place, name: phase.name.clone(), scoring, scorer });
        }
    }
    Ok(kept)
}

/// Has `program` score a phase.
fn program_sheet(
    folder: &Path,
    plan: &SessionPlan,
    phase: &Kept,
    program: &Program,
) -> write::Sheet {
    let files = program::Files::in_folder(folder, phase.place);
    let marked = || -> anyhow::Result<()> {
        let rows = program::Rows::create(&files, folder, plan, phase)?;
        let count = through(folder, plan, std::slice::from_ref(phase), rows)?.finish()?;
        program::run(program, &files, count)
    };
    match marked() {
        Ok(()) => write::Sheet::marked(&files),
        Err(error) => write::Sheet::None(format!("{error:#}")),
    }
}

/// Puts the responses of the `kept` phases through `sink`.
fn through<S: takt_score::Sink>(
    folder: &Path,
    plan: &SessionPlan,
    kept: &[Kept],
    sink: S,
) -> anyhow::Result<S> {
    let wanted = (0..plan.phases.len()).map(|place| {
        if kept.iter().any(|phase| phase.place == place) { Keep::Yes } else { Keep::No }
    });
    let mut responses = Responses::new(wanted, sink);
    read(folder, &mut responses)?;
    Ok(responses.finish())
}

/// Folds the run's journal. Damage at its end was told when its figures were made.
fn read(folder: &Path, fold: &mut impl Fold) -> anyhow::Result<()> {
    for path in journal_files(folder)? {
        let shown = || path.display().to_string();
        let mut reader = open_journal(&path).with_context(shown)?;
        fold_journal(&mut reader, fold).with_context(shown)?;
    }
    Ok(())
}
