//! One run of `takt run` as a process of its own, and whether it was left alone meanwhile.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use takt_net::affinity;
use takt_record::ResultDoc;
use takt_report::Limits;

use super::machine::Accounts;
use crate::exit::{Exit, Failure, OrExit as _};

/// What every run of the test has in common.
pub(super) struct Trials {
    program: PathBuf,
    /// The reactor's core.
    core: usize,
    folder: Folder,
    stopped: Arc<AtomicBool>,
    /// No run begins after it.
    until: Instant,
    /// Disturbed runs have figures, too.
    anyway: bool,
    /// Runs so far.
    count: u32,
}

/// What came of a row.
#[derive(Clone, Debug)]
pub(super) enum Had<T> {
    /// Its figures; and what disturbed them, when they are wanted anyway.
    Figures(T, Option<String>),
    /// Why there are none.
    Absent(String),
}

/// A folder that is gone with its owner.
struct Folder(PathBuf);

impl Trials {
    /// Trials whose reactor runs on `core`, none of them begun later than `budget` from now.
    pub(super) fn new(
        core: usize,
        budget: Duration,
        anyway: bool,
        stopped: Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let name = format!("takt-selftest-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        std::fs::create_dir(&folder.0).or_exit(Exit::Setup)?;
        let program = std::env::current_exe().or_exit(Exit::Setup)?;
        let until = Instant::now() + budget;
        Ok(Self { program, core, folder, stopped, until, anyway, count: 0 })
    }

    /// Runs `takt run` with these arguments for `span`, once more when it was disturbed, and gives what
    /// `look` makes of its result and its run folder.
    ///
    /// # Errors
    /// The user has stopped the test.
    pub(super) fn run<T>(
        &mut self,
        args: &[&str],
        span: Duration,
        look: impl Fn(&ResultDoc, &Path) -> Result<T, String>,
    ) -> Result<Had<T>, Failure> {
        let mut disturbed = None;
        // Where disturbed figures are wanted, there is no use in asking twice.
        let repeats = if self.anyway { 0 } else { REPEATS };
        for _ in 0..=repeats {
            if Instant::now() + span > self.until {
                let why = disturbed.unwrap_or_else(|| "there was no time left for it".to_owned());
                return Ok(Had::Absent(why));
            }
            let before = Accounts::now();
            let out = self.folder.0.join(self.count.to_string());
            self.count += 1;
            let ran = self.process(args, span, &out)?;
            let others = before.and_then(Accounts::since).unwrap_or_default();
            let had = ran.and_then(|doc| {
                let why = others.disturb().or_else(|| kept_from_running(&doc));
                Ok((look(&doc, &out)?, why))
            });
            // A journal may be large; what cannot be removed goes with the folder.
            let _ = std::fs::remove_dir_all(&out);
            match had {
                Err(why) => return Ok(Had::Absent(why)),
                Ok((figures, None)) => return Ok(Had::Figures(figures, None)),
                Ok((figures, why)) if self.anyway => return Ok(Had::Figures(figures, why)),
                Ok((_, why)) => disturbed = why,
            }
        }
        Ok(Had::Absent(disturbed.unwrap_or_default()))
    }

    /// The result of one run; the inner error says why there is none.
    fn process(
        &self,
        args: &[&str],
        span: Duration,
        out: &Path,
    ) -> Result<Result<ResultDoc, String>, Failure> {
        let (core, seconds) = (self.core.to_string(), format!("{}ms", span.as_millis()));
        let mut command = Command::new(&self.program);
        command.args(["run", "--quiet", "--format", "json", "--core", &core]).args(args);
        command.args(["--duration", &seconds, "--out"]).arg(out);
        command.args(["--set", "phases.performance.drain_timeout=2s"]);
        // A Ctrl-C is for this process, which then ends that one.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A process inherits the cores of the thread that starts it; this one then looks on from elsewhere.
        affinity::unpinned().or_exit(Exit::Setup)?;
        let mut child = Running(command.spawn().or_exit(Exit::Setup)?);
        affinity::keep_off([self.core]).or_exit(Exit::Setup)?;
        let stdout = child.0.stdout.take().map(read);
        let stderr = child.0.stderr.take().map(read);
        let until = Instant::now() + span + PATIENCE;
        loop {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(Failure::says(Exit::Interrupted, "stopped; nothing is left running"));
            }
            match child.0.try_wait().or_exit(Exit::Internal)? {
                Some(_) => break,
                None if Instant::now() > until => {
                    return Ok(Err("the run did not end in its time".to_owned()));
                }
                None => thread::sleep(LOOK),
            }
        }
        let text = |reader: Option<thread::JoinHandle<String>>| {
            reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
        };
        Ok(serde_json::from_str(&text(stdout)).map_err(|_| {
            let said = text(stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty());
            format!("the run failed: {}", last.unwrap_or("it said nothing"))
        }))
    }
}

impl<T> Had<T> {
    /// The figures, if there are any.
    pub(super) fn figures(&self) -> Option<&T> {
        match self {
            Self::Figures(figures, _) => Some(figures),
            Self::Absent(_) => None,
        }
    }

    /// Why there are no figures, or why they are not to be believed.
    pub(super) fn but(&self) -> Option<&str> {
        match self {
            Self::Figures(_, why) => why.as_deref(),
            Self::Absent(why) => Some(why),
        }
    }
}

/// The reactor was kept from its core: what it measured is not what takt can do.
fn kept_from_running(doc: &ResultDoc) -> Option<String> {
    let seen = doc.phases.first()?.instrument.as_ref()?;
    let share = seen.runnable_share.filter(|share| *share > Limits::default().runnable)?;
    Some(format!("for {:.1} % of the time the reactor was kept from its core", share * 100.0))
}

/// Reads a pipe to its end on a thread of its own, so that nobody waits for room in it.
fn read(mut pipe: impl std::io::Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        // What is no text is no result.
        let _ = pipe.read_to_string(&mut text);
        text
    })
}

/// A child that is ended with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A disturbed run is repeated so often.
const REPEATS: u32 = 1;
/// What a run may take beyond its span: to begin, to drain, to write its result.
const PATIENCE: Duration = Duration::from_secs(6);
/// Between two looks at a process.
const LOOK: Duration = Duration::from_millis(5);
