use proptest::prelude::*;

use super::*;
use crate::records::PhaseId;
use crate::records::RequestKey;
use crate::samples::{
    self, Owned, typical_completed, typical_issued, typical_plain, typical_token,
};

/// Packs all records into one block that is large enough.
fn pack(records: &[Owned]) -> Block {
    let mut writer = BlockWriter::new(Block::with_capacity(1 << 20));
    for record in records {
        writer.push(&record.get()).expect("the block is large enough");
    }
    writer.take(Block::with_capacity(0))
}

/// Bytes a record in a block full of records like `record(n)`.
fn bytes_each(push: impl Fn(&mut BlockWriter, u64) -> Result<(), NotPushed>) -> f64 {
    let mut writer = BlockWriter::new(Block::with_capacity(32 << 10));
    let mut number = 0;
    while push(&mut writer, number).is_ok() {
        number += 1;
    }
    writer.block().bytes().len() as f64 / number as f64
}

proptest! {
    #[test]
    fn every_record_comes_back_exactly(records in samples::records(30)) {
        let block = pack(&records);
        let expect: Vec<_> = records.iter().map(|r| Ok(r.get())).collect();
        prop_assert_eq!(block.iter().collect::<Vec<_>>(), expect);
        prop_assert_eq!(block.records() as usize, records.len());
    }

    #[test]
    fn what_is_cut_off_is_missed_and_what_is_before_it_is_whole(
        records in samples::records(12),
        share in 0.0..1.0f64,
    ) {
        let block = pack(&records);
        let cut = (block.bytes().len() as f64 * share) as usize;
        prop_assume!(cut < block.bytes().len());
        let reader = BlockReader::new(block.base(), block.records(), &block.bytes()[..cut]);
        let mut read: Vec<_> = reader.collect();
        let error = read.pop().expect("something is missing").expect_err("it is at the end");
        prop_assert_eq!(error.record as usize, read.len());
        let expect: Vec<_> = records[..read.len()].iter().map(|r| Ok(r.get())).collect();
        prop_assert_eq!(read, expect);
    }

    #[test]
    fn any_bytes_give_records_or_an_error_and_no_panic(
        base in any::<u64>(),
        records in 0..50u32,
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        versioned in any::<bool>(),
    ) {
        if versioned && let Some(first) = bytes.first_mut() {
            *first = CODEC_VERSION;
        }
        let read: Vec<_> = BlockReader::new(Nanos::from_nanos(base), records, &bytes).collect();
        let errors = read.iter().filter(|r| r.is_err()).count();
        prop_assert!(errors <= 1 && read.len() - errors <= records as usize);
        prop_assert!(errors == 0 || read.last().is_some_and(Result::is_err));
    }

    #[test]
    fn a_full_block_refuses_and_is_as_it_was(records in samples::records(60)) {
        let mut writer = BlockWriter::new(Block::with_capacity(Block::MIN_CAPACITY));
        let mut kept = Vec::new();
        for record in &records {
            if writer.push(&record.get()).is_ok() {
                kept.push(Ok(record.get()));
            }
        }
        prop_assert_eq!(writer.block().iter().collect::<Vec<_>>(), kept);
    }
}

#[test]
fn the_longest_record_fits_the_room() {
    use crate::kinds::{Blame, ErrorKind, FinishReason, Stage, TokenSource};
    use crate::records::{Failure, Outcome, Times, TokenCounts, TurnOf};
    use takt_time::Span;
    // Each step goes half-way round, which takes nine bytes.
    let far = Nanos::from_nanos(1 << 63);
    let (here, there) = (Some(Nanos::ZERO), Some(far));
    let failure = Failure {
        kind: ErrorKind::Internal,
        blame: Blame::Client,
        stage: Stage::Stream,
        status: Some(u16::MAX),
    };
    let longest = Completed {
        key: RequestKey { phase: PhaseId(u16::MAX), ordinal: 1 << 63 },
        sample: u32::MAX,
        outcome: Outcome::Failed(failure),
        times: Times {
            scheduled: here,
            issued: far,
            acquired: here,
            connect: Some(Span::MAX),
            tls: Some(Span::MAX),
            socket_wait: Some(Span::MAX),
            sent: there,
            written: here,
            first_byte: there,
            first_event: here,
            first_token: there,
            first_content: here,
            last_token: there,
            end: Nanos::ZERO,
        },
        tokens: TokenCounts {
            input: Some(u32::MAX),
            output: Some(u32::MAX),
            cached: Some(u32::MAX),
            first_event: Some(u32::MAX),
            events: u32::MAX,
            coalesced: u32::MAX,
            source: Some(TokenSource::Events),
        },
        finish: Some(FinishReason::Other),
        status: Some(u16::MAX),
        attempts: u8::MAX,
        reused: true,
        body_bytes: u64::MAX,
        endpoint: u16::MAX,
        turn: Some(TurnOf { conversation: u64::MAX, turn: u32::MAX }),
    };
    let mut writer = BlockWriter::new(Block::with_capacity(4096));
    writer.completed(&typical_completed(0)).expect("it fits");
    let before = writer.block().bytes().len();
    writer.completed(&longest).expect("it fits");
    let bytes = writer.block().bytes().len() - before;
    assert!(bytes + 8 <= ROOM, "{bytes} bytes and a store of eight past the last one");
    assert_eq!(writer.block().iter().last(), Some(Ok(Record::Completed(longest))));
}

#[test]
fn typical_records_are_small() {
    let issued = bytes_each(|w, n| w.issued(&typical_issued(n)));
    let token = bytes_each(|w, n| w.token(&typical_token(n)));
    let completed = bytes_each(|w, n| w.completed(&typical_completed(n)));
    assert!(issued <= 12.0, "issued: {issued:.1} bytes");
    assert!(token <= 9.0, "token: {token:.1} bytes");
    let plain = bytes_each(|w, n| w.completed(&typical_plain(n)));
    assert!(completed <= 48.0, "completed stream: {completed:.1} bytes");
    assert!(plain <= 32.0, "completed without a stream: {plain:.1} bytes");
    println!("issued {issued:.1}, token {token:.1}, stream {completed:.1}, plain {plain:.1}");
}

#[test]
fn a_block_of_another_version_is_refused_by_name() {
    let bytes = [CODEC_VERSION + 1, 0, 0];
    let first = BlockReader::new(Nanos::ZERO, 1, &bytes).next();
    let kind = CodecErrorKind::Version(CODEC_VERSION + 1);
    assert_eq!(first, Some(Err(CodecError { record: 0, kind })));
}

#[test]
fn text_longer_than_a_block_is_told_from_a_full_block() {
    let mut writer = BlockWriter::new(Block::with_capacity(2048));
    let longest = "x".repeat(writer.longest_text());
    let longer = format!("{longest}x");
    assert_eq!(writer.push(&text(&longer)), Err(NotPushed::TooLong));
    assert_eq!(writer.push(&text(&longest)), Ok(()));
    assert_eq!(writer.push(&text(&longest)), Err(NotPushed::Full));
    assert_eq!(writer.block().iter().collect::<Vec<_>>(), [Ok(text(&longest))]);
}

fn text(text: &str) -> Record<'_> {
    let kind = crate::records::TextKind::Content;
    Record::Text(crate::records::Text { at: Nanos::ZERO, key: RequestKey::default(), kind, text })
}
