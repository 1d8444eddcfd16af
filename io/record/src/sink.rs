//! Where full blocks go: the ring on a real machine, a fold on the spot in a simulation.

use std::cell::RefCell;
use std::rc::Rc;

use crate::block::Block;
use crate::codec::CodecError;
use crate::records::Fold;

/// Where full blocks go. Never blocks.
pub trait BlockSink {
    /// Takes the block, or gives it back at once when there is no room for it.
    ///
    /// # Errors
    /// The block itself: offer it again later, before any other.
    fn offer(&mut self, block: Block) -> Result<(), Block>;

    /// A used block to be filled again, if there is one.
    fn spare(&mut self) -> Option<Block>;
}

/// Folds each block on the spot, on the same thread: for simulations, tests and programs that want no
/// recorder thread.
#[derive(Debug)]
pub struct InlineSink<F> {
    fold: Rc<RefCell<F>>,
    spare: Option<Block>,
}

impl<F: Fold> InlineSink<F> {
    /// A sink into `fold`, which the caller keeps a hold of.
    #[must_use]
    pub fn new(fold: Rc<RefCell<F>>) -> Self {
        Self { fold, spare: None }
    }
}

impl<F: Fold> BlockSink for InlineSink<F> {
    fn offer(&mut self, block: Block) -> Result<(), Block> {
        fold_block(&block, &mut *self.fold.borrow_mut())
            .expect("a block that the writer made can be read");
        self.spare = Some(block);
        Ok(())
    }

    fn spare(&mut self) -> Option<Block> {
        self.spare.take()
    }
}

/// Drops every block: for programs that look at a session's outcome alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl BlockSink for Discard {
    fn offer(&mut self, _block: Block) -> Result<(), Block> {
        Ok(())
    }

    fn spare(&mut self) -> Option<Block> {
        None
    }
}

/// Folds the records of one block.
///
/// # Errors
/// The block is damaged; the records before the damage were folded.
pub fn fold_block(block: &Block, fold: &mut impl Fold) -> Result<(), CodecError> {
    for record in block {
        match &record {
            // A record is long to copy.
            Ok(record) => fold.fold(record),
            Err(damage) => return Err(*damage),
        }
    }
    Ok(())
}
