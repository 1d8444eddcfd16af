//! What the engine counts of itself.

use takt_time::{Nanos, Span};

use crate::host::Woken;

/// Counters since the system began. Cheap enough to be always on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnStats {
    /// Turns.
    pub turns: u64,
    /// Timers fired.
    pub timers: u64,
    /// Readiness events delivered.
    pub ready: u64,
    /// Messages handled, `call_soon` included.
    pub messages: u64,
    /// Messages that came from other threads.
    pub remote: u64,
    /// Messages that went beyond a mailbox's capacity.
    pub overflows: u64,
    /// Time in handlers and between them.
    pub busy: Span,
    /// Time in `park`.
    pub parked: Span,
    /// The longest turn, park not counted.
    pub longest_turn: Span,
    /// The latest that a timer fired after its deadline.
    pub latest_timer: Span,
    /// Of that, looks at the sockets that did not wait.
    pub looking: Span,
    /// Parks by the reason for which they ended.
    pub woken: WokenCounts,
    /// Where the time of some turns went.
    pub sampled: SampledTurns,
    /// How long what came had been there when it was read, in the same turns.
    pub unread: Unread,
}

/// Where the time of one turn in some went. Parks are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledTurns {
    /// How many turns.
    pub turns: u64,
    /// Handlers of timers and what they set in motion, calls to the host left out.
    pub timers: Span,
    /// Handlers of readiness, the same left out.
    pub readiness: Span,
    /// Handlers of messages, the same left out.
    pub messages: Span,
    /// Calls that read.
    pub reads: Span,
    /// Calls that write.
    pub writes: Span,
    /// The engine itself.
    pub rest: Span,
}

/// How long bytes can have stood in a socket before they were read, at the most: from the last look at the
/// sockets that did not find them. Where the thread slept, from its waking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Reads that got something.
    pub reads: u64,
    /// Their times together.
    pub sum: Span,
    /// The longest.
    pub max: Span,
}

/// Parks by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WokenCounts {
    /// Looks at the sockets that did not wait.
    pub polled: u64,
    /// A deadline.
    pub deadline: u64,
    /// Readiness.
    pub readiness: u64,
    /// Another thread.
    pub remote: u64,
    /// None of these.
    pub spurious: u64,
}

impl TurnStats {
    pub(crate) fn woke(&mut self, why: Woken, from: Nanos, to: Nanos) {
        let span = to.saturating_since(from);
        self.parked += span;
        if why == Woken::Polled {
            self.looking += span;
        }
        let counter = match why {
            Woken::Polled => &mut self.woken.polled,
            Woken::Deadline => &mut self.woken.deadline,
            Woken::Readiness => &mut self.woken.readiness,
            Woken::Remote => &mut self.woken.remote,
            Woken::Spurious => &mut self.woken.spurious,
        };
        *counter += 1;
    }

    pub(crate) fn turn_took(&mut self, span: Span) {
        self.turns += 1;
        self.busy += span;
        self.longest_turn = self.longest_turn.max(span);
    }
}
