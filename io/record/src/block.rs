//! Blocks: records by the thousand, packed into one buffer that is used again and again.
//!
//! A block is what travels: over the ring, into the journal, to subscribers. Its bytes begin with the
//! codec's version; the time that its first record counts from, the number of records and its own number
//! travel beside the bytes. Each block reads alone.
//!
//! ```
//! use takt_record::{Block, BlockWriter, Record, SessionEvent, SessionRecord};
//! use takt_time::Nanos;
//!
//! let started = Record::Session(SessionRecord {
//!     at: Nanos::from_nanos(5),
//!     event: SessionEvent::Started,
//! });
//! let mut writer = BlockWriter::new(Block::with_capacity(4096));
//! writer.push(&started).expect("an empty block has room");
//! let block = writer.take(Block::with_capacity(4096));
//! let read: Result<Vec<_>, _> = block.iter().collect();
//! assert_eq!(read, Ok(vec![started]));
//! ```

use takt_time::Nanos;

use crate::codec::{CODEC_VERSION, CodecError, CodecErrorKind, MAX_TEXT_BYTES, State};
use crate::decode;
use crate::encode::Encode;
use crate::records::{Completed, Issued, Record, Token};
use crate::varint::{ROOM, Take};

/// Packed records and what is needed to read them.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Box<[u8]>,
    used: usize,
    base: Nanos,
    records: u32,
    seq: u64,
}

/// Fills blocks. Allocates nothing.
#[derive(Debug)]
pub struct BlockWriter {
    block: Block,
    state: State,
}

/// Why a record is not in the block; the block is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPushed {
    /// Not enough room is left; an empty block has it.
    #[error("the block is full")]
    Full,
    /// Its text is longer than a block or [`MAX_TEXT_BYTES`]; split it.
    #[error("the text is longer than a block holds")]
    TooLong,
}

/// Reads a block, record by record. After an error it ends.
#[derive(Clone)]
pub struct BlockReader<'a> {
    take: Take<'a>,
    state: State,
    read: u32,
    records: u32,
    over: bool,
}

impl Block {
    /// The smallest capacity, in bytes.
    pub const MIN_CAPACITY: usize = 4 * ROOM;

    /// An empty block of `capacity` bytes, or [`Self::MIN_CAPACITY`] if that is more.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let bytes = vec![0; capacity.max(Self::MIN_CAPACITY)].into_boxed_slice();
        Self { bytes, used: 0, base: Nanos::ZERO, records: 0, seq: 0 }
    }

    /// Puts packed bytes from elsewhere (a file, a subscription) in this block, which grows when
    /// it must. The bytes need not be well-formed: the reader says so.
    pub fn fill(&mut self, base: Nanos, records: u32, seq: u64, bytes: &[u8]) {
        if self.bytes.len() < bytes.len() {
            self.bytes = vec![0; bytes.len()].into_boxed_slice();
        }
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.used = bytes.len();
        (self.base, self.records, self.seq) = (base, records, seq);
    }

    /// The packed records.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// The time that the first record counts from.
    #[must_use]
    pub fn base(&self) -> Nanos {
        self.base
    }

    /// How many records it holds.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Its number, from 0, in the order of publication.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Numbers it.
    pub fn set_seq(&mut self, seq: u64) {
        self.seq = seq;
    }

    /// Bytes it can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Takes everything out; the memory stays.
    pub fn clear(&mut self) {
        (self.used, self.records, self.seq, self.base) = (0, 0, 0, Nanos::ZERO);
    }

    /// Its records in order.
    #[must_use]
    pub fn iter(&self) -> BlockReader<'_> {
        BlockReader::new(self.base, self.records, self.bytes())
    }
}

impl<'a> IntoIterator for &'a Block {
    type Item = Result<Record<'a>, CodecError>;
    type IntoIter = BlockReader<'a>;
    fn into_iter(self) -> BlockReader<'a> {
        self.iter()
    }
}

impl BlockWriter {
    /// Writes into `block`, which is cleared.
    #[must_use]
    pub fn new(mut block: Block) -> Self {
        block.clear();
        Self { block, state: State::default() }
    }

    /// Gives the block away and goes on in `next`, which is cleared.
    #[must_use]
    pub fn take(&mut self, mut next: Block) -> Block {
        next.clear();
        self.state = State::default();
        std::mem::replace(&mut self.block, next)
    }

    /// Forgets what was written; the memory stays.
    pub fn clear(&mut self) {
        self.block.clear();
        self.state = State::default();
    }

    /// What was written so far.
    #[must_use]
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The longest text that an empty block of this size takes, in bytes.
    #[must_use]
    pub fn longest_text(&self) -> usize {
        (self.block.capacity() - ROOM - 1).min(MAX_TEXT_BYTES)
    }

