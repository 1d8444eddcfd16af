//! Step records as several commands need them: all files in order, one scheduler at a time.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use takt_opprof::{StepFacts, read_steps};

use super::{check, files};
use crate::console::Console;

/// The steps of these folders and files, in order. They must be of one scheduler, or of the one that
/// `engine` names.
pub(super) fn steps(
    paths: &[PathBuf],
    engine: Option<&str>,
    console: &Console,
) -> anyhow::Result<Vec<StepFacts>> {
    let found = check::in_order(paths)?;
    let mut engines: Vec<&str> = found
        .iter()
        .filter_map(|(heading, _)| Some(heading.as_ref()?.engine_id.as_str()))
        .collect();
    engines.dedup();
    let engine = match (engine, &engines[..]) {
        (Some(engine), _) => engine,
        (None, [one]) => one,
        (None, []) => bail!("no step records in {}", shown(paths)),
        (None, several) => {
            bail!("records of several schedulers: {}; name one with --engine", several.join(", "))
        }
    };
    let mut steps = Vec::new();
    for (heading, path) in &found {
        if heading.as_ref().is_none_or(|heading| heading.engine_id != engine) {
            continue;
        }
        let unreadable = read_steps(files::open(path)?, &mut steps)
            .with_context(|| format!("{}: cannot be read", path.display()))?;
        if unreadable > 0 {
            console.warn(format!(
                "{}: {unreadable} lines are no records; takt opprof check names them",
                path.display()
            ));
        }
    }
    if steps.is_empty() {
        bail!("no step records of {engine} in {}", shown(paths));
    }
    Ok(steps)
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
