//! Output tokens counted by a tokenizer of ours, `tokenizer: PATH`, once the run is over.
//!
//! ```text
//! journal ──records──> Counting ──the same records, counts in the ends──> fold ──> result
//!                         │  ^
//!                    texts└──┘counts    (threads of their own, a window of texts at a time)
//! ```
//!
//! The journal has the texts, as it has those of accuracy phases, so nothing is counted on the reactor and
//! nothing while the clock runs; what is held are one window and the answers that were under way at one
//! moment. A report made from the folder counts again, and comes to the same.

mod counting;
#[cfg(not(feature = "tokenizer"))]
#[path = "no_file.rs"]
mod file;
#[cfg(feature = "tokenizer")]
mod file;

use std::path::Path;

use anyhow::Context as _;
use takt_record::{PhaseKind, SessionPlan};

use crate::config::Config;
pub(crate) use counting::Counting;
pub(crate) use file::Tokenizer;

/// Refuses a tokenizer that cannot be had, before anything is sent.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    match &config.tokenizer {
        Some(path) => open(path).map(drop),
        None => Ok(()),
    }
}

/// The tokenizer that a run was told to count with, if any.
pub(crate) fn of_plan(plan: &SessionPlan) -> anyhow::Result<Option<Tokenizer>> {
    let path = plan.config.get("tokenizer").and_then(serde_json::Value::as_str);
    path.map(|path| open(Path::new(path))).transpose()
}

/// The phases whose answers it counts.
pub(crate) fn counts(kind: PhaseKind) -> bool {
    kind != PhaseKind::Warmup
}

fn open(path: &Path) -> anyhow::Result<Tokenizer> {
    Tokenizer::open(path).with_context(|| format!("tokenizer: {}", path.display()))
}
