//! What is taken of the server while a run goes on: profiler windows in performance phases, its step records,
//! what it says of itself.
//!
//! ```text
//! before the first send   server asked what it is ─ records: where they end ─ a profiler left on is stopped
//! a performance phase     thread:  apart ─> opened ─> margin ─> start … stop ─> margin ─> closed ─┐ again
//!                                    │ told by the session, recorded                    │         │
//! after the last answer   records from where they ended ─> RUN/opprof ─> page of the report <─────┘
//! ```
//!
//! Nothing of it runs on the reactor's thread: that one writes two records a window. What cannot be had is said
//! in the result, and takes nothing from the run.

mod collect;
mod marks;
mod page;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use takt_actors::SessionMsg;
use takt_engine::Remote;
use takt_record::{
    PhaseEvent, PhaseId, PhaseKind, PhaseRecord, ProfilerWindow, ServerSide, SessionPlan,
};
use takt_time::Span;

use super::window::{
    Controller, MANIFEST, Manifest, Stop, WindowEntry, read_manifest, write_manifest,
};
use crate::config::{Config, Opprof};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::stops::Stops;
use collect::Records;
use marks::SessionMarks;

pub(crate) use page::attach;

/// The server's side of a run, from before its first send to its report.
pub(crate) struct During {
    shared: Arc<Shared>,
    records: Option<Records>,
    /// Of the thread that takes windows: ends when it does.
    ended: Option<Receiver<()>>,
    written_within: Span,
}

/// What the threads of a run share about it.
#[derive(Debug)]
pub(crate) struct Shared {
    phases: Vec<(String, PhaseKind)>,
    folder: PathBuf,
    /// The performance phase that issues requests, counted from 1.
    measuring: AtomicU32,
    /// Performance phases that have begun, by their places.
    begun: Mutex<Vec<usize>>,
    over: AtomicBool,
    session: OnceLock<Remote<SessionMsg>>,
    side: Mutex<ServerSide>,
}

impl During {
    /// Asks the server what it is, before anything is sent. A folder that is not there is wrong input; what the
    /// server lacks is a problem of the result.
    pub(crate) fn begin(
        config: &Config,
        plan: &SessionPlan,
        folder: &Path,
        console: &Console,
    ) -> Result<Option<Self>, Failure> {
        let Some(asked) = &config.opprof else { return Ok(None) };
        let records = asked.records.as_deref().map(Records::begin).transpose();
        let records = records.or_exit(Exit::Input)?;
        let own = folder.join(OWN);
        std::fs::create_dir_all(&own).or_exit(Exit::Setup)?;
        let shared = Arc::new(Shared {
            phases: plan.phases.iter().map(|phase| (phase.name.clone(), phase.kind)).collect(),
            folder: own,
            measuring: AtomicU32::new(0),
            begun: Mutex::default(),
            over: AtomicBool::new(false),
            session: OnceLock::new(),
            side: Mutex::default(),
        });
        let mut during = Self { shared, records, ended: None, written_within: Span::ZERO };
        match during.controller(config, asked, console) {
            Ok(Some(controller)) => during.take_windows(controller, asked, console)?,
            Ok(None) => {}
            Err(failure) if failure.exit == Exit::Input => return Err(failure),
            Err(failure) => during.shared.problem(format!("windows: {:#}", failure.error), console),
        }
        during.shared.save(console);
        Ok(Some(during))
    }

    /// Who is to be told of phases and the session.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The run is over: waits for a window that is open, unless a stop is asked for meanwhile, and collects the
    /// records.
    pub(crate) fn end(self, asked: &Opprof, stops: &Stops, console: &Console) {
        self.shared.over.store(true, Ordering::Relaxed);
        let before = stops.waiting();
        if let Some(ended) = &self.ended {
            let until = takt_net::now() + self.written_within + STOPPED_WITHIN;
            let mut waited = ended.recv_timeout(NOTABLE);
            if waited == Err(RecvTimeoutError::Timeout) {
                console.info("waiting for the server's profiler");
            }
            while waited == Err(RecvTimeoutError::Timeout)
                && takt_net::now() < until
                && !stops.more_than(before)
            {
                waited = ended.recv_timeout(LOOK_EVERY);
            }
            if waited == Err(RecvTimeoutError::Timeout) {
                let says = "windows: the last one was not over when the report was written";
                self.shared.problem(says.to_owned(), console);
            }
        }
        let windows = asked.windows.iter().filter(|_| self.ended.is_some());
        for says in windows.flat_map(|windows| self.shared.missed(windows.count)) {
            self.shared.problem(says, console);
        }
        if let Some(records) = self.records {
            for problem in records.collect(&self.shared.folder, asked.engine.as_deref()) {
                self.shared.problem(problem, console);
            }
        }
        self.shared.save(console);
    }

