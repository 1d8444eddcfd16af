//! The streams of one host: slots that are used again, each time under another id.

use std::net::SocketAddr;

use takt_engine::StreamId;

use super::queue::{ConnectionId, Side};

/// The table of a host's streams.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
    most_open: usize,
    pub(super) dead: bool,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    what: Option<What>,
    address: Option<SocketAddr>,
}

/// What a stream is.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// A listener by its number.
    Listener(usize),
    /// An end of a connection.
    End(ConnectionId, Side),
}

impl Slots {
    pub(super) fn open(&mut self, what: What, address: Option<SocketAddr>) -> StreamId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        (slot.what, slot.address) = (Some(what), address);
        self.open += 1;
        self.most_open = self.most_open.max(self.open);
        StreamId::new(index, slot.generation)
    }

    pub(super) fn close(&mut self, stream: StreamId) -> Option<What> {
        self.get(stream)?;
        let slot = &mut self.slots[stream.index()];
        slot.generation += 1;
        self.open -= 1;
        self.free.push(stream.index() as u32);
        slot.what.take()
    }

    pub(super) fn get(&self, stream: StreamId) -> Option<What> {
        self.slot(stream)?.what
    }

    pub(super) fn address(&self, stream: StreamId) -> Option<SocketAddr> {
        self.slot(stream)?.address
    }

    /// Nothing is done here any more. Gives what is open.
    pub(super) fn die(&mut self) -> Vec<StreamId> {
        self.dead = true;
        let open = self.slots.iter().enumerate().filter(|(_, slot)| slot.what.is_some());
        open.map(|(index, slot)| StreamId::new(index as u32, slot.generation)).collect()
    }

    /// How many are open now, and how many were at most.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.open, self.most_open)
    }

    fn slot(&self, stream: StreamId) -> Option<&Slot> {
        self.slots.get(stream.index()).filter(|slot| slot.generation == stream.generation())
    }
}
