//! The `scheduler` mode: an inference server's continuous batching, simulated.
//!
//! ```text
//!            prompt             schedule: who, how many tokens           cost: how long
//!  request ─────────> waiting ──────────────────────────────> step ──────────────────────> complete
//!                       ^   (budget, blocks, prefix cache)     │                              │
//!                       └────────── preempted ────────────────┘    StepRecord, tokens, trace <┘
//! ```
//!
//! It follows vLLM's V1 scheduler where that shows from outside: requests in the batch go first, then those
//! that wait, first come first served, while tokens, places and blocks last; long prompts are cut at the
//! token budget; who gets no block throws out the newest of the batch, to be computed again. One step is
//! under way at a time. A step's time is drawn from its composition, so the same arrivals and seed give the
//! same steps.
//!
//! What it is not: a model of a particular GPU. Its costs are parameters, and its kernels have real names
//! so that tools for traces can be held against a truth.

mod config;
mod core;
mod cost;
mod counts;
mod pool;
mod profiler;
mod prompt;
mod schedule;
mod serve;
#[cfg(test)]
mod serve_tests;
mod step;
#[cfg(test)]
mod tests;
mod timeline;
mod trace;

pub use config::{
    BatchLimits, CacheConfig, CostModel, GraphPolicy, ProfilerConfig, SchedulerConfig,
    SpeculativeConfig,
};
pub(crate) use core::Ticket;
pub(crate) use counts::StepCounts;
pub(crate) use prompt::Prompt;
pub(crate) use serve::Scheduling;
pub use step::Shape;
pub use timeline::{Family, FamilyTime};
pub use trace::ProfiledWindow;

use takt_record::StepRecord;

/// Takes what a scheduler tells of itself, on the server's thread: hand it on, do not work on it.
pub trait SchedulerSink {
    /// A step is complete.
    fn step(&mut self, record: StepRecord<'static>);
    /// A profiler window is over; what it would write is in it.
    fn window(&mut self, window: ProfiledWindow);
    /// The server stops; so many steps were begun and never completed.
    fn end(&mut self, unfinalized: u64);
}
