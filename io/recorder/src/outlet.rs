//! What else may be done with a block on the recorder's thread: cleaning it before anyone sees it, and
//! sending it elsewhere.

use std::fmt;

use takt_record::Block;

/// Takes out of blocks what must not be recorded. It comes before journal, outlets and fold.
pub trait Clean: Send + fmt::Debug {
    /// The block to be recorded in the place of `block`; `None`: `block` as it is.
    fn clean(&mut self, block: &Block) -> Option<Block>;
}

/// Somewhere else that blocks go to: subscribers, another process. It comes after the journal, so that what
/// is shown to others is on record, and before the fold.
pub trait Outlet: Send + fmt::Debug {
    /// Sends `block` on. Must not wait: what cannot be taken now is the outlet's to count.
    fn block(&mut self, block: &Block);

    /// There are no more blocks, and the run is over: this may take a moment.
    fn end(&mut self) {}
}
