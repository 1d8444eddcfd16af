//! The recorder's thread, end to end: real threads and files, a clock of the tests' own.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

use takt_record::{
    Blame, Block, BlockWriter, Completed, ErrorKind, Failure, Fold, Issued, JournalEnd,
    JournalSummary, Outcome, PhaseId, Publisher, PublisherConfig, Record, RequestKey, SessionEvent,
    SessionPlan, SessionRecord, SharedPublisher, Stage, Text, TextKind, Times, TokenCounts,
    TornReason, fold_journal,
};
use takt_recorder::{
    Clean, Finished, JournalConfig, Keep, Outlet, Recorder, RecorderConfig, WITHHELD,
    journal_files, journal_path, open_journal,
};
use takt_time::{Anchor, Nanos, Span};

/// Each reading is a tenth of a second after the one before.
fn clock() -> Anchor {
    static READINGS: AtomicU64 = AtomicU64::new(0);
    let mono = READINGS.fetch_add(100_000_000, Ordering::Relaxed);
    Anchor { mono: Nanos::from_nanos(mono), wall_ns: 1_700_000_000_000_000_000 + mono }
}

/// Keeps every record as text, clocks apart.
#[derive(Default)]
struct Kept {
    records: Vec<String>,
    clocks: usize,
}

impl Fold for Kept {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Clock(_) => self.clocks += 1,
            other => self.records.push(format!("{other:?}")),
        }
    }
}

fn plan() -> SessionPlan {
    SessionPlan {
        session_id: "0123456789abcdef0123456789abcdef".into(),
        takt: "0.1.0".into(),
        started_at: "2026-01-01T00:00:00Z".into(),
        ..SessionPlan::default()
    }
}

fn config(journal: Option<JournalConfig>) -> RecorderConfig {
    RecorderConfig { journal, ring_blocks: 4, ..RecorderConfig::new(plan(), clock) }
}

fn publisher(sink: takt_recorder::RingSink) -> SharedPublisher {
    let config = PublisherConfig { block_bytes: Block::MIN_CAPACITY, ..PublisherConfig::default() };
    SharedPublisher::new(Publisher::new(Box::new(sink), config))
}

fn key(ordinal: u64) -> RequestKey {
    RequestKey { phase: PhaseId(0), ordinal }
}

/// The records of a session of `requests` requests.
fn session(requests: u64) -> Vec<Record<'static>> {
    let at = Nanos::from_nanos;
    let mut records =
        vec![Record::Session(SessionRecord { at: at(0), event: SessionEvent::Started })];
    for n in 0..requests {
        records.push(Record::Issued(Issued {
            key: key(n),
            sample: n as u32,
            at: at(n * 1_000),
            scheduled: None,
            turn: None,
        }));
        records.push(Record::Completed(Completed {
            key: key(n),
            sample: n as u32,
            outcome: Outcome::Ok,
            times: Times { issued: at(n * 1_000), end: at(n * 1_000 + 700), ..Times::default() },
            tokens: TokenCounts::default(),
            finish: None,
            status: Some(200),
            attempts: 1,
            reused: true,
            body_bytes: 200,
            endpoint: 0,
            turn: None,
        }));
    }
    let event = SessionEvent::Ended;
    records.push(Record::Session(SessionRecord { at: at(requests * 1_000), event }));
    records
}

