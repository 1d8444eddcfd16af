//! `takt opprof gate`: does what is switched on cost more than is allowed?

use std::path::Path;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde_json::Value;
use takt_opprof::{Arm, Beside, GateLimits, GateRun, GateVerdict, gate as judge, read_runs};
use takt_record::{PhaseKind, PhaseResult, ResultDoc, VerdictStatus};
use takt_report::paired::Metric;

use super::{files, outputs, pairs};
use crate::cli::{GateArgs, RunConfig};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::{outcome, report};

/// Judges the runs and prints why.
pub(crate) fn gate(args: &GateArgs, console: &Console) -> Result<Exit, Failure> {
    let runs = match (&args.runs, args.pairs.to_run()) {
        (Some(path), _) => files::open(path).and_then(|input| {
            read_runs(input).with_context(|| format!("{}: is no file of runs", path.display()))
        }),
        (None, Some(run)) => made(args, &run, console),
        (None, None) => folders(args, console),
    };
    let limits = GateLimits { ratio: 1.0 + args.limit / 100.0, seed: Some(args.seed) };
    match judge(&runs.or_exit(Exit::Input)?, limits) {
        Ok(report) => {
            outcome::print(&report.render())?;
            Ok(match report.verdict {
                GateVerdict::Pass => Exit::Done,
                GateVerdict::Fail => Exit::NotValid,
                GateVerdict::Inconclusive => Exit::Inconclusive,
            })
        }
        Err(reasons) => {
            let says = format!("no judgement: {}", reasons.join("\n  "));
            Err(Failure::says(Exit::Input, says))
        }
    }
}

/// The runs of `--off` and `--on`, a pair from each place, in the order in which they ran.
fn folders(args: &GateArgs, console: &Console) -> anyhow::Result<Vec<GateRun>> {
    let (off, on) = (&args.off, &args.on);
    ensure!(
        off.len() == on.len(),
        "--off names {} runs and --on {}: a pair has one of each",
        off.len(),
        on.len()
    );
    let mut runs = Vec::new();
    for (arm, folders) in [(Arm::Off, off), (Arm::On, on)] {
        for (at, folder) in folders.iter().enumerate() {
            let pair = (at + 1).to_string();
            runs.push(of_folder(folder, pair, arm, Beside::default(), args, console)?);
        }
    }
    // RFC 3339 in UTC with as many digits each: the order of texts is that of times.
    runs.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(runs.into_iter().map(|(_, run)| run).collect())
}

/// Makes the runs, and takes them as they were made.
fn made(args: &GateArgs, run: &RunConfig, console: &Console) -> anyhow::Result<Vec<GateRun>> {
    let made = pairs::run(&args.pairs, run, console)?;
    let of = |one: pairs::Made| {
        let pair = one.pair.to_string();
        Ok(of_folder(&one.folder, pair, one.arm, one.beside, args, console)?.1)
    };
    made.into_iter().map(of).collect()
}

/// A run by its folder, and when it began.
fn of_folder(
    folder: &Path,
    pair: String,
    arm: Arm,
    known: Beside,
    args: &GateArgs,
    console: &Console,
) -> anyhow::Result<(String, GateRun)> {
    let result = report::of_folder(folder, console).map_err(|failure| failure.error)?;
    let phase = measured_phase(&result, args.phase.as_deref())
        .with_context(|| folder.display().to_string())?;
    let figures = Metric::ALL.map(|metric| metric.of(phase));
    let known = Beside { outputs: outputs::digest(folder, phase, &result.config)?, ..known };
    let beside = beside(&result, phase, known);
    Ok((result.started_at.clone(), GateRun { pair, arm, figures, beside }))
}

/// The performance phase of this name, or the only one.
fn measured_phase<'a>(
    result: &'a ResultDoc,
    name: Option<&str>,
) -> anyhow::Result<&'a PhaseResult> {
    let measured: Vec<&PhaseResult> =
        result.phases.iter().filter(|phase| phase.kind == PhaseKind::Performance).collect();
    let names = || measured.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", ");
    match (name, &measured[..]) {
        (Some(name), _) => measured
            .iter()
            .find(|phase| phase.name == name)
            .copied()
            .ok_or_else(|| anyhow!("has no performance phase `{name}`, only {}", names())),
        (None, [one]) => Ok(one),
        (None, []) => bail!("has no performance phase"),
        (None, _) => bail!("has several performance phases; name one with --phase: {}", names()),
    }
}

fn beside(result: &ResultDoc, phase: &PhaseResult, known: Beside) -> Beside {
    let suspect = result.verdict.reasons.iter().filter(|reason| {
        reason.status != VerdictStatus::Valid
            && reason.phase.as_ref().is_none_or(|of| *of == phase.name)
    });
    Beside {
        errors: Some(phase.failed + phase.unanswered),
        config: Some(comparable(&result.config)),
        suspect: Some(suspect.map(|reason| reason.says.clone()).collect()),
        ..known
    }
}

/// A configuration without what may differ between two runs of the same load.
pub(crate) fn comparable(config: &Value) -> Value {
    let mut config = config.clone();
    if let Some(map) = config.as_object_mut() {
        map.remove("name");
    }
    if let Some(endpoint) = config.get_mut("endpoint").and_then(Value::as_object_mut) {
        endpoint.remove("url");
    }
    config
}
