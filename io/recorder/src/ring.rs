//! The ring: full blocks one way, empty ones back. Bounded, and no system call on the reactor's side.
//!
//! No one is woken when a block is put in. The recorder looks every [`IDLE`] when it has nothing to do:
//! two hundred short wake-ups a second at most, against a `futex` call of the reactor for a block that
//! found the recorder asleep, which at moderate rates is nearly every block. What a look can find is
//! bounded by the ring: 64 blocks of 32 KiB hold what 400 MB a second write in one interval, and a full
//! reactor writes a tenth of that.

use std::sync::Arc;
use std::time::Duration;

use crossbeam::queue::ArrayQueue;
use takt_record::{Block, BlockSink};

/// How long the recorder sleeps when the ring is empty.
pub(crate) const IDLE: Duration = Duration::from_millis(5);

/// The reactor's end of the ring.
#[derive(Debug)]
pub struct RingSink {
    full: Arc<ArrayQueue<Block>>,
    empty: Arc<ArrayQueue<Block>>,
}

/// The recorder's end.
#[derive(Debug)]
pub(crate) struct RingSource {
    full: Arc<ArrayQueue<Block>>,
    empty: Arc<ArrayQueue<Block>>,
}

/// A ring of `blocks` blocks, at least one. It keeps as many empty ones; more are freed.
pub(crate) fn ring(blocks: usize) -> (RingSink, RingSource) {
    let queue = || Arc::new(ArrayQueue::new(blocks.max(1)));
    let (full, empty) = (queue(), queue());
    let source = RingSource { full: Arc::clone(&full), empty: Arc::clone(&empty) };
    (RingSink { full, empty }, source)
}

impl BlockSink for RingSink {
    fn offer(&mut self, block: Block) -> Result<(), Block> {
        self.full.push(block)
    }

    fn spare(&mut self) -> Option<Block> {
        self.empty.pop()
    }
}

impl RingSource {
    /// The oldest full block.
    pub(crate) fn next(&self) -> Option<Block> {
        self.full.pop()
    }

    /// Sends a block back for use.
    pub(crate) fn give_back(&self, block: Block) {
        // When enough wait already this one is freed, here and not on the reactor's thread.
        drop(self.empty.push(block));
    }

    /// How many blocks it holds.
    pub(crate) fn capacity(&self) -> usize {
        self.full.capacity()
    }
}
