//! Records to histograms to results to reports, purely.
//!
//! ```text
//! records --fold--> RunFold --result--> ResultDoc --render--> text
//!                      |                   |
//!                    live               result.json
//! ```
//!
//! [`RunFold`] is the only place where records become figures: the recorder thread folds as they come,
//! `takt report` folds a journal, and both give the same document. [`render`] needs the document alone.
//! Nothing here reads a clock, a file or a socket; memory does not grow with the number of requests.
//! What each figure means is in `docs/GLOSSARY.md`, where it stands in `docs/RESULT.md`.
#![forbid(unsafe_code)]

mod counted;
mod document;
mod fold;
mod gone;
mod health;
mod live;
mod packed;
pub mod paired;
mod phase;
mod rate;
mod samples;
mod series;
mod sketch;
mod slo;
mod snapshot;
mod steady;
mod streams;
mod student;
mod talks;
mod text;
mod timeline;
mod tracked;
mod verdict;
mod windows;

pub use fold::RunFold;
pub use live::{Latencies, Live, WINDOW_MARKS};
pub use sketch::Sketch;
pub use text::{Table, render, render_joined};
pub use verdict::Limits;
pub use windows::Windows;
