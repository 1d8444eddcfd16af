//! Signals that stop a run, from its first moment to its last.
//!
//! ```text
//! nothing made yet ──> a folder is there ──> the session hears ──> the report is written
//!   1st: leave, 130      kept for it          1st: stop, with grace    let it be written
//!                                             2nd: give up the rest
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
    /// Signals that the session has not been told of.
    untold: u32,
    /// Somebody has asked for a stop without a signal.
    asked: bool,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Nothing,
    Folder,
    Session(Remote<SessionMsg>),
    Over,
}

impl Stops {
    /// Hears signals from now on.
    pub(crate) fn hear(console: &Console) -> std::io::Result<Self> {
        let stops =
            Self(Arc::new(Mutex::new(State { untold: 0, asked: false, stage: Stage::Nothing })));
        let (heard, console) = (stops.clone(), console.clone());
        signals::on_stop(move |nth, signal| heard.signal(nth, signal, &console))?;
        Ok(stops)
    }

    /// From now on something is there that must be finished.
    pub(crate) fn keep(&self) {
        self.with(|state| state.stage = Stage::Folder);
    }

    /// The session is there: it is told of what came before, and of what comes.
    pub(crate) fn tell(&self, session: Remote<SessionMsg>) {
        self.with(|state| {
            for _ in 0..std::mem::take(&mut state.untold) {
                stop(&session);
            }
            state.stage = Stage::Session(session);
        });
    }

    /// The session has ended: what is left is the report.
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
                Stage::Nothing | Stage::Folder => state.untold += 1,
                Stage::Session(session) => stop(session),
                Stage::Over => return false,
            }
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
            Stage::Folder => {
                console.warn(format!("{name}: stopping before anything is sent"));
                state.untold += 1;
            }
            Stage::Session(session) => {
                if nth == 1 {
                    console.warn(format!(
                        "{name}: stopping, at most {STOP_GRACE} for what is in flight; once more \
                         to stop now"
                    ));
                } else {
                    console.warn(format!("{name} again: giving up what is in flight"));
                }
                stop(session);
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
