//! Writes step records without ever making a scheduler wait.
//!
//! ```text
//! scheduler --put: encode, try to queue--> 8,192 lines --writer thread--> opprof-v1-dp0-pid1-….jsonl
//!               full: drop, count                              rotated, the closed ones compressed
//! ```
//!
//! A record that does not fit the queue is dropped and counted, and the next one that fits says how many
//! were. The writer hands what it has to the system at 1 MiB, after a second, and whenever the queue runs
//! empty; it never syncs, so what a killed process had written survives and the machine's end does not.
//! Each file that is closed in order has a footer of its own, which speaks of that file alone; the last
//! one's is written by [`Recorder::close`], and on drop.
//!
//! Both threads meet in one bounded channel and nowhere else: counters belong to the thread that counts,
//! and travel with the last message.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "its thread and its files are what it is for"
)]

mod file;
mod recorder;
mod writer;

pub use file::{FileName, check_folder};
pub use recorder::{Recorder, RecorderConfig, Written};
