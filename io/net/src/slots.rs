//! The table of open sockets. A slot is used again, an id never is: each use of a slot has a generation
//! of its own, and a look-up with an id of an earlier use finds nothing. So an event that the kernel
//! queued for a socket closed meanwhile goes nowhere.

use std::os::fd::OwnedFd;

use slab::Slab;
use takt_engine::StreamId;

use crate::socket::UnixSocketFile;
use crate::tls::Layer;

/// One open socket.
#[derive(Debug)]
pub(crate) enum Entry {
    Stream(Stream),
    Listener(Listener),
    /// Closed by its owner; the end of its ciphertext is still to be sent.
    Leaving(Stream),
}

/// A connection, or an attempt at one.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) fd: OwnedFd,
    pub(crate) family: Family,
    pub(crate) state: State,
    /// The peer has ended its side: a short read does not mean that nothing more is to be read.
    pub(crate) read_closed: bool,
    /// A write fell short: its owner waits for [`takt_engine::Ready::Writable`].
    pub(crate) write_blocked: bool,
    /// The kernel stamps what comes in.
    pub(crate) stamped: bool,
    /// What lies between the socket and its owner.
    pub(crate) tls: Option<Box<Layer>>,
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) fd: OwnedFd,
    pub(crate) family: Family,
    /// The configuration of its connections' TLS.
    pub(crate) tls: Option<u32>,
    /// Removes the path of a unix socket when the listener goes.
    pub(crate) _file: Option<UnixSocketFile>,
}

/// What a socket is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Tcp,
    Unix,
}

/// `Connecting` goes to `Open`, by way of `Securing` with TLS, or to `Failed`; nothing comes after `Failed` but a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connecting,
    Securing,
    Open,
    Failed,
}

/// The open sockets by id.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    entries: Slab<Entry>,
    /// The present use of each slot, by index; kept when a slot is empty.
    generations: Vec<u32>,
}

impl Stream {
    pub(crate) fn new(fd: OwnedFd, family: Family, state: State) -> Self {
        Self {
            fd,
            family,
            state,
            read_closed: false,
            write_blocked: false,
            stamped: false,
            tls: None,
        }
    }
}

impl Slots {
    pub(crate) fn insert(&mut self, entry: Entry) -> StreamId {
        let index = self.entries.insert(entry);
        if index == self.generations.len() {
            self.generations.push(0);
        }
        // A slot is an open descriptor: their number is far below 2^32.
        StreamId::new(index as u32, self.generations[index])
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Entry> {
        if !self.is_current(id) {
            return None;
        }
        self.entries.get(id.index())
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Entry> {
        if !self.is_current(id) {
            return None;
        }
        self.entries.get_mut(id.index())
    }

    pub(crate) fn stream_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        if !self.is_current(id) {
            return None;
        }
        match self.entries.get_mut(id.index())? {
            Entry::Stream(stream) => Some(stream),
            Entry::Listener(_) | Entry::Leaving(_) => None,
        }
    }

    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Entry> {
        if !self.is_current(id) {
            return None;
        }
        let entry = self.entries.try_remove(id.index())?;
        let generation = &mut self.generations[id.index()];
        // The last generation is set aside for the host's own tokens; 4 billion uses of one slot are
        // not expected in the life of a process.
        *generation = (*generation + 1) % LAST_GENERATION;
        Some(entry)
    }

    fn is_current(&self, id: StreamId) -> bool {
        self.generations.get(id.index()) == Some(&id.generation())
    }
}

/// No slot has this generation.
pub(crate) const LAST_GENERATION: u32 = u32::MAX;
