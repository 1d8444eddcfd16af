//! What else may be done with a block on the recorder's thread: cleaning it before anyone sees it, and
//! sending it elsewhere.

use std::fmt;

use takt_record::{Block, BlockWriter, NotPushed, Record, Text};

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

/// `block` with [`WITHHELD`] in the place of every text that came from outside.
pub(crate) fn without_texts(block: &Block) -> Block {
    let mut room = block.capacity();
    loop {
        let mut writer = BlockWriter::new(Block::with_capacity(room));
        let written = block.iter().map_while(Result::ok).try_for_each(|record| {
            writer.push(&match record {
                Record::Error { at, key, failure, .. } => {
                    Record::Error { at, key, failure, message: WITHHELD }
                }
                Record::Text(text) => Record::Text(Text { text: WITHHELD, ..text }),
                other => other,
            })
        });
        match written {
            Ok(()) => {
                let mut clean = writer.take(Block::with_capacity(0));
                clean.set_seq(block.seq());
                return clean;
            }
            // Where texts were shorter.
            Err(NotPushed::Full | NotPushed::TooLong) => room *= 2,
        }
    }
}

/// What stands in the place of a text in which nobody could look for secrets.
pub const WITHHELD: &str = "<withheld by takt: it failed to look for secrets here>";
