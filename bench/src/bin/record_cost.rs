//! What one record costs the recorder's thread, step by step: CPU time, so that a busy machine disturbs it
//! little. Plain requests (issued and complete), and streams of eight tokens.
//!
//! ```text
//! record_cost --records 5000000
//! ```
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::black_box;

use takt_bench::{Args, CpuTime};
use takt_record::{
    Block, BlockWriter, Completed, EventWriter, Issued, JournalWriter, NotPushed, Outcome,
    PhaseEvent, PhaseId, PhaseKind, PhasePlan, PhaseRecord, Record, RequestKey, SessionPlan,
    Stretch, Times, Token, TokenCounts, TokenSource, fold_block,
};
use takt_report::RunFold;
use takt_time::{Nanos, Span};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::read(std::env::args().skip(1))?;
    let records: u64 = args.take("records")?.unwrap_or(5_000_000);
    args.done()?;
    for (name, tokens) in [("plain requests", 0), ("streams of 8 tokens", 8)] {
        println!("{name}: ns of CPU time a record");
        let blocks = blocks(records.min(MOST_IN_MEMORY), tokens)?;
        steps(&blocks, records)?;
    }
    Ok(())
}

/// Times each step over all blocks, as often as gives so many records.
fn steps(blocks: &[Block], records: u64) -> Result<(), Box<dyn Error>> {
    let plan = plan();
    time("read", blocks, records, |block| {
        for record in block {
            let _ = black_box(record);
        }
        0
    })?;
    let mut fold = RunFold::new(plan.clone());
    // The phase begins once; later rounds are more requests of it.
    time("read and fold", blocks, records, |block| fold_block(block, &mut fold).map_or(0, |()| 0))?;
    black_box(&fold);
    let mut journal = JournalWriter::begin(std::io::sink(), &plan)?;
    time("journal, without the file", blocks, records, |block| {
        journal.append(block, Stretch::Whole).map_or(0, |()| block.bytes().len())
    })?;
    let (writer, mut lines) = (EventWriter::new(&plan), Vec::new());
    time("read and write as events", blocks, records, |block| {
        lines.clear();
        for record in block.iter().map_while(Result::ok) {
            writer.write(&record, &mut lines);
            lines.push(b'\n');
        }
        black_box(&lines).len()
    })?;
    Ok(())
}

fn time(
    what: &str,
    blocks: &[Block],
    records: u64,
    mut step: impl FnMut(&Block) -> usize,
) -> std::io::Result<()> {
    let (mut done, mut bytes) = (0, 0);
    let before = CpuTime::of_this_process()?;
    while done < records {
        for block in blocks {
            bytes += step(block);
            done += u64::from(block.records());
        }
    }
    let after = CpuTime::of_this_process()?;
    let spent = (after.user + after.sys).saturating_sub(before.user + before.sys);
    let each = |whole: f64| whole / done as f64;
    let (ns, bytes) = (each(spent.as_secs_f64() * 1e9), each(bytes as f64));
    println!("  {what:<26} {ns:8.1}   {bytes:6.1} bytes out");
    Ok(())
}

fn plan() -> SessionPlan {
    let phase = PhasePlan {
        name: "perf".into(),
        kind: PhaseKind::Performance,
        pattern: "constant".into(),
        rate: Some(100_000.0),
        ramp: None,
        target_concurrency: None,
        requests: None,
        stream: true,
        conversations: None,
    };
    SessionPlan { phases: vec![phase], ..SessionPlan::default() }
}

/// Requests ten microseconds apart, each answered before the next, in blocks as a publisher makes them.
fn blocks(records: u64, tokens: u32) -> Result<Vec<Block>, NotPushed> {
    let (mut blocks, mut writer) = (Vec::new(), BlockWriter::new(Block::with_capacity(BLOCK)));
    let mut push = |record: &Record<'_>| match writer.push(record) {
        Err(NotPushed::Full) => {
            blocks.push(writer.take(Block::with_capacity(BLOCK)));
            writer.push(record)
        }
        other => other,
    };
    let event = PhaseEvent::Started { inherited: 0 };
    push(&Record::Phase(PhaseRecord { at: START, phase: PhaseId(0), event }))?;
    for ordinal in 0..records / u64::from(tokens + 2) {
        let at = |after: u64| START + Span::from_nanos(ordinal * 10_000 + after);
        let key = RequestKey { phase: PhaseId(0), ordinal };
        let sample = (ordinal % 20_000) as u32;
        push(&Record::Issued(Issued {
            key,
            sample,
            at: at(0),
            scheduled: Some(at(0)),
            turn: None,
        }))?;
        for number in 0..tokens {
            push(&Record::Token(Token {
                at: at(3_000 + u64::from(number) * 500),
                key,
                first: number == 0,
                tokens: None,
                content: true,
                reasoning: false,
                tool_call: false,
                coalesced: false,
            }))?;
        }
        push(&Record::Completed(completed(key, sample, tokens, &at)))?;
    }
    blocks.push(writer.take(Block::with_capacity(0)));
    Ok(blocks)
}

fn completed(key: RequestKey, sample: u32, tokens: u32, at: &impl Fn(u64) -> Nanos) -> Completed {
    let streamed = (tokens > 0).then(|| (at(3_000), at(3_000 + u64::from(tokens - 1) * 500)));
    let (first, last) = (streamed.map(|(first, _)| first), streamed.map(|(_, last)| last));
    Completed {
        key,
        sample,
        outcome: Outcome::Ok,
        times: Times {
            scheduled: Some(at(0)),
            issued: at(0),
            acquired: Some(at(100)),
            sent: Some(at(200)),
            written: Some(at(1_500)),
            first_byte: Some(at(2_900)),
            first_event: first,
            first_token: first,
            first_content: first,
            last_token: last,
            end: at(9_000),
            ..Times::default()
        },
        tokens: TokenCounts {
            output: streamed.map(|_| tokens),
            events: tokens,
            source: streamed.map(|_| TokenSource::Events),
            ..TokenCounts::default()
        },
        finish: None,
        status: Some(200),
        attempts: 1,
        reused: true,
        body_bytes: 200,
        endpoint: 0,
        turn: None,
    }
}

const START: Nanos = Nanos::from_nanos(1_000_000_000_000);
/// As a publisher's.
const BLOCK: usize = 32 << 10;
/// More are the same ones over again.
const MOST_IN_MEMORY: u64 = 200_000;
