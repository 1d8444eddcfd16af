//! One direction of a connection: bytes on their way, and what happens to them.
//!
//! One buffer holds all of them, in order; counters say how far each has come:
//!
//! ```text
//!   read <── visible │ held │ on the wire │ queued <── written
//!            └──── receive buffer ───────┘ └ send buffer
//! ```
//!
//! A piece moves from the queue to the wire when the wire is free and the receive buffer has room, and is
//! held when it arrives. Held pieces become visible one by one, so that a read ends where a segment ended.

use std::collections::VecDeque;

use takt_time::{Nanos, Span};

use super::link::{Cuts, Link};
use super::random::Chance;

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    bytes: VecDeque<u8>,
    visible: usize,
    held: VecDeque<usize>,
    held_bytes: usize,
    wire: usize,
    carried: u64,
    pub(super) accident: Option<Accident>,
    pub(super) end: End,
    /// The network carries nothing more; what is written vanishes.
    pub(super) dead: bool,
    /// The wire is taken until then.
    free_at: Nanos,
    last_arrival: Nanos,
    /// Somebody comes back then, when the wire is free.
    pub(super) comes_back: Nanos,
    /// A write fell short.
    pub(super) starved: bool,
}

/// How far the end of a direction has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    #[default]
    No,
    /// The sender has closed; bytes may be before it.
    Wanted,
    /// Under way.
    Sent,
    /// The receiver may learn of it when it has read everything.
    Arrived,
}

/// What happens to a direction once so many bytes have gone through.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accident {
    pub(super) at_byte: u64,
    pub(super) what: Mishap,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mishap {
    Reset,
    End,
    Stall(Span),
}

/// What a pipe does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// So many bytes leave and arrive then.
    Carry(usize, Nanos),
    /// The end leaves and arrives then.
    Finish(Nanos),
    /// Nothing until the wire is free.
    Wait(Nanos),
    /// Both directions break.
    Break,
    /// This direction ends here, whatever was written behind.
    Sever(Nanos),
    /// Nothing until something else happens.
    Rest,
}

impl Pipe {
    /// A direction whose first byte arrives at `at` at the earliest.
    pub(super) fn begins(&mut self, at: Nanos) {
        self.last_arrival = self.last_arrival.max(at);
    }

    /// When something that overtakes nothing arrives.
    pub(super) fn arrival(&self, now: Nanos, latency: Span) -> Nanos {
        self.last_arrival.max(now + latency)
    }

    pub(super) fn queued(&self) -> usize {
        self.bytes.len() - self.visible - self.held_bytes - self.wire
    }

    /// Room in the send buffer.
    pub(super) fn room(&self, link: &Link) -> usize {
        link.send_buffer.saturating_sub(self.queued())
    }

    /// Takes bytes into the send buffer.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Takes visible bytes out.
    pub(super) fn read(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.visible);
        let (front, back) = self.bytes.as_slices();
        let first = count.min(front.len());
        into[..first].copy_from_slice(&front[..first]);
        into[first..count].copy_from_slice(&back[..count - first]);
        self.bytes.drain(..count);
        self.visible -= count;
        count
    }

    /// Makes the next held piece visible, if there is one and nothing is visible.
    pub(super) fn reveal(&mut self) -> bool {
        if self.visible > 0 {
            return false;
        }
        let Some(piece) = self.held.pop_front() else { return false };
        self.held_bytes -= piece;
        self.visible = piece;
        true
    }

    /// A piece arrives. Whether there is something visible now where nothing was.
    pub(super) fn arrive(&mut self, size: usize, apart: bool) -> bool {
        self.wire -= size;
        if !apart && self.held.is_empty() {
            let was_empty = self.visible == 0;
            self.visible += size;
            return was_empty;
        }
        match self.held.back_mut() {
            Some(last) if !apart => *last += size,
            _ => self.held.push_back(size),
        }
        self.held_bytes += size;
        self.reveal()
    }

    /// A piece arrives where nobody reads any more.
    pub(super) fn arrive_in_vain(&mut self, size: usize) {
        self.bytes.drain(..size);
        self.wire -= size;
    }

    /// The reader has gone: what it has not read is dropped.
    pub(super) fn drop_arrived(&mut self) {
        self.bytes.drain(..self.visible + self.held_bytes);
        self.held.clear();
        (self.visible, self.held_bytes) = (0, 0);
    }

    /// Nothing more is carried; what is under way still arrives.
    pub(super) fn die(&mut self) {
        self.bytes.truncate(self.visible + self.held_bytes + self.wire);
        self.dead = true;
    }

    /// What happens next at `now`; what leaves has left.
    pub(super) fn step(&mut self, now: Nanos, link: &Link, chance: &mut Chance) -> Next {
        if self.dead {
            return Next::Rest;
        }
        if let Some(Accident { at_byte, what }) = self.accident
            && at_byte <= self.carried
        {
            self.accident = None;
            match what {
                Mishap::Reset => return Next::Break,
                Mishap::End => {
                    self.die();
                    return Next::Sever(self.arrival(now, link.latency));
                }
                Mishap::Stall(span) => self.free_at = self.free_at.max(now + span),
            }
        }
        if self.queued() == 0 {
            if self.end != End::Wanted {
                return Next::Rest;
            }
            self.end = End::Sent;
            let at = self.arrival(now.max(self.free_at), link.latency);
            return Next::Finish(at);
        }
        if self.free_at > now {
            return Next::Wait(self.free_at);
        }
        let taken = self.visible + self.held_bytes + self.wire;
        let window = link.receive_buffer.saturating_sub(taken);
        if window == 0 {
            return Next::Rest;
        }
        self.carry(window, now, link, chance)
    }

    fn carry(&mut self, window: usize, now: Nanos, link: &Link, chance: &mut Chance) -> Next {
        let mut size = self.queued().min(window);
        if let Some(accident) = self.accident {
            let before = accident.at_byte - self.carried;
            size = size.min(usize::try_from(before).unwrap_or(usize::MAX));
        }
        let (piece, space) = match link.cuts {
            Cuts::None => (size, Span::ZERO),
            Cuts::Apart(most) => (segment(most, chance), Span::ZERO),
            Cuts::Spaced(most, space) => {
                (segment(most, chance), Span::from_nanos(chance.between(0, space.as_nanos())))
            }
        };
        size = size.min(piece);
        if link.bytes_per_s.is_some() {
            // Else a wire that holds everything would show no limit to the buffers.
            size = size.min(MOST_AT_ONCE);
        }
        self.wire += size;
        self.carried += size as u64;
        let gone = now + link.wire_time(size);
        self.free_at = gone + space;
        let jitter = match link.jitter.as_nanos() {
            0 => 0,
            most => chance.between(0, most),
        };
        self.last_arrival = self.last_arrival.max(gone + link.latency + Span::from_nanos(jitter));
        Next::Carry(size, self.last_arrival)
    }
}

/// The length of a segment: often tiny, sometimes anything up to `most`.
fn segment(most: usize, chance: &mut Chance) -> usize {
    if chance.per_mille(250) { chance.size(1, most.min(4)) } else { chance.size(1, most) }
}

/// Bytes that a limited wire takes at once.
const MOST_AT_ONCE: usize = 1460;
