//! `takt opprof window`: profiler windows of a running server, and proof that they were written.
//!
//! ```text
//! stop (what others left on) ─> wait for the regime ─> start ─> wait for steps ─> stop, always ─> new traces?
//!                                 records, tailed                records, tailed                    └> manifest
//! ```

mod control;
mod entry;
mod manifest;
mod server;
mod tail;
mod traces;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use takt_net::signals;
use takt_time::Span;

use crate::cli::WindowArgs;
use crate::config::{Config, Node, Origin, put};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::{flags, outcome};

pub(super) use control::{Controller, Marks};
pub(super) use entry::{Manifest, WindowEntry};
pub(super) use manifest::{
    NAME as MANIFEST, Standing, Standings, read as read_manifest, write as write_manifest,
};

/// Takes the windows and prints what each is.
pub(crate) fn window(args: &WindowArgs, console: &Console) -> Result<Exit, Failure> {
    let windows = args.windows();
    if args.records.is_none() && !windows.regime.is_any() {
        return Err(Failure::says(
            Exit::Input,
            "--prompts needs --records: steps are watched there",
        ));
    }
    let stop = hear(console).or_exit(Exit::Setup)?;
    let config = configuration(args).or_exit(Exit::Input)?;
    console.hide(&config.secrets);
    let records = args.records.as_deref().map(|folder| (folder, args.engine.as_deref()));
    let mut controller = Controller::new(&config, &windows, records, stop.clone(), console)?;
    console.info(format!("{} windows are to be taken", args.windows));
    let path = args.manifest.clone().unwrap_or_else(|| args.traces.join(manifest::NAME));
    let mut manifest = manifest::read(&path).or_exit(Exit::Input)?;
    for place in 1..=args.windows {
        if place > 1 {
            stop.sleep(args.apart);
        }
        if stop.asked() {
            break;
        }
        let entry = controller.window(manifest.ranks())?;
        say(place, &entry, console)?;
        let problem = entry.problems.first().cloned();
        manifest.windows.push(entry);
        manifest::write(&path, &manifest).or_exit(Exit::Internal)?;
        if let Some(problem) = problem.filter(|_| !stop.asked()) {
            console.info(ADVICE);
            return Err(Failure::says(
                Exit::Failed,
                format!("window {place} does not count: {problem}"),
            ));
        }
    }
    if stop.asked() {
        return Err(Failure::says(Exit::Interrupted, "interrupted; the profiler was stopped"));
    }
    outcome::print(&format!("manifest: {}\n", path.display()))?;
    Ok(Exit::Done)
}

fn say(place: u32, entry: &WindowEntry, console: &Console) -> Result<(), Failure> {
    let span_ms = entry.stopped_wall_ns.saturating_sub(entry.started_wall_ns) as f64 / 1e6;
    let mut text = format!("window {place}: {span_ms:.0} ms, {} traces", entry.files.len());
    if let Some(seen) = entry.seen {
        let (low, high) = seen.decode;
        text.push_str(&format!(
            "; {} steps, {low} to {high} decodes, {} with prompts of {} tokens",
            seen.steps, seen.prompt_steps, seen.prompt_tokens
        ));
    }
    text.push('\n');
    for file in &entry.files {
        text.push_str(&format!("  rank {}: {} ({} bytes)\n", file.rank, file.name, file.bytes));
    }
    entry.remarks.iter().for_each(|remark| console.warn(remark));
    outcome::print(&text)
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

/// Hears signals from now on: the first two end the waiting, the third the process.
fn hear(console: &Console) -> std::io::Result<Stop> {
    let asked = Arc::new(AtomicBool::new(false));
    let (heard, console) = (asked.clone(), console.clone());
    signals::on_stop(move |nth, signal| {
        heard.store(true, Ordering::Relaxed);
        console.warn(format!("{}: the profiler is being stopped", signal.name()));
        if nth >= 3 {
            std::process::exit(Exit::Interrupted as i32);
        }
    })?;
    Ok(Stop::when(move || asked.load(Ordering::Relaxed)))
}

/// Whether somebody wants it to end.
#[derive(Clone)]
pub(crate) struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// It is to end when this is so.
    pub(crate) fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(asked))
    }

    /// Whether it is to end.
    pub(crate) fn asked(&self) -> bool {
        (self.0)()
    }

    /// Sleeps, for less when it is to end.
    pub(crate) fn sleep(&self, span: Span) {
        let until = takt_net::now() + span;
        while !self.asked() && takt_net::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Between two looks at files.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);

const PHASES: &str =
    "[{name: window, requests: 1, load: {pattern: concurrency, target_concurrency: 1}}]";

/// What a server's profiler is to be set to.
const ADVICE: &str = "the configuration that works on vLLM 0.24: --profiler-config '{\"profiler\": \"torch\", \
    \"torch_profiler_dir\": \"DIR\", \"ignore_frontend\": true, \"max_iterations\": 8, \"delay_iterations\": 0, \
    \"wait_iterations\": 0, \"warmup_iterations\": 0, \"torch_profiler_record_shapes\": false, \
    \"torch_profiler_with_memory\": false, \"torch_profiler_with_stack\": false, \
    \"torch_profiler_with_flops\": false, \"torch_profiler_use_gzip\": true}'";
