//! `takt aggregate`: the fold of a run in a process of its own.
//!
//! It listens before the run begins, takes every block, and writes `metrics/final_snapshot.json` as the run
//! itself would. When the feed breaks off, or a signal comes, it writes what it has and its state is
//! `killed`: the run's own figures are better then.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use takt_net::signals;
use takt_record::fold_block;
use takt_recorder::publish::{Fed, FeedReader};
use takt_report::RunFold;
use takt_time::Span;
use zmq::Context;

use crate::cli::AggregateArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::folder::RunFolder;
use crate::outcome;

/// Runs until the feed, the run or a signal ends it.
pub(crate) fn aggregate(args: &AggregateArgs, console: &Console) -> Result<Exit, Failure> {
    let folder = RunFolder::open(&args.out)?;
    let stop = stop_flag(args.with_run).or_exit(Exit::Setup)?;
    let mut feed = FeedReader::connect(&Context::new(), &args.events).or_exit(Exit::Setup)?;
    let Some(mut fold) = plan(&mut feed, &stop)? else {
        return Ok(Exit::Interrupted);
    };
    feed.ready().or_exit(Exit::Setup)?;
    console.info(format!("session {}: listening", fold.plan().session_id));
    let ended = follow(&mut feed, &mut fold, &stop);
    let snapshot = outcome::to_json(&fold.snapshot(0, fold.last_at(), true));
    folder.write(outcome::SNAPSHOT, snapshot.as_bytes()).or_exit(Exit::Internal)?;
    match ended? {
        How::Whole => {
            feed.done().or_exit(Exit::Internal)?;
            console.info(format!("wrote {}", args.out.join(outcome::SNAPSHOT).display()));
            Ok(Exit::Done)
        }
        How::Stopped => Ok(Exit::Interrupted),
        How::Silent => {
            console.error(format!("nothing came for {SILENCE}: the run is gone"));
            Ok(Exit::Failed)
        }
    }
}

/// How a feed ended.
enum How {
    Whole,
    Stopped,
    Silent,
}

/// Waits for a run; `None` when a stop came first.
fn plan(feed: &mut FeedReader, stop: &AtomicBool) -> Result<Option<RunFold>, Failure> {
    while !stop.load(Ordering::Acquire) {
        match feed.next(LOOK).or_exit(Exit::Failed)? {
            Some(Fed::Plan(plan)) => return Ok(Some(RunFold::new(*plan))),
            Some(Fed::Block(_) | Fed::End) => {
                return Err(Failure::says(
                    Exit::Failed,
                    "this run has begun without an aggregator",
                ));
            }
            None => {}
        }
    }
    Ok(None)
}

fn follow(feed: &mut FeedReader, fold: &mut RunFold, stop: &AtomicBool) -> Result<How, Failure> {
    let mut silent = Span::ZERO;
    while !stop.load(Ordering::Acquire) {
        match feed.next(LOOK).or_exit(Exit::Failed)? {
            Some(Fed::Block(block)) => {
                silent = Span::ZERO;
                fold_block(block, fold).or_exit(Exit::Failed)?;
            }
            Some(Fed::End) => return Ok(How::Whole),
            Some(Fed::Plan(_)) => {
                return Err(Failure::says(
                    Exit::Failed,
                    "another run began in the middle of this one",
                ));
            }
            // A run that lives says what time it is each second.
            None => silent += LOOK,
        }
        if silent >= SILENCE {
            return Ok(How::Silent);
        }
    }
    Ok(How::Stopped)
}

/// Becomes true when a signal comes and, for a process that a run started, when the run is gone.
fn stop_flag(with_run: bool) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let (by_signal, by_run) = (Arc::clone(&stop), Arc::clone(&stop));
    signals::on_stop(move |_, _| by_signal.store(true, Ordering::Release))?;
    if with_run {
        thread::Builder::new().name("takt-run".to_owned()).spawn(move || {
            let mut nothing = [0; 64];
            while io::stdin().read(&mut nothing).is_ok_and(|bytes| bytes > 0) {}
            by_run.store(true, Ordering::Release);
        })?;
    }
    Ok(stop)
}

/// Between two looks for a stop.
const LOOK: Span = Span::from_millis(100);
/// How long a feed may be silent.
const SILENCE: Span = Span::from_secs(10);
