//! Does memory grow with the number of requests?
//!
//! One long run of takt against its own instant server, with every request in the journal. Its resident
//! memory (`VmRSS` of `/proc/PID/status`) is read every few seconds. Once the run has settled the figure
//! must stay where it is: the greatest reading may not be more than a share above the first.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::flags;
use super::own::{Mock, Scratch, Stopped, build, resident_kib};
use super::table::{Report, Table};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench memory [flags] [-- further flags of `takt run`]

  --requests N      requests of the run (10000000)
  --connections N   connections, kept busy all the time (64)
  --journal WORD    full, 'sampled N' or off (full)
  --every S         seconds between two readings (5)
  --settle S        readings before this do not count (60)
  --limit SHARE     how far a reading may be above the first that counts (0.05)
  --profile NAME    release or debug (release)
  --no-build        measure what is there";

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    requests: u64,
    connections: u32,
    journal: String,
    every_s: u64,
    settle_s: u64,
    limit: f64,
    profile: String,
    build: bool,
    takt_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            requests: 10_000_000,
            connections: 64,
            journal: "full".into(),
            every_s: 5,
            settle_s: 60,
            limit: 0.05,
            profile: "release".into(),
            build: true,
            takt_flags: Vec::new(),
        }
    }
}

impl Options {
    /// Reads the words after `bench memory`.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let rest = flags::read(words, |name, value| options.set(name, value))?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--requests" => self.requests = value.parse()?,
            "--connections" => self.connections = value.parse()?,
            "--journal" => value.clone_into(&mut self.journal),
            "--every" => self.every_s = flags::positive(value)?,
            "--settle" => self.settle_s = value.parse()?,
            "--limit" => self.limit = value.parse()?,
            "--profile" => {
                ensure!(["release", "debug"].contains(&value), "release or debug");
                value.clone_into(&mut self.profile);
            }
            _ => bail!("no such flag\n\n{USAGE}"),
        }
        Ok(())
    }
}

/// Runs it, says what was read, and that it failed when memory grew.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    if options.build {
        build(root, &options.profile)?;
    }
    let program = root.join("target").join(&options.profile).join("takt");
    let folder = Scratch::new()?;
    let outcome = measure(&program, folder.path(), options)?;
    ensure!(outcome.succeeded == options.requests, "{} requests succeeded", outcome.succeeded);
    let Some(growth) = outcome.growth() else {
        bail!("the run was over before it had settled: give more --requests or less --settle");
    };
    let mut report = Report::from(outcome.table(growth, options));
    report.failed =
        (growth > options.limit).then(|| format!("memory grew by {:.1} %", growth * 100.0));
    Ok(report)
}

/// The readings of one run.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Resident memory in KiB, those that count.
    settled_kib: Vec<u64>,
    succeeded: u64,
    seconds: f64,
    journal_bytes: u64,
}

impl Outcome {
    /// By what share the greatest reading is above the first; `None` with fewer than two.
    fn growth(&self) -> Option<f64> {
        let [first, _, ..] = self.settled_kib[..] else { return None };
        let most = self.settled_kib.iter().max()?;
        Some(*most as f64 / first as f64 - 1.0)
    }

    fn table(&self, growth: f64, options: &Options) -> Table {
        let head =
            ["requests", "seconds", "journal MB", "first KiB", "last KiB", "most above the first"];
        let mut table = Table::new("Resident memory of a long run", &head);
        let kib = |reading: Option<&u64>| reading.map_or_else(String::new, u64::to_string);
        table.row(vec![
            self.succeeded.to_string(),
            format!("{:.0}", self.seconds),
            format!("{:.0}", self.journal_bytes as f64 / 1e6),
            kib(self.settled_kib.first()),
            kib(self.settled_kib.last()),
            format!("{:+.1} %", growth * 100.0),
        ]);
        table.note(format!(
            "{} connections, journal {}; readings from {} s on; limit {:.0} %.",
            options.connections,
            options.journal,
            options.settle_s,
            options.limit * 100.0
        ));
        table
    }
}

fn measure(program: &Path, folder: &Path, options: &Options) -> anyhow::Result<Outcome> {
    let server = Mock::start(program, &["--mode", "instant"])?;
    let connections = options.connections.to_string();
    let requests = options.requests.to_string();
    let journal = format!("journal={}", options.journal);
    let mut command = Command::new(program);
    command
        .args(["run", "--url", &server.url, "--no-stream", "--model", "m"])
        .args(["--concurrency", &connections, "--requests", &requests])
        .args(["--set", "dataset={format: synthetic, prompts: 1000}", "--set", &journal])
        .args(["--out", "out", "--format", "json", "--quiet"])
        .args(&options.takt_flags)
        .current_dir(folder)
        .stdout(std::fs::File::create(folder.join("said.json"))?);
    let began = Instant::now();
    let mut child = Stopped(command.spawn().context("starting takt")?);
    let mut outcome = Outcome::default();
    let status = loop {
        let due = began.elapsed() + Duration::from_secs(options.every_s);
        let status = loop {
            if let Some(status) = child.0.try_wait()? {
                break Some(status);
            }
            if began.elapsed() >= due {
                break None;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        if let Some(status) = status {
            break status;
        }
        // It may be gone since.
        let Some(kib) = resident_kib(child.0.id()) else { continue };
        let seconds = began.elapsed().as_secs();
        eprintln!("{seconds} s: {kib} KiB");
        if seconds >= options.settle_s {
            outcome.settled_kib.push(kib);
        }
    };
    ensure!(status.success(), "takt ended with {status}");
    outcome.seconds = began.elapsed().as_secs_f64();
    let said: Value = serde_json::from_slice(&std::fs::read(folder.join("said.json"))?)?;
    outcome.succeeded = said["phases"][0]["succeeded"].as_u64().context("no count of successes")?;
    outcome.journal_bytes = said["journal"]["bytes"].as_u64().unwrap_or(0);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_of_the_greatest_reading_over_the_first() {
        let outcome = |settled_kib: &[u64]| Outcome {
            settled_kib: settled_kib.to_vec(),
            ..Outcome::default()
        };
        assert_eq!(
            outcome(&[1000, 1100, 1050]).growth().map(|g| (g * 1000.0).round()),
            Some(100.0)
        );
        assert_eq!(outcome(&[1000, 900]).growth(), Some(0.0));
        assert_eq!(outcome(&[1000]).growth(), None);
    }

    #[test]
    fn flags_set_what_they_name() {
        let words =
            ["--requests", "5", "--journal", "sampled 10", "--no-build", "--", "--core", "0"];
        let options = Options::read(&words.map(str::to_owned)).unwrap();
        assert_eq!((options.requests, options.journal.as_str()), (5, "sampled 10"));
        assert_eq!(options.takt_flags, ["--core", "0"]);
        assert!(Options::read(&["--profile".to_owned(), "fast".to_owned()]).is_err());
    }
}