    /// Appends any record.
    ///
    /// # Errors
    /// See [`NotPushed`].
    #[inline]
    pub fn push(&mut self, record: &Record<'_>) -> Result<(), NotPushed> {
        match record {
            Record::Issued(r) => self.issued(r),
            Record::Token(r) => self.token(r),
            Record::Completed(r) => self.completed(r),
            other => self.rare(other),
        }
    }

    /// Appends an [`Issued`].
    ///
    /// # Errors
    /// [`NotPushed::Full`].
    #[inline]
    pub fn issued(&mut self, issued: &Issued) -> Result<(), NotPushed> {
        self.fixed(issued.at, |e| e.issued(issued))
    }

    /// Appends a [`Token`].
    ///
    /// # Errors
    /// [`NotPushed::Full`].
    #[inline]
    pub fn token(&mut self, token: &Token) -> Result<(), NotPushed> {
        self.fixed(token.at, |e| e.token(token))
    }

    /// Appends a [`Completed`].
    ///
    /// # Errors
    /// [`NotPushed::Full`].
    #[inline]
    pub fn completed(&mut self, completed: &Completed) -> Result<(), NotPushed> {
        self.fixed(completed.times.end, |e| e.completed(completed))
    }

    fn rare(&mut self, record: &Record<'_>) -> Result<(), NotPushed> {
        match *record {
            Record::Session(r) => self.fixed(r.at, |e| e.session(r)),
            Record::Phase(r) => self.fixed(r.at, |e| e.phase_record(r)),
            Record::Clock(r) => self.fixed(r.mono, |e| e.clock(r)),
            Record::Window(r) => self.fixed(r.at, |e| e.window(r)),
            Record::Conversation(ref r) => self.fixed(r.at, |e| e.conversation(r)),
            Record::Health(ref r) => self.fixed(r.at, |e| e.health(r)),
            Record::Error { at, key, failure, message } => {
                self.with_text(at, message, |e| e.error(at, key, failure, message.len()))
            }
            Record::Text(r) => {
                self.with_text(r.at, r.text, |e| e.text(r.at, r.key, r.kind, r.text.len()))
            }
            Record::Issued(ref r) => self.issued(r),
            Record::Token(ref r) => self.token(r),
            Record::Completed(ref r) => self.completed(r),
        }
    }

    fn with_text(
        &mut self,
        at: Nanos,
        text: &str,
        encode: impl FnOnce(Encode<'_>) -> usize,
    ) -> Result<(), NotPushed> {
        if text.len() > self.longest_text() {
            return Err(NotPushed::TooLong);
        }
        if self.block.capacity() - self.block.used.max(1) < ROOM + text.len() {
            return Err(NotPushed::Full);
        }
        self.fixed(at, encode)?;
        let used = self.block.used;
        self.block.bytes[used..used + text.len()].copy_from_slice(text.as_bytes());
        self.block.used += text.len();
        Ok(())
    }

    #[inline]
    fn fixed(
        &mut self,
        at: Nanos,
        encode: impl FnOnce(Encode<'_>) -> usize,
    ) -> Result<(), NotPushed> {
        if self.block.used == 0 {
            self.block.bytes[0] = CODEC_VERSION;
            self.block.used = 1;
            self.block.base = at;
            self.state.at = at.as_nanos();
        }
        let Some(room) = self.block.bytes[self.block.used..].first_chunk_mut() else {
            return Err(NotPushed::Full);
        };
        self.block.used += encode(Encode::new(room, &mut self.state));
        self.block.records += 1;
        Ok(())
    }
}

impl<'a> BlockReader<'a> {
    /// Reads `records` records from `bytes`, the first of which counts from `base`.
    #[must_use]
    pub fn new(base: Nanos, records: u32, bytes: &'a [u8]) -> Self {
        let state = State { at: base.as_nanos(), ..State::default() };
        Self { take: Take::new(bytes), state, read: 0, records, over: false }
    }

    /// Reads what stands before the first record.
    fn begin(&mut self) -> Result<(), CodecErrorKind> {
        if self.records == 0 && self.take.is_empty() {
            return Ok(());
        }
        match self.take.byte()? {
            CODEC_VERSION => Ok(()),
            version => Err(CodecErrorKind::Version(version)),
        }
    }

    fn fails(&mut self, kind: CodecErrorKind) -> Option<Result<Record<'a>, CodecError>> {
        self.over = true;
        Some(Err(CodecError { record: self.read, kind }))
    }
}

impl<'a> Iterator for BlockReader<'a> {
    type Item = Result<Record<'a>, CodecError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        if self.read == 0
            && let Err(kind) = self.begin()
        {
            return self.fails(kind);
        }
        if self.read == self.records {
            if !self.take.is_empty() {
                return self.fails(CodecErrorKind::Trailing);
            }
            self.over = true;
            return None;
        }
        match decode::record(&mut self.take, &mut self.state) {
            Ok(record) => {
                self.read += 1;
                Some(Ok(record))
            }
            Err(kind) => self.fails(kind),
        }
    }
}

#[cfg(test)]
mod tests;
