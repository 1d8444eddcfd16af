//! Starting and ending the recorder's thread.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use takt_record::{Fold, JournalStats, SessionPlan, SharedPublisher};
use takt_time::{Anchor, Span};

use crate::file::JournalFile;
use crate::keep::Keep;
use crate::outlet::{Clean, Outlet};
use crate::ring::{IDLE, RingSink, ring};
use crate::worker::{Tick, Times, Worker};

/// What a recorder needs to know.
#[derive(Debug)]
pub struct RecorderConfig {
    /// The head of the journal.
    pub plan: SessionPlan,
    /// The journal; `None` keeps none.
    pub journal: Option<JournalConfig>,
    /// Reads both clocks: the run's monotonic one and the wall clock.
    pub anchor: fn() -> Anchor,
    /// Blocks that the ring holds.
    pub ring_blocks: usize,
    /// Sees each block first and may replace it.
    pub cleaner: Option<Box<dyn Clean>>,
    /// Where blocks go besides.
    pub outlets: Vec<Box<dyn Outlet>>,
}

/// Where the journal goes and what it keeps.
#[derive(Clone, Debug)]
pub struct JournalConfig {
    /// Its number among the journals of the run: one for each reactor.
    pub number: u32,
    /// The run folder; the journal is in its folder [`crate::JOURNAL_FOLDER`].
    pub run: PathBuf,
    /// Which requests are kept.
    pub keep: Keep,
    /// The size, in bytes, from which on requests are no longer kept. Records of session, phases, clocks
    /// and health still are: some 200 bytes a second.
    pub size_cap: Option<u64>,
}

/// Starts recorders.
#[derive(Debug)]
pub struct Recorder;

/// The hold on a running recorder. Dropped without [`finish`](Self::finish), it ends the thread too
/// and what the thread found is gone; the journal stays.
#[derive(Debug)]
pub struct RecorderHandle<F> {
    thread: Option<JoinHandle<Finished<F>>>,
    closing: Arc<AtomicBool>,
}

/// What a recorder leaves behind.
#[derive(Debug)]
pub struct Finished<F> {
    /// The fold, after all that was published.
    pub fold: F,
    /// How large the journal became; zeros without one.
    pub journal: JournalStats,
    /// The journal holds a sample of the requests.
    pub sampled: bool,
    /// The journal reached its size cap.
    pub capped: bool,
    /// Why the journal stopped before its end: its records up to there are whole, the fold has all.
    pub error: Option<io::Error>,
    /// The words of a panic in the fold or the tick. The fold stopped there, the journal did not:
    /// fold it again.
    pub fold_panic: Option<String>,
    /// The words of a panic in an outlet. None of them was used from then on.
    pub outlet_panic: Option<String>,
    /// The words of a panic in the cleaner. From that block on every text of a server is [`WITHHELD`].
    ///
    /// [`WITHHELD`]: crate::WITHHELD
    pub clean_panic: Option<String>,
}

impl RecorderConfig {
    /// No journal, and a ring of 64 blocks.
    #[must_use]
    pub fn new(plan: SessionPlan, anchor: fn() -> Anchor) -> Self {
        Self { plan, journal: None, anchor, ring_blocks: 64, cleaner: None, outlets: Vec::new() }
    }
}

impl JournalConfig {
    /// Everything, without a cap, in the run folder `run`.
    #[must_use]
    pub fn new(run: PathBuf) -> Self {
        Self { number: 0, run, keep: Keep::All, size_cap: None }
    }
}

impl Recorder {
    /// Makes the journal's file and starts the thread. `tick` is shown the fold four times a second and
    /// once at the end, on that thread.
    ///
    /// A thread inherits the cores of the one that starts it: start the recorder before the reactor's
    /// thread is pinned.
    ///
    /// # Errors
    /// The journal's file cannot be made or is there already, or there is no thread to be had.
    pub fn start<F, T>(
        config: RecorderConfig,
        fold: F,
        tick: T,
    ) -> io::Result<(RingSink, RecorderHandle<F>)>
    where
        F: Fold + Send + 'static,
        T: FnMut(&F, Tick<'_>) + Send + 'static,
    {
        let journal = config.journal.map(|j| JournalFile::create(&j, &config.plan)).transpose()?;
        let (sink, source) = ring(config.ring_blocks);
        let closing = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            ring: source,
            closing: Arc::clone(&closing),
            anchor: config.anchor,
            cleaner: config.cleaner,
            journal,
            outlets: config.outlets,
            fold,
            tick,
            times: Times::default(),
            panic: None,
            outlet_panic: None,
            clean_panic: None,
        };
        let builder = thread::Builder::new().name("takt-recorder".into());
        let thread = Some(builder.spawn(move || worker.run())?);
        Ok((sink, RecorderHandle { thread, closing }))
    }
}

impl<F> RecorderHandle<F> {
    /// Hands over all that waits in `publisher`: for after the reactor's last turn. Waits for the recorder
    /// at most for `patience`; `false` when something is left.
    #[must_use]
    pub fn drain(&self, publisher: &SharedPublisher, patience: Span) -> bool {
        let until = Instant::now() + Duration::from_nanos(patience.as_nanos());
        loop {
            publisher.flush();
            if publisher.waiting() == 0 {
                return true;
            }
            if self.is_over() || Instant::now() >= until {
                return false;
            }
            thread::sleep(IDLE / 5);
        }
    }

    /// Records what is in the ring, closes the journal and ends the thread. Takes as long as that takes.
    ///
    /// # Panics
    /// When the recorder itself is at fault; folds and ticks are not the recorder.
    #[must_use]
    pub fn finish(mut self) -> Finished<F> {
        let thread = self.close().expect("only finish and drop take the thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The thread has ended by itself, which is a fault.
    fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn close(&mut self) -> Option<JoinHandle<Finished<F>>> {
        self.closing.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        Some(thread)
    }
}

impl<F> Drop for RecorderHandle<F> {
    fn drop(&mut self) {
        if let Some(thread) = self.close() {
            // A second fault while this one unwinds would abort; the first is the one to be seen.
            drop(thread.join());
        }
    }
}
