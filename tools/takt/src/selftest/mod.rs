//! `takt selftest`: what this takt can do on this machine, measured by itself.
//!
//! ```text
//! this process: built-in server on a core of its own, what it did kept in memory
//!       ^ sockets
//! takt run …  one process after another on the reactor's core ──result.json, journal──> rows
//! ```
//!
//! There is no second engine here: every figure is one that a run reports, or is made of its journal.

mod machine;
mod rows;
mod says;
mod server;
mod trial;
mod truth;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use takt_mock::{InstantConfig, Mode, TimedConfig};
use takt_net::{affinity, limits, signals};

use crate::built_in::BuiltIn;
use crate::cli::{Format, SelftestArgs};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;

use machine::Accounts;
use says::Outcome;
use server::Deeds;
use trial::Trials;

/// How much is measured.
struct Extent {
    rates: &'static [u64],
    modes: &'static [&'static str],
    pacer_rates: &'static [u64],
    truth_rates: &'static [u64],
    span: Duration,
    stream_span: Duration,
    /// Between two loads, one valid and one not.
    steps: u32,
    /// Where the search for a rate begins.
    first_rate: u64,
    first_streams: u64,
    /// No run begins after it.
    budget: Duration,
}

const FULL: Extent = Extent {
    rates: &[100, 1_000, 10_000, 50_000, 100_000],
    modes: &["park", "guard", "spin"],
    pacer_rates: &[100, 1_000],
    truth_rates: &[100, 1_000, 10_000],
    span: Duration::from_millis(1_500),
    stream_span: Duration::from_millis(2_500),
    steps: 2,
    first_rate: 40_000,
    first_streams: 2_000,
    budget: Duration::from_secs(110),
};

const QUICK: Extent = Extent {
    rates: &[1_000, 10_000],
    modes: &["guard", "spin"],
    pacer_rates: &[1_000],
    truth_rates: &[1_000],
    span: Duration::from_millis(400),
    stream_span: Duration::from_millis(1_200),
    steps: 0,
    first_rate: 40_000,
    first_streams: 4_000,
    budget: Duration::from_secs(12),
};

/// Measures, prints, and leaves nothing behind.
pub(crate) fn selftest(args: &SelftestArgs, console: &Console) -> Result<Exit, Failure> {
    let (reactor, server, cores) = two_cores(args.core)?;
    let stopped = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stopped);
    signals::on_stop(move |nth, _| {
        heard.store(true, Ordering::Relaxed);
        if nth > 2 {
            std::process::exit(Exit::Interrupted as i32);
        }
    })
    .or_exit(Exit::Setup)?;
    let files = limits::raise_open_files().or_exit(Exit::Setup)?;
    let streams_most = files.soft.saturating_sub(DESCRIPTORS_KEPT).clamp(1, STREAMS_MOST);

    let extent = if args.quick { QUICK } else { FULL };
    let (began, before) = (Instant::now(), Accounts::now());
    let deeds = Deeds::default();
    let start = |mode: anyhow::Result<Mode>, told| {
        let mode = mode.or_exit(Exit::Internal)?;
        BuiltIn::start(mode, Some(server), told).or_exit(Exit::Setup)
    };
    let instant = start(Ok(Mode::Instant(InstantConfig::default())), None)?;
    let timed = start(timed(), Some(Box::new(deeds.clone())))?;
    let streaming = start(streams(), None)?;

    let trials = &mut Trials::new(reactor, extent.budget, args.anyway, stopped)?;
    console.info("lateness by rate and wait mode");
    let lateness = rows::lateness(trials, &instant.url(), extent.rates, extent.modes, extent.span)?;
    console.info("errors of reported times");
    let errors = rows::errors(trials, &timed.url(), &deeds, extent.truth_rates, extent.span)?;
    console.info("clocks outside the reactor");
    let pacers = rows::pacers(trials, &instant.url(), extent.pacer_rates, extent.span)?;
    // Last, because nobody knows how many runs a search takes.
    console.info("greatest valid rate");
    let rate =
        rows::greatest_rate(trials, &instant.url(), extent.first_rate, extent.steps, extent.span)?;
    console.info("greatest number of streams");
    let wanted = (extent.first_streams, streams_most);
    let streams =
        rows::greatest_streams(trials, &streaming.url(), wanted, extent.steps, extent.stream_span)?;

    let outcome = Outcome {
        quick: args.quick,
        cores,
        reactor_core: reactor,
        server_core: server,
        seconds: began.elapsed().as_secs_f64(),
        others: before.and_then(Accounts::since),
        lateness,
        rate,
        streams,
        errors,
        pacers,
    };
    outcome::print(&match args.output.format {
        Format::Text => outcome.to_text(),
        Format::Json => outcome::to_json(&outcome.to_json()),
    })?;
    if outcome.counts().0 == 0 {
        let says = "nothing could be measured: the machine is too busy; --anyway shows the figures";
        return Err(Failure::says(Exit::Inconclusive, says));
    }
    Ok(Exit::Done)
}

/// The reactor's core, one for the server, and how many there are.
fn two_cores(asked: Option<usize>) -> Result<(usize, usize, usize), Failure> {
    let allowed = affinity::allowed().or_exit(Exit::Setup)?;
    let reactor = asked.or(allowed.first().copied()).unwrap_or_default();
    if !allowed.contains(&reactor) {
        let says = format!("--core {reactor}: not among the cores of this process, {allowed:?}");
        return Err(Failure::says(Exit::Input, says));
    }
    let server = allowed.iter().rev().copied().find(|core| *core != reactor);
    let Some(server) = server else {
        let says = "the test needs two cores, one for the reactor and one for the server; this \
                    process may use one";
        return Err(Failure::says(Exit::Setup, says));
    };
    Ok((reactor, server, allowed.len()))
}

/// Four tokens, far enough apart for each to be written alone.
fn timed() -> anyhow::Result<Mode> {
    Ok(Mode::Timed(TimedConfig {
        seed: 1,
        ttft: "uniform:2ms..6ms".parse()?,
        tpot: "1ms".parse()?,
        tokens: "4".parse()?,
        ..TimedConfig::default()
    }))
}

/// Streams that last a second and do not march in step.
fn streams() -> anyhow::Result<Mode> {
    Ok(Mode::Timed(TimedConfig {
        seed: 1,
        ttft: "uniform:50ms..450ms".parse()?,
        tpot: "uniform:40ms..60ms".parse()?,
        tokens: "16".parse()?,
        ..TimedConfig::default()
    }))
}

/// The most streams that are tried.
const STREAMS_MOST: u64 = 16_000;
/// Descriptors that are not for streams, in either process.
const DESCRIPTORS_KEPT: u64 = 128;
