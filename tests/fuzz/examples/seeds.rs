//! Writes the seeds that nobody writes by hand: packed records and journals.
//!
//! `cargo run --manifest-path tests/fuzz/Cargo.toml --example seeds`, when a format has changed.
#![forbid(unsafe_code)]

use std::io;
use std::path::Path;

use takt_record::{
    Blame, Block, BlockWriter, Completed, EndedBy, ErrorKind, Failure, FinishReason, Health,
    Issued, JournalWriter, Outcome, PhaseEvent, PhaseId, PhaseRecord, PhaseState, Record,
    RequestKey, SessionEvent, SessionPlan, SessionRecord, Stage, Stretch, Text, TextKind, Times,
    Token, TokenCounts, TokenSource, TurnOf,
};
use takt_time::{Anchor, Nanos, Span};

fn main() -> io::Result<()> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
    let run = run();
    for (name, part) in [
        ("run", &run[..]),
        ("requests", &run[3..9]),
        ("rare", &run[9..]),
        ("completed", &run[5..6]),
        ("none", &[]),
    ] {
        let block = packed(part);
        let mut seed = vec![block.records() as u8];
        seed.extend(block.base().as_nanos().to_le_bytes());
        seed.extend(block.bytes());
        std::fs::write(corpora.join(format!("record_block/{name}.seed")), seed)?;
    }
    for (name, options, cuts, lost) in [
        ("whole", "@5", &[0, 4, 9][..], 0),
        ("one_block", "A1", &[0][..], 0),
        ("torn", "@3", &[0, 6][..], 7),
        ("unchecked", "A7", &[0, 3, 6, 9][..], 0),
        ("empty", "A1", &[][..], 0),
        ("head_cut", "@1", &[][..], 3),
    ] {
        let file = journal(&run, cuts)?;
        let seed = [options.as_bytes(), &file[..file.len() - lost]].concat();
        std::fs::write(corpora.join(format!("journal/{name}.seed")), seed)?;
    }
    Ok(())
}

fn packed(records: &[Record<'_>]) -> Block {
    let mut writer = BlockWriter::new(Block::with_capacity(1 << 16));
    for record in records {
        writer.push(record).expect("there is room");
    }
    writer.take(Block::with_capacity(0))
}

/// A journal with a block from each cut to the next.
fn journal(records: &[Record<'_>], cuts: &[usize]) -> io::Result<Vec<u8>> {
    let plan: SessionPlan = serde_json::from_str(PLAN)?;
    let mut journal = JournalWriter::begin(Vec::new(), &plan)?;
    for (place, from) in cuts.iter().enumerate() {
        let to = cuts.get(place + 1).copied().unwrap_or(records.len());
        let stretch = if place == 2 { Stretch::Sampled } else { Stretch::Whole };
        journal.append(&packed(&records[*from..to]), stretch)?;
    }
    Ok(journal.into_inner())
}

/// A record of each kind, in an order that a run could have.
fn run() -> Vec<Record<'static>> {
    let at = |us: u64| Nanos::from_nanos(1_000_000 + us * 1_000);
    let key = |ordinal| RequestKey { phase: PhaseId(1), ordinal };
    let phase = |us, event| Record::Phase(PhaseRecord { at: at(us), phase: PhaseId(1), event });
    let session = |us, event| Record::Session(SessionRecord { at: at(us), event });
    let failure = Failure {
        kind: ErrorKind::HttpStatus,
        blame: Blame::Server,
        stage: Stage::Head,
        status: Some(503),
    };
    let token = Token {
        at: at(90),
        key: key(0),
        first: true,
        tokens: Some(1),
        content: true,
        reasoning: false,
        tool_call: false,
        coalesced: false,
    };
    let times = Times {
        scheduled: Some(at(20)),
        issued: at(21),
        acquired: Some(at(21)),
        connect: Some(Span::from_micros(40)),
        tls: None,
        sent: Some(at(22)),
        written: Some(at(23)),
        first_byte: Some(at(80)),
        first_event: Some(at(85)),
        first_token: Some(at(90)),
        first_content: Some(at(90)),
        last_token: Some(at(120)),
        end: at(130),
    };
    let completed = Completed {
        key: key(0),
        sample: 3,
        outcome: Outcome::Ok,
        times,
        tokens: TokenCounts {
            input: Some(12),
            output: Some(2),
            cached: Some(4),
            first_event: Some(1),
            events: 2,
            coalesced: 1,
            source: Some(TokenSource::Usage),
        },
        finish: Some(FinishReason::Stop),
        status: Some(200),
        attempts: 2,
        reused: true,
        body_bytes: 900,
        endpoint: 0,
        turn: Some(TurnOf { conversation: 1, turn: 2 }),
    };
    let refused = Completed {
        key: key(1),
        outcome: Outcome::Failed(failure),
        times: Times { issued: at(30), end: at(140), ..Times::default() },
        tokens: TokenCounts::default(),
        finish: None,
        status: Some(503),
        attempts: 1,
        turn: None,
        ..completed
    };
    vec![
        session(0, SessionEvent::Started),
        phase(10, PhaseEvent::Started { inherited: 0 }),
        phase(10, PhaseEvent::TrackingStarted),
        Record::Issued(Issued {
            key: key(0),
            sample: 3,
            at: at(21),
            scheduled: Some(at(20)),
            turn: Some(TurnOf { conversation: 1, turn: 2 }),
        }),
        Record::Token(token),
        Record::Completed(completed),
        Record::Issued(Issued { key: key(1), sample: 4, at: at(30), scheduled: None, turn: None }),
        Record::Error { at: at(140), key: key(1), failure, message: "HTTP 503: busy" },
        Record::Completed(refused),
        Record::Text(Text { at: at(90), key: key(0), kind: TextKind::Content, text: "Hé" }),
        Record::Clock(Anchor { mono: at(150), wall_ns: 1_700_000_000_000_000_000 }),
        Record::Health(Health {
            at: at(150),
            on_cpu: Some(Span::from_micros(90)),
            involuntary: Some(2),
            busy: Span::from_micros(80),
            turns: 40,
            ..Health::default()
        }),
        phase(160, PhaseEvent::IssuingEnded { by: EndedBy::Requests }),
        phase(160, PhaseEvent::TrackingStopped),
        phase(170, PhaseEvent::Ended { state: PhaseState::Complete }),
        session(180, SessionEvent::Ended),
    ]
}

const PLAN: &str = r#"{"session_id":"01","takt":"0.1.0","started_at":"","phases":[
{"name":"w","type":"warmup","pattern":"concurrency","stream":false},
{"name":"p","type":"performance","pattern":"poisson","rate":5,"stream":true}],"config":0,"host":null}"#;
