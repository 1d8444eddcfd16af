//! What is left of a run: files in its folder, the report on stdout, the exit code.

use std::io::{self, Write as _};

use takt_record::{JournalNote, PhaseKind, Reason, ResultDoc, RunState, VerdictStatus};
use takt_recorder::Finished;
use takt_report::RunFold;

use crate::accuracy::{self, Programs};
use crate::cli::Format;
use crate::config::verdict_limits;
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::folder::RunFolder;
use crate::opprof;
use crate::outlets::Aggregated;
use crate::run::Options;
use crate::said;
use crate::watched::Watched;

/// The final snapshot within a run folder.
pub(crate) const SNAPSHOT: &str = "metrics/final_snapshot.json";

/// How the reactor ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    Interrupted,
    /// The session could not go on, and why.
    Failed(String),
    /// A fault of takt, in its own words.
    Panicked(String),
}

/// Writes and prints the report of a run, and says how the program ends.
pub(crate) fn report(
    ended: &Ended,
    finished: Finished<Watched>,
    aggregated: &Aggregated,
    folder: &RunFolder,
    options: Options<'_>,
    console: &Console,
) -> Result<Exit, Failure> {
    let mut faults = Vec::new();
    if let Some(error) = &finished.error {
        faults.push(format!("the journal stops before its end: {error}"));
    }
    if let Some(words) = &finished.outlet_panic {
        faults.push(format!("a fault of takt in publishing: {words}"));
    }
    if let Some(words) = &finished.clean_panic {
        faults.push(format!(
            "a fault of takt in looking for secrets: {words}; texts of the server are withheld from \
             there on"
        ));
    }
    let mut note = journal_note(&finished);
    if let Some(words) = &finished.fold_panic {
        faults.push(format!("a fault of takt in the report's figures: {words}"));
    }
    let again = finished.fold_panic.is_some();
    let mut fold = finished.fold.into_fold();
    if again || has_tokenizer(&fold) {
        if !again {
            console.info("the tokenizer counts the answers");
        }
        // Made again from the journal, which has the texts.
        if let Some(folded) = crate::report::from_journal(folder.path(), console) {
            fold = folded.fold;
            if let Some(note) = &mut note {
                note.left_out = folded.note.left_out;
            }
        }
    }
    let mut result = fold.result(&verdict_limits(&fold.plan().config));
    if let Some(says) = aggregated.lost() {
        console.warn(&says);
        result.verdict.reasons.push(remark("aggregator_lost", says));
    }
    result.journal = note;
    opprof::attach(folder.path(), &mut result, console);
    let programs = match ended {
        Ended::Complete => Programs::Run,
        _ => Programs::Not(BROKEN_OFF),
    };
    let scored = accuracy::score(folder.path(), fold.plan(), programs, &mut result, console);
    let unscored = matches!(scored, Ok(false));
    if let Err(error) = scored {
        faults.push(format!("the answers cannot be scored: {error:#}"));
    }
    let text = said::text(&result);
    let json = to_json(&result);
    let snapshot = to_json(&fold.snapshot(0, fold.last_at(), true));
    // An aggregator of the run's own has written the snapshot already.
    let snapshot = (!aggregated.is_here()).then_some((SNAPSHOT, &snapshot));
    let files = [("result.json", &json), ("report.txt", &text)];
    for (name, contents) in files.into_iter().chain(snapshot) {
        if let Err(error) = folder.write(name, contents.as_bytes()) {
            faults.push(error.to_string());
        }
    }
    print(if options.format == Format::Json { &json } else { &text })?;
    match ended {
        Ended::Failed(why) => console.error(format!("the run failed: {why}")),
        Ended::Panicked(words) => faults.push(format!("a fault of takt: {words}")),
        Ended::Complete | Ended::Interrupted => {}
    }
    for fault in &faults {
        console.error(fault);
    }
    console.info(format!("run folder: {}", folder.path().display()));
    let exit = exit(ended, !faults.is_empty(), &result, options.strict, console);
    Ok(if exit == Exit::Done && unscored { Exit::Failed } else { exit })
}

/// Does the run have its answers counted by a tokenizer?
fn has_tokenizer(fold: &RunFold) -> bool {
    fold.plan().config.get("tokenizer").is_some_and(|tokenizer| !tokenizer.is_null())
}

/// What the journal holds; `None` without one.
fn journal_note(finished: &Finished<Watched>) -> Option<JournalNote> {
    (finished.journal.bytes > 0).then(|| JournalNote {
        sampled: finished.sampled,
        capped: finished.capped,
        stopped: finished.error.as_ref().map(ToString::to_string),
        ..crate::report::note(finished.journal)
    })
}

/// Something worth knowing that makes the run no worse.
fn remark(name: &str, says: String) -> Reason {
    let status = VerdictStatus::Valid;
    Reason { phase: None, name: name.to_owned(), status, value: 1.0, limit: 0.0, says }
}

/// A document as a file and stdout hold it.
pub(crate) fn to_json(document: &impl serde::Serialize) -> String {
    // Numbers, strings and maps with string keys can always be written.
    let mut json = serde_json::to_string_pretty(document).unwrap_or_default();
    json.push('\n');
    json
}

/// Prints on stdout. Whoever closed it does not want the rest; a disk that is full is a fault.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::says(Exit::Internal, format!("stdout cannot be written to: {error}")))
        }
        _ => Ok(()),
    }
}

/// Why a program does not score a run that was stopped or failed: whoever stops a run does not wait for it.
const BROKEN_OFF: &str =
    "the run did not complete; `takt report DIR --run-programs` scores what there is of it";

fn exit(ended: &Ended, faulty: bool, result: &ResultDoc, strict: bool, console: &Console) -> Exit {
    match ended {
        Ended::Panicked(_) => return Exit::Internal,
        Ended::Interrupted => return Exit::Interrupted,
        Ended::Failed(_) => return Exit::Failed,
        Ended::Complete => {}
    }
    if faulty {
        return Exit::Internal;
    }
    if nothing_succeeded(result) {
        console.error("the run failed: no request succeeded");
        return Exit::Failed;
    }
    let missed = missed(result);
    missed.iter().for_each(|gate| console.warn(gate));
    let valid = result.verdict.status == VerdictStatus::Valid && result.state == RunState::Complete;
    if strict && (!valid || !missed.is_empty()) {
        return Exit::NotValid;
    }
    Exit::Done
}

/// What the run was to keep and did not.
fn missed(result: &ResultDoc) -> Vec<String> {
    let gates = result.phases.iter().flat_map(|phase| {
        let gates = phase.goodput.iter().flat_map(|goodput| &goodput.gates);
        gates.map(move |gate| (phase, gate))
    });
    let missed = gates.filter(|(_, gate)| !gate.met).map(|(phase, gate)| {
        let value = gate.value.map_or_else(|| "absent".to_owned(), |value| format!("{value:.3}"));
        let (name, p, limit) = (&phase.name, &gate.percentile, gate.limit);
        format!("phase {name}: SLO missed: {} p{p} is {value}, at most {limit}", gate.metric)
    });
    missed.collect()
}

/// Nothing that was measured succeeded; of a run without measured phases, nothing at all.
fn nothing_succeeded(result: &ResultDoc) -> bool {
    let measured = |kind| kind != PhaseKind::Warmup;
    let any = result.phases.iter().any(|phase| measured(phase.kind));
    let mut counted = result.phases.iter().filter(|phase| !any || measured(phase.kind));
    counted.all(|phase| phase.succeeded == 0)
}
