//! Deterministic simulation: whole sessions in virtual time, faults included, from one seed.
//!
//! # The tour
//!
//! A [`World`] is a virtual clock and a network; the [`SimHost`]s made from it are the machines on it. A
//! [`Drive`] steps their systems and moves the clock from one thing that happens to the next.

mod connection;
mod drive;
mod host;
mod link;
mod net;
mod pipe;
mod queue;
mod random;
mod slots;

pub use drive::{Drive, Stuck};
pub use host::{SimHost, World};
pub use link::{Cuts, Faults, Link};
pub use net::SYSTEM_PATIENCE;
pub use random::{Chance, Purpose};
