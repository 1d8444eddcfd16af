//! A process that belongs to a run: started by it, told when to stop, and gone when the run is, however
//! that ended.
//!
//! The run holds the writing end of the child's standard input. When that closes, by the run's will or
//! because it was killed, the child ends. It is in a process group of its own, so that a Ctrl-C meant for
//! the run does not take its services away first.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};

/// A child of this run. Dropped, it is told to stop, and killed when it does not.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: &'static str,
    child: Mutex<Child>,
    /// Its end is wanted.
    stopping: AtomicBool,
}

impl Service {
    /// Starts this program with other arguments. What it is told by its standard input is the caller's.
    pub(crate) fn start(
        name: &'static str,
        args: &[&OsStr],
    ) -> Result<(Self, ChildStdin), Failure> {
        let start = || {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(args).process_group(0);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
        };
        let mut child = start()
            .map_err(|e| Failure::says(Exit::Setup, format!("{name} cannot be started: {e}")))?;
        let Some(stdin) = child.stdin.take() else {
            return Err(Failure::says(Exit::Internal, format!("{name} has no standard input")));
        };
        let shared = Shared { name, child: Mutex::new(child), stopping: AtomicBool::new(false) };
        Ok((Self { shared: Arc::new(shared) }, stdin))
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<String> {
        self.shared.ended()
    }

    /// Calls `tell` when the process ends before its end is wanted.
    pub(crate) fn watch(&self, tell: impl FnOnce(String) + Send + 'static) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        thread::Builder::new().name("takt-services".to_owned()).spawn(move || {
            // When that fails the thread shares a core, and hardly ever runs.
            let _ = takt_net::affinity::unpinned();
            while !shared.stopping.load(Ordering::Acquire) {
                if let Some(how) = shared.ended() {
                    if !shared.stopping.load(Ordering::Acquire) {
                        tell(format!("{} has ended: {how}", shared.name));
                    }
                    return;
                }
                thread::sleep(LOOK);
            }
        })?;
        Ok(())
    }

    /// Its end is wanted, or it is not needed any more: its standard input is closed by now.
    pub(crate) fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        let until = Instant::now() + STOP_PATIENCE;
        while self.shared.ended().is_none() {
            if Instant::now() >= until {
                // It may have ended in between.
                let _ = self.shared.child().kill();
                let _ = self.shared.child().wait();
                return;
            }
            thread::sleep(LOOK / 10);
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> Option<String> {
        match self.child().try_wait() {
            Ok(status) => status.as_ref().map(ExitStatus::to_string),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// Between two looks at a process.
const LOOK: Duration = Duration::from_millis(50);
/// How long a process may take to end by itself.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
