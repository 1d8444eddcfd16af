//! What TLS costs: takt against its own server, plain and over TLS in turn, CPU time of the client.
//!
//! Two figures: of a request that is answered at once, and of an event of a stream. The CPU time is the kernel's
//! account of the whole process (user and system), less what a run of a tenth of the length took, so that the
//! start, and the handshakes, are left out.

use std::path::Path;

use anyhow::{bail, ensure};

use super::own::{Mock, TaktRun, build};
use super::rounds::median;
use super::table::{Report, Table};
use super::{flags, pinned};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench tls [flags] [-- further flags of `takt run`]

  --rounds N        rounds, each plain and over TLS (3)
  --requests N      requests of a run, 64 in flight (200000)
  --streams N       streams of a run, 64 tokens each, 64 in flight (5000)
  --no-build        measure what is there";

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    rounds: u32,
    requests: u64,
    streams: u64,
    build: bool,
    takt_flags: Vec<String>,
}

impl Options {
    /// Reads the words after `bench tls`.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            rounds: 3,
            requests: 200_000,
            streams: 5_000,
            build: true,
            takt_flags: Vec::new(),
        };
        let rest = flags::read(words, |name, value| {
            match name {
                "--rounds" => options.rounds = flags::positive(value)?,
                "--requests" => options.requests = value.parse()?,
                "--streams" => options.streams = value.parse()?,
                _ => bail!("no such flag\n\n{USAGE}"),
            }
            Ok(())
        })?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        Ok(options)
    }
}

/// Runs the rounds and says what each cost.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    if options.build {
        build(root, "release")?;
    }
    let program = root.join("target/release/takt");
    let file = |name: &str| root.join("tests/tls").join(name).display().to_string();
    let (cert, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let tls = ["--tls-cert", &cert, "--tls-key", &key];
    let instant = ["--mode", "instant", "--core", "1"];
    // As fast as one event a millisecond: an event a read, mostly.
    let timed = ["--ttft", "5ms", "--tpot", "1ms", "--tokens", "64", "--core", "1"];
    let kinds = [
        (
            "request",
            &instant[..],
            options.requests,
            1,
            &["--api", "openai-chat", "--model", "m", "--no-stream"][..],
        ),
        ("event", &timed[..], options.streams, 64, &["--model", "m", "--stream"][..]),
    ];
    let head =
        ["CPU time of the client, of a", "plain us", "TLS us", "ratio", "ratio of each round"];
    let mut table = Table::new("Plain and over TLS in turn", &head);
    for (what, mode, count, each, flags) in kinds {
        let plain = Mock::start(&program, mode)?;
        let secure = Mock::start(&program, &[mode, &tls[..]].concat())?;
        let (mut of_plain, mut of_tls, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=options.rounds {
            let cost = |server: &Mock, more: &[&str]| {
                let flags = [flags, more].concat();
                unit_us(&program, server, count, each, &flags, &options.takt_flags)
            };
            let (a, b) = (cost(&plain, &[])?, cost(&secure, &["--cacert", &ca])?);
            eprintln!("round {round}: {what}, plain {a:.2} us, TLS {b:.2} us");
            of_plain.push(a);
            of_tls.push(b);
            ratios.push(b / a);
        }
        let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        table.row(vec![
            what.to_owned(),
            format!("{:.2}", median(&mut of_plain)),
            format!("{:.2}", median(&mut of_tls)),
            format!("{:.2}", median(&mut ratios)),
            each.join(", "),
        ]);
    }
    table
        .note(format!("Medians of {} rounds, 64 connections, start-up taken off.", options.rounds));
    Ok(table.into())
}

/// CPU time of the client for one of `count * each` units, in microseconds.
fn unit_us(
    program: &Path,
    server: &Mock,
    count: u64,
    each: u64,
    flags: &[&str],
    more: &[String],
) -> anyhow::Result<f64> {
    let cpu_us = |requests: u64| {
        let text = requests.to_string();
        let common = ["--concurrency", "64", "--requests", &text, "--set", "journal=off"];
        let dataset = ["--set", "dataset={format: synthetic, prompts: 1000}"];
        let run = TaktRun::of(
            pinned(0, program),
            server,
            &[&common[..], &dataset, flags].concat(),
            more,
        )?;
        ensure!(run.succeeded() == requests as f64, "{} of {requests} succeeded", run.succeeded());
        anyhow::Ok(run.spent.cpu.all_s() * 1e6)
    };
    let few = count / 10;
    let (short, long) = (cpu_us(few)?, cpu_us(count)?);
    Ok((long - short) / ((count - few) * each) as f64)
}
