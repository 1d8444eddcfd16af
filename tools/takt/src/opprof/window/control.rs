//! One window after another: the requests, and what is waited for between them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use takt_opprof::{StepFacts, Watch};
use takt_time::{Nanos, Span};
use takt_wire::{Endpoint, Method, PreparedRequest, Route};

use super::entry::{WindowAsked, WindowEntry, WindowKind};
use super::server;
use super::tail::Tail;
use super::traces::Traces;
use super::{LOOK_EVERY, Stop};
use crate::config::{Config, Windows};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::probe::Line;
use crate::{preflight, run, samples};

/// What drives a server's profiler.
pub(crate) struct Controller {
    line: Line,
    start: PreparedRequest,
    stop: PreparedRequest,
    server: Value,
    ranks: Option<usize>,
    windows: Windows,
    tail: Option<Tail>,
    stopping: Stop,
    marks: Option<Box<dyn Marks>>,
}

/// Who is told of the times in which the server is profiled.
pub(crate) trait Marks: Send {
    /// The profiler is about to be started. Returns when that may happen.
    fn opened(&mut self) -> Result<(), Failure>;
    /// It was stopped.
    fn closed(&mut self);
}

/// A window that is open: stops the profiler when it goes out of scope, whatever happened.
struct Open<'a> {
    controller: &'a mut Controller,
    started: bool,
}

/// What a window was, as far as its requests tell.
struct Held {
    started_wall_ns: u64,
    stopped_wall_ns: u64,
    /// Steps in it, if records tell.
    steps: Option<u64>,
    traces: Traces,
}

impl Controller {
    /// Reaches the server and hears what it says of itself. `records` are a folder of step records and one
    /// scheduler of theirs.
    pub(crate) fn new(
        config: &Config,
        windows: &Windows,
        records: Option<(&Path, Option<&str>)>,
        stopping: Stop,
        console: &Console,
    ) -> Result<Self, Failure> {
        let [url] = &config.endpoint.urls[..] else {
            return Err(Failure::says(Exit::Input, "a window is of one server: give one --url"));
        };
        let tls = run::client_tls(config, console)?;
        let mut found = preflight::reach(std::slice::from_ref(url), REACH_WITHIN, tls.as_ref())?;
        let reached = found.pop().context("no address was reached").or_exit(Exit::Internal)?;
        let mut line = Line::new(reached.target, tls, ANSWER_WITHIN);
        let request = |method, path: &str| request(config, url, method, path).or_exit(Exit::Input);
        let mut server = server::describe(&mut line, |path| request(Method::Get, path))?;
        if let Some(log) = &windows.server_log {
            server::add_log(&mut server, log).or_exit(Exit::Input)?;
        }
        config.hide(&mut server);
        for remark in server::remarks(&server) {
            console.warn(remark);
        }
        let tail = records.map(|(folder, engine)| Tail::new(folder, engine));
        Ok(Self {
            line,
            start: request(Method::Post, "start_profile")?,
            stop: request(Method::Post, "stop_profile")?,
            ranks: windows.ranks.or_else(|| server::ranks(&server)),
            server,
            windows: windows.clone(),
            tail: tail.transpose().or_exit(Exit::Input)?,
            stopping,
            marks: None,
        })
    }

    /// What the server says of itself, when its profiler is not to be driven.
    pub(crate) fn ask(config: &Config, console: &Console) -> Result<Value, Failure> {
        let windows = Windows::of(std::path::PathBuf::new());
        let never = Stop::when(|| false);
        Ok(Self::new(config, &windows, None, never, console)?.server)
    }

    /// Has `marks` told of each window from now on.
    pub(crate) fn mark(&mut self, marks: impl Marks + 'static) {
        self.marks = Some(Box::new(marks));
    }

    /// What the server says of itself.
    pub(crate) fn server(&self) -> &Value {
        &self.server
    }

