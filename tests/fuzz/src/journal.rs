//! A journal file: what is whole of it is read, and what is lost is counted to the byte.
//!
//! Input: options, split, then the file. Option bit 0: checksums are put right first, so that what lies behind them
//! is reached as well.

use std::io::{self, Read};

use takt_record::{Fold, JournalEnd, JournalReader, JournalSummary, Record, fold_journal};

use super::pieces::{bit, options, pieces};
use super::record_block::folded;

/// The target.
pub fn journal(data: &[u8]) {
    let Some(([flags, how], file)) = options(data) else { return };
    let mut file = file.to_vec();
    if bit(flags, 0) {
        put_right(&mut file);
    }
    let whole = read(&file, b'0');
    assert_eq!(read(&file, how), whole, "split {how}");
    let Some((kept, summary)) = whole else { return };
    assert_eq!(summary.read.records, kept.len() as u64);
    let len = file.len() as u64;
    let torn_at = match summary.end {
        JournalEnd::Whole => {
            assert_eq!(summary.read.bytes, len);
            len
        }
        JournalEnd::Torn { at, lost, .. } => {
            assert_eq!((at, at + lost), (summary.read.bytes, len));
            at
        }
    };
    // What stands before the damage reads the same without it.
    let cut = read(&file[..torn_at as usize], b'0').expect("the head is whole");
    assert_eq!(cut.1.end, JournalEnd::Whole);
    assert!(kept.starts_with(&cut.0));
    let mut reader = JournalReader::open(&file[..]).expect("it was opened before");
    let plan = reader.plan().clone();
    while let Ok(Some(block)) = reader.next_block() {
        let records: Vec<Record<'_>> = block.iter().map_while(Result::ok).collect();
        folded(plan.clone(), &records);
    }
}

/// The records as text, and what was read of the file; `None` when it cannot be opened.
type Seen = Option<(Vec<String>, JournalSummary)>;

fn read(file: &[u8], how: u8) -> Seen {
    let mut reader = JournalReader::open(Trickle { pieces: pieces(file, how), at: 0 }).ok()?;
    let mut kept = Kept::default();
    let summary = fold_journal(&mut reader, &mut kept).expect("memory does not fail");
    assert_eq!(reader.summary(), summary);
    assert!(matches!(reader.next_block(), Ok(None)), "the end stays the end");
    Some((kept.0, summary))
}

#[derive(Default)]
struct Kept(Vec<String>);

impl Fold for Kept {
    fn fold(&mut self, record: &Record<'_>) {
        self.0.push(format!("{record:?}"));
    }
}

/// Gives a piece a read, and is interrupted before each.
struct Trickle<'a> {
    pieces: Vec<&'a [u8]>,
    /// Twice the number of the next piece; odd when the interruption has been.
    at: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(piece) = self.pieces.get_mut(self.at / 2) else { return Ok(0) };
        if self.at.is_multiple_of(2) {
            self.at += 1;
            return Err(io::ErrorKind::Interrupted.into());
        }
        let got = piece.read(into)?;
        if piece.is_empty() {
            self.at += 1;
        }
        Ok(got)
    }
}

/// Computes the checksums of whatever looks like a journal.
fn put_right(file: &mut [u8]) {
    // The head: magic 8, version 4, length 4, checksum 4, plan. A frame: header 32 with its length at 4,
    // checksum 4, records.
    let (mut summed, mut length, mut sum, mut body) = (8, 12, 16, 20);
    while let Some(end) = put_one_right(file, summed, length, sum, body) {
        (summed, length, sum, body) = (end, end + 4, end + 32, end + 36);
    }
}

/// Puts the checksum at `sum` right, which is over what stands from `summed` up to it and over the body, whose
/// length stands at `length`. Gives the body's end.
fn put_one_right(
    file: &mut [u8],
    summed: usize,
    length: usize,
    sum: usize,
    body: usize,
) -> Option<usize> {
    let length = u32::from_le_bytes(*file.get(length..)?.first_chunk()?) as usize;
    let end = body.checked_add(length)?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(file.get(summed..sum)?);
    hasher.update(file.get(body..end)?);
    file[sum..sum + 4].copy_from_slice(&hasher.finalize().to_le_bytes());
    Some(end)
}
