//! Tests that need more than one crate, and what they share.
//!
//! This library is pure: it sees hosts only through [`takt_engine::Host`], so that a simulated network
//! can be held to the same rules as the operating system. The tests in `tests/` bring the real one.
#![forbid(unsafe_code)]

pub mod conformance;
pub mod mutants;
pub mod sim;
