//! The shape of a metrics snapshot, schema `takt-snapshot-1`: the state of a session's figures at one
//! moment.
//!
//! The same document stands in `metrics/final_snapshot.json` and goes to subscribers a few times a second.
//! It is flat, a list of counters and series under stable names, so that a consumer needs no knowledge of
//! [`crate::ResultDoc`]: the session's totals, then each phase under its own name. Times are whole
//! nanoseconds. `docs/RESULT.md` lists the names.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::kinds::{PhaseKind, PhaseState};
use crate::result::{Percentiles, RunState};

/// The name of this schema, the first key of every snapshot.
pub const SNAPSHOT_SCHEMA: &str = "takt-snapshot-1";

/// The figures of a session at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricsSnapshot {
    /// [`SNAPSHOT_SCHEMA`].
    pub schema: Cow<'static, str>,
    /// 32 hex characters.
    pub session_id: String,
    /// Its number among the snapshots of the session, from 0; a gap says that some did not arrive.
    pub counter: u64,
    /// When it was taken, nanoseconds of the run's monotonic clock.
    pub timestamp_ns: u64,
    /// How far the session is.
    pub state: SnapshotState,
    /// Totals of the session.
    pub metrics: Vec<Metric>,
    /// Every planned phase in order.
    pub phases: Vec<PhaseSnapshot>,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotState {
    /// It runs.
    Live,
    /// All phases ran to their ends.
    Complete,
    /// A stop was asked for, and the session is over.
    Interrupted,
    /// The session could not go on.
    Failed,
    /// Nothing more comes, and the session's end was not seen.
    Killed,
}

/// The figures of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseSnapshot {
    /// Unique in the session.
    pub name: String,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: PhaseKind,
    /// How it ended; `None` while it runs or before.
    pub state: Option<PhaseState>,
    /// Its counters, then its series; a series without a value is left out.
    pub metrics: Vec<Metric>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Metric {
    /// A count.
    Counter {
        /// A stable name.
        name: Cow<'static, str>,
        /// The count.
        value: u64,
    },
    /// Values of one kind.
    Series(SeriesSnapshot),
}

/// The values of one kind so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesSnapshot {
    /// A stable name, the unit last.
    pub name: Cow<'static, str>,
    /// Values in it, at least one.
    pub count: u64,
    /// Their exact sum.
    pub total: u64,
    /// Least.
    pub min: u64,
    /// Greatest.
    pub max: u64,
    /// Sum of their squares.
    pub sum_sq: f64,
    /// Percentiles by nearest rank, to three significant digits.
    pub percentiles: Percentiles,
}

impl From<RunState> for SnapshotState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Complete => Self::Complete,
            RunState::Interrupted => Self::Interrupted,
            RunState::Failed => Self::Failed,
            RunState::Killed => Self::Killed,
        }
    }
}
