//! The traces that a window wrote: files that were not there before, read to their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use takt_opprof::{Composition, Regime, Trace, TraceEnd};
use takt_time::Nanos;

use super::super::attribute::rank_in_name;
use super::super::files;
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
    /// Ranks that there are, as far as anybody tells.
    pub(super) ranks: usize,
}

impl Traces {
    /// Looks at the folder.
    pub(super) fn before(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self { before: list(folder)?, folder: folder.to_owned() })
    }

    /// Waits until as many whole traces are there that were not before as there are ranks, each of other
    /// steps than those before `started`; gives what there is at the `deadline`. Where the number of ranks
    /// is not `given`, it is what earlier windows had, or what a trace says its world's size is.
    pub(super) fn wait(
        &self,
        started_wall_ns: u64,
        (given, earlier): (Option<usize>, usize),
        deadline: Nanos,
        regime: &Regime,
    ) -> anyhow::Result<Found> {
        let mut read: BTreeSet<PathBuf> = BTreeSet::new();
        let (mut looked, mut unfinished) = (BTreeMap::new(), BTreeMap::new());
        let ranks = given.unwrap_or(earlier).max(1);
        let mut found = Found { ranks, ..Found::default() };
        let mut fewest: Option<Vec<Composition>> = None;
        while found.files.len() < found.ranks {
            for path in list(&self.folder)? {
                if self.before.contains(&path) || read.contains(&path) {
                    continue;
                }
                // One that grows is still being written; one that is at rest and not whole is read again when
                // it has grown.
                let bytes = fs::metadata(&path).map_or(0, |found| found.len());
                let before = looked.insert(path.clone(), bytes);
                if bytes == 0 || before != Some(bytes) || unfinished.get(&path) == Some(&bytes) {
                    continue;
                }
                let Some(trace) = whole(&path) else {
                    unfinished.insert(path, bytes);
                    continue;
                };
                read.insert(path.clone());
                let marks: Vec<Composition> =
                    trace.steps.iter().filter_map(|step| step.composition).collect();
                let first = trace.steps.first().and_then(|step| trace.wall_ns(step.start_ns));
                if first.is_some_and(|first| first < started_wall_ns) {
                    found.remarks.push(format!("{}: of an earlier window", path.display()));
                    continue;
                }
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let head = head(&path);
                found.remarks.extend(heavy(&head, &name));
                if given.is_none() {
                    found.ranks = found.ranks.max(world_size(&head).unwrap_or(1));
                }
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
            std::thread::sleep(LOOK_AT_FILES_EVERY);
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

/// What stands before a trace's events.
fn head(path: &Path) -> String {
    let mut head = Vec::new();
    if let Ok(input) = files::open(path) {
        // A trace that cannot be read any more has told nothing.
        drop(input.take(HEAD_BYTES).read_to_end(&mut head));
    }
    let text = String::from_utf8_lossy(&head);
    text.split("\"traceEvents\"").next().unwrap_or_default().to_owned()
}

/// Ranks of the group that a trace's rank is one of.
fn world_size(head: &str) -> Option<usize> {
    let rest = head.split("\"world_size\":").nth(1)?.trim_start();
    rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

/// What makes traces slow and large, by the header's own word.
fn heavy(text: &str, name: &str) -> Vec<String> {
    let mut remarks = Vec::new();
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

/// The server that writes them is under load, and on this machine.
const LOOK_AT_FILES_EVERY: Duration = Duration::from_millis(50);
const HEAD_BYTES: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_ranks_and_what_makes_traces_large() {
        let head =
            r#"{"distributedInfo": {"rank": 0, "world_size": 4, "pg_count": 1}, "with_flops": 1,"#;
        assert_eq!((world_size(head), world_size("{}")), (Some(4), None));
        let remarks = heavy(head, "a.pt.trace.json");
        assert!(remarks[0].starts_with("torch_profiler_with_flops is on"), "{remarks:?}");
        assert!(remarks[1].starts_with("torch_profiler_use_gzip is off"), "{remarks:?}");
        assert!(heavy("{}", "a.pt.trace.json.gz").is_empty());
    }
}
