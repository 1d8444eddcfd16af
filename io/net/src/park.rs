//! Waiting. mio rounds a time-out of its poll up to whole milliseconds, so a poll here either has none
//! (the timer ends it) or is zero.
//!
//! | mode | until the deadline |
//! | --- | --- |
//! | `park` | sleep on the timer, set to the deadline |
//! | `guard` | sleep on the timer, set a head start before it, if there is time for a real sleep; then as `spin` |
//! | `spin` | `poll(0)` between looks at the clock; the last microsecond on the clock alone |
//!
//! Whatever the mode, each park polls at least once and returns as soon as that finds something. Nothing
//! can be lost between two parks: sockets, waker and timer keep their edge in the kernel until a poll
//! takes it. An edge of the timer that was set for an earlier deadline and has not been taken back is
//! noted and otherwise passed over.
//!
//! A step of a TLS handshake can take hundreds of microseconds. Each park takes one, so that a due send waits
//! for one at the most; with more to do a park does not sleep.

use std::io;
use std::time::Duration;

use takt_engine::{Ready, Woken};
use takt_time::{Nanos, Span};

use crate::clock;
use crate::host::MioHost;
use crate::timer::Alarm;
use crate::token::Source;
use crate::wait::WaitMode;

/// What one poll has seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ready: bool,
    remote: bool,
    alarm: Option<Alarm>,
    interrupted: bool,
    /// A step of a handshake is due.
    handshake: bool,
}

impl MioHost {
    pub(crate) fn wait(
        &mut self,
        until: Option<Nanos>,
        ready: &mut Vec<Ready>,
    ) -> io::Result<Woken> {
        let already = ready.len();
        // A look needs no clock, unless a paused listener waits for its moment.
        let only_look = until == Some(Nanos::ZERO) && self.sockets.retry_at().is_none();
        let now = if only_look { Nanos::ZERO } else { clock::now() };
        self.sockets.tell(now, ready);
        let shaken = self.sockets.shake_one(ready);
        if ready.len() > already {
            self.poll(Some(Duration::ZERO), ready)?;
            return Ok(Woken::Readiness);
        }
        if shaken {
            self.poll(Some(Duration::ZERO), ready)?;
            return Ok(if ready.len() > already { Woken::Readiness } else { Woken::Spurious });
        }
        if until.is_some_and(|at| at <= now) {
            self.poll(Some(Duration::ZERO), ready)?;
            return Ok(Woken::Polled);
        }
        // A paused listener wants to try again: that ends a park early, which is harmless.
        let retry = self.sockets.retry_at();
        let limit = [until, retry].into_iter().flatten().min();
        let woken = match (self.mode, limit) {
            (WaitMode::Spin, _) => self.spin(limit, SPIN_TAIL, ready)?,
            (WaitMode::Park, _) | (WaitMode::Guard { .. }, None) => {
                self.sleep(limit, Span::ZERO, now, ready)?
            }
            (WaitMode::Guard { .. }, Some(at)) => self.guarded(at, now, ready)?,
        };
        Ok(if woken == Woken::Deadline && limit != until { Woken::Spurious } else { woken })
    }

    fn guarded(&mut self, at: Nanos, now: Nanos, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        let guard = self.guard.current();
        if now + guard + LEAST_SLEEP.min(self.guard.cap()) < at {
            let woken = self.sleep(Some(at), guard, now, ready)?;
            if woken != Woken::Deadline {
                return Ok(woken);
            }
        }
        self.spin(Some(at), GUARD_TAIL, ready)
    }

    /// Sleeps until `head_start` before `limit`, and calls that the deadline.
    fn sleep(
        &mut self,
        limit: Option<Nanos>,
        head_start: Span,
        now: Nanos,
        ready: &mut Vec<Ready>,
    ) -> io::Result<Woken> {
        if let Some(at) = limit {
            self.timer.set(at, at.saturating_sub(head_start))?;
        }
        loop {
            let seen = self.poll(None, ready)?;
            if let Some(alarm) = seen.alarm
                && alarm.at > now
            {
                // It was still to come when the sleep began: what passed since is the kernel's.
                let late = clock::now().saturating_since(alarm.at);
                self.lateness.record(late);
                self.guard.record(late);
            }
            if let Some(woken) = seen.woken() {
                return Ok(woken);
            }
            match (limit, seen.alarm) {
                (Some(at), Some(alarm)) if alarm.serves(at) => return Ok(Woken::Deadline),
                // The timer was set for something earlier that is of no interest any more.
                (Some(at), _) => self.timer.set(at, at.saturating_sub(head_start))?,
                (None, _) => {}
            }
        }
    }

    /// Polls without sleeping until `limit`, the last `tail` of it on the clock alone.
    fn spin(
        &mut self,
        limit: Option<Nanos>,
        tail: Span,
        ready: &mut Vec<Ready>,
    ) -> io::Result<Woken> {
        loop {
            let seen = self.poll(Some(Duration::ZERO), ready)?;
            if let Some(woken) = seen.woken() {
                return Ok(woken);
            }
            let Some(at) = limit else { continue };
            if at.saturating_since(clock::now()) <= tail {
                // Reading the clock takes long enough: no pause instruction, which a virtual machine
                // may take as a reason to yield the core.
                while clock::now() < at {}
                return Ok(Woken::Deadline);
            }
        }
    }

    fn poll(&mut self, timeout: Option<Duration>, ready: &mut Vec<Ready>) -> io::Result<Seen> {
        self.sockets.stats.polls += 1;
        if let Err(error) = self.poll.poll(&mut self.events, timeout) {
            if error.kind() == io::ErrorKind::Interrupted {
                return Ok(Seen { interrupted: true, ..Seen::default() });
            }
            return Err(error);
        }
        let already = ready.len();
        let mut seen = Seen::default();
        for event in &self.events {
            match Source::of(event.token()) {
                Source::Socket(id) => self.sockets.event(id, event, ready),
                Source::Waker => seen.remote = true,
                Source::Timer => seen.alarm = self.timer.went_off(),
                Source::Foreign(place) => {
                    ready.extend(self.foreign.get(place as usize).map(|f| Ready::Foreign(f.token)));
                }
            }
        }
        seen.ready = ready.len() > already;
        seen.handshake = self.sockets.secure.is_shaking();
        Ok(seen)
    }
}

impl Seen {
    /// Why the park ends, unless only the timer was seen, or nothing.
    fn woken(self) -> Option<Woken> {
        match self {
            Self { ready: true, .. } => Some(Woken::Readiness),
            Self { remote: true, .. } => Some(Woken::Remote),
            Self { interrupted: true, .. } | Self { handshake: true, .. } => Some(Woken::Spurious),
            _ => None,
        }
    }
}

/// `guard` takes no shorter sleep than this, or than its cap: it would save little, and answers that come meanwhile would be
/// stamped tens of microseconds late, by a core that has to wake first. What it brings and costs: docs/BENCHMARKS.md.
const LEAST_SLEEP: Span = Span::from_micros(100);
/// How long before a deadline `guard` stops polling: a poll takes about 0.23 us, with some events more.
const GUARD_TAIL: Span = Span::from_nanos(700);
/// The same for `spin`, where the exact instant is all that counts.
const SPIN_TAIL: Span = Span::from_micros(1);
