//! placeholder
#![forbid(unsafe_code)]
mod host;
pub use host::{Close, Host, ReadOutcome, Ready, StreamId, Target, Then, Wake, Woken};
