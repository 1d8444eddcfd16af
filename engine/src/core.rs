//! The part of a system that handlers reach through their context: wheel, clock, owners, counters.

use std::rc::Rc;

use takt_time::{Nanos, Span};

use crate::host::{Host, StreamId};
use crate::mailbox::RunQueue;
use crate::meter::{Meter, Work};
use crate::stats::TurnStats;
use crate::trace::{Dispatch, Trace};
use crate::wheel::Wheel;

/// Shared state of one system, apart from its actors and its host.
#[derive(Debug)]
pub(crate) struct Core {
    /// Timers as (actor, slot in that actor's timer slab).
    pub(crate) wheel: Wheel<(u32, u32)>,
    pub(crate) run: Rc<RunQueue>,
    /// Actors that have messages from `call_soon`.
    pub(crate) soon: Vec<u32>,
    pub(crate) stats: TurnStats,
    pub(crate) meter: Meter,
    pub(crate) trace: Trace,
    pub(crate) stopped: bool,
    /// The actor at work asked to be ended.
    pub(crate) leaving: bool,
    owners: Vec<Option<(u32, u32)>>,
    /// The instant of the current call.
    now: Nanos,
    /// The last reading of the clock, by anyone.
    seen: Nanos,
    /// Calls since then.
    unseen: u32,
    /// When the sockets were last looked at.
    pub(crate) polled: Nanos,
}

impl Core {
    pub(crate) fn new(now: Nanos) -> Self {
        Self {
            wheel: Wheel::default(),
            run: Rc::default(),
            soon: Vec::new(),
            stats: TurnStats::default(),
            meter: Meter::new(),
            trace: Trace::new(),
            stopped: false,
            leaving: false,
            owners: Vec::new(),
            now,
            seen: now,
            unseen: 0,
            polled: now,
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    pub(crate) fn seen(&self) -> Nanos {
        self.seen
    }

    /// Reads the clock.
    pub(crate) fn read_clock(&mut self, host: &dyn Host) -> Nanos {
        let now = host.now();
        self.saw_clock(now);
        now
    }

    /// Reads the clock unless it was read since the last call began.
    pub(crate) fn refresh_clock(&mut self, host: &dyn Host) {
        if self.unseen > 0 {
            self.read_clock(host);
        }
    }

    /// Somebody else read it.
    #[inline]
    pub(crate) fn saw_clock(&mut self, at: Nanos) {
        self.seen = self.seen.max(at);
        self.unseen = 0;
    }

    /// In a turn that is measured: what is done from now on, until [`Self::leave`].
    #[inline]
    pub(crate) fn enter(&mut self, work: Work, host: &dyn Host) {
        if self.meter.on {
            self.meter.enter(work, host.now(), &mut self.stats.sampled);
        }
    }

    #[inline]
    pub(crate) fn leave(&mut self, host: &dyn Host) {
        if self.meter.on {
            self.meter.leave(host.now(), &mut self.stats.sampled);
        }
    }

    /// Begins a call: its instant is the last reading.
    #[inline]
    pub(crate) fn begin(&mut self, actor: u32, what: Dispatch) {
        self.now = self.seen;
        self.unseen += 1;
        self.trace.note(self.now, actor, what);
    }

    /// Whether a timer is due. The clock is read anew unless it was read since the last call, or the next
    /// deadline is so far off that a few short handlers cannot have reached it.
    #[inline]
    pub(crate) fn is_due(&mut self, host: &dyn Host) -> bool {
        let Some(deadline) = self.wheel.next_deadline() else { return false };
        if deadline <= self.seen {
            return true;
        }
        let near = deadline.saturating_since(self.seen) < NEAR;
        if self.unseen > 0 && (near || self.unseen >= UNSEEN_MAX) {
            self.read_clock(host);
        }
        deadline <= self.seen
    }

    pub(crate) fn own(&mut self, stream: StreamId, actor: u32) {
        let index = stream.index();
        if self.owners.len() <= index {
            self.owners.resize(index + 1, None);
        }
        self.owners[index] = Some((stream.generation(), actor));
    }

    pub(crate) fn disown(&mut self, stream: StreamId) {
        if self.owner(stream).is_some() {
            self.owners[stream.index()] = None;
        }
    }

    /// The streams that `actor` owns.
    pub(crate) fn streams_of(&self, actor: u32) -> Vec<StreamId> {
        let owned = |(index, owner): (usize, &Option<(u32, u32)>)| match *owner {
            Some((generation, by)) if by == actor => Some(StreamId::new(index as u32, generation)),
            _ => None,
        };
        self.owners.iter().enumerate().filter_map(owned).collect()
    }

    pub(crate) fn owner(&self, stream: StreamId) -> Option<u32> {
        match self.owners.get(stream.index()) {
            Some(&Some((generation, actor))) if generation == stream.generation() => Some(actor),
            _ => None,
        }
    }
}

/// Within this of a deadline the clock is read between any two calls.
const NEAR: Span = Span::from_millis(5);
/// Calls without a reading of the clock while a deadline is further off.
const UNSEEN_MAX: u32 = 8;
