//! Simulates sessions: `simulate --seeds N [--from S]` many of them, `simulate --seed S` one,
//! `simulate --steady SECONDS` an ordinary one with 1,000 arrivals a second; `simulate --hunt N` up to so
//! many, until one fails.
//!
//! Many print how many ran, how fast, and each that failed. One prints the hash of its trace and its counts,
//! and nothing that depends on the wall clock.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "says how many seeds a second it runs")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use takt_record::PhaseResult;
use takt_tests::sim::{Ran, Scenario, run};
use takt_time::Span;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = args.iter().position(|arg| arg == name)?;
        args.get(place + 1)?.parse::<u64>().ok()
    };
    let from = value("--from").unwrap_or(0);
    if let Some(seed) = value("--seed") {
        one(&Scenario::draw(seed))
    } else if let Some(seconds) = value("--steady") {
        one(&Scenario::steady(1, 1_000.0, Span::from_secs(seconds)))
    } else if let Some(count) = value("--seeds") {
        many(from..from + count, usize::MAX)
    } else if let Some(count) = value("--hunt") {
        many(from..from + count, 1)
    } else {
        eprintln!("usage: simulate --seeds N [--from S] | --seed S | --steady SECONDS | --hunt N");
        ExitCode::from(2)
    }
}

fn one(scenario: &Scenario) -> ExitCode {
    match run(scenario) {
        Ok(ran) => {
            print!("{}", counts(&ran));
            ExitCode::SUCCESS
        }
        Err(failed) => {
            println!("{failed}");
            ExitCode::FAILURE
        }
    }
}

fn counts(ran: &Ran) -> String {
    let phases = ran.result.phases.iter().map(|phase| {
        format!(
            "{} {}: issued {} succeeded {} failed {} unanswered {} late {} retried {} inherited {}\n",
            phase.name,
            phase.kind,
            phase.issued,
            phase.succeeded,
            phase.failed,
            phase.unanswered,
            phase.late,
            phase.retried,
            phase.inherited
        )
    });
    format!(
        "seed {} trace {:016x} dispatches {} records {} virtual {}\n{}",
        ran.scenario.seed,
        ran.trace_hash,
        ran.dispatches,
        ran.records.len(),
        ran.span.1 - ran.span.0,
        phases.collect::<String>()
    )
}

/// Runs seeds until so many have failed.
fn many(seeds: Range<u64>, most_failures: usize) -> ExitCode {
    let began = Instant::now();
    let (mut totals, mut dispatches, mut failed) = (BTreeMap::new(), 0, Vec::new());
    let (from, mut count) = (seeds.start, 0u32);
    for seed in seeds {
        if failed.len() >= most_failures {
            break;
        }
        count += 1;
        if count.is_multiple_of(TOLD_EVERY) {
            eprintln!("{count} seeds, now {seed}, {:.0} s", began.elapsed().as_secs_f64());
        }
        match run(&Scenario::draw(seed)) {
            Ok(ran) => {
                ran.result.phases.iter().for_each(|phase| add(&mut totals, phase));
                dispatches += ran.dispatches;
            }
            Err(why) => {
                if failed.len() < SHOWN {
                    println!("seed {seed} failed");
                    for what in &why.what {
                        println!("  {}", what.lines().next().unwrap_or_default());
                    }
                }
                failed.push(seed);
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{count} seeds from {from}, {} failed {failed:?}", failed.len());
    let totals: Vec<String> = totals.iter().map(|(what, n)| format!("{what} {n}")).collect();
    println!("{}", totals.join(", "));
    println!(
        "{dispatches} dispatches, {seconds:.1} s, {:.0} seeds a second",
        f64::from(count) / seconds
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What happened to the requests of a phase: nothing proves anything about what never happens.
fn add(totals: &mut BTreeMap<String, u64>, phase: &PhaseResult) {
    for (what, count) in [
        ("issued", phase.issued),
        ("succeeded", phase.succeeded),
        ("failed", phase.failed),
        ("unanswered", phase.unanswered),
        ("late", phase.late),
        ("retried", phase.retried),
        ("inherited", phase.inherited),
    ] {
        *totals.entry(what.to_owned()).or_default() += count;
    }
    for (kind, count) in &phase.errors {
        *totals.entry(kind.to_string()).or_default() += count;
    }
}

/// Seeds between two words about how far it is: a seed that does not end is then found.
const TOLD_EVERY: u32 = 500;
/// Failures that are told in words.
const SHOWN: usize = 20;
