//! How well a schedule is kept at a high rate, and what of that is the machine's: takt in turn with `floor_open`, a bare loop
//! that keeps the same kind of schedule and does nothing else.
//!
//! Both run on core 0, ahead of all others there, the server on core 1, all connections open beforehand; the floor spins. takt
//! writes its journal and folds its result meanwhile, on any core. Whatever takes a core away for a millisecond makes a
//! hundred sends late at 100,000 a second, and two hundred more until they have been caught up with: a few such moments are the
//! 99th percentile of their second. So what counts is the median of the seconds, and the floor says what the machine allows.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::machine::Quiet;
use super::own::{Mock, Scratch, TaktRun, build};
use super::rounds::median;
use super::table::{Report, Table};
use super::{bound, flags, pinned, spent, two_cores};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench open [flags] [-- further flags of `takt run`]

  --rate R          requests a second, Poisson (100000)
  --seconds S       length of a run (60)
  --connections N   open from the start, and no more (1024)
  --waits LIST      takt's wait modes (spin,guard)
  --rounds N        rounds, each the floor and takt once in each mode (1)
  --patience S      how long to wait for a quiet machine (30)
  --no-build        measure what is there";

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    rate: u64,
    seconds: u32,
    connections: u32,
    waits: Vec<String>,
    rounds: usize,
    patience: u32,
    build: bool,
    takt_flags: Vec<String>,
}

impl Options {
    /// Reads the words after `bench open`.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            rate: 100_000,
            seconds: 60,
            connections: 1_024,
            waits: vec!["spin".into(), "guard".into()],
            rounds: 1,
            patience: 30,
            build: true,
            takt_flags: Vec::new(),
        };
        let rest = flags::read(words, |name, value| {
            match name {
                "--rate" => options.rate = flags::positive(value)?,
                "--seconds" => options.seconds = flags::positive(value)?,
                "--connections" => options.connections = flags::positive(value)?,
                "--waits" => options.waits = flags::list(value)?,
                "--rounds" => options.rounds = flags::positive(value)?,
                "--patience" => options.patience = value.parse()?,
                _ => bail!("no such flag\n\n{USAGE}"),
            }
            Ok(())
        })?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        ensure!(options.seconds <= SECONDS_MOST, "--seconds {SECONDS_MOST} at most");
        ensure!(!options.waits.is_empty(), "--waits: one at least");
        Ok(options)
    }
}

/// How one run kept its schedule.
#[derive(Debug)]
struct Kept {
    sent: f64,
    /// From the first send to the last, in seconds; of takt alone.
    window_s: Option<f64>,
    p50_us: f64,
    /// Of each second, in order.
    p99_us: Vec<f64>,
    others: f64,
    verdict: String,
}

impl Kept {
    fn row(&self, client: &str) -> Vec<String> {
        let mut seconds = self.p99_us.clone();
        let (least, most) = seconds
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), us| (least.min(*us), most.max(*us)));
        vec![
            client.to_owned(),
            format!("{:.0}", self.sent),
            self.window_s.map_or_else(String::new, |s| format!("{s:.3}")),
            format!("{:.2}", self.p50_us),
            format!("{:.1}", median(&mut seconds)),
            format!("{least:.1}"),
            format!("{most:.0}"),
            self.verdict.clone(),
            format!("{:.1}", self.others * 100.0),
        ]
    }
}

/// Runs the rounds.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    two_cores()?;
    if options.build {
        build(root, "release")?;
    }
    let takt = root.join("target/release/takt");
    let server = Mock::start(&takt, &["--mode", "instant", "--core", "1"])?;
    let title = format!(
        "Poisson at {} a second for {} s, {} connections open beforehand",
        options.rate, options.seconds, options.connections
    );
    let head = [
        "client",
        "sent",
        "in s",
        "late p50 us",
        "p99 us, median second",
        "best second",
        "worst second",
        "verdict",
        "others %",
    ];
    let mut table = Table::new(title, &head);
    for _ in 0..options.rounds {
        eprintln!("{}", Quiet::wait(options.patience)?);
        eprintln!("floor_open");
        table.row(floor(root, options, &server)?.row("floor_open"));
        for wait in &options.waits {
            eprintln!("takt --wait {wait}");
            table.row(by_takt(&takt, options, wait, &server)?.row(&format!("takt, {wait}")));
        }
    }
    table.note("Lateness is from a moment of the schedule to the write; the 99th percentile of each second by itself.");
    table.note("takt's verdict is on the whole run: a stall of the machine makes it suspect or invalid, whatever the median.");
    Ok(table.into())
}

