//! The signals that ask a run to stop, and the one that must not end it.
//!
//! `SIGPIPE` needs nothing: the Rust runtime ignores it, and writes to sockets ask for an error instead.

use std::io;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::affinity;

/// A signal that asks the process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGINT`: Ctrl-C.
    Interrupt,
    /// `SIGTERM`: a scheduler or a service manager.
    Terminate,
    /// `SIGHUP`: the terminal is gone.
    HangUp,
}

impl Signal {
    /// Its number: a process that ends because of it exits with 128 more, as shells have it.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
            Self::HangUp => SIGHUP,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
        }
    }

    fn of(number: i32) -> Self {
        match number {
            SIGTERM => Self::Terminate,
            SIGHUP => Self::HangUp,
            _ => Self::Interrupt,
        }
    }
}

/// From now on calls `callback`, on a thread of its own, for each `SIGINT`, `SIGTERM` and `SIGHUP`, with how
/// many came so far (1 for the first) and which one it was.
///
/// The signals no longer end the process by themselves. The first two are heard even when the process was
/// started with them ignored, as shells do for jobs in the background; a hang-up that is ignored stays so,
/// since that is what `nohup` is for. Signals that come faster than the callback returns may be counted as
/// one.
///
/// # Errors
/// When the handlers or the thread cannot be had.
pub fn on_stop(callback: impl Fn(u32, Signal) + Send + 'static) -> io::Result<()> {
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hang_up))?;
    thread::Builder::new().name("takt-signals".to_owned()).spawn(move || {
        // When that fails the thread shares a core, and hardly ever runs.
        let _ = affinity::unpinned();
        let mut nth = 0_u32;
        for number in signals.forever() {
            nth = nth.saturating_add(1);
            callback(nth, Signal::of(number));
        }
    })?;
    Ok(())
}

/// From now on a write beyond the limit of file sizes (`ulimit -f`) fails with an error, where `SIGXFSZ`
/// would have ended the process.
///
/// # Errors
/// When the handler cannot be had.
pub fn file_limit_is_an_error() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Whether the process ignores the signal `number`; not, where the system does not say.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// The mask of ignored signals in `/proc/self/status` (`proc(5)`).
fn ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
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

    #[test]
    fn the_limit_of_file_sizes_does_not_end_the_process() {
        file_limit_is_an_error().unwrap();
        signal_hook::low_level::raise(SIGXFSZ).unwrap();
    }

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        // SIGHUP is 1, SIGPIPE 13.
        let mask = ignored("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0\n").unwrap();
        assert_eq!((mask >> (SIGHUP - 1) & 1, mask >> (SIGINT - 1) & 1), (1, 0));
        assert_eq!(ignored("SigIgn:\tno"), None);
    }
}
