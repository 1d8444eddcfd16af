//! The alarm that ends a sleep: one absolute timerfd on `CLOCK_MONOTONIC`.
//!
//! A timerfd has no timer slack, which a time-out of `epoll_wait` has, and mio rounds time-outs up to
//! whole milliseconds on top. It is registered edge-triggered and never read: each expiry is an edge of
//! its own, and setting it again takes back an expiry that was not yet reported.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use takt_time::Nanos;

/// A timer that is set to one instant at a time.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: OwnedFd,
    alarm: Option<Alarm>,
}

/// What a timer is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    /// The deadline it serves.
    deadline: Nanos,
    /// When it goes off: at the deadline or before it.
    pub(crate) at: Nanos,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Monotonic, flags)?, alarm: None })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Sets the timer to go off at `at` for `deadline`. Nothing is done when it is set for that deadline
    /// already, be it to another instant: it costs 0.8 us, and a deadline mostly outlives many parks.
    pub(crate) fn set(&mut self, deadline: Nanos, at: Nanos) -> io::Result<()> {
        if self.alarm.is_some_and(|alarm| alarm.deadline == deadline) {
            return Ok(());
        }
        // All zero would switch the timer off; instant 0 is long past, as instant 1 is.
        let ns = at.as_nanos().max(1);
        let it_value =
            Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.alarm = Some(Alarm { deadline, at });
        Ok(())
    }

    /// Notes that the timer's event was seen, and returns what it was set to.
    pub(crate) fn went_off(&mut self) -> Option<Alarm> {
        self.alarm.take()
    }
}

impl Alarm {
    /// Whether this is the alarm of that deadline.
    pub(crate) fn serves(&self, deadline: Nanos) -> bool {
        self.deadline == deadline
    }
}

const SECOND_NS: u64 = 1_000_000_000;
