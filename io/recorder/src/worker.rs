//! What the recorder's thread does, step by step.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use takt_record::{Block, BlockWriter, Fold, JournalStats, Record, fold_block};
use takt_time::{Anchor, Nanos, Span};

use crate::file::JournalFile;
use crate::outlet::{Clean, Outlet, without_texts};
use crate::recorder::Finished;
use crate::ring::{IDLE, RingSource};

/// What a look at the fold is told besides.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    /// The clocks.
    pub now: Anchor,
    /// How large the journal is; zeros without one.
    pub journal: JournalStats,
    /// Why the journal stopped, if it did.
    pub journal_error: Option<&'a io::Error>,
    /// The last look: nothing comes after it.
    pub last: bool,
}

/// The state of the recorder's thread.
pub(crate) struct Worker<F, T> {
    pub(crate) ring: RingSource,
    pub(crate) closing: Arc<AtomicBool>,
    pub(crate) anchor: fn() -> Anchor,
    pub(crate) cleaner: Option<Box<dyn Clean>>,
    pub(crate) journal: Option<JournalFile>,
    pub(crate) outlets: Vec<Box<dyn Outlet>>,
    pub(crate) fold: F,
    pub(crate) tick: T,
    pub(crate) times: Times,
    pub(crate) panic: Option<String>,
    pub(crate) outlet_panic: Option<String>,
    pub(crate) clean_panic: Option<String>,
}

/// When what is due next.
#[derive(Debug, Default)]
pub(crate) struct Times {
    clock: Nanos,
    flush: Nanos,
    tick: Nanos,
}

impl<F: Fold, T: FnMut(&F, Tick<'_>)> Worker<F, T> {
    pub(crate) fn run(mut self) -> Finished<F> {
        self.clocks();
        loop {
            // Read before the ring is: what was put in before the flag was set is then seen.
            let closing = self.closing.load(Ordering::Acquire);
            let worked = self.drain();
            self.clocks();
            if !worked {
                if closing {
                    return self.finish();
                }
                thread::park_timeout(IDLE);
            }
        }
    }

    /// Takes at most a ring of blocks, so that the clocks are looked at however fast they come.
    fn drain(&mut self) -> bool {
        for taken in 0..self.ring.capacity() {
            let Some(block) = self.ring.next() else { return taken > 0 };
            self.take(&block);
            self.ring.give_back(block);
        }
        true
    }

    /// The journal first, so that a fault in the fold costs no data. What must not be recorded is gone
    /// by then.
    fn take(&mut self, block: &Block) {
        let cleaned = self.clean(block);
        let block = cleaned.as_ref().unwrap_or(block);
        if let Some(journal) = &mut self.journal {
            journal.append(block);
        }
        if !self.outlets.is_empty() {
            self.send_on(|outlet| outlet.block(block));
        }
        self.guarded(|worker| {
            fold_block(block, &mut worker.fold).expect("blocks of this process can be read");
        });
    }

    /// What is to be recorded in the place of `block`. Once the cleaner has panicked nobody knows which text
    /// may be shown: none is, from this block on, and every record still counts.
    fn clean(&mut self, block: &Block) -> Option<Block> {
        let cleaner = self.cleaner.as_mut()?;
        if self.clean_panic.is_none() {
            match catch_unwind(AssertUnwindSafe(|| cleaner.clean(block))) {
                Ok(cleaned) => return cleaned,
                Err(panic) => self.clean_panic = Some(panic_words(panic.as_ref())),
            }
        }
        Some(without_texts(block))
    }

    fn send_on(&mut self, mut tell: impl FnMut(&mut dyn Outlet)) {
        let outlets = self.outlets.iter_mut();
        let sent =
            catch_unwind(AssertUnwindSafe(|| outlets.for_each(|outlet| tell(outlet.as_mut()))));
        if let Err(panic) = sent {
            self.outlet_panic = Some(panic_words(panic.as_ref()));
            self.outlets.clear();
        }
    }

    /// Writes an anchor, flushes and looks, each when it is due.
    fn clocks(&mut self) {
        let now = (self.anchor)();
        if now.mono >= self.times.clock {
            self.times.clock = now.mono + CLOCK_EVERY;
            let mut writer = BlockWriter::new(Block::with_capacity(0));
            writer.push(&Record::Clock(now)).expect("an empty block has room");
            self.take(writer.block());
        }
        if now.mono >= self.times.flush {
            self.times.flush = now.mono + FLUSH_EVERY;
            if let Some(journal) = &mut self.journal {
                journal.flush();
            }
        }
        if now.mono >= self.times.tick {
            self.times.tick = now.mono + TICK_EVERY;
            self.look(now, false);
        }
    }

    fn look(&mut self, now: Anchor, last: bool) {
        self.guarded(|worker| {
            let journal = worker.journal.as_ref();
            let tick = Tick {
                now,
                journal: journal.map(JournalFile::stats).unwrap_or_default(),
                journal_error: journal.and_then(JournalFile::error),
                last,
            };
            (worker.tick)(&worker.fold, tick);
        });
    }

    fn finish(mut self) -> Finished<F> {
        if let Some(journal) = &mut self.journal {
            journal.flush();
        }
        self.look((self.anchor)(), true);
        self.send_on(|outlet| outlet.end());
        Finished {
            journal: self.journal.as_ref().map(JournalFile::stats).unwrap_or_default(),
            sampled: self.journal.as_ref().is_some_and(JournalFile::sampled),
            capped: self.journal.as_ref().is_some_and(JournalFile::capped),
            error: self.journal.and_then(JournalFile::close),
            fold: self.fold,
            fold_panic: self.panic,
            outlet_panic: self.outlet_panic,
            clean_panic: self.clean_panic,
        }
    }

    /// Runs foreign code. Once it has panicked it is not run again, and recording goes on without.
    fn guarded(&mut self, run: impl FnOnce(&mut Self)) {
        if self.panic.is_some() {
            return;
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(self))) {
            self.panic = Some(panic_words(panic.as_ref()));
        }
    }
}

/// What a panic that was caught says.
#[must_use]
pub fn panic_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}

/// How often the two clocks are written down together.
const CLOCK_EVERY: Span = Span::from_secs(1);

/// How long a thinned journal may hold records back. A full one holds nothing back.
const FLUSH_EVERY: Span = Span::from_millis(500);

/// How often the fold is shown.
const TICK_EVERY: Span = Span::from_millis(250);
