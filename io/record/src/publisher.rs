//! The reactor's side of recording: records in, blocks out, no waiting.
//!
//! Records go into the current block. A full block goes to the sink; when the sink has no room, to a
//! bounded overflow that drains, oldest first, before anything newer is offered (`spilled` counts such
//! blocks); when that is full too, new records are counted `lost` and not kept. Both counters belong in
//! [`crate::Health`], so that the verdict knows: nothing is dropped silently. The few records that frame
//! everything else (session, phase, window) may use a small reserve beyond the overflow.
//!
//! A block is also handed over when its first record has been waiting for `hold`, so that a quiet run can
//! be watched live; [`Publisher::turn`] looks, and costs one comparison when nothing is due.
//!
//! Blocks come back through the sink, so nothing is allocated once as many exist as the run keeps in
//! motion.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use takt_time::{Nanos, Span};

use crate::block::{Block, BlockWriter, NotPushed};
use crate::records::{Completed, Issued, Record, Text, Token};
use crate::sink::BlockSink;

/// Sizes of a publisher.
#[derive(Clone, Copy, Debug)]
pub struct PublisherConfig {
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Blocks that may wait for the sink. They are allocated only when they are needed.
    pub overflow_blocks: usize,
    /// A block that does not fill is handed over by the first [`Publisher::turn`] after its first record
    /// has waited so long.
    pub hold: Span,
}

impl Default for PublisherConfig {
    /// Blocks of 32 KiB, 32 MiB of overflow, a hold of 25 ms.
    fn default() -> Self {
        Self { block_bytes: 32 << 10, overflow_blocks: 1024, hold: Span::from_millis(25) }
    }
}

/// What a publisher counts since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PublisherCounters {
    /// Records kept.
    pub records: u64,
    /// Blocks handed over or waiting.
    pub blocks: u64,
    /// Blocks that had to wait because the sink was full.
    pub spilled: u64,
    /// Records not kept because the overflow was full.
    pub lost: u64,
}

/// Packs records and hands them over.
pub struct Publisher {
    writer: BlockWriter,
    sink: Box<dyn BlockSink>,
    overflow: VecDeque<Block>,
    config: PublisherConfig,
    counters: PublisherCounters,
}

/// A handle on one publisher for several actors of one thread.
#[derive(Clone, Debug)]
pub struct SharedPublisher(Rc<RefCell<Publisher>>);

/// Blocks beyond the overflow that session, phase and window records may open.
const RESERVE_BLOCKS: usize = 8;

/// The longest message of an error that is kept, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 512;

impl Publisher {
    /// A publisher into `sink`.
    #[must_use]
    pub fn new(mut sink: Box<dyn BlockSink>, config: PublisherConfig) -> Self {
        let first = sink.spare().unwrap_or_else(|| Block::with_capacity(config.block_bytes));
        Self {
            writer: BlockWriter::new(first),
            sink,
            overflow: VecDeque::new(),
            config,
            counters: PublisherCounters::default(),
        }
    }

    /// Records `record`. A long text becomes several records, a long message is cut.
    #[inline]
    pub fn push(&mut self, record: &Record<'_>) {
        match record {
            Record::Issued(r) => self.issued(r),
            Record::Token(r) => self.token(r),
            Record::Completed(r) => self.completed(r),
            other => self.rare(other),
        }
    }

    /// Records an [`Issued`].
    #[inline]
    pub fn issued(&mut self, issued: &Issued) {
        self.put(0, |w| w.issued(issued));
    }

    /// Records a [`Token`].
    #[inline]
    pub fn token(&mut self, token: &Token) {
        self.put(0, |w| w.token(token));
    }

    /// Records a [`Completed`].
    #[inline]
    pub fn completed(&mut self, completed: &Completed) {
        self.put(0, |w| w.completed(completed));
    }

    /// To be called at the end of a turn, or about as often: hands over what waits in the overflow, and
    /// the current block when its first record is older than `hold`.
    #[inline]
    pub fn turn(&mut self, now: Nanos) {
        let block = self.writer.block();
        let due = !block.is_empty() && now.saturating_since(block.base()) >= self.config.hold;
        if due || !self.overflow.is_empty() {
            self.drain();
            if due {
                self.hand_over_begun();
            }
        }
    }

