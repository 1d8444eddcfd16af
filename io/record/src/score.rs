//! The shape of a phase's score in `result.json`.

use serde::{Deserialize, Serialize};

/// What the answers of a phase are worth. `issued = scored + empty + failed + missing`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The scorer by its name in the configuration.
    pub by: String,
    /// What of a response was scored; `None` for an external command, which gets all of it.
    pub of: Option<String>,
    /// The column of the truth.
    pub truth: Option<String>,
    /// `sum / issued`; `None` when nothing was issued or the scoring failed.
    pub value: Option<f64>,
    /// The sum of all marks; `None` when the scoring failed.
    pub sum: Option<f64>,
    /// Requests issued.
    pub issued: u64,
    /// Answered and judged.
    pub scored: u64,
    /// Of those, answers in which the scorer found nothing to compare.
    pub unextracted: u64,
    /// Answered with nothing to judge.
    pub empty: u64,
    /// Failed.
    pub failed: u64,
    /// Unanswered, or without an end on record.
    pub missing: u64,
    /// Issued with no truth to compare with: in none of the counts before.
    #[serde(default)]
    pub excluded: u64,
    /// Each asking of the samples by itself, in order.
    pub repeats: Vec<RepeatScore>,
    /// How far the repeats lie apart; `None` for fewer than two.
    pub spread: Option<Spread>,
    /// Why there is no score, when the scoring failed.
    pub error: Option<String>,
}

/// The score of one asking of all samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatScore {
    /// Requests issued.
    pub issued: u64,
    /// The sum of their marks.
    pub sum: f64,
    /// `sum / issued`.
    pub value: f64,
}

/// How far the scores of several repeats lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Standard deviation of the sample (divisor: repeats less one).
    pub stddev: f64,
}
