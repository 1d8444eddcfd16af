//! What the answers of a run said, as one number: two runs of the same requests must agree.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use takt_record::{EndedBy, PhaseResult};

use super::files;

/// One kept answer, as far as it matters.
#[derive(Deserialize)]
struct Answer {
    phase: String,
    sample: u64,
    repeat: u64,
    outcome: Option<String>,
    finish_reason: Option<String>,
    text: Option<String>,
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Value>,
}

/// A digest of the phase's answers, by sample; `None` when they were not kept, are not all there, or are of
/// as many requests as there was time for, which differ from run to run. `config` is the run's.
pub(super) fn digest(
    folder: &Path,
    phase: &PhaseResult,
    config: &Value,
) -> anyhow::Result<Option<String>> {
    let path = folder.join("responses.jsonl");
    let counted = match phase.ended_by {
        Some(EndedBy::Requests | EndedBy::Conversations) => true,
        // One pass over the dataset, or as many as there was time for.
        Some(EndedBy::Dataset) => {
            let phases = config.get("phases").and_then(Value::as_array);
            let own = phases.into_iter().flatten().find(|own| own["name"] == phase.name.as_str());
            own.is_some_and(|own| own["min_duration"].is_null())
        }
        _ => false,
    };
    if !counted || !path.is_file() {
        return Ok(None);
    }
    let mut answers: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for line in files::open(&path)?.lines() {
        let line = line.with_context(|| path.display().to_string())?;
        let answer: Answer =
            serde_json::from_str(&line).with_context(|| path.display().to_string())?;
        if answer.phase != phase.name {
            continue;
        }
        if answer.outcome.as_deref() != Some("ok") {
            return Ok(None);
        }
        answers.insert((answer.sample, answer.repeat), hash(&answer));
    }
    if answers.is_empty() {
        return Ok(None);
    }
    let all = answers.iter().fold(FNV_BASIS, |hash, ((sample, repeat), answer)| {
        [*sample, *repeat, *answer]
            .iter()
            .fold(hash, |hash, value| fold(hash, &value.to_le_bytes()))
    });
    Ok(Some(format!("{all:016x} of {} answers", answers.len())))
}

fn hash(answer: &Answer) -> u64 {
    let tools = answer.tool_calls.as_ref().map(Value::to_string);
    [&answer.text, &answer.reasoning, &tools, &answer.finish_reason].iter().fold(
        FNV_BASIS,
        |hash, part| {
            // What is absent is not what is empty.
            let hash = fold(hash, &[u8::from(part.is_some())]);
            fold(hash, part.as_deref().unwrap_or_default().as_bytes())
        },
    )
}

/// FNV-1a, 64 bits: to see a difference, not to withstand an attack.
fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
