//! The clock as a thread of this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use takt_actors::SessionMsg;
use takt_engine::Remote;
use takt_net::affinity;
use takt_recorder::panic_words;

use super::{Beat, Command};
use crate::config::Config;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::plan::Times;

/// Starts the thread, on its core where it has one. It ends when nobody is left to command it, or when the
/// reactor is `over`.
pub(crate) fn start(
    config: Config,
    times: Box<Times>,
    commands: Receiver<Command>,
    session: Remote<SessionMsg>,
    over: Arc<AtomicBool>,
) -> Result<(), Failure> {
    let (tell, told) = mpsc::channel();
    thread::Builder::new()
        .name("takt-pacer".to_owned())
        .spawn(move || {
            let beat =
                settle(&config).and_then(|()| Beat::new(&config, &times).or_exit(Exit::Input));
            let beat = match beat {
                Ok(beat) => {
                    // The run waits for it.
                    let _ = tell.send(Ok(()));
                    beat
                }
                Err(failure) => return drop(tell.send(Err(failure))),
            };
            let ran = catch_unwind(AssertUnwindSafe(|| {
                beat.run(&commands, |due| due.iter().all(|&a| send(&session, a.into(), &over)));
            }));
            if let Err(panic) = ran {
                let words =
                    format!("a fault of takt in the pacer: {}", panic_words(panic.as_ref()));
                send(&session, SessionMsg::PacerFailed(words.into()), &over);
            }
        })
        .or_exit(Exit::Setup)?;
    told.recv().or_exit(Exit::Internal)?
}

/// To the pacer's core, or away from the reactor's: the mask was inherited from the reactor.
fn settle(config: &Config) -> Result<(), Failure> {
    match (config.pacer_core, config.core) {
        (Some(own), _) => crate::run::pin(Some(own)),
        (None, Some(reactor)) => affinity::keep_off([reactor]).or_exit(Exit::Setup),
        (None, None) => Ok(()),
    }
}

/// Sends, however long that takes: a reactor that is behind gets its arrivals late, and none is lost. Says
/// whether there was somebody to send to.
fn send(session: &Remote<SessionMsg>, message: SessionMsg, over: &AtomicBool) -> bool {
    let mut refused = session.send(message);
    while let Err(message) = refused {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        thread::yield_now();
        refused = session.send(message);
    }
    true
}
