//! `takt opprof check`: are the step records sound?

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use takt_opprof::{Ending, FileReport, Heading, StreamEnd, check_file, check_part, heading};

use super::files;
use crate::cli::CheckArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;

/// Checks every file and prints what each is.
pub(crate) fn check(args: &CheckArgs, console: &Console) -> Result<Exit, Failure> {
    let files = in_order(&args.paths).or_exit(Exit::Input)?;
    let mut out = String::new();
    let mut total = Total::default();
    let mut before: Option<StreamEnd> = None;
    for (_, path) in &files {
        let report = files::open(path)
            .and_then(|input| {
                let cannot = || format!("{}: cannot be read", path.display());
                let check = if args.part { check_part } else { check_file };
                check(input, before.as_ref()).with_context(cannot)
            })
            .or_exit(Exit::Input)?;
        describe(path, &report, &mut out);
        total.add(&report);
        if report.executed > 0 && report.with_graph == 0 {
            console.warn(format!("{}: {NO_GRAPH}", path.display()));
        }
        before = Some(report.stream);
    }
    total.describe(&mut out);
    outcome::print(&out)?;
    Ok(if total.broken == 0 { Exit::Done } else { Exit::NotValid })
}

/// The files by scheduler and time, each with its first step if it has one.
pub(super) fn in_order(paths: &[PathBuf]) -> anyhow::Result<Vec<(Option<Heading>, PathBuf)>> {
    let mut files = Vec::new();
    for path in files::list(paths, &[".jsonl"])? {
        let cannot = || format!("{}: cannot be read", path.display());
        files.push((heading(files::open(&path)?).with_context(cannot)?, path));
    }
    files.sort();
    Ok(files)
}

fn describe(path: &Path, report: &FileReport, out: &mut String) {
    let shown = path.display();
    for finding in &report.findings {
        let _ = writeln!(out, "{shown}: {finding}");
    }
    let more = report.failed - report.findings.len() as u64;
    if more > 0 {
        let _ = writeln!(out, "{shown}: {more} more failed checks");
    }
    let _ = write!(out, "{shown}: {} steps", report.records);
    if report.executed < report.records {
        let _ = write!(out, " ({} ran the model)", report.executed);
    }
    if let Some((first, last)) = report.wall_ns {
        let _ = write!(out, " in {:.3} s", last.saturating_sub(first) as f64 / 1e9);
    }
    let _ = write!(out, ", {} dropped", report.dropped);
    if report.resumed > 0 {
        let _ = write!(out, ", {} with resumed prompts", report.resumed);
    }
    let ending = match report.ending {
        Ending::Footer => "ends with its footer".to_owned(),
        Ending::NoFooter => "truncated: no footer, the server was killed or still runs".to_owned(),
        Ending::Torn(0) => "truncated: the compressed data ends too early".to_owned(),
        Ending::Torn(bytes) => format!("truncated: {bytes} bytes of a torn last line left out"),
    };
    let _ = writeln!(out, "; {ending}");
}

/// All files together.
#[derive(Debug, Default)]
struct Total {
    files: usize,
    broken: usize,
    records: u64,
    failed: u64,
}

impl Total {
    fn add(&mut self, report: &FileReport) {
        self.files += 1;
        self.broken += usize::from(report.failed > 0);
        self.records += report.records;
        self.failed += report.failed;
    }

    fn describe(&self, out: &mut String) {
        let Self { files, broken, records, failed } = self;
        let _ = if *broken == 0 {
            writeln!(out, "OK: {records} steps in {files} files, every check holds")
        } else {
            writeln!(out, "BROKEN: {failed} failed checks in {broken} of {files} files")
        };
    }
}

/// For a file in which no step says how its graph ran.
const NO_GRAPH: &str = "no step says how its graph ran (cudagraph is null). vLLM 0.24 tells with \
    --cudagraph-metrics, and its V2 model runner, the default for some dense models, never does: set \
    VLLM_USE_V2_MODEL_RUNNER=0";
