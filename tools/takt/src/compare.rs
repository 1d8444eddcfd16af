//! `takt compare`: two runs, or several pairs of runs, metric by metric with intervals.
//!
//! Pairs make the interval: of runs, when several were given; of phases, when two runs have several of
//! the same name. One phase in one run each knows nothing of how runs vary: then the interval is that
//! within the two runs, from means of batches over time, and says so.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;
use takt_record::{PhaseKind, PhaseResult, ResultDoc};
use takt_report::Table;
use takt_report::paired::{Estimate, Metric, percent, plain, welch};

use crate::cli::CompareArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::opprof::comparable;
use crate::{outcome, report};

/// Compares and prints.
pub(crate) fn compare(args: &CompareArgs, console: &Console) -> Result<Exit, Failure> {
    if args.runs.len() % 2 == 1 {
        return Err(Failure::says(Exit::Input, "an odd number of runs: each A needs its B"));
    }
    let runs = args.runs.iter().map(|folder| report::of_folder(folder, console));
    let runs: Vec<ResultDoc> = runs.collect::<Result<_, _>>()?;
    let pairs: Vec<(&ResultDoc, &ResultDoc)> =
        runs.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect();
    let text = render(&args.runs[0], &args.runs[1], &pairs).or_exit(Exit::Input)?;
    for (base, other) in &pairs {
        if comparable(&base.config) != comparable(&other.config) {
            console.warn("the configurations differ in more than name and address of the endpoint");
            break;
        }
    }
    outcome::print(&text)?;
    Ok(Exit::Done)
}

fn render(base: &Path, other: &Path, pairs: &[(&ResultDoc, &ResultDoc)]) -> anyhow::Result<String> {
    let mut phases: Vec<&str> = Vec::new();
    for phase in pairs.iter().flat_map(|(base, _)| &base.phases) {
        let everywhere = pairs
            .iter()
            .all(|(a, b)| [a, b].iter().all(|run| measured(run, &phase.name).is_some()));
        if everywhere && !phases.contains(&phase.name.as_str()) {
            phases.push(&phase.name);
        }
    }
    if phases.is_empty() {
        bail!("the runs have no performance phase of the same name");
    }
    let mut out = String::new();
    let _ = writeln!(out, "A: {}", base.display());
    let _ = writeln!(out, "B: {}", other.display());
    if pairs.len() > 1 {
        let _ = writeln!(out, "and {} more pairs in turn", pairs.len() - 1);
    }
    for name in &phases {
        let of: Vec<(&PhaseResult, &PhaseResult)> = pairs
            .iter()
            .filter_map(|(a, b)| Some((measured(a, name)?, measured(b, name)?)))
            .collect();
        let within = if of.len() == 1 { ", intervals within the two runs" } else { "" };
        let _ = writeln!(out, "\n{name}: B against A, {} pairs of runs{within}", of.len());
        table(&of, &mut out);
    }
    if pairs.len() == 1 && phases.len() > 1 {
        let (a, b) = pairs[0];
        let of: Vec<(&PhaseResult, &PhaseResult)> = phases
            .iter()
            .filter_map(|name| Some((measured(a, name)?, measured(b, name)?)))
            .collect();
        let _ = writeln!(out, "\nall phases: B against A, {} pairs of phases", of.len());
        table(&of, &mut out);
    }
    Ok(out)
}

fn measured<'a>(run: &'a ResultDoc, name: &str) -> Option<&'a PhaseResult> {
    run.phases.iter().find(|p| p.kind == PhaseKind::Performance && p.name == name)
}

fn table(pairs: &[(&PhaseResult, &PhaseResult)], out: &mut String) {
    let mut table = Table::new(1, &["", "A", "B", "change %", "lower", "upper", "B is"]);
    for metric in Metric::ALL {
        let values: Option<Vec<(f64, f64)>> =
            pairs.iter().map(|(a, b)| metric.of(a).zip(metric.of(b))).collect();
        let Some(values) = values else { continue };
        let logs: Vec<f64> = values.iter().map(|(a, b)| (b / a).ln()).collect();
        let change = logs.iter().sum::<f64>() / logs.len() as f64;
        let interval = match pairs {
            [(a, b)] => within(metric, a, b),
            _ => plain(&logs),
        };
        let mean = |of: fn(&(f64, f64)) -> f64| {
            (values.iter().map(|pair| of(pair).ln()).sum::<f64>() / values.len() as f64).exp()
        };
        table.row(vec![
            metric.name().to_owned(),
            format!("{:.3}", mean(|pair| pair.0)),
            format!("{:.3}", mean(|pair| pair.1)),
            signed(change),
            interval.map(|e| signed(e.low)).unwrap_or_default(),
            interval.map(|e| signed(e.high)).unwrap_or_default(),
            interval.map(|e| judgement(metric, &e)).unwrap_or_default().to_owned(),
        ]);
    }
    table.print(out);
}

fn judgement(metric: Metric, interval: &Estimate) -> &'static str {
    if !interval.is_clear() {
        "not told apart"
    } else if (interval.effect > 0.0) == (metric == Metric::Throughput) {
        "better"
    } else {
        "worse"
    }
}

/// What two runs know by themselves: of throughput, from batches over the time of each.
fn within(metric: Metric, a: &PhaseResult, b: &PhaseResult) -> Option<Estimate> {
    if metric != Metric::Throughput {
        return None;
    }
    welch(&batches(a)?, &batches(b)?)
}

/// Logarithms of the mean answers a second of equal parts of a phase, its ramp and its drain left out.
fn batches(phase: &PhaseResult) -> Option<Vec<f64>> {
    let bins = &phase.series.as_ref()?.succeeded;
    let whole = bins.get(1..bins.len().checked_sub(1)?)?;
    let size = whole.len() / BATCHES;
    if size == 0 {
        return None;
    }
    let mean = |batch: &[u64]| (batch.iter().sum::<u64>() as f64 / size as f64).ln();
    Some(whole.chunks_exact(size).take(BATCHES).map(mean).collect())
}

fn signed(log_ratio: f64) -> String {
    format!("{:+.2}", percent(log_ratio))
}

/// Parts of a phase: enough to see its spread, each long enough to know little of the next.
const BATCHES: usize = 10;
