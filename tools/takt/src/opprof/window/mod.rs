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
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;
use control::Controller;
use entry::WindowEntry;

pub(super) use manifest::{NAME as MANIFEST, Standing, standing};

/// Takes the windows and prints what each is.
pub(crate) fn window(args: &WindowArgs, console: &Console) -> Result<Exit, Failure> {
    if args.records.is_none() && !args.regime().is_any() {
        return Err(Failure::says(
            Exit::Input,
            "--prompts needs --records: steps are watched there",
        ));
    }
    let stop = Stop::hear(console).or_exit(Exit::Setup)?;
    let mut controller = Controller::new(args, stop.clone(), console)?;
    console.info(ADVICE);
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

/// Whether somebody wants it to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Hears signals from now on: the first two end the waiting, the third the process.
    fn hear(console: &Console) -> std::io::Result<Self> {
        let stop = Self::default();
        let (heard, console) = (stop.clone(), console.clone());
        signals::on_stop(move |nth, signal| {
            heard.0.store(true, Ordering::Relaxed);
            console.warn(format!("{}: the profiler is being stopped", signal.name()));
            if nth >= 3 {
                std::process::exit(Exit::Interrupted as i32);
            }
        })?;
        Ok(stop)
    }

    /// Whether it is to end.
    pub(super) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps, for less when it is to end.
    pub(super) fn sleep(&self, span: Span) {
        let until = takt_net::now() + span;
        while !self.asked() && takt_net::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Between two looks at files.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What a server's profiler is to be set to.
const ADVICE: &str = "the configuration that works on vLLM 0.24: --profiler-config '{\"profiler\": \"torch\", \
    \"torch_profiler_dir\": \"DIR\", \"ignore_frontend\": true, \"max_iterations\": 8, \"delay_iterations\": 0, \
    \"wait_iterations\": 0, \"warmup_iterations\": 0, \"torch_profiler_record_shapes\": false, \
    \"torch_profiler_with_memory\": false, \"torch_profiler_with_stack\": false, \
    \"torch_profiler_with_flops\": false, \"torch_profiler_use_gzip\": true}'";