    /// Stops what somebody left on: it would make a start do nothing.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.post(false)
    }

    /// Takes one window. `ranks` wrote traces in earlier ones.
    pub(crate) fn window(&mut self, ranks: usize) -> Result<WindowEntry, Failure> {
        self.clear()?;
        self.regime()?;
        let held = Open::new(self)?.hold()?;
        let written_within = self.windows.written_within;
        let patience = if self.stopping.asked() { Span::from_secs(2) } else { written_within };
        let until = takt_net::now() + patience;
        let found = held
            .traces
            .wait(held.started_wall_ns, (self.ranks, ranks), until, &self.windows.regime)
            .or_exit(Exit::Internal)?;
        let asked = WindowAsked::new(&self.windows.regime, self.windows.steady, self.windows.steps);
        let kind = if self.windows.taxonomy { WindowKind::Taxonomy } else { WindowKind::Timing };
        let mut entry = WindowEntry {
            kind,
            asked,
            started_wall_ns: held.started_wall_ns,
            stopped_wall_ns: held.stopped_wall_ns,
            seen: found.seen,
            files: found.files,
            problems: Vec::new(),
            remarks: found.remarks,
            server: self.server.clone(),
        };
        entry.judge(found.ranks);
        let few = |steps: &u64| *steps < self.windows.steps && !self.stopping.asked();
        if let Some(steps) = held.steps.filter(few) {
            let within = self.windows.steps_within;
            let profiled = entry.seen.is_some_and(|seen| seen.steps > 0);
            entry.remarks.push(match steps {
                0 if profiled => {
                    "no step record came meanwhile: are those in the folder this server's?"
                        .to_owned()
                }
                _ => format!("the server ran {steps} steps within {within}; keep the load on"),
            });
        }
        Ok(entry)
    }

    /// Waits until the batch is as it was asked for.
    fn regime(&mut self) -> Result<(), Failure> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        tail.skip().or_exit(Exit::Failed)?;
        if self.windows.regime.is_any() {
            return Ok(());
        }
        let mut watch = Watch::new(self.windows.regime, self.windows.steady);
        let deadline = takt_net::now() + self.windows.within;
        let mut steps = Vec::new();
        while takt_net::now() < deadline {
            if self.stopping.asked() {
                return Err(Failure::says(Exit::Interrupted, "interrupted; no window was begun"));
            }
            tail.read(&mut steps).or_exit(Exit::Failed)?;
            // Only the newest steps say what the next one will be like.
            let holds = steps.drain(..).fold(false, |_, step| watch.step(&step));
            if holds {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let (within, seen) = (self.windows.within, watch.seen());
        Err(Failure::says(Exit::Failed, format!("such steps did not come within {within}: {seen}")))
    }

    /// Waits for the steps of the window and two more: the one that was under way at the start, and the one
    /// at which the window is closed. Gives how many there were, if records tell.
    fn steps(&mut self) -> anyhow::Result<Option<u64>> {
        let Some(tail) = &mut self.tail else {
            self.stopping.sleep(self.windows.steps_within);
            return Ok(None);
        };
        let deadline: Nanos = takt_net::now() + self.windows.steps_within;
        let (mut seen, mut steps) = (0, Vec::new());
        while seen < self.windows.steps + 2 && takt_net::now() < deadline && !self.stopping.asked()
        {
            tail.read(&mut steps)?;
            seen += steps.drain(..).filter(|step: &StepFacts| step.executed).count() as u64;
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(Some(seen))
    }

    fn post(&mut self, start: bool) -> Result<(), Failure> {
        let (request, name) =
            if start { (&self.start, "start_profile") } else { (&self.stop, "stop_profile") };
        let (status, _) = self
            .line
            .fetch(request)
            .map_err(|error| anyhow!("/{name}: {error}"))
            .or_exit(Exit::Failed)?;
        match status {
            200..300 => Ok(()),
            404 => Err(Failure::says(
                Exit::Failed,
                format!(
                    "/{name}: status 404: the server has no profiler; start it with one (vLLM: \
                     --profiler-config; takt mock: --profile-dir)"
                ),
            )),
            other => Err(Failure::says(Exit::Failed, format!("/{name}: status {other}"))),
        }
    }
}

impl<'a> Open<'a> {
    /// Says that it is open.
    fn new(controller: &'a mut Controller) -> Result<Self, Failure> {
        if let Some(marks) = &mut controller.marks {
            marks.opened()?;
        }
        Ok(Self { controller, started: false })
    }

    /// Starts the profiler, waits and stops it.
    fn hold(mut self) -> Result<Held, Failure> {
        let controller = &mut *self.controller;
        if controller.marks.is_some() {
            // The batch may have changed meanwhile.
            controller.regime()?;
        }
        let traces = Traces::before(&controller.windows.traces).or_exit(Exit::Input)?;
        let started_wall_ns = wall_ns();
        // An answer that did not come does not say that it was not started.
        self.started = true;
        controller.post(true)?;
        let steps = controller.steps();
        // The stop's own fault counts, so it is not left to the end of the scope.
        controller.post(false)?;
        self.started = false;
        let steps = steps.or_exit(Exit::Failed)?;
        Ok(Held { started_wall_ns, stopped_wall_ns: wall_ns(), steps, traces })
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // What went wrong before is what is told. A profiler that cannot be stopped profiles on, and so the
        // window stays open.
        let stopped = !self.started || self.controller.post(false).is_ok();
        if let Some(marks) = &mut self.controller.marks
            && stopped
        {
            marks.closed();
        }
    }
}

fn request(
    config: &Config,
    url: &Endpoint,
    method: Method,
    path: &str,
) -> anyhow::Result<PreparedRequest> {
    let builder = samples::builder(&config.endpoint, url, method, Route::Native(path))?;
    Ok(builder.streaming(false).build(&[]))
}

fn wall_ns() -> u64 {
    takt_net::anchor().wall_ns
}

/// Until a connection stands.
const REACH_WITHIN: Span = Span::from_secs(10);

/// A profiler of many ranks writes for minutes before it answers the stop.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
