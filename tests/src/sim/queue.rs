//! What is to happen, by instant; events of one instant in the order in which they were scheduled.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::sync::Arc;

use takt_engine::Wake;
use takt_time::Nanos;

/// A connection by its number; never used again.
pub(super) type ConnectionId = usize;

/// Which end of a connection: the one that asked for it, or the one that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Caller = 0,
    Callee = 1,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Caller => Self::Callee,
            Self::Callee => Self::Caller,
        }
    }
}

/// What happens in the network. Directions are named by the side that sends.
pub(super) enum Event {
    /// A connection attempt reaches its target, for the n-th time.
    Knock(ConnectionId, u32),
    /// The caller learns that it has failed.
    Refuse(ConnectionId, ErrorKind),
    /// The caller learns that it stands.
    Establish(ConnectionId),
    /// The listener learns of it.
    Accept(ConnectionId),
    /// So many bytes arrive.
    Arrive(ConnectionId, Side, usize),
    /// The end of a direction arrives.
    End(ConnectionId, Side),
    /// A reset reaches this side.
    Reset(ConnectionId, Side),
    /// The network breaks the connection, if it still stands.
    Break(ConnectionId),
    /// Something may be sent again.
    Pump(ConnectionId, Side),
    /// A write that was cut short may go on.
    Room(ConnectionId, Side),
    /// Somebody wakes a host.
    Wake(Arc<dyn Wake>),
    /// A host is no more.
    Die(usize),
}

/// The events to come.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    scheduled: u64,
}

struct Entry {
    at: Nanos,
    number: u64,
    event: Event,
}

impl Queue {
    pub(super) fn push(&mut self, at: Nanos, event: Event) {
        let number = self.scheduled;
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { at, number, event }));
    }

    /// When the first event is due. An event at the end of time never is.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|entry| entry.0.at).filter(|&at| at < Nanos::MAX)
    }

    /// Takes the first event if it is due by `now`.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, Event)> {
        self.next_at().filter(|&at| at <= now)?;
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
