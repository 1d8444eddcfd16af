use super::*;
use crate::records::{Failure, PhaseId, RequestKey, SessionEvent, SessionRecord, TextKind};
use crate::samples::{typical_completed, typical_issued, typical_token};
use crate::{Blame, ErrorKind, Stage};

/// A sink that holds `room` blocks until it is emptied.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Held>>);

#[derive(Default)]
struct Held {
    room: usize,
    blocks: Vec<Block>,
    spare: Vec<Block>,
    /// Blocks that were asked for and not there.
    made: usize,
}

impl BlockSink for Sink {
    fn offer(&mut self, block: Block) -> Result<(), Block> {
        let mut held = self.0.borrow_mut();
        if held.blocks.len() >= held.room {
            return Err(block);
        }
        held.blocks.push(block);
        Ok(())
    }

    fn spare(&mut self) -> Option<Block> {
        let mut held = self.0.borrow_mut();
        let spare = held.spare.pop();
        held.made += usize::from(spare.is_none());
        spare
    }
}

impl Sink {
    /// Takes out what was offered: the numbers of the blocks, and their records as text.
    fn empty(&self) -> (Vec<u64>, Vec<String>) {
        let mut held = self.0.borrow_mut();
        let blocks = std::mem::take(&mut held.blocks);
        let records = blocks
            .iter()
            .flatten()
            .map(|record| format!("{:?}", record.expect("it was written whole")))
            .collect();
        let numbers = blocks.iter().map(Block::seq).collect();
        held.spare.extend(blocks);
        (numbers, records)
    }
}

fn publisher(room: usize, overflow_blocks: usize) -> (Publisher, Sink) {
    let sink = Sink::default();
    sink.0.borrow_mut().room = room;
    let config =
        PublisherConfig { block_bytes: 1024, overflow_blocks, ..PublisherConfig::default() };
    (Publisher::new(Box::new(sink.clone()), config), sink)
}

fn session(event: SessionEvent) -> Record<'static> {
    Record::Session(SessionRecord { at: Nanos::from_nanos(7), event })
}

/// Flushes and empties the sink by turns until nothing waits.
fn drain(publisher: &mut Publisher, sink: &Sink) -> Vec<String> {
    let mut all = Vec::new();
    while publisher.waiting() > 0 {
        publisher.flush();
        all.extend(sink.empty().1);
    }
    all
}

#[test]
fn a_sink_that_is_full_for_a_while_costs_nothing_but_a_count() {
    let (mut publisher, sink) = publisher(2, 100);
    let expect: Vec<_> = (0..1_000).map(|n| Record::Issued(typical_issued(n))).collect();
    for record in &expect {
        publisher.push(record);
    }
    let read = drain(&mut publisher, &sink);
    assert_eq!(read, expect.iter().map(|r| format!("{r:?}")).collect::<Vec<_>>());
    let counters = publisher.counters();
    assert_eq!((counters.records, counters.lost), (1_000, 0));
    assert!(counters.spilled > 0 && counters.spilled < counters.blocks);
}

#[test]
fn beyond_the_overflow_the_newest_records_are_lost_and_counted() {
    let (mut publisher, sink) = publisher(1, 3);
    for n in 0..2_000 {
        publisher.push(&Record::Token(typical_token(n)));
    }
    publisher.push(&session(SessionEvent::Ended));
    let counters = publisher.counters();
    assert_eq!(counters.records + counters.lost, 2_001);
    assert!(counters.lost > 0);
    let read = drain(&mut publisher, &sink);
    assert_eq!(read.len() as u64, counters.records);
    let tokens: Vec<_> = (0..counters.records - 1)
        .map(|n| format!("{:?}", Record::Token(typical_token(n))))
        .collect();
    let (last, before) = read.split_last().expect("there are records");
    assert_eq!(before, tokens, "the oldest are kept, in order");
    assert_eq!(*last, format!("{:?}", session(SessionEvent::Ended)), "and the end is among them");
}

