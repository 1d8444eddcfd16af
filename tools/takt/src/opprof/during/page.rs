//! The page of the report: what was written down of the server's side, beside the latencies of the journal.
//! Made from the run folder alone, so that the run and a later `takt report` print the same.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use takt_record::{Joined, ResultDoc, RunState, ServerSide};
use takt_time::Span;

use super::super::{files, join};
use super::OWN;
use crate::console::Console;

/// Adds the page to the result of the run in `folder`, if the run was to have one.
pub(crate) fn attach(folder: &Path, result: &mut ResultDoc, console: &Console) {
    let Some(asked) = result.config.get("opprof").filter(|asked| !asked.is_null()) else { return };
    let own = folder.join(OWN);
    let mut side = read(&own).unwrap_or_else(|error| ServerSide {
        problems: vec![format!("{error:#}")],
        ..ServerSide::default()
    });
    if asked.get("records").is_some_and(Value::is_string) {
        let engine = asked.get("engine").and_then(Value::as_str);
        match joined(folder, engine, result, console) {
            Ok(joined) => side.joined = Some(joined),
            Err(error) => side.problems.push(format!("latency beside the records: {error:#}")),
        }
    }
    result.opprof = Some(side);
}

/// Writes down what is known of the server's side, its latencies apart.
pub(super) fn write(own: &Path, side: &ServerSide) -> anyhow::Result<()> {
    let (path, part) = (own.join(NAME), own.join(PART));
    let mut text = serde_json::to_string_pretty(side)?;
    text.push('\n');
    let cannot = || format!("{}: cannot be written", path.display());
    fs::write(&part, text).with_context(cannot)?;
    fs::rename(&part, &path).with_context(cannot)
}

fn read(own: &Path) -> anyhow::Result<ServerSide> {
    let path = own.join(NAME);
    let bytes = files::read(&path, BYTES_MAX)?;
    serde_json::from_slice(&bytes).with_context(|| format!("{}: is damaged", path.display()))
}

fn joined(
    folder: &Path,
    engine: Option<&str>,
    result: &ResultDoc,
    console: &Console,
) -> anyhow::Result<Joined> {
    let own = folder.join(OWN);
    let mut bytes = 0;
    let mut any = false;
    for entry in fs::read_dir(&own).with_context(|| own.display().to_string())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(".jsonl") {
            any = true;
            bytes += entry.metadata()?.len();
        }
    }
    ensure!(
        any || result.state != RunState::Killed,
        "the run was killed before its records were collected; `takt opprof join` takes them from where the server wrote \
         them (--records)"
    );
    ensure!(any, "no record was collected");
    ensure!(
        bytes <= RECORDS_MAX,
        "{bytes} bytes of records are too many to be held; `takt opprof join` takes the part that is left \
         in the folder"
    );
    join::joined(folder, &[own], engine, (slice(result), SLOWEST), console)
}

/// The least number of whole seconds, doubled, with which a run has no more slices than a page has room for.
fn slice(result: &ResultDoc) -> Span {
    let length = result.end_time_ns.zip(result.start_time_ns);
    let seconds = length.map_or(0, |(end, start)| end.saturating_sub(start) / 1_000_000_000);
    let mut slice = 1;
    while seconds / slice >= SLICES {
        slice *= 2;
    }
    Span::from_secs(slice)
}

/// What is known of the server's side, in its folder.
const NAME: &str = "server.json";
const PART: &str = "server.json.part";
const BYTES_MAX: u64 = 256 << 20;
/// A million steps or two, a quarter of which is held in memory.
const RECORDS_MAX: u64 = 2 << 30;
const SLOWEST: usize = 5;
const SLICES: u64 = 60;