fn text(records: &[Record<'_>]) -> Vec<String> {
    records.iter().map(|record| format!("{record:?}")).collect()
}

/// Runs a recorder over `records`.
fn record(journal: Option<JournalConfig>, records: &[Record<'_>]) -> Finished<Kept> {
    let (sink, handle) = Recorder::start(config(journal), Kept::default(), |_, _| {})
        .expect("the folder can be written");
    let publisher = publisher(sink);
    for record in records {
        publisher.push(record);
    }
    assert!(handle.drain(&publisher, PATIENCE));
    assert_eq!(publisher.counters().lost, 0);
    handle.finish()
}

fn read(path: &Path) -> (Kept, JournalSummary) {
    let mut reader = open_journal(path).expect("the head is whole");
    assert_eq!(reader.plan(), &plan());
    let mut kept = Kept::default();
    let summary = fold_journal(&mut reader, &mut kept).expect("the file can be read");
    (kept, summary)
}

/// A fold that waits to be let go before its first record, and tells when it got there.
struct Gate {
    gate: Option<Receiver<()>>,
    kept: Kept,
}

impl Fold for Gate {
    fn fold(&mut self, record: &Record<'_>) {
        if let Some(gate) = self.gate.take() {
            gate.recv().expect("the test opens the gate");
        }
        self.kept.fold(record);
    }
}

/// Far more than a machine under load needs; reached only when something hangs.
const PATIENCE: Span = Span::from_secs(60);

#[test]
fn the_journal_folds_to_what_was_folded_live() {
    let run = tempfile::tempdir().expect("a folder");
    let records = session(5_000);
    let finished = record(Some(JournalConfig::new(run.path().into())), &records);
    assert_eq!(finished.fold.records, text(&records));
    assert!(finished.fold.clocks > 0 && finished.error.is_none() && !finished.capped);

    assert_eq!(journal_files(run.path()).expect("the folder"), [journal_path(run.path(), 0)]);
    let (kept, summary) = read(&journal_path(run.path(), 0));
    assert_eq!(kept.records, finished.fold.records);
    assert_eq!(kept.clocks, finished.fold.clocks);
    assert_eq!(summary.read, finished.journal);
    assert_eq!((summary.end, summary.thinned()), (JournalEnd::Whole, false));
}

#[test]
fn without_a_journal_the_fold_is_the_same() {
    let records = session(500);
    let finished = record(None, &records);
    assert_eq!(finished.fold.records, text(&records));
    assert_eq!(finished.journal.bytes, 0);
    let nowhere = tempfile::tempdir().expect("a folder");
    assert!(journal_files(nowhere.path()).expect("no folder is no error").is_empty());
}

#[test]
fn a_slow_fold_blocks_nothing_and_costs_no_record_and_no_order() {
    let (open, gate) = mpsc::channel();
    let fold = Gate { gate: Some(gate), kept: Kept::default() };
    let (sink, handle) = Recorder::start(config(None), fold, |_, _| {}).expect("a thread");
    let publisher = publisher(sink);
    let records = session(5_000);
    for record in &records {
        publisher.push(record);
    }
    // The fold has not been let go: were an offer to wait for it, the test would not get here.
    let spilled = publisher.counters().spilled;
    assert!(spilled > 0, "more blocks than the ring holds");
    open.send(()).expect("the fold waits");
    assert!(handle.drain(&publisher, PATIENCE));
    assert_eq!(publisher.counters().lost, 0);
    assert_eq!(handle.finish().fold.kept.records, text(&records));
}

#[test]
fn a_journal_copied_at_any_length_reads_up_to_there() {
    let run = tempfile::tempdir().expect("a folder");
    let records = session(300);
    record(Some(JournalConfig::new(run.path().into())), &records);
    let path = journal_path(run.path(), 0);
    let whole = fs::read(&path).expect("it was written");
    let expect = text(&records);
    let mut last = 0;
    // Lengths a prime apart meet every part of a frame; the head takes the first few hundred bytes.
    for length in (400..whole.len()).step_by(97) {
        fs::write(&path, &whole[..length]).expect("the folder can be written");
        let (kept, summary) = read(&path);
        assert_eq!(kept.records, expect[..kept.records.len()]);
        assert!(kept.records.len() >= last);
        last = kept.records.len();
        if let JournalEnd::Torn { at, lost, reason } = summary.end {
            assert_eq!((at + lost, reason), (length as u64, TornReason::Cut));
        }
    }
    // A block of the smallest size has room for fewer than 200 of these records.
    assert!(last + 200 > expect.len(), "all but the last block: {last} of {}", expect.len());
}

#[test]
fn a_recorder_that_is_gone_leaves_what_it_was_given_in_the_journal() {
    let run = tempfile::tempdir().expect("a folder");
    let journal = Some(JournalConfig::new(run.path().into()));
    let (sink, handle) =
        Recorder::start(config(journal), Kept::default(), |_, _| {}).expect("a folder");
    let publisher = publisher(sink);
    let records = session(100);
    for record in &records {
        publisher.push(record);
    }
    assert!(handle.drain(&publisher, PATIENCE));
    drop(handle);
    assert_eq!(read(&journal_path(run.path(), 0)).0.records, text(&records));
}

#[test]
fn a_fold_that_panics_costs_the_fold_and_not_the_journal() {
    struct Bad;
    impl Fold for Bad {
        fn fold(&mut self, record: &Record<'_>) {
            assert!(!matches!(record, Record::Completed(_)), "no completions, please");
        }
    }
    let run = tempfile::tempdir().expect("a folder");
    let journal = Some(JournalConfig::new(run.path().into()));
    let (sink, handle) = Recorder::start(config(journal), Bad, |_, _| {}).expect("a folder");
    let publisher = publisher(sink);
    let records = session(500);
    for record in &records {
        publisher.push(record);
    }
    assert!(handle.drain(&publisher, PATIENCE));
    let finished = handle.finish();
    assert_eq!(finished.fold_panic.as_deref(), Some("no completions, please"));
    assert_eq!(read(&journal_path(run.path(), 0)).0.records, text(&records));
}

#[test]
fn a_journal_is_never_written_over_another() {
    let run = tempfile::tempdir().expect("a folder");
    let path = journal_path(run.path(), 0);
    fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
    fs::write(&path, b"another run's").expect("a file");
    let refused = Recorder::start(
        config(Some(JournalConfig::new(run.path().into()))),
        Kept::default(),
        |_, _| {},
    );
    let error = refused.err().expect("a journal is never written over");
    assert!(error.to_string().contains("000000.takt"), "{error}");
    assert_eq!(fs::read(&path).expect("it is there"), b"another run's");
}

#[test]
fn a_sampled_journal_keeps_whole_requests_and_says_so() {
    let run = tempfile::tempdir().expect("a folder");
    let ten = NonZeroU32::new(10).expect("not zero");
    let journal = JournalConfig { keep: Keep::OneIn(ten), ..JournalConfig::new(run.path().into()) };
    let records = session(1_000);
    let finished = record(Some(journal), &records);
    assert_eq!(finished.fold.records, text(&records), "the fold sees all");
    let sampled: Vec<_> = records
        .into_iter()
        .filter(|record| match record {
            Record::Issued(r) => r.key.ordinal % 10 == 0,
            Record::Completed(r) => r.key.ordinal % 10 == 0,
            _ => true,
        })
        .collect();
    let (kept, summary) = read(&journal_path(run.path(), 0));
    assert_eq!(kept.records, text(&sampled));
    assert_eq!((summary.sampled, summary.capped), (true, false));
}

#[test]
fn a_journal_at_its_cap_keeps_the_frame_of_the_session() {
    let run = tempfile::tempdir().expect("a folder");
    let journal = JournalConfig { size_cap: Some(20_000), ..JournalConfig::new(run.path().into()) };
    let records = session(5_000);
    let finished = record(Some(journal), &records);
    assert!(finished.capped && finished.error.is_none());
    assert_eq!(finished.fold.records, text(&records), "the fold sees all");
    let (kept, summary) = read(&journal_path(run.path(), 0));
    let (expect, written) = (text(&records), kept.records.len() - 1);
    assert!(written > 100 && written < records.len() / 2, "{written} before the cap");
    assert_eq!(kept.records[..written], expect[..written]);
    assert_eq!(kept.records.last(), expect.last(), "that the session ended is there");
    assert_eq!((summary.sampled, summary.capped), (false, true));
}

#[test]
fn the_fold_is_shown_while_it_grows_and_once_at_the_end() {
    let (shown, looks) = mpsc::channel();
    let (sink, handle) = Recorder::start(config(None), Kept::default(), move |fold, tick| {
        // Nobody listens any more when a test has failed.
        let _ = shown.send((fold.records.len(), tick.last));
    })
    .expect("a thread");
    let publisher = publisher(sink);
    let records = session(100);
    let mut seen = Vec::new();
    for part in records.chunks(50) {
        for record in part {
            publisher.push(record);
        }
        publisher.flush();
        // A look that shows this part will come, for the clock goes on by itself.
        let so_far = seen.last().map_or(0, |(records, _): &(usize, bool)| *records);
        while seen.last().is_none_or(|(records, _)| *records <= so_far) {
            seen.push(looks.recv().expect("the recorder runs"));
        }
    }
    assert!(handle.drain(&publisher, PATIENCE));
    drop(handle.finish());
    seen.extend(looks.iter());
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&(records.len(), true)));
    assert_eq!(seen.iter().filter(|(_, last)| *last).count(), 1);
}