#[test]
fn records_are_kept_again_as_soon_as_there_is_room() {
    let (mut publisher, sink) = publisher(1, 1);
    for n in 0..1_000 {
        publisher.push(&Record::Token(typical_token(n)));
    }
    let lost = publisher.counters().lost;
    drain(&mut publisher, &sink);
    publisher.push(&Record::Token(typical_token(9)));
    assert_eq!(publisher.counters().lost, lost);
    assert_eq!(drain(&mut publisher, &sink).len(), 1);
}

#[test]
fn blocks_are_numbered_in_order_and_used_again() {
    let (mut publisher, sink) = publisher(4, 4);
    let mut numbers = Vec::new();
    for n in 0..2_000 {
        publisher.push(&Record::Completed(typical_completed(n)));
        publisher.turn(Nanos::ZERO);
        if sink.0.borrow().blocks.len() == 2 {
            numbers.extend(sink.empty().0);
        }
    }
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert!(numbers.len() > 50);
    assert!(sink.0.borrow().made <= 4, "the blocks in motion are all there are");
}

#[test]
fn a_begun_block_goes_out_when_its_first_record_has_waited_for_the_hold() {
    let (mut publisher, sink) = publisher(4, 4);
    let token = typical_token(0);
    publisher.push(&Record::Token(token));
    let due = token.at + PublisherConfig::default().hold;
    publisher.turn(due.saturating_sub(Span::from_nanos(1)));
    assert_eq!(sink.empty().1.len(), 0);
    publisher.turn(due);
    assert_eq!(sink.empty().1.len(), 1);
    assert_eq!(publisher.waiting(), 0);
}

#[test]
fn while_blocks_wait_a_begun_one_goes_on_being_filled() {
    let (mut publisher, _sink) = publisher(0, 50);
    for n in 0..200 {
        publisher.push(&Record::Token(typical_token(n)));
        publisher.turn(Nanos::MAX);
    }
    // 200 tokens take 6 bytes each: one begun block that was refused, then full ones.
    assert!(publisher.waiting() <= 4, "{} blocks wait", publisher.waiting());
}

#[test]
fn long_text_is_split_at_characters_and_long_messages_are_cut() {
    let (mut publisher, sink) = publisher(1_000, 4);
    let text = "a€".repeat(2_000);
    let key = RequestKey { phase: PhaseId(0), ordinal: 3 };
    let at = Nanos::from_nanos(1);
    publisher.push(&Record::Text(Text { at, key, kind: TextKind::Content, text: &text }));
    publisher.push(&Record::Error {
        at,
        key,
        failure: Failure {
            kind: ErrorKind::ApiError,
            blame: Blame::Server,
            stage: Stage::Stream,
            status: None,
        },
        message: &text,
    });
    publisher.flush();
    let (mut joined, mut message) = (String::new(), 0);
    for record in sink.0.borrow().blocks.iter().flatten() {
        match record.expect("it was written whole") {
            Record::Text(piece) => joined.push_str(piece.text),
            Record::Error { message: kept, .. } => message = kept.len(),
            other => panic!("{other:?} was not written"),
        }
    }
    assert_eq!(joined, text);
    assert!((MAX_MESSAGE_BYTES - 3..=MAX_MESSAGE_BYTES).contains(&message), "{message} bytes");
    assert_eq!(publisher.counters().lost, 0);
}

#[test]
fn two_handles_write_one_sequence() {
    let (inner, sink) = publisher(4, 4);
    let one = SharedPublisher::new(inner);
    let two = one.clone();
    one.push(&session(SessionEvent::Started));
    two.token(&typical_token(0));
    one.push(&session(SessionEvent::Ended));
    two.flush();
    let expect = [
        session(SessionEvent::Started),
        Record::Token(typical_token(0)),
        session(SessionEvent::Ended),
    ];
    assert_eq!(sink.empty().1, expect.map(|record| format!("{record:?}")));
}
