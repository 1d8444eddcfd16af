//! The project's chores as ordinary Rust, so that they run wherever the toolchain runs.
//!
//! * [`ci`]: everything that must hold before a change is taken, step by step.
//! * [`tidy`]: rules of the house that no compiler checks. Fast; a test runs it too.
//! * [`fuzz`]: each fuzz target for some seconds.
//! * [`bench`]: what takt costs, beside other programs and by itself.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "chores time, wait, and talk to the machine; they are no part of the product"
)]

pub mod bench;
pub mod ci;
pub mod fuzz;
pub mod root;
pub mod tidy;
