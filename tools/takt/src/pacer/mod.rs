//! Clocks outside the reactor: a thread or a process that waits for each arrival of a schedule and tells
//! the session when it is due.
//!
//! ```text
//! reactor: Paced ──begin, end──> Line ──commands──> Beat ──arrivals──┬─ thread:  the session's inbox
//!                                                                    └─ process: ZMQ PUSH ──> PULL, Inbox
//! ```
//!
//! The arrivals are drawn where they are waited for, from the configuration and its seed: the same ones that
//! the reactor would draw. One that is late goes out at once and the schedule is not moved.

mod beat;
#[cfg(feature = "zmq")]
mod inbox;
#[cfg(feature = "zmq")]
mod process;
mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

use takt_actors::{Pacer, SessionMsg};
use takt_engine::{Addr, System};
use takt_net::MioHost;
use takt_record::{PhaseId, SessionPlan};
use takt_time::Nanos;

use crate::config::{self, Config};
use crate::exit::Failure;
#[cfg(feature = "zmq")]
use crate::exit::{Exit, OrExit as _};
use crate::outlets::Outlets;
use crate::plan::Times;

pub(crate) use beat::Beat;
#[cfg(feature = "zmq")]
pub(crate) use process::{Process, pacer};

#[cfg(not(feature = "zmq"))]
use crate::outlets::Process;

/// A clock that is ready to be joined to a reactor.
pub(crate) enum Clock {
    /// A thread of this process, yet to be started.
    Thread(Box<Config>, Box<Times>, Receiver<Command>),
    /// A process that is waiting for its first command.
    Process(Process),
}

/// A clock at work. Dropped, it ends.
pub(crate) enum Running {
    /// Set when there is nobody left to send to.
    Thread(Arc<AtomicBool>),
    #[cfg(feature = "zmq")]
    Process(Process),
}

/// What a clock is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A phase has begun: its arrivals count from `start`, and those before `end` are wanted.
    Begin { phase: PhaseId, start: Nanos, end: Option<Nanos> },
    /// No more of them are wanted.
    End,
}

/// An arrival that is due; `scheduled` is `None` after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) phase: PhaseId,
    pub(crate) ordinal: u64,
    pub(crate) scheduled: Option<Nanos>,
}

impl From<Arrival> for SessionMsg {
    fn from(Arrival { phase, ordinal, scheduled }: Arrival) -> Self {
        SessionMsg::Arrival { phase, ordinal, scheduled }
    }
}

/// The reactor's end of the line to a clock, for the strategy of one phase. Sending does not wait.
struct Hold {
    phase: PhaseId,
    line: Sender<Command>,
}

/// A line to a clock that is yet to be started.
pub(crate) struct Line {
    sender: Sender<Command>,
    commands: Receiver<Command>,
}

impl Line {
    pub(crate) fn new() -> Self {
        let (sender, commands) = mpsc::channel();
        Self { sender, commands }
    }

    /// The clock as the strategy of `phase` sees it. When the last of these is dropped, the clock ends.
    pub(crate) fn hold(&self, phase: PhaseId) -> Box<dyn Pacer> {
        Box::new(Hold { phase, line: self.sender.clone() })
    }
}

impl Clock {
    /// The clock that the configuration asks for, at the other end of `line`.
    pub(crate) fn new(
        config: &Config,
        line: Option<Line>,
        times: &Times,
        outlets: &mut Outlets,
        plan: &SessionPlan,
    ) -> Result<Option<Self>, Failure> {
        // From here on the strategies alone hold the line: with them it ends.
        let Some(commands) = line.map(|line| line.commands) else { return Ok(None) };
        Ok(Some(match config.pacer {
            config::Pacer::Process => Self::Process(outlets.pacer(config, times, plan, commands)?),
            config::Pacer::Inline | config::Pacer::Thread => {
                Self::Thread(Box::new(config.clone()), times.into(), commands)
            }
        }))
    }

    /// Joins it to the reactor and its session. What comes back is to be held until the reactor has ended.
    pub(crate) fn start(
        self,
        system: &mut System<MioHost>,
        session: &Addr<SessionMsg>,
    ) -> Result<Running, Failure> {
        let remote = system.remote(session, ARRIVALS_MAX);
        match self {
            Self::Thread(config, times, commands) => {
                let over = Arc::new(AtomicBool::new(false));
                thread::start(*config, times, commands, remote, Arc::clone(&over))?;
                Ok(Running::Thread(over))
            }
            #[cfg(feature = "zmq")]
            Self::Process(mut process) => {
                process.connect(system, session, remote).or_exit(Exit::Setup)?;
                Ok(Running::Process(process))
            }
            #[cfg(not(feature = "zmq"))]
            Self::Process(process) => match process {},
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        match self {
            Self::Thread(over) => over.store(true, Ordering::Relaxed),
            #[cfg(feature = "zmq")]
            Self::Process(process) => process.stop(),
        }
    }
}

impl Pacer for Hold {
    fn begin(&mut self, start: Nanos, end: Option<Nanos>) {
        // A clock that has gone is noticed by whoever watches it.
        let _ = self.line.send(Command::Begin { phase: self.phase, start, end });
    }

    fn end(&mut self) {
        let _ = self.line.send(Command::End);
    }
}

/// Arrivals that wait for the reactor. While it is further behind, the clock waits with the next ones.
const ARRIVALS_MAX: usize = 1 << 16;
