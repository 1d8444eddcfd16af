//! Which records the journal keeps.

use std::num::NonZeroU32;

use takt_record::{Block, BlockWriter, NotPushed, Record, Stretch};

/// Which requests the journal keeps. Records of the session, its phases, its profiler windows, its clocks
/// and its health are always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Keep {
    /// All of them.
    #[default]
    All,
    /// One in so many: those whose ordinal divides by the number.
    OneIn(NonZeroU32),
}

/// What is kept at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Requests(Keep),
    /// The journal has reached its size cap: no requests any more.
    Frame,
}

impl Kept {
    /// Blocks can be written as they are.
    pub(crate) fn everything(self) -> bool {
        self == Kept::Requests(Keep::All)
    }

    /// What a reader of the stretch must know.
    pub(crate) fn stretch(self) -> Stretch {
        match self {
            Kept::Requests(Keep::All) => Stretch::Whole,
            Kept::Requests(Keep::OneIn(_)) => Stretch::Sampled,
            Kept::Frame => Stretch::Capped,
        }
    }

    fn keeps(self, record: &Record<'_>) -> bool {
        let key = match record {
            Record::Issued(r) => r.key,
            Record::Token(r) => r.key,
            Record::Error { key, .. } => *key,
            Record::Completed(r) => r.key,
            Record::Text(r) => r.key,
            // Some of a conversation's turns do not tell what it came to.
            Record::Conversation(_) => return self != Kept::Frame,
            Record::Session(_)
            | Record::Phase(_)
            | Record::Window(_)
            | Record::Clock(_)
            | Record::Health(_) => return true,
        };
        match self {
            Kept::Requests(Keep::All) => true,
            Kept::Requests(Keep::OneIn(number)) => key.ordinal % u64::from(number.get()) == 0,
            Kept::Frame => false,
        }
    }
}

/// Gathers what is kept of many blocks into few.
#[derive(Debug)]
pub(crate) struct Thinner {
    writer: BlockWriter,
}

impl Thinner {
    pub(crate) fn new() -> Self {
        Self { writer: BlockWriter::new(Block::with_capacity(THINNED_BLOCK_BYTES)) }
    }

    /// Takes in what is kept of `block`; full blocks go to `out`.
    pub(crate) fn take<E>(
        &mut self,
        block: &Block,
        kept: Kept,
        mut out: impl FnMut(&Block) -> Result<(), E>,
    ) -> Result<(), E> {
        // A record that does not decode ends its block: the fold sees the same.
        for record in block.iter().map_while(Result::ok).filter(|record| kept.keeps(record)) {
            let Err(refused) = self.writer.push(&record) else { continue };
            self.flush(&mut out)?;
            if refused == NotPushed::TooLong {
                // The text fitted the block that it came from, so it fits one of that size.
                self.writer = BlockWriter::new(Block::with_capacity(block.capacity()));
            }
            self.writer.push(&record).expect("an empty block takes what another block held");
        }
        Ok(())
    }

    /// Sends the begun block to `out`, if anything is in it.
    pub(crate) fn flush<E>(
        &mut self,
        mut out: impl FnMut(&Block) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.writer.block().is_empty() {
            return Ok(());
        }
        let done = out(self.writer.block());
        self.writer.clear();
        done
    }
}

const THINNED_BLOCK_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use takt_record::{PhaseId, RequestKey, Text, TextKind};
    use takt_time::Nanos;

    #[test]
    fn text_larger_than_the_thinned_block_is_kept_whole() {
        let text = "x".repeat(2 * THINNED_BLOCK_BYTES);
        let key = RequestKey { phase: PhaseId(0), ordinal: 0 };
        let record =
            Record::Text(Text { at: Nanos::ZERO, key, kind: TextKind::Content, text: &text });
        let mut source = BlockWriter::new(Block::with_capacity(3 * THINNED_BLOCK_BYTES));
        source.push(&record).expect("it fits");
        let mut thinner = Thinner::new();
        let mut seen = 0;
        let mut check = |block: &Block| -> Result<(), ()> {
            seen += 1;
            assert_eq!(block.iter().collect::<Vec<_>>(), [Ok(record)]);
            Ok(())
        };
        let kept = Kept::Requests(Keep::All);
        thinner.take(source.block(), kept, &mut check).expect("the check passes");
        thinner.flush(&mut check).expect("the check passes");
        assert_eq!(seen, 1);
    }
}
