use proptest::prelude::*;

use super::*;
use crate::block::{Block, BlockWriter};
use crate::plan::SessionPlan;
use crate::records::{Fold, Record};
use crate::samples::{self, Owned};

/// Keeps what it is given, as text.
#[derive(Default)]
struct Kept(Vec<String>);

impl Fold for Kept {
    fn fold(&mut self, record: &Record<'_>) {
        self.0.push(format!("{record:?}"));
    }
}

fn plan() -> SessionPlan {
    SessionPlan {
        session_id: "0123456789abcdef0123456789abcdef".into(),
        takt: "0.1.0".into(),
        started_at: "2026-01-01T00:00:00Z".into(),
        config: serde_json::json!({"seed": 42}),
        ..SessionPlan::default()
    }
}

fn text(records: &[Owned]) -> Vec<String> {
    records.iter().map(|record| format!("{:?}", record.get())).collect()
}

/// A journal of one block a group. Returns its bytes and where each frame begins, and the end.
fn journal(groups: &[Vec<Owned>], stretch: Stretch) -> (Vec<u8>, Vec<usize>) {
    let mut journal = JournalWriter::begin(Vec::new(), &plan()).expect("a Vec takes all");
    let mut starts = vec![journal.stats().bytes as usize];
    for group in groups {
        let mut writer = BlockWriter::new(Block::with_capacity(1 << 20));
        for record in group {
            writer.push(&record.get()).expect("the block is large enough");
        }
        journal.append(writer.block(), stretch).expect("a Vec takes all");
        starts.push(journal.stats().bytes as usize);
    }
    (journal.into_inner(), starts)
}

fn read(bytes: &[u8]) -> Result<(Vec<String>, JournalSummary), JournalError> {
    let mut reader = JournalReader::open(bytes)?;
    assert_eq!(reader.plan(), &plan());
    let mut kept = Kept::default();
    let summary = fold_journal(&mut reader, &mut kept)?;
    Ok((kept.0, summary))
}

/// Checks that of `bytes`, damaged at `damage`, exactly the frames that end before are read.
fn check_damaged(bytes: &[u8], damage: usize, groups: &[Vec<Owned>], starts: &[usize]) {
    let Ok((kept, summary)) = read(bytes) else {
        assert!(damage < starts[0], "only the head may refuse the file");
        return;
    };
    assert!(damage >= starts[0]);
    let whole = starts.iter().rposition(|&start| start <= damage).expect("behind the head");
    let expect: Vec<String> = groups[..whole].iter().flat_map(|group| text(group)).collect();
    assert_eq!(kept, expect);
    assert_eq!(summary.read.blocks as usize, whole);
    let end = if bytes.len() == starts[whole] {
        JournalEnd::Whole
    } else {
        let JournalEnd::Torn { reason, .. } = summary.end else { panic!("damage is not seen") };
        let at = starts[whole] as u64;
        JournalEnd::Torn { at, lost: bytes.len() as u64 - at, reason }
    };
    assert_eq!(summary.end, end);
}

proptest! {
    #[test]
    fn a_journal_gives_back_its_plan_and_every_record(
        groups in prop::collection::vec(samples::records(8), 0..5),
        stretch in prop::sample::select(&[Stretch::Whole, Stretch::Sampled, Stretch::Capped][..]),
    ) {
        let (bytes, _) = journal(&groups, stretch);
        let (kept, summary) = read(&bytes).expect("it is whole");
        prop_assert_eq!(&kept, &groups.iter().flat_map(|g| text(g)).collect::<Vec<_>>());
        let records = kept.len() as u64;
        let read = JournalStats { bytes: bytes.len() as u64, blocks: groups.len() as u64, records };
        let any = |what| stretch == what && !groups.is_empty();
        let (sampled, capped) = (any(Stretch::Sampled), any(Stretch::Capped));
        prop_assert_eq!(summary, JournalSummary { read, sampled, capped, end: JournalEnd::Whole });
    }

    #[test]
    fn e4_a_journal_cut_at_any_byte_gives_every_whole_block_before_the_cut(
        groups in prop::collection::vec(samples::records(4), 0..4),
        share in 0.0..1.0f64,
    ) {
        let (bytes, starts) = journal(&groups, Stretch::Whole);
        let cut = (bytes.len() as f64 * share) as usize;
        check_damaged(&bytes[..cut], cut, &groups, &starts);
    }

    #[test]
    fn a_journal_with_any_bit_flipped_gives_every_whole_block_before_it_and_nothing_else(
        groups in prop::collection::vec(samples::records(4), 0..4),
        share in 0.0..1.0f64,
        bit in 0..8u8,
    ) {
        let (mut bytes, starts) = journal(&groups, Stretch::Whole);
        let at = (bytes.len() as f64 * share) as usize;
        bytes[at] ^= 1 << bit;
        check_damaged(&bytes, at, &groups, &starts);
    }

    #[test]
    fn any_bytes_behind_the_head_are_no_panic(tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let (mut bytes, starts) = journal(&[], Stretch::Whole);
        bytes.extend_from_slice(&tail);
        check_damaged(&bytes, starts[0], &[], &starts);
    }
}

#[test]
fn a_missing_block_is_noticed() {
    let one = |event| {
        let mut writer = BlockWriter::new(Block::with_capacity(0));
        let at = takt_time::Nanos::ZERO;
        let record = crate::records::SessionRecord { at, event };
        writer.push(&Record::Session(record)).expect("there is room");
        writer.take(Block::with_capacity(0))
    };
    use crate::records::SessionEvent::{Ended, Started};
    let mut journal = JournalWriter::begin(Vec::new(), &plan()).expect("a Vec takes all");
    let mut starts = Vec::new();
    for event in [Started, Started, Ended] {
        starts.push(journal.stats().bytes as usize);
        journal.append(&one(event), Stretch::Whole).expect("a Vec takes all");
    }
    let mut bytes = journal.into_inner();
    bytes.drain(starts[1]..starts[2]);
    let (kept, summary) = read(&bytes).expect("the head is whole");
    assert_eq!(kept.len(), 1);
    let (at, lost) = (starts[1] as u64, (bytes.len() - starts[1]) as u64);
    assert_eq!(summary.end, JournalEnd::Torn { at, lost, reason: TornReason::Sequence });
}

#[test]
fn what_is_no_journal_is_refused_by_name() {
    assert!(matches!(read(b""), Err(JournalError::NotAJournal)));
    assert!(matches!(read(b"PK\x03\x04 something else"), Err(JournalError::NotAJournal)));
    let (mut bytes, _) = journal(&[], Stretch::Whole);
    bytes[8] = 9;
    assert!(matches!(read(&bytes), Err(JournalError::Version(9))));
}
