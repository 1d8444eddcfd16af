//! Writing a journal.

use std::io::{self, Write};

use super::{
    FrameHead, HEAD_BYTES, JOURNAL_VERSION, JournalStats, MAGIC, MAX_FRAME_RECORD_BYTES,
    MAX_PLAN_BYTES, Stretch, checksum,
};
use crate::block::Block;
use crate::plan::SessionPlan;

/// Appends blocks. Each goes out whole, in one write, and nothing is held back.
#[derive(Debug)]
pub struct JournalWriter<W> {
    out: W,
    frame: Vec<u8>,
    stats: JournalStats,
}

impl<W: Write> JournalWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// The output's, or a plan of more than 64 MiB.
    pub fn begin(mut out: W, plan: &SessionPlan) -> io::Result<Self> {
        let plan = serde_json::to_vec(plan)?;
        if plan.len() > MAX_PLAN_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the plan is too large"));
        }
        let version = JOURNAL_VERSION.to_le_bytes();
        let length = (plan.len() as u32).to_le_bytes();
        let sum = checksum(&[&version, &length, &plan]).to_le_bytes();
        let mut head = Vec::with_capacity(HEAD_BYTES + plan.len());
        for part in [&MAGIC[..], &version, &length, &sum, &plan] {
            head.extend_from_slice(part);
        }
        out.write_all(&head)?;
        let stats = JournalStats { bytes: head.len() as u64, ..JournalStats::default() };
        Ok(Self { out, frame: head, stats })
    }

    /// Appends a block; `stretch` says what was left out of it on purpose.
    ///
    /// # Errors
    /// The output's: the end of the file may then hold a part of the block, and
    /// [`stats`](Self::stats) still says how long the whole part is.
    pub fn append(&mut self, block: &Block, stretch: Stretch) -> io::Result<()> {
        let records = block.bytes();
        if records.len() > MAX_FRAME_RECORD_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the block is too large"));
        }
        let head = FrameHead {
            length: records.len() as u32,
            number: self.stats.blocks,
            base: block.base().as_nanos(),
            records: block.records(),
            stretch,
        };
        self.frame.clear();
        self.frame.extend_from_slice(&head.bytes(records));
        self.frame.extend_from_slice(records);
        self.out.write_all(&self.frame)?;
        self.stats.bytes += self.frame.len() as u64;
        self.stats.blocks += 1;
        self.stats.records += u64::from(block.records());
        Ok(())
    }

    /// What was written whole.
    #[must_use]
    pub fn stats(&self) -> JournalStats {
        self.stats
    }

    /// The output.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// The output, back.
    pub fn into_inner(self) -> W {
        self.out
    }
}