/// Leaves out the requests.
#[derive(Debug)]
struct NoRequests;

impl Clean for NoRequests {
    fn clean(&mut self, block: &Block) -> Option<Block> {
        let mut writer = BlockWriter::new(Block::with_capacity(block.capacity()));
        for record in block.iter().map_while(Result::ok) {
            if !matches!(record, Record::Issued(_) | Record::Completed(_)) {
                writer.push(&record).expect("it came from a block of that size");
            }
        }
        Some(writer.take(Block::with_capacity(0)))
    }
}

/// Passes on what it is sent, as text.
#[derive(Debug)]
struct Told(mpsc::Sender<String>);

impl Outlet for Told {
    fn block(&mut self, block: &Block) {
        for record in block.iter().map_while(Result::ok) {
            assert!(!format!("{record:?}").contains("Interrupted"), "told to break");
            self.0.send(format!("{record:?}")).expect("the test listens");
        }
    }
}

#[test]
fn k3_what_is_cleaned_out_of_a_block_reaches_neither_journal_nor_outlet_nor_fold() {
    let folder = tempfile::tempdir().expect("a folder");
    let (tell, told) = mpsc::channel();
    let mut config = config(Some(JournalConfig::new(folder.path().to_owned())));
    config.cleaner = Some(Box::new(NoRequests));
    config.outlets = vec![Box::new(Told(tell))];
    let (sink, handle) =
        Recorder::start(config, Kept::default(), |_, _| {}).expect("the folder can be written");
    let publisher = publisher(sink);
    let records = session(100);
    for record in &records {
        publisher.push(record);
    }
    assert!(handle.drain(&publisher, PATIENCE));
    let finished = handle.finish();
    let frame = text(&[records[0], records[records.len() - 1]]);
    assert_eq!(finished.fold.records, frame);
    assert_eq!(read(&journal_path(folder.path(), 0)).0.records, frame);
    let told: Vec<_> = told.iter().filter(|record| !record.starts_with("Clock")).collect();
    assert_eq!(told, frame);
}

