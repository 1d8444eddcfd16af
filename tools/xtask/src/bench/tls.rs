//! What TLS costs: takt against its own server, plain and over TLS in turn, CPU time of the client.
//!
//! Two figures: of a request that is answered at once, and of an event of a stream. The CPU time is the kernel's
//! account of the whole process (user and system), less what a run of a tenth of the length took, so that the
//! start, and the handshakes, are left out.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde_json::Value;

use super::own::{Mock, Scratch, build};
use super::rounds::median;
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
                "--rounds" => options.rounds = value.parse()?,
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

/// Runs the rounds and prints what each cost.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
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
    println!("{:>5}  {:<8}  {:>10}  {:>10}  {:>6}", "round", "of a", "plain us", "TLS us", "ratio");
    for (what, mode, count, each, flags) in kinds {
        let plain = Mock::start(&program, mode)?;
        let secure = Mock::start(&program, &[mode, &tls[..]].concat())?;
        let (mut of_plain, mut of_tls, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 1..=options.rounds {
            let cost = |url: &str, more: &[&str]| {
                let flags = [flags, more].concat();
                unit_us(&program, url, count, each, &flags, &options.takt_flags)
            };
            let (a, b) = (cost(&plain.url, &[])?, cost(&secure.url, &["--cacert", &ca])?);
            println!("{round:>5}  {what:<8}  {a:>10.2}  {b:>10.2}  {:>6.2}", b / a);
            of_plain.push(a);
            of_tls.push(b);
            ratios.push(b / a);
        }
        println!(
            "{:>5}  {what:<8}  {:>10.2}  {:>10.2}  {:>6.2}",
            "all",
            median(&mut of_plain),
            median(&mut of_tls),
            median(&mut ratios)
        );
    }
    Ok(())
}

/// CPU time of the client for one of `count * each` units.
fn unit_us(
    program: &Path,
    url: &str,
    count: u64,
    each: u64,
    flags: &[&str],
    more: &[String],
) -> anyhow::Result<f64> {
    let few = count / 10;
    let short = cpu_us(program, url, few, flags, more)?;
    let long = cpu_us(program, url, count, flags, more)?;
    Ok((long - short) / ((count - few) * each) as f64)
}

fn cpu_us(
    program: &Path,
    url: &str,
    requests: u64,
    flags: &[&str],
    more: &[String],
) -> anyhow::Result<f64> {
    let folder = Scratch::new()?;
    let requests = requests.to_string();
    let children = || -> anyhow::Result<i64> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        Ok(usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
    };
    let before = children()?;
    let mut command: Command = pinned(0, program);
    let out = command
        .args(["run", "--url", url, "--concurrency", "64", "--requests", &requests])
        .args(["--set", "dataset={format: synthetic, prompts: 1000}", "--set", "journal=off"])
        .args(["--out", "out", "--format", "json", "--quiet"])
        .args(flags)
        .args(more)
        .current_dir(folder.path())
        .output()
        .context("starting takt")?;
    let after = children()?;
    let says = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "takt ended with {}: {says}", out.status);
    let said: Value = serde_json::from_slice(&out.stdout)?;
    let succeeded = said["phases"][0]["succeeded"].to_string();
    ensure!(succeeded == requests, "{succeeded} of {requests} succeeded");
    Ok((after - before) as f64)
}
