//! The signals that ask a run to stop.
//!
//! `SIGPIPE` needs nothing: the Rust runtime ignores it, and writes to sockets ask for an error instead.

use std::io;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::affinity;

/// A signal that asks the process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGTERM`: a scheduler or a service manager.
    Terminate,
}

impl Signal {
    /// Its number: a process that ends because of it exits with 128 more, as shells have it.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
        }
    }
}

/// From now on calls `callback`, on a thread of its own, for each `SIGINT` and `SIGTERM`, with how many
/// came so far (1 for the first) and which one it was.
///
/// The signals no longer end the process by themselves, and are heard even when the process was started
/// with them ignored, as shells do for jobs in the background. Signals that come faster than the callback
/// returns may be counted as one.
///
/// # Errors
/// When the handlers or the thread cannot be had.
pub fn on_stop(callback: impl Fn(u32, Signal) + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("takt-signals".to_owned()).spawn(move || {
        // When that fails the thread shares a core, and hardly ever runs.
        let _ = affinity::unpinned();
        let mut nth = 0_u32;
        for number in signals.forever() {
            nth = nth.saturating_add(1);
            callback(nth, if number == SIGTERM { Signal::Terminate } else { Signal::Interrupt });
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn signals_are_counted_and_do_not_end_the_process() {
        let (tell, told) = mpsc::channel();
        on_stop(move |nth, signal| tell.send((nth, signal)).unwrap()).unwrap();
        for expected in [(1, Signal::Interrupt), (2, Signal::Terminate), (3, Signal::Interrupt)] {
            signal_hook::low_level::raise(expected.1.number()).unwrap();
            assert_eq!(told.recv().unwrap(), expected);
        }
    }
}
