//! The reference inference server, as an actor over [`takt_engine::Host`].
//!
//! # The tour
//!
//! A [`Server`] listens on one [`takt_engine::Target`] and speaks HTTP/1.1 with keep-alive and pipelining.
//! It has four modes, one for each thing that a client has to be held against.
//!
//! - [`Mode::Instant`] answers at once with prepared bytes: the most requests a second that one core can
//!   serve. What limits a run against it is the client, or the kernel.
//! - [`Mode::Timed`] answers token by token at planned instants. A request's [`Plan`] (time to first token,
//!   gaps, length, error or not) is drawn from the seed and the request's id, so client and test can draw
//!   it too. A [`TruthSink`] is told of each request what was planned and when it was really written.
//! - [`Mode::Scheduler`] answers when the steps of a simulated scheduler are complete: batching, prefix cache,
//!   preemption and all. A [`SchedulerSink`] gets a record of each step, and profiler windows.
//! - [`Mode::Hostile`] answers as `timed` does, with [`Fault`]s: what servers, gateways and networks do
//!   to those who measure them.
//!
//! ```text
//!              RequestParser          Site                       socket
//!  bytes read ──────────────> request ────> Prepared ──────────────^
//!                                      └──> Plan ─> Generation ─ call_at
//! ```
//!
//! Routes: `/v1/chat/completions`, `/v1/completions`, `/v1/responses` and SGLang's `/generate`, each streamed or
//! not; `/v1/embeddings`; `/v1/models`, `/health`, `/metrics`; in `scheduler` also `/version`, `/server_info` and, with a
//! profiler, `/start_profile` and `/stop_profile`. Every other path is a 404, in `instant` a 200.
//!
//! What is pure in the narrow sense, bytes and time in and bytes out, is in the parts: the answers
//! (`openai`, `sglang`, `instant`), a generation over time (`generation`), what is kept for the truth
//! (`ledger`). [`Server`] joins them to streams and timers (`incoming`, `outgoing`). [`Counts`] is the
//! witness: what the server counted, for any thread to look at.
//!
//! ```
//! use takt_engine::Target;
//! use takt_mock::{Mode, Server, ServerConfig, TimedConfig};
//!
//! let timed = TimedConfig {
//!     ttft: "lognormal:80ms,0.4".parse()?,
//!     tpot: "uniform:8ms..12ms".parse()?,
//!     ..TimedConfig::default()
//! };
//! let listen = Target::tcp(([127, 0, 0, 1], 0).into());
//! let server = Server::new(ServerConfig::new(listen, Mode::Timed(timed)))?;
//! assert_eq!(server.counts().requests(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What it is not: a model. Its text means nothing, unless it is told what to say ([`Saying`]).
#![forbid(unsafe_code)]

mod asked;
mod config;
mod connection;
mod counts;
mod distribution;
mod generation;
mod hostile;
mod incoming;
mod instant;
mod json;
mod ledger;
mod openai;
mod outgoing;
mod page;
mod plan;
mod responses;
mod said;
mod scheduler;
mod server;
#[cfg(test)]
mod server_tests;
mod sglang;
mod site;
#[cfg(test)]
mod testing;
mod truth;
#[cfg(test)]
mod truth_tests;

pub use config::{ConfigError, ErrorShare, InstantConfig, Mode, ServerConfig, TimedConfig};
pub use counts::Counts;
pub use distribution::{CountDistribution, DistributionError, SpanDistribution};
pub use hostile::{Fault, FaultError, FaultRow, HostileConfig};
pub use openai::Api;
pub use plan::{Plan, PlanKey};
pub use said::Saying;
pub use scheduler::{
    BatchLimits, CacheConfig, CostModel, Family, FamilyTime, GraphPolicy, ProfiledWindow,
    ProfilerConfig, SchedulerConfig, SchedulerSink, Shape, SpeculativeConfig,
};
pub use server::{Own, Server, ServerMsg};
pub use truth::{Event, Truth, TruthSink};
