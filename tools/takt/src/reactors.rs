//! The further reactors of a run: each a thread with samples, connections, session, recorder and journal of its own.
//!
//! ```text
//! this thread:  reactor 0 ── ring ──> recorder 0 ── journal/000000, fold ─┐
//! another:      reactor 1 ── ring ──> recorder 1 ── journal/000001, fold ─┴─ merged ──> the report
//!                   └ phases begin together; arrivals, numbers and places are shared
//! ```

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use takt_actors::Together;
use takt_net::schedstat::Accounts;
use takt_net::tls::ClientTls;
use takt_record::SessionPlan;
use takt_recorder::{Finished, Recorder, RecorderHandle, RingSink, panic_words};
use takt_report::Live;

use crate::cli::{Format, LogLevel, OutputArgs};
use crate::config::Config;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::folder::RunFolder;
use crate::news::Newsdesk;
use crate::outcome::Ended;
use crate::plan::Times;
use crate::preflight::Reached;
use crate::reactor::{self, Work};
use crate::run;
use crate::samples;
use crate::shares::Shares;
use crate::stops::Stops;
use crate::watched::Watched;

/// What the reactors of a run have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) config: Arc<Config>,
    pub(crate) plan: SessionPlan,
    pub(crate) times: Arc<Times>,
    pub(crate) reached: Arc<[Reached]>,
    /// Connections to each address that all of them may have together.
    pub(crate) allowed: Option<usize>,
    pub(crate) tls: Option<ClientTls>,
    pub(crate) together: Together,
    pub(crate) lives: Lives,
    pub(crate) news: Newsdesk,
    pub(crate) stops: Stops,
    pub(crate) console: Console,
}

/// How each reactor but the first stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives(Arc<Mutex<Vec<Option<Live>>>>);

/// Reactors that run.
pub(crate) struct Others(Vec<JoinHandle<Other>>);

/// What is left of one.
struct Other {
    ended: Result<Ended, Failure>,
    recorder: RecorderHandle<Watched>,
}

impl Others {
    /// Starts one for each of `shares`.
    pub(crate) fn start(
        common: &Common,
        folder: &RunFolder,
        shares: Vec<Shares>,
    ) -> Result<Self, Failure> {
        common.lives.lock().resize(shares.len(), None);
        let recorders: Vec<_> = shares
            .iter()
            .enumerate()
            .map(|(slot, share)| recorder(common, folder, share, slot))
            .collect::<io::Result<_>>()
            .or_exit(Exit::Setup)?;
        let threads = shares.into_iter().zip(recorders).map(|(share, (sink, recorder, fold))| {
            let (common, name) = (common.clone(), format!("takt-reactor-{}", share.index));
            thread::Builder::new().name(name).spawn(move || {
                let ended = react(&common, &share, fold, sink, &recorder);
                Other { ended, recorder }
            })
        });
        Ok(Self(threads.collect::<io::Result<_>>().or_exit(Exit::Setup)?))
    }

    /// Waits for all of them, and adds how they ended and what they saw to the first one's.
    pub(crate) fn join(
        self,
        mut ended: Result<Ended, Failure>,
        mut finished: Finished<Watched>,
    ) -> (Result<Ended, Failure>, Finished<Watched>) {
        for thread in self.0 {
            match thread.join() {
                Ok(other) => {
                    ended = worse(ended, other.ended);
                    finished = merged(finished, other.recorder.finish());
                }
                Err(panic) => {
                    ended = worse(ended, Ok(Ended::Panicked(panic_words(panic.as_ref()))));
                }
            }
        }
        (ended, finished)
    }
}

impl Lives {
    /// The running phase as all reactors see it; `first` is how the first one does.
    pub(crate) fn with(&self, first: Option<Live>) -> Option<Live> {
        let others = self.lock();
        others.iter().cloned().chain([first]).flatten().reduce(Live::with)
    }

    fn set(&self, slot: usize, live: Option<Live>) {
        self.lock()[slot] = live;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Live>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Recording = (RingSink, RecorderHandle<Watched>, Arc<OnceLock<Accounts>>);

fn recorder(
    common: &Common,
    folder: &RunFolder,
    share: &Shares,
    slot: usize,
) -> io::Result<Recording> {
    let config = run::recorder_config(&common.config, &common.plan, folder, share);
    let fold: Arc<OnceLock<Accounts>> = Arc::default();
    let (told, lives, console) = (Arc::clone(&fold), common.lives.clone(), common.console.clone());
    let news = common.news.clone();
    let tick = move |watched: &Watched, tick: takt_recorder::Tick<'_>| {
        told.get_or_init(Accounts::of_this_thread);
        news.tell(&console);
        lives.set(slot, watched.live(tick.now.mono));
    };
    let watched = Watched::new(common.plan.clone(), common.news.clone(), None);
    let (sink, recorder) = Recorder::start(config, watched, tick)?;
    Ok((sink, recorder, fold))
}

fn react(
    common: &Common,
    share: &Shares,
    fold: Arc<OnceLock<Accounts>>,
    sink: RingSink,
    recorder: &RecorderHandle<Watched>,
) -> Result<Ended, Failure> {
    // While it prepares the others wait; dropped on the way, it ends them.
    let member = common.together.member(share.index as usize);
    // What there is to say of the samples was said by the first reactor.
    let quiet = OutputArgs { format: Format::Text, quiet: true, log_level: LogLevel::Error };
    let prepared = samples::prepare(&common.config, &Console::new(quiet)).or_exit(Exit::Input)?;
    let phases = run::phases(&common.config, &prepared, &common.times, None, share)?;
    let work = Work {
        together: Some((common.together.clone(), member, share.index as usize)),
        fold,
        ..run::work(common, &prepared, phases, share)
    };
    reactor::run(work, Box::new(sink), recorder, &common.stops, &common.console)
}

/// Of two ends the worse one.
fn worse(one: Result<Ended, Failure>, other: Result<Ended, Failure>) -> Result<Ended, Failure> {
    let rank = |ended: &Result<Ended, Failure>| match ended {
        Ok(Ended::Complete) => 0,
        Ok(Ended::Interrupted) => 1,
        Ok(Ended::Failed(_)) => 2,
        Err(_) => 3,
        Ok(Ended::Panicked(_)) => 4,
    };
    if rank(&other) > rank(&one) { other } else { one }
}

fn merged(mut one: Finished<Watched>, other: Finished<Watched>) -> Finished<Watched> {
    one.fold.merge(other.fold);
    one.journal.bytes += other.journal.bytes;
    one.journal.blocks += other.journal.blocks;
    one.journal.records += other.journal.records;
    one.sampled |= other.sampled;
    one.capped |= other.capped;
    one.error = one.error.or(other.error);
    one.fold_panic = one.fold_panic.or(other.fold_panic);
    one.outlet_panic = one.outlet_panic.or(other.outlet_panic);
    one.clean_panic = one.clean_panic.or(other.clean_panic);
    one
}
