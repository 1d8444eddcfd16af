//! Reading a journal, one block at a time.

use std::io::{self, Read};

use takt_time::Nanos;

use super::{
    FRAME_BYTES, FrameHead, HEAD_BYTES, JOURNAL_VERSION, JournalEnd, JournalError, JournalStats,
    JournalSummary, MAGIC, MAX_PLAN_BYTES, Stretch, TornReason, checksum, u32_at,
};
use crate::block::Block;
use crate::plan::SessionPlan;
use crate::records::Fold;
use crate::sink::fold_block;

/// Reads blocks up to the end or the first damage. Holds one block in memory.
#[derive(Debug)]
pub struct JournalReader<R> {
    input: R,
    plan: SessionPlan,
    block: Block,
    bytes: Vec<u8>,
    read: JournalStats,
    sampled: bool,
    capped: bool,
    end: Option<JournalEnd>,
}

impl<R: Read> JournalReader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// No journal, another version, a damaged head, or the input's error.
    pub fn open(mut input: R) -> Result<Self, JournalError> {
        let mut head = [0; HEAD_BYTES];
        let got = fill(&mut input, &mut head)?;
        if !head.starts_with(&MAGIC[..got.min(MAGIC.len())]) || got < MAGIC.len() {
            return Err(JournalError::NotAJournal);
        }
        if got < HEAD_BYTES {
            return Err(JournalError::Head);
        }
        let (version, length) = (u32_at(&head, 8), u32_at(&head, 12) as usize);
        if version != JOURNAL_VERSION {
            return Err(JournalError::Version(version));
        }
        if length > MAX_PLAN_BYTES {
            return Err(JournalError::Head);
        }
        let mut bytes = Vec::new();
        let whole = read_up_to(&mut input, length, &mut bytes)? == length;
        if !whole || checksum(&[&head[8..16], &bytes]) != u32_at(&head, 16) {
            return Err(JournalError::Head);
        }
        let plan = serde_json::from_slice(&bytes)?;
        let read = JournalStats { bytes: (HEAD_BYTES + length) as u64, ..JournalStats::default() };
        let block = Block::with_capacity(0);
        Ok(Self { input, plan, block, bytes, read, sampled: false, capped: false, end: None })
    }

    /// What was planned.
    #[must_use]
    pub fn plan(&self) -> &SessionPlan {
        &self.plan
    }

    /// The next block, checked; `None` at the end, which [`summary`](Self::summary) describes.
    ///
    /// # Errors
    /// The input's.
    pub fn next_block(&mut self) -> io::Result<Option<&Block>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let mut head = [0; FRAME_BYTES];
        let got = fill(&mut self.input, &mut head)?;
        if got == 0 {
            self.end = Some(JournalEnd::Whole);
            return Ok(None);
        }
        if got < FRAME_BYTES {
            return self.torn(got, TornReason::Cut);
        }
        let Some(frame) = FrameHead::parse(&head) else {
            return self.torn(got, TornReason::NoFrame);
        };
        self.bytes.clear();
        let length = frame.length as usize;
        let body = read_up_to(&mut self.input, length, &mut self.bytes)?;
        if body < length {
            return self.torn(got + body, TornReason::Cut);
        }
        if checksum(&[&head[..FRAME_BYTES - 4], &self.bytes]) != u32_at(&head, FRAME_BYTES - 4) {
            return self.torn(got + body, TornReason::Checksum);
        }
        if frame.number != self.read.blocks {
            return self.torn(got + body, TornReason::Sequence);
        }
        self.block.fill(Nanos::from_nanos(frame.base), frame.records, frame.number, &self.bytes);
        self.sampled |= frame.stretch == Stretch::Sampled;
        self.capped |= frame.stretch == Stretch::Capped;
        self.read.bytes += (got + body) as u64;
        self.read.blocks += 1;
        self.read.records += u64::from(frame.records);
        Ok(Some(&self.block))
    }

    /// What was read so far. Before the end was reached, the end counts as whole.
    #[must_use]
    pub fn summary(&self) -> JournalSummary {
        let end = self.end.unwrap_or(JournalEnd::Whole);
        JournalSummary { read: self.read, sampled: self.sampled, capped: self.capped, end }
    }

    /// Folds one block; `false` at the end.
    ///
    /// # Errors
    /// The input's.
    pub fn fold_next(&mut self, fold: &mut impl Fold) -> io::Result<bool> {
        let before = self.read;
        let Some(block) = self.next_block()? else { return Ok(false) };
        let Err(error) = fold_block(block, fold) else { return Ok(true) };
        let consumed = self.read.bytes - before.bytes;
        self.read = before;
        self.read.records += u64::from(error.record);
        self.torn(consumed as usize, TornReason::Records(error))?;
        Ok(false)
    }

    /// Ends the reading at the frame of which `consumed` bytes were taken; counts what is behind.
    fn torn(&mut self, consumed: usize, reason: TornReason) -> io::Result<Option<&Block>> {
        let behind = io::copy(&mut self.input, &mut io::sink())?;
        let lost = consumed as u64 + behind;
        self.end = Some(JournalEnd::Torn { at: self.read.bytes, lost, reason });
        Ok(None)
    }
}

/// Folds what is whole of a journal, in order.
///
/// # Errors
/// The input's; damage is no error but the summary's end.
pub fn fold_journal<R: Read>(
    reader: &mut JournalReader<R>,
    fold: &mut impl Fold,
) -> io::Result<JournalSummary> {
    while reader.fold_next(fold)? {}
    Ok(reader.summary())
}

/// Reads until `buffer` is full or the input ends; returns how many bytes came.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Reads `length` bytes, or what there is. A wrong length costs no more memory than there are bytes.
fn read_up_to(input: &mut impl Read, length: usize, into: &mut Vec<u8>) -> io::Result<usize> {
    input.by_ref().take(length as u64).read_to_end(into)
}
