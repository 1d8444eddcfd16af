//! The smallest host: a clock that jumps, and no sockets. For tests of actors and for examples.
//!
//! Parking moves the clock to the deadline at once. Clones share the clock, so a handler can make time
//! pass with [`VirtualClock::advance`] as if it had worked that long, and a test can queue readiness.
//! Parking without a deadline and with nothing queued would wait for ever, and panics.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use takt_time::{Nanos, Span};

use crate::host::{Close, Host, ReadOutcome, Ready, StreamId, Target, Then, Wake, Woken};

/// A host in virtual time. See the module's text.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock(Rc<State>);

#[derive(Debug, Default)]
struct State {
    now: Cell<Nanos>,
    ready: RefCell<Vec<Ready>>,
    opened: Cell<u32>,
    parks: Cell<u64>,
}

impl VirtualClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Nanos) -> Self {
        let clock = Self::default();
        clock.0.now.set(now);
        clock
    }

    /// Lets time pass.
    pub fn advance(&self, span: Span) {
        self.0.now.set(self.0.now.get() + span);
    }

    /// Queues readiness for the next park.
    pub fn queue(&self, event: Ready) {
        self.0.ready.borrow_mut().push(event);
    }

    /// How often it was parked.
    #[must_use]
    pub fn parks(&self) -> u64 {
        self.0.parks.get()
    }

    fn open(&self) -> StreamId {
        let index = self.0.opened.get();
        self.0.opened.set(index + 1);
        StreamId::new(index, 0)
    }
}

impl Host for VirtualClock {
    fn now(&self) -> Nanos {
        self.0.now.get()
    }

    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        self.0.parks.set(self.0.parks.get() + 1);
        let mut queued = self.0.ready.borrow_mut();
        if !queued.is_empty() {
            ready.append(&mut queued);
            return Ok(Woken::Readiness);
        }
        match until {
            Some(at) if at > self.now() => {
                self.0.now.set(at);
                Ok(Woken::Deadline)
            }
            Some(_) => Ok(Woken::Polled),
            None => panic!("parked at {:?} with nothing that could ever end it", self.now()),
        }
    }

    fn connect(&mut self, _target: &Target) -> io::Result<StreamId> {
        Ok(self.open())
    }

    fn listen(&mut self, _at: &Target) -> io::Result<StreamId> {
        Ok(self.open())
    }

    fn local_addr(&self, _stream: StreamId) -> Option<SocketAddr> {
        None
    }

    fn read(&mut self, _stream: StreamId, _buf: &mut [u8]) -> io::Result<ReadOutcome> {
        Ok(ReadOutcome { bytes: 0, at: self.now(), arrived: None, then: Then::Drained })
    }

    fn write(&mut self, _stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(bufs.iter().map(|buf| buf.len()).sum())
    }

    fn close(&mut self, _stream: StreamId, _how: Close) {}

    fn waker(&self) -> Arc<dyn Wake> {
        struct NobodySleeps;
        impl Wake for NobodySleeps {
            fn wake(&self) {}
        }
        Arc::new(NobodySleeps)
    }
}
