//! The command as its users meet it: through the binary, against its own reference server and against
//! small servers of the tests.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "processes, sockets and files are what these tests are about"
)]

mod accuracy;
mod bench;
mod cases;
mod config;
mod connections;
mod control;
mod conversations;
mod damaged;
mod disk;
mod ending;
mod events;
mod exit_codes;
mod files;
mod hostile;
mod journal;
mod killed;
mod limits;
mod mock;
mod opprof;
mod opprof_run;
mod opprof_window;
mod pacer;
mod probe;
#[cfg(feature = "zmq")]
mod publish;
mod reactors;
mod replay;
mod report;
mod runs;
mod salts;
mod secrets;
mod selftest;
mod slowed;
mod stops;
mod sweep;
mod tls;
#[cfg(feature = "tokenizer")]
mod tokenizer;
mod truth;
