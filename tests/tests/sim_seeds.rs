//! Whole sessions in virtual time: seeds, replays, stops at any instant, and seeds that once failed.
#![forbid(unsafe_code)]

use takt_actors::SessionState;
use takt_record::{Fold, JournalReader, Record, RunState, fold_journal};
use takt_report::{Limits, RunFold};
use takt_tests::sim::{Kept, Ran, Scenario, Service, Transport, run};
use takt_time::Span;

fn ran(scenario: &Scenario) -> Ran {
    run(scenario).unwrap_or_else(|failed| panic!("{failed}"))
}

#[test]
fn seeds_keep_all_rules() {
    for seed in 0..300 {
        ran(&Scenario::draw(seed));
    }
}

/// Seed 371 of its day: a health record was written behind `Session Ended`, when a pulse fell on that instant.
#[test]
fn a_pulse_at_the_instant_of_the_end_writes_nothing() {
    let mut scenario = Scenario::steady(1, 100.0, Span::from_secs(3));
    let (longest, fails, never) = (Span::from_secs(1), 0, 1_000);
    scenario.transport = Transport::Planned(Service { longest, fails, never });
    // The twentieth pulse of 50 ms takes the reading; the grace time of the stop ends on one of those.
    scenario.stops = vec![Span::from_secs(1)];
    scenario.stop_grace = Span::from_secs(1);
    let ran = ran(&scenario);
    assert_eq!(ran.span.1 - ran.span.0, Span::from_secs(2));
}

/// Two runs in one process have other hash maps, other addresses and other allocations.
#[test]
fn the_same_seed_gives_the_same_trace() {
    let mut hashes = Vec::new();
    for seed in 1_000..1_020 {
        let [first, second] = [ran(&Scenario::draw(seed)), ran(&Scenario::draw(seed))];
        assert_eq!(first.trace_hash, second.trace_hash, "seed {seed}");
        assert_eq!(first.dispatches, second.dispatches, "seed {seed}");
        assert_eq!(first.records, second.records, "seed {seed}");
        assert_eq!(first.journal, second.journal, "seed {seed}");
        hashes.push(first.trace_hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 20, "other seeds give other traces");
}

/// Whatever kills the recorder: what was written before is whole, and is the beginning of the story.
#[test]
fn a_journal_cut_at_any_byte_gives_the_records_before_the_cut() {
    struct Plain(Vec<Kept>);
    impl Fold for Plain {
        fn fold(&mut self, record: &Record<'_>) {
            self.0.push(record.into());
        }
    }
    for seed in 3_000..3_010 {
        let ran = ran(&Scenario::draw(seed));
        for cut in (0..ran.journal.len()).step_by(ran.journal.len().div_ceil(50)) {
            let Ok(mut reader) = JournalReader::open(&ran.journal[..cut]) else { continue };
            let mut plain = Plain(Vec::new());
            fold_journal(&mut reader, &mut plain).expect("memory can be read");
            assert!(ran.records.starts_with(&plain.0), "{seed} at {cut}");
            let mut reader = JournalReader::open(&ran.journal[..cut]).expect("as before");
            let mut fold = RunFold::new(reader.plan().clone());
            fold_journal(&mut reader, &mut fold).expect("memory can be read");
            let result = fold.result(&Limits::default());
            assert_eq!(result.state, RunState::Killed, "{seed} at {cut}");
        }
    }
}

/// However far a session has come, a stop leads to its end, with records that agree with each other and a
/// journal that can be read: [`run`] checks that.
#[test]
fn a_stop_at_any_instant_leaves_everything_consistent() {
    for seed in 2_000..2_012 {
        let mut scenario = Scenario::draw(seed);
        scenario.stops = Vec::new();
        let whole = ran(&scenario);
        let length = whole.span.1 - whole.span.0;
        let mut instants: Vec<u64> = (0..12).map(|n| length.as_nanos() / 11 * n).collect();
        // The instants at which something happens are the interesting ones.
        let at = whole.records.iter().map(Kept::at);
        let since = at.map(|at| at.saturating_since(whole.span.0).as_nanos());
        instants.extend(since.step_by(whole.records.len().div_ceil(12)));
        for ns in instants {
            scenario.stops = vec![Span::from_nanos(ns)];
            let stopped = ran(&scenario);
            let outcome = stopped.outcome.expect("checked by the run");
            let early = ns < length.as_nanos();
            assert!(!early || outcome.state == SessionState::Interrupted, "{seed} at {ns}");
        }
    }
}
