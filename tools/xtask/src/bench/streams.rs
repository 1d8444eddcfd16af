//! How many streams can be open at once, and what each takes.
//!
//! takt against its own `timed` server, both in one process each: as many requests in flight as are asked for, all
//! streaming, spread over source addresses of the loopback. Once all are open, the resident memory of the client
//! is read (`VmRSS`) and its open sockets are counted. The memory of a stream is the difference between two
//! such runs over the difference of their streams, so that what a run takes anyway is not counted.

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
usage: cargo xtask bench streams [flags] [-- further flags of `takt run`]

  --streams LIST    streams open at once, one run each (1000,10000,18000)
  --sources N       source addresses, from 127.0.0.2 on (8)
  --tokens N        tokens of each stream, one a second (20)
  --profile NAME    release or debug (release)
  --no-build        measure what is there";

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    streams: Vec<u32>,
    sources: u8,
    tokens: u32,
    profile: String,
    build: bool,
    takt_flags: Vec<String>,
}

impl Options {
    /// Reads the words after `bench streams`.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            streams: vec![1_000, 10_000, 18_000],
            sources: 8,
            tokens: 20,
            profile: "release".into(),
            build: true,
            takt_flags: Vec::new(),
        };
        let rest = flags::read(words, |name, value| options.set(name, value))?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--streams" => {
                self.streams = flags::list(value)?;
                ensure!(!self.streams.is_empty(), "give one number at least");
            }
            "--sources" => self.sources = value.parse::<u8>()?.clamp(1, 250),
            "--tokens" => self.tokens = value.parse()?,
            "--profile" => {
                ensure!(["release", "debug"].contains(&value), "release or debug");
                value.clone_into(&mut self.profile);
            }
            _ => bail!("no such flag\n\n{USAGE}"),
        }
        Ok(())
    }
}

/// One run: what was seen when all its streams were open.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    streams: u32,
    sockets: usize,
    kib: u64,
    succeeded: u64,
    server_kib: u64,
}

/// Runs them and says what was seen; a stream that fails is an error.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    if options.build {
        build(root, &options.profile)?;
    }
    let program = root.join("target").join(&options.profile).join("takt");
    let head =
        ["streams", "sockets", "client KiB", "server KiB", "succeeded", "bytes a further stream"];
    let mut table = Table::new("Streams open at once", &head);
    let mut last: Option<Seen> = None;
    for &streams in &options.streams {
        eprintln!("{streams} streams");
        let folder = Scratch::new()?;
        let seen = measure(&program, folder.path(), streams, options)?;
        let bytes = last.and_then(|last| bytes_a_stream(&last, &seen));
        table.row(vec![
            seen.streams.to_string(),
            seen.sockets.to_string(),
            seen.kib.to_string(),
            seen.server_kib.to_string(),
            seen.succeeded.to_string(),
            bytes.map_or_else(String::new, |bytes| format!("{bytes:.0}")),
        ]);
        last = Some(seen);
    }
    table.note("Resident memory of the client, beside that of the run in the row above.");
    Ok(table.into())
}

fn bytes_a_stream(few: &Seen, many: &Seen) -> Option<f64> {
    let more = many.streams.checked_sub(few.streams).filter(|more| *more > 0)?;
    Some((many.kib as f64 - few.kib as f64) * 1024.0 / f64::from(more))
}

fn measure(program: &Path, folder: &Path, streams: u32, options: &Options) -> anyhow::Result<Seen> {
    let tokens = options.tokens.to_string();
    let mut mock = vec!["--ttft", "1s", "--tpot", "1s", "--tokens", &tokens];
    let tls = options.takt_flags.iter().any(|flag| flag == "--insecure");
    let (cert, key) = ("tests/tls/server.pem", "tests/tls/server.key");
    if tls {
        mock.extend(["--tls-cert", cert, "--tls-key", key]);
    }
    let server = Mock::start(program, &mock)?;
    let number = streams.to_string();
    let sources: Vec<_> = (0..options.sources).map(|n| format!("127.0.0.{}", n + 2)).collect();
    let sources = format!("connections.source_addresses=[{}]", sources.join(", "));
    let mut command = Command::new(program);
    command
        .args(["run", "--url", &server.url, "--model", "m"])
        .args(["--concurrency", &number, "--requests", &number])
        .args(["--set", "dataset={format: synthetic, prompts: 1000}", "--set", &sources])
        .args(["--out", "out", "--format", "json", "--quiet"])
        .args(&options.takt_flags)
        .current_dir(folder)
        .stdout(std::fs::File::create(folder.join("said.json"))?);
    let mut child = Stopped(command.spawn().context("starting takt")?);
    let pid = child.0.id();
    let mut seen = Seen { streams, sockets: 0, kib: 0, succeeded: 0, server_kib: 0 };
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
        ensure!(Instant::now() < deadline, "{streams} streams did not end in {PATIENCE:?}");
        let sockets = sockets(pid);
        if sockets >= streams as usize {
            // The greatest, while all are open.
            seen.sockets = seen.sockets.max(sockets);
            seen.kib = seen.kib.max(resident_kib(pid).unwrap_or(0));
            seen.server_kib = seen.server_kib.max(server.resident_kib().unwrap_or(0));
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    ensure!(status.success(), "takt ended with {status}");
    ensure!(seen.kib > 0, "all {streams} streams were never open at once: give more --tokens");
    let said: Value = serde_json::from_slice(&std::fs::read(folder.join("said.json"))?)?;
    let phase = &said["phases"][0];
    seen.succeeded = phase["succeeded"].as_u64().context("no count of successes")?;
    ensure!(seen.succeeded == u64::from(streams), "some failed: {}", phase["error_samples"]);
    Ok(seen)
}

/// Sockets that a process has open.
fn sockets(pid: u32) -> usize {
    let Ok(folder) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    let links = folder.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// One run takes no longer.
const PATIENCE: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_takes_what_further_streams_took() {
        let seen = |streams, kib| Seen { streams, sockets: 0, kib, succeeded: 0, server_kib: 0 };
        assert_eq!(bytes_a_stream(&seen(1_000, 10_000), &seen(3_000, 12_000)), Some(1_024.0));
        assert_eq!(bytes_a_stream(&seen(1_000, 10_000), &seen(1_000, 12_000)), None);
    }

    #[test]
    fn sockets_of_a_process_are_counted() {
        let (one, two) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(sockets(std::process::id()) >= 2);
        drop((one, two));
        assert_eq!(sockets(u32::MAX), 0);
    }

    #[test]
    fn flags_set_what_they_name() {
        let words = ["--streams", "5,9", "--sources", "3", "--no-build"].map(str::to_owned);
        let options = Options::read(&words).unwrap();
        assert_eq!((options.streams, options.sources, options.build), (vec![5, 9], 3, false));
        assert!(Options::read(&["--streams".to_owned(), "many".to_owned()]).is_err());
    }
}
