//! Signals that stop a run, from its first moment to its last.
//!
//! ```text
//! nothing made yet ──> a folder is there ──> the session hears ──> the report is written
//!   1st: leave, 130      kept for it          1st: stop, with grace    let it be written
//!                                             2nd: give up the rest    (before: wait no longer for traces)
//!                     always: the 3rd ends the process; the journal is as good as it gets then
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use takt_actors::SessionMsg;
use takt_engine::Remote;
use takt_net::signals::{self, Signal};
use takt_time::Span;

use crate::console::Console;
use crate::exit::Exit;

/// The hold of a run on the signals that stop it.
#[derive(Clone, Debug)]
pub(crate) struct Stops(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Stops so far that a session is told of, also one that comes later.
    stops: u32,
    /// Somebody has asked for a stop without a signal.
    asked: bool,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Nothing,
    Folder,
    /// One of each reactor.
    Sessions(Vec<Remote<SessionMsg>>),
    /// Nothing is sent any more; something is waited for that the report can do without.
    Waiting,
    Over,
}

impl Stops {
    /// Hears signals from now on.
    pub(crate) fn hear(console: &Console) -> std::io::Result<Self> {
        let stops =
            Self(Arc::new(Mutex::new(State { stops: 0, asked: false, stage: Stage::Nothing })));
        let (heard, console) = (stops.clone(), console.clone());
        signals::on_stop(move |nth, signal| heard.signal(nth, signal, &console))?;
        Ok(stops)
    }

    /// From now on something is there that must be finished.
    pub(crate) fn keep(&self) {
        self.with(|state| state.stage = Stage::Folder);
    }

    /// A session is there: it is told of what came before, and of what comes.
    pub(crate) fn tell(&self, session: Remote<SessionMsg>) {
        self.with(|state| {
            for _ in 0..state.stops {
                stop(&session);
            }
            match &mut state.stage {
                Stage::Sessions(sessions) => sessions.push(session),
                stage => *stage = Stage::Sessions(vec![session]),
            }
        });
    }

    /// All sessions have ended; until [`Self::over`] something is waited for. Gives how many stops there were so far.
    pub(crate) fn waiting(&self) -> u32 {
        self.with(|state| {
            state.stage = Stage::Waiting;
            state.stops
        })
    }

    /// Whether more stops were asked for than `before`.
    pub(crate) fn more_than(&self, before: u32) -> bool {
        self.with(|state| state.stops > before)
    }

    /// All sessions have ended: what is left is the report.
    pub(crate) fn over(&self) {
        self.with(|state| state.stage = Stage::Over);
    }

    /// Stops as one signal does. Asked a second time it does nothing, and says so.
    pub(crate) fn ask(&self, console: &Console) -> bool {
        self.with(|state| {
            if std::mem::replace(&mut state.asked, true) {
                return false;
            }
            match &state.stage {
                Stage::Nothing | Stage::Folder | Stage::Waiting => {}
                Stage::Sessions(sessions) => sessions.iter().for_each(stop),
                Stage::Over => return false,
            }
            state.stops += 1;
            console.warn(format!(
                "asked to stop: at most {STOP_GRACE} for what is in flight; Ctrl-C to stop now"
            ));
            true
        })
    }

    fn signal(&self, nth: u32, signal: Signal, console: &Console) {
        let name = signal.name();
        if nth > 2 {
            leave();
        }
        self.with(|state| match &state.stage {
            Stage::Nothing => {
                console.warn(format!("{name}: nothing was sent yet"));
                leave();
            }
            Stage::Over => {
                console.warn(format!("{name}: the run is over, its report is being written"));
            }
            Stage::Waiting => {
                console.warn(format!("{name}: waiting no longer, the report is being written"));
                state.stops += 1;
            }
            Stage::Folder => {
                console.warn(format!("{name}: stopping before anything is sent"));
                state.stops += 1;
            }
            Stage::Sessions(sessions) => {
                if nth == 1 {
                    console.warn(format!(
                        "{name}: stopping, at most {STOP_GRACE} for what is in flight; once more \
                         to stop now"
                    ));
                } else {
                    console.warn(format!("{name} again: giving up what is in flight"));
                }
                sessions.iter().for_each(stop);
                state.stops += 1;
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn stop(session: &Remote<SessionMsg>) {
    // A queue that is full holds stops enough.
    drop(session.send(SessionMsg::Stop));
}

fn leave() -> ! {
    std::process::exit(Exit::Interrupted as i32)
}

/// How long a stop waits for what is in flight.
pub(crate) const STOP_GRACE: Span = Span::from_secs(5);