fn floor(root: &Path, options: &Options, server: &Mock) -> anyhow::Result<Kept> {
    let folder = Scratch::new()?;
    let out = folder.path().join("said.json");
    // As takt's reactor does where it may: else it goes on without.
    let mut command = pinned(0, Path::new("nice"));
    command
        .args(["-n", "-20"])
        .arg(root.join("target/release/floor_open"))
        .args(["--connect", server.url.trim_start_matches("http://")])
        .args(["--rate", &options.rate.to_string(), "--seconds", &options.seconds.to_string()])
        .args(["--connections", &options.connections.to_string()]);
    let spent = spent::run(&mut command, &out, || server.cpu_s())?;
    let said = std::fs::read_to_string(&out)?;
    ensure!(spent.status.success(), "floor_open ended with {}: {said}", spent.status);
    let line: Value = serde_json::from_str(&said)?;
    Ok(Kept {
        sent: number(&line["requests"])?,
        window_s: None,
        p50_us: number(&line["lateness_us"]["50"])?,
        p99_us: series(&line["seconds_p99_us"])?,
        others: spent.others,
        verdict: String::new(),
    })
}

fn by_takt(takt: &Path, options: &Options, wait: &str, server: &Mock) -> anyhow::Result<Kept> {
    let (rate, duration) = (options.rate.to_string(), format!("{}s", options.seconds));
    let (warm, max) = (
        format!("connections.warm={}", options.connections),
        format!("connections.max={}", options.connections),
    );
    let flags = ["--api", "raw", "--core", "0", "--wait", wait, "--rate", &rate];
    let more = ["--duration", &duration, "--set", &warm, "--set", &max];
    let flags = [&flags[..], &more].concat();
    let run = TaktRun::of(bound(takt), server, &flags, &options.takt_flags)?;
    let issued = number(run.phase("issued"))?;
    ensure!(run.succeeded() == issued, "{} of {issued} succeeded", run.succeeded());
    Ok(Kept {
        sent: issued,
        window_s: run.phase("issue_window_s").as_f64(),
        p50_us: number(&run.phase("lateness_us")["p"]["50"])?,
        p99_us: series(&run.phase("series")["lateness_p99_us"])?,
        others: run.spent.others,
        verdict: run.verdict().to_owned(),
    })
}

fn number(value: &Value) -> anyhow::Result<f64> {
    value.as_f64().with_context(|| format!("{value} is no number"))
}

/// A series of a value a second; one in which nothing was sent has none.
fn series(values: &Value) -> anyhow::Result<Vec<f64>> {
    let values = values.as_array().context("there is no series of seconds")?;
    let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    ensure!(!values.is_empty(), "the series of seconds is empty");
    Ok(values)
}

/// takt's series has a value a second for so long.
const SECONDS_MOST: u32 = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_the_median_second_and_the_extremes() {
        let p99_us = series(&json!([30.0, 20.0, 9_000.0, null])).unwrap();
        let kept = Kept {
            sent: 300.0,
            window_s: Some(2.9999),
            p50_us: 0.75,
            p99_us,
            others: 0.004,
            verdict: "valid".into(),
        };
        let row = ["takt", "300", "3.000", "0.75", "30.0", "20.0", "9000", "valid", "0.4"];
        assert_eq!(kept.row("takt"), row);
    }

    #[test]
    fn what_is_missing_is_an_error() {
        assert!(series(&json!([null])).is_err() && series(&Value::Null).is_err());
        assert!(number(&Value::Null).is_err());
        for (flag, value) in [("--rate", "0"), ("--seconds", "600"), ("--waits", "")] {
            assert!(Options::read(&[flag.to_owned(), value.to_owned()]).is_err(), "{flag} {value}");
        }
    }
}
