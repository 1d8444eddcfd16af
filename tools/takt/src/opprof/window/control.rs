//! One window after another: the requests, and what is waited for between them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use serde_json::Value;
use takt_opprof::{Regime, StepFacts, Watch};
use takt_time::{Nanos, Span};
use takt_wire::{Endpoint, Method, PreparedRequest, Route};

use super::entry::{WindowAsked, WindowEntry, WindowKind};
use super::server;
use super::tail::Tail;
use super::traces::Traces;
use super::{LOOK_EVERY, Stop};
use crate::cli::WindowArgs;
use crate::config::{Config, Node, Origin, put};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::probe::Line;
use crate::{flags, preflight, run, samples};

/// What drives a server's profiler.
pub(super) struct Controller {
    line: Line,
    start: PreparedRequest,
    stop: PreparedRequest,
    server: Value,
    ranks: Option<usize>,
    regime: Regime,
    asked: WindowAsked,
    kind: WindowKind,
    within: Span,
    steps_within: Span,
    written_within: Span,
    folder: PathBuf,
    tail: Option<Tail>,
    stopping: Stop,
}

/// Stops the profiler when it goes out of scope, whatever happened.
struct Running<'a>(Option<&'a mut Controller>);

impl Controller {
    /// Reaches the server and hears what it says of itself.
    pub(super) fn new(
        args: &WindowArgs,
        stopping: Stop,
        console: &Console,
    ) -> Result<Self, Failure> {
        let config = configuration(args).or_exit(Exit::Input)?;
        console.hide(&config.secrets);
        let [url] = &config.endpoint.urls[..] else {
            return Err(Failure::says(Exit::Input, "a window is of one server: give one --url"));
        };
        let tls = run::client_tls(&config, console)?;
        let mut found = preflight::reach(std::slice::from_ref(url), REACH_WITHIN, tls.as_ref())?;
        let reached = found.pop().context("no address was reached").or_exit(Exit::Internal)?;
        let mut line = Line::new(reached.target, tls, ANSWER_WITHIN);
        let request = |method, path: &str| request(&config, url, method, path).or_exit(Exit::Input);
        let mut server = server::describe(&mut line, |path| request(Method::Get, path))?;
        if let Some(log) = &args.server_log {
            server::add_log(&mut server, log).or_exit(Exit::Input)?;
        }
        for remark in server::remarks(&server) {
            console.warn(remark);
        }
        let tail = args.records.as_deref().map(|folder| Tail::new(folder, args.engine.as_deref()));
        Ok(Self {
            line,
            start: request(Method::Post, "start_profile")?,
            stop: request(Method::Post, "stop_profile")?,
            ranks: args.ranks.or_else(|| server::ranks(&server)),
            server,
            regime: args.regime(),
            asked: WindowAsked::new(&args.regime(), args.steady, args.steps),
            kind: if args.taxonomy { WindowKind::Taxonomy } else { WindowKind::Timing },
            within: args.within,
            steps_within: args.steps_within,
            written_within: args.written_within,
            folder: args.traces.clone(),
            tail: tail.transpose().or_exit(Exit::Input)?,
            stopping,
        })
    }

    /// Takes one window. `ranks` wrote traces in earlier ones.
    pub(super) fn window(&mut self, ranks: usize) -> Result<WindowEntry, Failure> {
        // What somebody left on would make the start do nothing.
        self.post(false)?;
        self.regime()?;
        let traces = Traces::before(&self.folder).or_exit(Exit::Input)?;
        let started_wall_ns = wall_ns();
        let steps = {
            let running = Running(Some(self));
            running.start()?
        };
        let stopped_wall_ns = wall_ns();
        let patience = if self.stopping.asked() { Span::from_secs(2) } else { self.written_within };
        let found = traces
            .wait(started_wall_ns, (self.ranks, ranks), takt_net::now() + patience, &self.regime)
            .or_exit(Exit::Internal)?;
        let mut entry = WindowEntry {
            kind: self.kind,
            asked: self.asked.clone(),
            started_wall_ns,
            stopped_wall_ns,
            seen: found.seen,
            files: found.files,
            problems: Vec::new(),
            remarks: found.remarks,
            server: self.server.clone(),
        };
        entry.judge(found.ranks);
        let few = |steps: &u64| *steps < self.asked.steps && !self.stopping.asked();
        if let Some(steps) = steps.filter(few) {
            let within = self.steps_within;
            entry
                .remarks
                .push(format!("the server ran {steps} steps within {within}; keep the load on"));
        }
        Ok(entry)
    }

    /// Waits until the batch is as it was asked for.
    fn regime(&mut self) -> Result<(), Failure> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        tail.skip().or_exit(Exit::Failed)?;
        if self.regime.is_any() {
            return Ok(());
        }
        let mut watch = Watch::new(self.regime, self.asked.steady);
        let deadline = takt_net::now() + self.within;
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
        let (within, seen) = (self.within, watch.seen());
        Err(Failure::says(Exit::Failed, format!("such steps did not come within {within}: {seen}")))
    }

    /// Waits for the steps of the window and two more: the one that was under way at the start, and the one
    /// at which the window is closed. Gives how many there were, if records tell.
    fn steps(&mut self) -> anyhow::Result<Option<u64>> {
        let Some(tail) = &mut self.tail else {
            self.stopping.sleep(self.steps_within);
            return Ok(None);
        };
        let deadline: Nanos = takt_net::now() + self.steps_within;
        let (mut seen, mut steps) = (0, Vec::new());
        while seen < self.asked.steps + 2 && takt_net::now() < deadline && !self.stopping.asked() {
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

impl Running<'_> {
    /// Starts the profiler, waits and stops it.
    fn start(mut self) -> Result<Option<u64>, Failure> {
        let Some(controller) = self.0.as_deref_mut() else { return Ok(None) };
        controller.post(true)?;
        let steps = controller.steps();
        // The stop's own fault counts, so it is not left to the end of the scope.
        if let Some(controller) = self.0.take() {
            controller.post(false)?;
        }
        steps.or_exit(Exit::Failed)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(controller) = self.0.take() {
            // What went wrong before is what is told.
            drop(controller.post(false));
        }
    }
}

/// The configuration of a run that does nothing, for its endpoint.
fn configuration(args: &WindowArgs) -> anyhow::Result<Config> {
    let mut tree = Node::map();
    flags::put_endpoint(&mut tree, &args.endpoint)?;
    put(&mut tree, &["phases"], Node::from_argument(PHASES, &Origin::Implied)?)?;
    if args.endpoint.model.is_none() {
        put(&mut tree, &["endpoint", "model"], Node::from_argument("any", &Origin::Implied)?)?;
    }
    Ok(Config::read(&tree, "window")?)
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

const PHASES: &str =
    "[{name: window, requests: 1, load: {pattern: concurrency, target_concurrency: 1}}]";
