//! Running the pairs of a gate: for each run a fresh server of its arm, the same load, and an orderly end.
//!
//! The server's command is given to `sh`, in a process group of its own, with `TAKT_RECORDS` set to a
//! folder for its step records. What it prints goes to a log beside the run folder.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Pid, Signal, kill_process_group};
use takt_opprof::{Arm, Beside, StreamEnd, check_file};
use takt_time::Span;
use takt_wire::Endpoint;

use super::{check, files};
use crate::cli::{PairArgs, RunConfig};
use crate::console::Console;
use crate::{flags, preflight};

/// A run that was made.
pub(super) struct Made {
    pub(super) pair: usize,
    pub(super) arm: Arm,
    pub(super) folder: PathBuf,
    pub(super) beside: Beside,
}

/// Runs every pair, off first in the odd ones.
pub(super) fn run(
    args: &PairArgs,
    run: &RunConfig,
    console: &Console,
) -> anyhow::Result<Vec<Made>> {
    let config = flags::from_file(&run.config, &[])?;
    std::fs::create_dir_all(&run.out).with_context(|| run.out.display().to_string())?;
    let out = std::path::absolute(&run.out)?;
    let mut made = Vec::new();
    for pair in 1..=args.pairs {
        let arms = if pair % 2 == 1 { [Arm::Off, Arm::On] } else { [Arm::On, Arm::Off] };
        for arm in arms {
            let folder = out.join(format!("pair{pair}-{}", arm.name()));
            ensure!(!folder.exists(), "{}: is there already", folder.display());
            console.info(format!("pair {pair} of {}, {}", args.pairs, arm.name()));
            let command = match arm {
                Arm::Off => &run.off_server,
                Arm::On => &run.on_server,
            };
            let records = folder.with_extension("records");
            let server = Server::start(command, &folder.with_extension("log"), &records)?;
            let server = server.ready(&config.endpoint.urls, args.ready_within)?;
            let load = load(&run.config, &folder);
            let after_load = children_cpu_s()?;
            server.stop()?;
            load?;
            let mut beside =
                if records.is_dir() { of_records(&records)? } else { Beside::default() };
            beside.cpu_s = Some(children_cpu_s()? - after_load);
            made.push(Made { pair, arm, folder, beside });
        }
    }
    Ok(made)
}

/// This very program, run with the load.
fn load(config: &Path, folder: &Path) -> anyhow::Result<()> {
    let takt = std::env::current_exe().context("finding this program")?;
    let status = Command::new(takt)
        .arg("run")
        .arg(config)
        .arg("--out")
        .arg(folder)
        .arg("--quiet")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("starting the load")?;
    ensure!(status.success(), "{}: the run ended with {status}", folder.display());
    Ok(())
}

/// What the records of one run say.
fn of_records(folder: &Path) -> anyhow::Result<Beside> {
    let (mut dropped, mut bytes, mut records, mut high) = (0, 0.0, 0, None);
    let mut before: Option<StreamEnd> = None;
    for (_, path) in check::in_order(&[folder.to_owned()])? {
        let mut input = Counting { input: files::open(&path)?, bytes: 0 };
        let report = check_file(BufReader::new(&mut input), before.as_ref())?;
        ensure!(report.failed == 0, "{}: broken; takt opprof check says how", path.display());
        bytes += input.bytes as f64;
        dropped += report.dropped;
        records += report.records;
        high = high.max(report.queue_high_watermark);
        before = Some(report.stream);
    }
    let log_bytes_per_step = (records > 0).then(|| bytes / records as f64);
    Ok(Beside {
        dropped: Some(dropped),
        log_bytes_per_step,
        queue_high_watermark: high,
        ..Beside::default()
    })
}

/// Counts what is read: records, whether their file is compressed or not.
struct Counting<R> {
    input: R,
    bytes: u64,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(into)?;
        self.bytes += got as u64;
        Ok(got)
    }
}

/// Processor time of children that have ended.
fn children_cpu_s() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// A server of ours; it is stopped when it goes out of scope.
pub(super) struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    pub(super) fn start(command: &str, log: &Path, records: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("{}: cannot be written", log.display());
        let out = File::create(log).with_context(cannot)?;
        let child = Command::new("sh")
            .args(["-c", command])
            .env("TAKT_RECORDS", records)
            .stdin(Stdio::null())
            .stdout(out.try_clone().with_context(cannot)?)
            .stderr(out)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting `{command}`"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Waits until every endpoint takes a connection.
    pub(super) fn ready(mut self, endpoints: &[Endpoint], within: Span) -> anyhow::Result<Self> {
        let deadline = Instant::now() + Duration::from_nanos(within.as_nanos());
        loop {
            let log = self.log.display();
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status} before it was ready; see {log}");
            }
            let Err(failure) = preflight::reach(endpoints, LOOK_EVERY, None) else {
                return Ok(self);
            };
            if Instant::now() >= deadline {
                bail!("the server was not ready in {within}: {:#}; see {log}", failure.error);
            }
            std::thread::sleep(Duration::from_nanos(LOOK_EVERY.as_nanos()));
        }
    }

    /// Asks it to end, and makes it after a while.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let group = group.context("a process id of 0")?;
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        kill_process_group(group, Signal::TERM)?;
        let deadline = Instant::now() + STOP_WITHIN;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                kill_process_group(group, Signal::KILL)?;
                self.child.wait()?;
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing to be done about a process that cannot be killed.
        drop(self.end());
    }
}

/// Between two looks whether the server is there.
const LOOK_EVERY: Span = Span::from_millis(100);

/// A server that writes its footer needs some seconds.
const STOP_WITHIN: Duration = Duration::from_secs(30);
