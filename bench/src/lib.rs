//! What the benchmark programs share: the prebuilt exchange, the accounting and the flags.
//!
//! The programs of this crate are yardsticks. They do the least a program can do that
//! keeps N connections busy, so that what takt adds can be told from what the kernel takes.
//! They are not load generators: they record nothing, parse nothing beyond a first look, and give up
//! on the first error.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "the programs of this crate are the edge: they time themselves"
)]

mod args;
mod exchange;
mod floor;
mod usage;

pub use args::{Args, BadArg};
pub use exchange::{ANSWER_LEN, REQUEST_LEN, answer, message_len, request};
pub use floor::{Floor, PATIENCE};
pub use usage::{CpuTime, Spent};
