//! `takt opprof attribute` and `takt opprof calibrate`: traces of windows to time by family.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::json;
use takt_opprof::{
    AttributeOptions, Families, RankWork, Trace, Window, attribute as attribute_window,
    calibrate as calibrate_samples, samples, windows,
};

use super::{files, records, window};
use crate::cli::{Format, TraceArgs};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;

/// Prints where the time of each window went.
pub(crate) fn attribute(args: &TraceArgs, console: &Console) -> Result<Exit, Failure> {
    let (families, options) = options(args).or_exit(Exit::Input)?;
    let windows = read(args, &families, options, console, false).or_exit(Exit::Input)?;
    if args.format == Format::Json {
        let windows: Vec<_> = windows.iter().map(|w| w.to_json(&families, options)).collect();
        let all = json!({"schema": "takt-opprof-attribution-1", "windows": windows});
        outcome::print(&format!("{all:#}\n"))?;
    } else {
        outcome::print(&text(&windows, &families, options))?;
    }
    if !windows.iter().any(Window::has_kernels) {
        return Err(Failure::says(Exit::Input, "no kernels to attribute"));
    }
    let sound = windows.iter().all(|window| window.contradictions(options).is_empty());
    Ok(if sound { Exit::Done } else { Exit::NotValid })
}

fn text(windows: &[Window], families: &Families, options: AttributeOptions) -> String {
    let mut out = String::new();
    for (at, window) in windows.iter().enumerate() {
        if windows.len() > 1 {
            let _ = write!(out, "window {}: ", at + 1);
        }
        out.push_str(&window.render(families, options));
        out.push('\n');
    }
    out
}

/// Fits kernel time to composition and prints how well that holds.
pub(crate) fn calibrate(args: &TraceArgs, console: &Console) -> Result<Exit, Failure> {
    let (families, options) = options(args).or_exit(Exit::Input)?;
    if args.records.is_empty() {
        return Err(Failure::says(
            Exit::Input,
            "calibration needs the step records: --records DIR",
        ));
    }
    let windows = read(args, &families, options, console, true).or_exit(Exit::Input)?;
    if windows.iter().any(|window| !window.contradictions(options).is_empty()) {
        let says = "a window contradicts itself; takt opprof attribute says how";
        return Err(Failure::says(Exit::NotValid, says));
    }
    let calibrated = calibrate_samples(&samples(&windows)).or_exit(Exit::Input)?;
    outcome::print(&match args.format {
        Format::Text => calibrated.render(&families),
        Format::Json => format!("{:#}\n", calibrated.to_json(&families)),
    })?;
    Ok(Exit::Done)
}

fn options(args: &TraceArgs) -> anyhow::Result<(Families, AttributeOptions)> {
    let families = match &args.families {
        None => Families::standard()?,
        Some(path) => {
            let bytes = files::read(path, FAMILIES_BYTES_MAX)?;
            let text = String::from_utf8(bytes).with_context(|| path.display().to_string())?;
            Families::with_rules(&text).with_context(|| path.display().to_string())?
        }
    };
    let clock_error_ns = args.clock_error.as_nanos();
    Ok((families, AttributeOptions { by_place: args.inferred, clock_error_ns }))
}

/// Reads traces one after another; only what each rank did in each step is kept. For a `baseline` the
/// windows of a server without graphs are refused.
fn read(
    args: &TraceArgs,
    families: &Families,
    options: AttributeOptions,
    console: &Console,
    baseline: bool,
) -> anyhow::Result<Vec<Window>> {
    let steps = if args.records.is_empty() {
        Vec::new()
    } else {
        records::steps(&args.records, args.engine.as_deref(), console)?
    };
    let (mut traces, mut standings) = (Vec::new(), window::Standings::default());
    for path in files::list(&args.traces, &[".json"])? {
        let shown = path.display();
        if path.file_name().is_some_and(|name| name == window::MANIFEST) {
            continue;
        }
        match standings.of(&path)? {
            window::Standing::Counts => {}
            window::Standing::Void => {
                console.warn(format!("{shown}: left out: its window does not count"));
                continue;
            }
            window::Standing::Taxonomy => {
                ensure!(
                    !baseline,
                    "{shown}: of a taxonomy window (a server without graphs): its times are no baseline; \
                     name the files of other windows"
                );
                console.warn(format!("{shown}: of a taxonomy window: times are no baseline"));
            }
        }
        let trace = Trace::read(files::open(&path)?).with_context(|| path.display().to_string())?;
        ensure!(!trace.steps.is_empty(), "{}: marks no step", path.display());
        if trace.unreadable > 0 {
            let (bad, all) = (trace.unreadable, trace.events);
            console.warn(format!("{}: {bad} of {all} events cannot be read", path.display()));
        }
        let rank = trace.rank.or_else(|| rank_in_name(&path)).unwrap_or(0);
        traces.push(RankWork::of(&trace, rank, families, options.by_place));
    }
    ensure!(!traces.is_empty(), "no traces that count");
    Ok(windows(traces).into_iter().map(|ranks| attribute_window(ranks, &steps, options)).collect())
}

/// `…_rank3.…` and `…-rank-3.…`.
pub(super) fn rank_in_name(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let rest = &name[name.rfind("rank")? + "rank".len()..];
    let rest = rest.strip_prefix(['-', '_']).unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// A file of families is short.
const FAMILIES_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_read_from_both_kinds_of_names() {
        for (name, rank) in [
            ("dp0_pp0_tp3_dcp0_ep0_rank3.123.pt.trace.json.gz", Some(3)),
            ("node-rank-12.99.pt.trace.json", Some(12)),
            ("trace.json", None),
            ("rankless.json", None),
        ] {
            assert_eq!(rank_in_name(Path::new(name)), rank, "{name}");
        }
    }
}
