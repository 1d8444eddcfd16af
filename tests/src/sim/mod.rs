//! Deterministic simulation: whole sessions in virtual time, faults included, from one seed.
//!
//! # The tour
//!
//! A [`World`] is a virtual clock and a network; the [`SimHost`]s made from it are the machines on it. A
//! [`Drive`] steps their systems and moves the clock from one thing that happens to the next.
//!
//! ```text
//!   seed ──> Scenario ──> run: client System ── World ── server Systems
//!                          │        │                       │
//!                          │     records                  truth
//!                          v        v                       v
//!                        Ran <── checks: requests, phases, cap, schedule, answers, exact, report, end
//! ```
//!
//! One `u64` gives everything: the streams of chance ([`Chance`]) are jumped apart by purpose. The same
//! seed gives the same trace, dispatch by dispatch; a seed that breaks a rule prints itself, what it drew
//! and the last dispatches ([`Failed`]).

mod check;
mod connection;
mod drive;
mod host;
mod kept;
mod link;
mod log;
mod net;
mod pipe;
mod queue;
mod random;
mod run;
mod samples;
mod scenario;
mod slots;
mod talks;

pub use drive::{Drive, Stuck};
pub use host::{SimHost, World};
pub use kept::Kept;
pub use link::{Cuts, Faults, Link};
pub use log::Told;
pub use net::SYSTEM_PATIENCE;
pub use random::{Chance, Purpose};
pub use run::{Failed, Ran, run};
pub use scenario::{Http, Load, OrderKind, Phase, Records, Scenario, Service, Transport};
pub use talks::{Beginning, Talks};