    /// Hands over the current block however little is in it, and what waits in the overflow.
    pub fn flush(&mut self) {
        self.drain();
        if !self.writer.block().is_empty() {
            self.hand_over_begun();
        }
    }

    /// Blocks that wait for the sink, a begun one included.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.overflow.len() + usize::from(!self.writer.block().is_empty())
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> PublisherCounters {
        self.counters
    }

    #[inline]
    fn put(
        &mut self,
        reserve: usize,
        mut write: impl FnMut(&mut BlockWriter) -> Result<(), NotPushed>,
    ) {
        let mut written = write(&mut self.writer);
        if written.is_err() {
            written = self.put_in_next(reserve, write);
        }
        match written {
            Ok(()) => self.counters.records += 1,
            Err(_) => self.counters.lost += 1,
        }
    }

    #[cold]
    fn put_in_next(
        &mut self,
        reserve: usize,
        mut write: impl FnMut(&mut BlockWriter) -> Result<(), NotPushed>,
    ) -> Result<(), NotPushed> {
        self.drain();
        if self.overflow.len() >= self.config.overflow_blocks + reserve {
            return Err(NotPushed::Full);
        }
        self.hand_over();
        write(&mut self.writer)
    }

    fn rare(&mut self, record: &Record<'_>) {
        match *record {
            Record::Session(_) | Record::Phase(_) | Record::Window(_) => {
                self.put(RESERVE_BLOCKS, |w| w.push(record));
            }
            Record::Error { at, key, failure, message } => {
                let message = &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)];
                self.put(0, |w| w.push(&Record::Error { at, key, failure, message }));
            }
            Record::Text(text) => self.text(text),
            _ => self.put(0, |w| w.push(record)),
        }
    }

    fn text(&mut self, text: Text<'_>) {
        let longest = self.writer.longest_text();
        let mut rest = text.text;
        loop {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(longest));
            self.put(0, |w| w.push(&Record::Text(Text { text: piece, ..text })));
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Offers what waits, oldest first, until the sink is full.
    fn drain(&mut self) {
        while let Some(block) = self.overflow.pop_front() {
            if let Err(block) = self.sink.offer(block) {
                self.overflow.push_front(block);
                return;
            }
        }
    }

    /// Hands over a block that could still take records. While others wait it stays and takes them.
    fn hand_over_begun(&mut self) {
        if self.overflow.is_empty() {
            self.hand_over();
        }
    }

    /// Sends the current block to the sink, or behind what waits already.
    fn hand_over(&mut self) {
        let next =
            self.sink.spare().unwrap_or_else(|| Block::with_capacity(self.config.block_bytes));
        let mut block = self.writer.take(next);
        block.set_seq(self.counters.blocks);
        self.counters.blocks += 1;
        let refused = if self.overflow.is_empty() { self.sink.offer(block) } else { Err(block) };
        if let Err(block) = refused {
            self.counters.spilled += 1;
            self.overflow.push_back(block);
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("waiting", &self.waiting())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl SharedPublisher {
    /// Shares `publisher`.
    #[must_use]
    pub fn new(publisher: Publisher) -> Self {
        Self(Rc::new(RefCell::new(publisher)))
    }

    /// See [`Publisher::push`].
    #[inline]
    pub fn push(&self, record: &Record<'_>) {
        self.0.borrow_mut().push(record);
    }

    /// See [`Publisher::issued`].
    #[inline]
    pub fn issued(&self, issued: &Issued) {
        self.0.borrow_mut().issued(issued);
    }

    /// See [`Publisher::token`].
    #[inline]
    pub fn token(&self, token: &Token) {
        self.0.borrow_mut().token(token);
    }

    /// See [`Publisher::completed`].
    #[inline]
    pub fn completed(&self, completed: &Completed) {
        self.0.borrow_mut().completed(completed);
    }

    /// See [`Publisher::turn`].
    #[inline]
    pub fn turn(&self, now: Nanos) {
        self.0.borrow_mut().turn(now);
    }

    /// See [`Publisher::flush`].
    pub fn flush(&self) {
        self.0.borrow_mut().flush();
    }

    /// See [`Publisher::waiting`].
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.borrow().waiting()
    }

    /// See [`Publisher::counters`].
    #[must_use]
    pub fn counters(&self) -> PublisherCounters {
        self.0.borrow().counters()
    }
}

#[cfg(test)]
mod tests;