    /// What drives the profiler, if windows are wanted; what the server says of itself in any case.
    fn controller(
        &self,
        config: &Config,
        asked: &Opprof,
        console: &Console,
    ) -> Result<Option<Controller>, Failure> {
        let shared = self.shared.clone();
        let stop = Stop::when(move || shared.over() || !shared.measures());
        let records = asked.records.as_deref().map(|folder| (folder, asked.engine.as_deref()));
        let Some(windows) = &asked.windows else {
            let server = Controller::ask(config, console)?;
            self.shared.with(|side| side.server = server);
            return Ok(None);
        };
        std::fs::read_dir(&windows.traces)
            .map_err(|error| {
                anyhow::anyhow!("opprof.traces: {}: {error}", windows.traces.display())
            })
            .or_exit(Exit::Input)?;
        let mut controller = Controller::new(config, windows, records, stop, console)?;
        self.shared.with(|side| side.server = controller.server().clone());
        controller.clear()?;
        controller.mark(SessionMarks::new(self.shared.clone(), windows.margin, console.clone()));
        Ok(Some(controller))
    }

    fn take_windows(
        &mut self,
        controller: Controller,
        asked: &Opprof,
        console: &Console,
    ) -> Result<(), Failure> {
        let Some(windows) = &asked.windows else { return Ok(()) };
        self.written_within = windows.written_within;
        let (tell, ended) = mpsc::sync_channel(1);
        let taker = Taker {
            controller,
            shared: self.shared.clone(),
            count: windows.count,
            apart: windows.apart,
            manifest: windows.traces.join(MANIFEST),
            console: console.clone(),
            failures: 0,
        };
        let work = move || {
            // When that fails the thread shares a core.
            let _ = takt_net::affinity::unpinned();
            taker.run();
            drop(tell);
        };
        thread::Builder::new().name("takt-windows".to_owned()).spawn(work).or_exit(Exit::Setup)?;
        self.ended = Some(ended);
        Ok(())
    }
}

impl Shared {
    /// The session is there.
    pub(crate) fn tell(&self, session: Remote<SessionMsg>) {
        // There is one session.
        drop(self.session.set(session));
    }

    /// Something happened to a phase.
    pub(crate) fn phase(&self, record: &PhaseRecord) {
        let PhaseId(place) = record.phase;
        let measured = self.phases.get(usize::from(place)).map(|(_, kind)| *kind);
        if measured != Some(PhaseKind::Performance) {
            return;
        }
        match record.event {
            PhaseEvent::TrackingStarted => {
                self.lock_begun().push(usize::from(place));
                self.measuring.store(u32::from(place) + 1, Ordering::Relaxed);
            }
            PhaseEvent::IssuingEnded { .. } => self.measuring.store(0, Ordering::Relaxed),
            PhaseEvent::Started { .. } | PhaseEvent::TrackingStopped | PhaseEvent::Ended { .. } => {
            }
        }
    }

    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn measures(&self) -> bool {
        self.measuring.load(Ordering::Relaxed) != 0
    }

    /// What to say of phases in which fewer windows were taken than were wanted.
    fn missed(&self, wanted: u32) -> Vec<String> {
        let taken = self.with(|side| side.windows.clone());
        let begun = self.lock_begun();
        let names = begun.iter().filter_map(|place| self.phases.get(*place)).map(|(name, _)| name);
        let counted = names.map(|name| (name, taken.iter().filter(|w| w.phase == *name).count()));
        counted
            .filter(|(_, count)| *count < wanted as usize)
            .map(|(name, count)| {
                format!(
                    "phase {name}: {count} of {wanted} windows were begun while it sent requests"
                )
            })
            .collect()
    }

