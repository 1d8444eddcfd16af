//! The report as text: the figures, and under them what was sent to get them.
//!
//! Made from the result document alone, so that a run and a later `takt report` print the same.

use std::fmt::Write as _;

use serde_json::Value;
use takt_record::ResultDoc;

/// The report of a run.
pub(crate) fn text(result: &ResultDoc) -> String {
    let mut text = takt_report::render(result);
    let phases = result.config.get("phases").and_then(Value::as_array);
    let sources: Vec<_> = phases.into_iter().flatten().filter_map(source).collect();
    let Some((_, first)) = sources.first() else { return text };
    // Writing to a string does not fail.
    if sources.iter().all(|(_, source)| source == first) {
        let _ = writeln!(text, "\nsamples: {first}");
    } else {
        let _ = writeln!(text, "\nsamples:");
        for (name, source) in &sources {
            let _ = writeln!(text, "  {name}: {source}");
        }
    }
    text
}

/// The name of a phase, and where its samples came from.
fn source(phase: &Value) -> Option<(&str, String)> {
    let name = phase.get("name")?.as_str()?;
    let dataset = phase.get("dataset")?;
    if dataset.is_null() {
        return Some((name, "one body, sent over and over".to_owned()));
    }
    if let Some(path) = dataset.get("path").and_then(Value::as_str) {
        return Some((name, path.to_owned()));
    }
    let words = match dataset.get("words")? {
        Value::Object(range) => format!("{} to {}", range.get("min")?, range.get("max")?),
        words => words.to_string(),
    };
    let prompts = dataset.get("prompts")?;
    Some((name, format!("{prompts} different made-up prompts of {words} words")))
}