#[test]
fn an_outlet_that_breaks_is_used_no_more_and_the_rest_goes_on() {
    let (tell, _told) = mpsc::channel();
    let mut config = config(None);
    config.outlets = vec![Box::new(Told(tell))];
    let (sink, handle) = Recorder::start(config, Kept::default(), |_, _| {}).expect("a thread");
    let publisher = publisher(sink);
    let event = SessionEvent::Interrupted;
    publisher.push(&Record::Session(SessionRecord { at: Nanos::ZERO, event }));
    publisher.flush();
    let records = session(3);
    for record in &records {
        publisher.push(record);
    }
    assert!(handle.drain(&publisher, PATIENCE));
    let finished = handle.finish();
    assert_eq!(finished.fold.records.len(), 1 + records.len());
    assert_eq!(finished.outlet_panic.as_deref(), Some("told to break"));
}

/// Breaks at the first text that holds a `!`.
#[derive(Debug)]
struct Brittle;

impl Clean for Brittle {
    fn clean(&mut self, block: &Block) -> Option<Block> {
        // Of the records, not of the bytes: those of a clock's hold any byte now and then.
        let marked =
            |record: Record<'_>| matches!(record, Record::Text(said) if said.text.contains('!'));
        assert!(!block.iter().map_while(Result::ok).any(marked), "no marks, please");
        None
    }
}

#[test]
fn k3_a_cleaner_that_breaks_costs_the_texts_from_there_on_and_no_record() {
    let said = |n: u64, text| {
        let (at, key) = (Nanos::from_nanos(n), key(n));
        Record::Text(Text { at, key, kind: TextKind::Content, text })
    };
    let failed = |n: u64, message| {
        let failure = Failure {
            kind: ErrorKind::HttpStatus,
            blame: Blame::Server,
            stage: Stage::Head,
            status: Some(401),
        };
        Record::Error { at: Nanos::from_nanos(n), key: key(n), failure, message }
    };
    // Block by block; the mark is longer than the texts that it stands for.
    let blocks = [
        vec![said(0, "plain"), failed(0, "refused")],
        (0..60).map(|n| said(n, "!")).chain([failed(1, "key sk-1"), failed(2, "")]).collect(),
        [&session(3)[..], &[said(3, "plain again")]].concat(),
    ];
    let hidden = |records: &[Record<'static>]| -> Vec<Record<'static>> {
        let hide = |record: &Record<'static>| match *record {
            Record::Text(text) => Record::Text(Text { text: WITHHELD, ..text }),
            Record::Error { at, key, failure, .. } => {
                Record::Error { at, key, failure, message: WITHHELD }
            }
            other => other,
        };
        records.iter().map(hide).collect()
    };
    let expected = [blocks[0].clone(), hidden(&blocks[1]), hidden(&blocks[2])].concat();

    let folder = tempfile::tempdir().expect("a folder");
    let (tell, told) = mpsc::channel();
    let mut config = config(Some(JournalConfig::new(folder.path().to_owned())));
    config.cleaner = Some(Box::new(Brittle));
    config.outlets = vec![Box::new(Told(tell))];
    let (sink, handle) =
        Recorder::start(config, Kept::default(), |_, _| {}).expect("the folder can be written");
    let publisher = publisher(sink);
    for block in &blocks {
        block.iter().for_each(|record| publisher.push(record));
        publisher.flush();
    }
    assert!(handle.drain(&publisher, PATIENCE));
    let finished = handle.finish();
    assert_eq!(finished.clean_panic.as_deref(), Some("no marks, please"));
    assert_eq!(finished.fold.records, text(&expected));
    assert_eq!(read(&journal_path(folder.path(), 0)).0.records, text(&expected));
    let told: Vec<_> = told.iter().filter(|record| !record.starts_with("Clock")).collect();
    assert_eq!(told, text(&expected));
}
