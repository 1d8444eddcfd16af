//! The journal: a plan, then blocks, one behind the other, in a file that only grows.
//!
//! ```text
//! head    "TAKTJRNL" | version u32 | length u32 | crc32 u32 | plan as JSON, `length` bytes
//! frame   magic u32 | length u32 | number u64 | base time u64 | records u32 | flags u32 | crc32 u32
//!         | packed records, `length` bytes
//! ```
//!
//! Numbers are little-endian. A head's checksum is over version, length and plan; a frame's over its header
//! (from the magic up to the checksum) and its records. Frames are numbered from 0 without a gap, so a frame
//! that is missing in the middle is noticed. The flags of a frame are its [`Stretch`]: 1 for a stretch of which
//! a sample was kept, 2 for one behind the size cap, from which no request was kept.
//!
//! Whatever kills the writer, what was written before is whole: a reader stops at the first frame that is
//! cut short or does not check, and says where, why and how many bytes are behind it. A file cut exactly
//! between two frames reads as whole; that the session did not end shows in the records then.

use std::io;

use thiserror::Error;

use crate::codec::CodecError;

mod read;
mod write;

pub use read::{JournalReader, fold_journal};
pub use write::JournalWriter;

/// The version of the file format; packed records have their own ([`crate::CODEC_VERSION`]).
pub const JOURNAL_VERSION: u32 = 1;

/// Whether requests were left out of a stretch of the journal on purpose. Records of session, phases,
/// clocks and health never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Stretch {
    /// None was.
    #[default]
    Whole,
    /// A sample of the requests was kept.
    Sampled,
    /// The journal had reached its size cap: no request was kept.
    Capped,
}

impl Stretch {
    fn flags(self) -> u32 {
        match self {
            Self::Whole => 0,
            Self::Sampled => 1,
            Self::Capped => 2,
        }
    }

    fn of(flags: u32) -> Option<Self> {
        [Self::Whole, Self::Sampled, Self::Capped].into_iter().find(|s| s.flags() == flags)
    }
}

/// How large a journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct JournalStats {
    /// Bytes, the head included.
    pub bytes: u64,
    /// Frames.
    pub blocks: u64,
    /// Records.
    pub records: u64,
}

/// What was read of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSummary {
    /// What was whole.
    pub read: JournalStats,
    /// Some stretch holds a sample of its requests.
    pub sampled: bool,
    /// The size cap was reached: requests behind it are missing.
    pub capped: bool,
    /// How it ended.
    pub end: JournalEnd,
}

impl JournalSummary {
    /// Requests were left out on purpose: counts over the records are not counts over the run.
    #[must_use]
    pub fn thinned(&self) -> bool {
        self.sampled || self.capped
    }
}

/// The end of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalEnd {
    /// Behind a whole frame.
    Whole,
    /// In the middle of something.
    Torn {
        /// Offset of the first byte that was not read as part of a whole frame.
        at: u64,
        /// Bytes from there to the end of the file.
        lost: u64,
        /// What is wrong there.
        reason: TornReason,
    },
}

/// Why reading a journal stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TornReason {
    /// The file ends inside a frame: the writer was killed or the disk was full.
    #[error("the file ends inside a block")]
    Cut,
    /// Something else stands where a frame begins.
    #[error("no block begins where one should")]
    NoFrame,
    /// The checksum is wrong.
    #[error("a block fails its checksum")]
    Checksum,
    /// A frame is missing before this one.
    #[error("a block is missing")]
    Sequence,
    /// The checksum is right and the records cannot be read.
    #[error("{0}")]
    Records(CodecError),
}

/// A file that is no journal, or cannot be read.
#[derive(Debug, Error)]
pub enum JournalError {
    /// It does not begin as a journal does.
    #[error("not a journal of takt")]
    NotAJournal,
    /// It is of another version.
    #[error("a journal of format {0}, this program reads {JOURNAL_VERSION}")]
    Version(u32),
    /// The plan at its head is cut or damaged, so nothing behind it can be trusted.
    #[error("the head of the journal is cut or damaged")]
    Head,
    /// The plan is whole and this program cannot read it.
    #[error("the plan in the journal's head cannot be read: {0}")]
    Plan(#[from] serde_json::Error),
    /// Reading failed.
    #[error("reading the journal failed: {0}")]
    Io(#[from] io::Error),
}

const MAGIC: &[u8; 8] = b"TAKTJRNL";
const HEAD_BYTES: usize = MAGIC.len() + 4 + 4 + 4;
const MAX_PLAN_BYTES: usize = 64 << 20;

const FRAME_MAGIC: u32 = u32::from_le_bytes(*b"TKB1");
const FRAME_BYTES: usize = 4 + 4 + 8 + 8 + 4 + 4 + 4;
const MAX_FRAME_RECORD_BYTES: usize = 16 << 20;

/// What stands before the records of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameHead {
    length: u32,
    number: u64,
    base: u64,
    records: u32,
    stretch: Stretch,
}

impl FrameHead {
    /// The header as bytes, with the checksum over it and `records`.
    fn bytes(&self, records: &[u8]) -> [u8; FRAME_BYTES] {
        let mut out = [0; FRAME_BYTES];
        out[0..4].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&self.length.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..24].copy_from_slice(&self.base.to_le_bytes());
        out[24..28].copy_from_slice(&self.records.to_le_bytes());
        out[28..32].copy_from_slice(&self.stretch.flags().to_le_bytes());
        let sum = checksum(&[&out[..32], records]);
        out[32..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// `None` when these bytes begin no frame.
    fn parse(bytes: &[u8; FRAME_BYTES]) -> Option<Self> {
        let head = Self {
            length: u32_at(bytes, 4),
            number: u64_at(bytes, 8),
            base: u64_at(bytes, 16),
            records: u32_at(bytes, 24),
            stretch: Stretch::of(u32_at(bytes, 28))?,
        };
        let ours =
            u32_at(bytes, 0) == FRAME_MAGIC && head.length as usize <= MAX_FRAME_RECORD_BYTES;
        ours.then_some(head)
    }
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for part in parts {
        sum.update(part);
    }
    sum.finalize()
}

/// The number at `at`; the callers' arrays are longer.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

#[cfg(test)]
mod tests;
