//! The traces that a window wrote: files that were not there before, read to their end.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use takt_opprof::{Composition, Regime, Trace, TraceEnd};
use takt_time::Nanos;

use super::super::attribute::rank_in_name;
use super::super::files;
use super::LOOK_EVERY;
use super::entry::{Seen, TraceFile};

/// What was in the folder before the window.
#[derive(Debug)]
pub(super) struct Traces {
    folder: PathBuf,
    before: BTreeSet<PathBuf>,
}

/// What the window added.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<TraceFile>,
    pub(super) seen: Option<Seen>,
    pub(super) remarks: Vec<String>,
}

impl Traces {
    /// Looks at the folder.
    pub(super) fn before(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { before: list(folder)?, folder: folder.to_owned() })
    }

    /// Waits until `ranks` whole traces are there that were not before, each of other steps than those
    /// before `started`; gives what there is at the `deadline`.
    pub(super) fn wait(
        &self,
        started_wall_ns: u64,
        ranks: usize,
        deadline: Nanos,
        regime: &Regime,
    ) -> anyhow::Result<Found> {
        let mut read: BTreeSet<PathBuf> = BTreeSet::new();
        let mut found = Found::default();
        let mut fewest: Option<Vec<Composition>> = None;
        while found.files.len() < ranks {
            for path in list(&self.folder)? {
                if self.before.contains(&path) || read.contains(&path) {
                    continue;
                }
                // One that is still being written is looked at again.
                let Some(trace) = whole(&path) else { continue };
                read.insert(path.clone());
                let marks: Vec<Composition> =
                    trace.steps.iter().filter_map(|step| step.composition).collect();
                let first = trace.steps.first().and_then(|step| trace.wall_ns(step.start_ns));
                if first.is_some_and(|first| first < started_wall_ns) {
                    found.remarks.push(format!("{}: of an earlier window", path.display()));
                    continue;
                }
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                found.remarks.extend(heavy(&path, &name));
                found.files.push(TraceFile {
                    rank: trace.rank.or_else(|| rank_in_name(&path)).unwrap_or(0),
                    steps: marks.len() as u64,
                    bytes: fs::metadata(&path).map_or(0, |found| found.len()),
                    name,
                });
                if fewest.as_ref().is_none_or(|fewest| marks.len() < fewest.len()) {
                    fewest = Some(marks);
                }
            }
            if takt_net::now() >= deadline {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        found.files.sort_by_key(|file| file.rank);
        found.seen = fewest.and_then(|marks| Seen::of(&marks, regime));
        found.remarks.sort();
        found.remarks.dedup();
        Ok(found)
    }
}

fn list(folder: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let cannot = || format!("--traces {}: cannot be read", folder.display());
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if plain.ends_with(".trace.json") {
            found.insert(path);
        }
    }
    Ok(found)
}

fn whole(path: &Path) -> Option<Trace> {
    let trace = Trace::read(files::open(path).ok()?).ok()?;
    (trace.end == TraceEnd::Whole).then_some(trace)
}

/// What makes traces slow and large, by the header's own word.
fn heavy(path: &Path, name: &str) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut head = Vec::new();
    let read = files::open(path).map(|input| input.take(HEAD_BYTES).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    // Keys stand before the events.
    let text = text.split("\"traceEvents\"").next().unwrap_or_default();
    if !matches!(read, Ok(Ok(_))) {
        return remarks;
    }
    for (key, option) in [
        ("record_shapes", "torch_profiler_record_shapes"),
        ("profile_memory", "torch_profiler_with_memory"),
        ("with_stack", "torch_profiler_with_stack"),
        ("with_flops", "torch_profiler_with_flops"),
    ] {
        if text.contains(&format!("\"{key}\": 1")) {
            remarks.push(format!(
                "{option} is on: it makes steps slower and traces large; switch it off"
            ));
        }
    }
    if !name.ends_with(".gz") {
        remarks.push("torch_profiler_use_gzip is off: traces are ten times as large".to_owned());
    }
    remarks
}

const HEAD_BYTES: u64 = 1 << 16;
