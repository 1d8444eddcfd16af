//! The thread behind the ring: it takes the blocks that the reactor publishes, writes them to the
//! journal, folds them, and shows the fold a few times a second.
//!
//! ```text
//!  reactor thread                               recorder thread
//!  Publisher --> RingSink ==== full blocks ====> clean, journal file, outlets, fold; now and then tick
//!                         <=== empty blocks ====
//! ```
//!
//! The reactor never waits for this thread. What does not fit the ring spills into the
//! publisher's own overflow and is counted there. The journal is written before the fold sees a
//! block, so that a fault in a fold costs no data; a journal that cannot be written (a full disk) is
//! remembered and reported at the end, and the run goes on without it.
//!
//! ```
//! use takt_record::{Fold, Publisher, PublisherConfig, Record, SessionEvent, SessionPlan, SessionRecord};
//! use takt_recorder::{Recorder, RecorderConfig};
//! use takt_time::{Anchor, Nanos};
//!
//! #[derive(Default)]
//! struct Count(u64);
//! impl Fold for Count {
//!     fn fold(&mut self, record: &Record<'_>) {
//!         self.0 += u64::from(matches!(record, Record::Session(_)));
//!     }
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! // A real program gives its plan and the clock of its host here.
//! let config = RecorderConfig::new(SessionPlan::default(), Anchor::default);
//! let (sink, handle) = Recorder::start(config, Count::default(), |_, _| {})?;
//! let mut publisher = Publisher::new(Box::new(sink), PublisherConfig::default());
//! publisher.push(&Record::Session(SessionRecord { at: Nanos::ZERO, event: SessionEvent::Started }));
//! publisher.flush();
//! assert_eq!(handle.finish().fold.0, 1);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate is the edge where the journal is a file and the recorder a thread"
)]

mod file;
mod keep;
mod outlet;
#[cfg(feature = "zmq")]
pub mod publish;
mod recorder;
mod ring;
mod worker;

pub use file::{JOURNAL_FOLDER, journal_files, journal_path, open_journal};
pub use keep::Keep;
pub use outlet::{Clean, Outlet, WITHHELD};
pub use recorder::{Finished, JournalConfig, Recorder, RecorderConfig, RecorderHandle};
pub use ring::RingSink;
pub use worker::{Tick, panic_words};
