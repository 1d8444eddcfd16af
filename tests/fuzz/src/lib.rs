//! What comes from outside, read by takt and by somebody else: the two must agree.
//!
//! Each target is a function over bytes that panics when something is wrong. `fuzz_targets/` hands it to
//! libFuzzer; `tests/tests/fuzz_corpora.rs` runs it over the committed corpora under plain `cargo test`.
//!
//! The first bytes of an input choose options and how the rest is cut into reads; they are chosen so
//! that an input can be written by hand (`@1HTTP/1.1 200 OK…`). What each one holds is in its module.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of the edge; the configuration, compiled in, reads files and the environment"
)]

mod answer;
mod config;
mod conversations;
mod dataset;
mod endpoint_url;
mod event_delta;
mod event_model;
mod http_exchange;
mod hyper_client;
mod journal;
mod pieces;
mod record_block;
mod request_parser;
mod sse;

pub use answer::answer;
pub use config::config;
pub use dataset::dataset;
pub use endpoint_url::endpoint_url;
pub use event_delta::event_delta;
pub use http_exchange::http_exchange;
pub use journal::journal;
pub use record_block::record_block;
pub use request_parser::request_parser;
pub use sse::sse;

/// A target and its name, which is that of its program and of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by name.
pub const TARGETS: [Target; 10] = [
    ("answer", answer),
    ("config", config),
    ("dataset", dataset),
    ("endpoint_url", endpoint_url),
    ("event_delta", event_delta),
    ("http_exchange", http_exchange),
    ("journal", journal),
    ("record_block", record_block),
    ("request_parser", request_parser),
    ("sse", sse),
];
