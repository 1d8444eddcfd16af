//! The session's end of a client.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use takt_engine::Addr;
use takt_time::Nanos;

use super::{ClientMsg, Warmed};
use crate::api::{Cancel, Replies, Request, SampleIssuer, TransportCounters};

/// Drives a [`super::Client`] from the same thread; what a session is given as its transport.
#[derive(Clone, Debug)]
pub struct ClientHandle {
    addr: Addr<ClientMsg>,
    counters: Rc<Cell<TransportCounters>>,
    progress: Rc<Cell<Option<Nanos>>>,
}

impl ClientHandle {
    pub(super) fn new(
        addr: Addr<ClientMsg>,
        counters: Rc<Cell<TransportCounters>>,
        progress: Rc<Cell<Option<Nanos>>>,
    ) -> Self {
        Self { addr, counters, progress }
    }

    /// Has `then` called, once, as soon as the warm connections stand or have failed: at once when they
    /// already have.
    pub fn when_warm(&self, then: impl FnOnce(Warmed) + 'static) {
        self.addr.send(ClientMsg::WhenWarm(WhenWarm(Box::new(then))));
    }
}

impl SampleIssuer for ClientHandle {
    fn attach(&mut self, replies: Replies) {
        self.addr.send(ClientMsg::Attach(replies));
    }

    fn issue(&mut self, request: Request) {
        self.addr.send(ClientMsg::Submit(request));
    }

    fn rehearse(&mut self, request: Request) {
        self.addr.send(ClientMsg::Rehearse(request));
    }

    fn cancel(&mut self, which: Cancel) {
        self.addr.send(ClientMsg::Cancel(which));
    }

    fn progress(&self) -> Option<Nanos> {
        self.progress.get()
    }

    fn counters(&self) -> TransportCounters {
        self.counters.get()
    }

    fn shut_down(&mut self) {
        self.addr.send(ClientMsg::ShutDown);
    }
}

/// Somebody who wants to know when the connections are warm.
pub struct WhenWarm(pub(super) Box<dyn FnOnce(Warmed)>);

impl fmt::Debug for WhenWarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WhenWarm")
    }
}