    fn lock_begun(&self) -> MutexGuard<'_, Vec<usize>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the phase of this number, counted from 1.
    fn name(&self, number: u32) -> String {
        let place = number.saturating_sub(1) as usize;
        self.phases.get(place).map_or_else(String::new, |(name, _)| name.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut ServerSide) -> T) -> T {
        act(&mut self.side.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn problem(&self, says: String, console: &Console) {
        console.warn(format!("opprof: {says}"));
        self.with(|side| side.problems.push(says));
    }

    /// Writes down what is known so far.
    fn save(&self, console: &Console) {
        let side = self.with(|side| side.clone());
        if let Err(error) = page::write(&self.folder, &side) {
            console.warn(format!("opprof: {error:#}"));
        }
    }
}

/// Takes the windows of a run.
struct Taker {
    controller: Controller,
    shared: Arc<Shared>,
    count: u32,
    apart: Span,
    manifest: PathBuf,
    console: Console,
    /// Windows in a row that could not be taken.
    failures: u32,
}

impl Taker {
    fn run(mut self) {
        let mut before = 0;
        while !self.shared.over() {
            let number = self.shared.measuring.load(Ordering::Relaxed);
            if number == 0 || number == before {
                thread::sleep(LOOK_EVERY);
                continue;
            }
            before = number;
            for _ in 0..self.count {
                self.shared.sleep(self.apart, number);
                if !self.shared.is_in(number) {
                    break;
                }
                if !self.window(number) {
                    return;
                }
            }
        }
    }

    /// Takes a window; says whether another one makes sense.
    fn window(&mut self, number: u32) -> bool {
        let manifest = read_manifest(&self.manifest);
        let ranks = manifest.as_ref().map_or(0, Manifest::ranks);
        let phase = self.shared.name(number);
        self.shared.with(|side| {
            side.windows.push(ProfilerWindow { phase: phase.clone(), ..ProfilerWindow::default() });
        });
        let taken = self.controller.window(ranks);
        let goes_on = match taken {
            Ok(entry) => {
                self.failures = 0;
                self.shared.with(|side| fill(side.windows.last_mut(), &entry));
                for problem in &entry.problems {
                    let says = format!("window of phase {phase} does not count: {problem}");
                    self.console.warn(format!("opprof: {says}"));
                }
                let written = manifest.and_then(|mut manifest| {
                    manifest.windows.push(entry);
                    write_manifest(&self.manifest, &manifest)
                });
                if let Err(error) = written {
                    self.shared.problem(format!("the manifest: {error:#}"), &self.console);
                }
                true
            }
            Err(failure) => self.not_taken(number, &phase, &failure),
        };
        self.shared.save(&self.console);
        goes_on
    }

    fn not_taken(&mut self, number: u32, phase: &str, failure: &Failure) -> bool {
        let opened = self.shared.with(|side| side.windows.last().and_then(|w| w.opened_ns));
        let stuck = self.shared.with(|side| {
            side.windows.last().is_some_and(|w| w.opened_ns.is_some() && w.closed_ns.is_none())
        });
        let why = format!("{:#}", failure.error);
        let cut = !self.shared.is_in(number);
        if opened.is_none() {
            self.shared.with(|side| side.windows.pop());
        }
        if opened.is_none() && cut {
            // How many there were is said at the end.
            return true;
        }
        let says = format!("window of phase {phase}: {why}");
        if opened.is_some() {
            self.shared.with(|side| {
                if let Some(window) = side.windows.last_mut() {
                    window.problems.push(why);
                }
            });
            self.console.warn(format!("opprof: {says}"));
        } else {
            self.shared.problem(says, &self.console);
        }
        if cut {
            return true;
        }
        // Steps of another kind may come; a profiler that is not there or cannot be stopped stays so.
        self.failures += 1;
        !stuck && failure.exit != Exit::Input && self.failures < FAILURES
    }
}

impl Shared {
    fn is_in(&self, number: u32) -> bool {
        !self.over() && self.measuring.load(Ordering::Relaxed) == number
    }

    fn sleep(&self, span: Span, number: u32) {
        let until = takt_net::now() + span;
        while self.is_in(number) && takt_net::now() < until {
            thread::sleep(LOOK_EVERY);
        }
    }
}

fn fill(window: Option<&mut ProfilerWindow>, entry: &WindowEntry) {
    let Some(window) = window else { return };
    window.steps = entry.seen.map(|seen| seen.steps);
    window.decode = entry.seen.map(|seen| seen.decode);
    window.prompt_steps = entry.seen.map(|seen| seen.prompt_steps);
    window.files = entry.files.iter().map(|file| file.name.clone()).collect();
    window.problems.clone_from(&entry.problems);
    window.remarks.clone_from(&entry.remarks);
}

/// The folder of a run in which the server's side is.
pub(super) const OWN: &str = "opprof";
/// After so many windows in a row that could not be taken no other is tried.
const FAILURES: u32 = 3;
/// Between two looks at how the run stands.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Waiting that is worth a word.
const NOTABLE: Duration = Duration::from_millis(500);
/// How long a stop of the profiler may take at the end of a run, besides the writing of traces.
const STOPPED_WITHIN: Span = Span::from_secs(10);
