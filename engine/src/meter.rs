//! Where the reactor's time goes, by kind, from one turn in [`EVERY`].
//!
//! A clock reading costs as much as a message, so kinds are not told apart in every turn. In a turn that is
//! measured the clock is read at each change of kind; in all others a change costs one look at a flag. The
//! number of turns between is prime, so that no rhythm of a load is always caught in the same step. What the
//! meter reads stays with it: no handler sees another time because its turn was measured.

use takt_time::{Nanos, Span};

use crate::stats::{SampledTurns, Unread};

/// What a turn does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Work {
    /// The engine itself.
    #[default]
    Rest,
    /// Handlers of timers, with what they set in motion.
    Timers,
    /// Handlers of readiness: what is read is understood there.
    Readiness,
    /// Handlers of messages.
    Messages,
    /// Calls that read.
    Reads,
    /// Calls that write.
    Writes,
}

/// Measures one turn in some.
#[derive(Debug)]
pub(crate) struct Meter {
    /// This turn is measured.
    pub(crate) on: bool,
    /// Turns until the next that is.
    left: u32,
    work: Work,
    since: Nanos,
    /// What was done around it: a read within a timer's handler within messages is the deepest.
    before: [Work; 4],
    depth: usize,
    /// What is ready now was not there before this moment, but for the kernel's time to wake the thread.
    looked: Nanos,
}

impl Meter {
    pub(crate) const fn new() -> Self {
        Self {
            on: false,
            left: EVERY,
            work: Work::Rest,
            since: Nanos::ZERO,
            before: [Work::Rest; 4],
            depth: 0,
            looked: Nanos::ZERO,
        }
    }

    /// A turn begins whose park lasted `from` to `to`; the one before ended at `looked`.
    #[inline]
    pub(crate) fn begin(&mut self, looked: Nanos, from: Nanos, to: Nanos) {
        self.left -= 1;
        if self.left == 0 {
            self.begin_measured(looked, from, to);
        }
    }

    #[cold]
    fn begin_measured(&mut self, looked: Nanos, from: Nanos, to: Nanos) {
        self.left = EVERY;
        (self.on, self.work, self.since) = (true, Work::Rest, to);
        // A park that took long has waited: nothing was ready when it began.
        self.looked = if to.saturating_since(from) > WAITED { to } else { looked };
    }

    /// The turn ends.
    #[cold]
    pub(crate) fn end(&mut self, at: Nanos, into: &mut SampledTurns) {
        self.change(Work::Rest, at, into);
        into.turns += 1;
        (self.on, self.depth) = (false, 0);
    }

    /// Something else is done until [`Self::leave`].
    #[cold]
    pub(crate) fn enter(&mut self, work: Work, at: Nanos, into: &mut SampledTurns) {
        let before = self.change(work, at, into);
        self.before[self.depth] = before;
        self.depth += 1;
    }

    /// Back to what was done before.
    #[cold]
    pub(crate) fn leave(&mut self, at: Nanos, into: &mut SampledTurns) {
        self.depth -= 1;
        self.change(self.before[self.depth], at, into);
    }

    /// Bytes were read at `at`.
    pub(crate) fn read(&self, at: Nanos, into: &mut Unread) {
        let stood = at.saturating_since(self.looked);
        into.reads += 1;
        into.sum += stood;
        into.max = into.max.max(stood);
    }

    fn change(&mut self, work: Work, at: Nanos, into: &mut SampledTurns) -> Work {
        let spent = match self.work {
            Work::Rest => &mut into.rest,
            Work::Timers => &mut into.timers,
            Work::Readiness => &mut into.readiness,
            Work::Messages => &mut into.messages,
            Work::Reads => &mut into.reads,
            Work::Writes => &mut into.writes,
        };
        *spent += at.saturating_since(self.since);
        self.since = at;
        std::mem::replace(&mut self.work, work)
    }
}

/// One turn in so many is measured.
const EVERY: u32 = 61;
/// A look at the sockets takes less than this; a park that took longer has waited.
const WAITED: Span = Span::from_micros(5);
