//! What an actor can do while it handles something.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;

use slab::Slab;
use takt_time::Nanos;

use crate::actor::Actor;
use crate::addr::Addr;
use crate::core::Core;
use crate::host::{Close, Host, HostCounts, ReadOutcome, StreamId, Target};
use crate::mailbox::Mailbox;
use crate::meter::Work;
use crate::wheel::TimerKey;

/// An actor's messages outside its mailbox: those of its timers and those left with `call_soon`.
#[derive(Debug)]
pub(crate) struct Ports<M> {
    pub(crate) mailbox: Rc<Mailbox<M>>,
    pub(crate) timers: Slab<M>,
    pub(crate) soon: std::collections::VecDeque<M>,
}

/// The world as an actor sees it during one call.
pub struct Context<'a, A: Actor> {
    pub(crate) actor: u32,
    pub(crate) core: &'a mut Core,
    pub(crate) host: &'a mut dyn Host,
    pub(crate) ports: &'a mut Ports<A::Msg>,
}

impl<A: Actor> Context<'_, A> {
    /// The instant of this call: the same however long the handler runs.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.core.now()
    }

    /// A fresh reading of the clock, for records.
    pub fn stamp(&mut self) -> Nanos {
        self.core.read_clock(self.host)
    }

    /// Whether a timer is due that has not fired: the reactor is behind its schedule.
    #[must_use]
    pub fn is_behind(&mut self) -> bool {
        let seen = self.core.seen();
        self.core.wheel.next_deadline().is_some_and(|at| at <= seen)
    }

    /// The actor's own address.
    #[must_use]
    pub fn addr(&self) -> Addr<A::Msg> {
        Addr(self.ports.mailbox.clone())
    }

    /// Leaves `msg` for the actor itself: it is handled after what is already queued and after the
    /// sockets have been looked at. A chain of these starves nobody.
    pub fn call_soon(&mut self, msg: A::Msg) {
        if self.ports.soon.is_empty() {
            self.core.soon.push(self.actor);
        }
        self.ports.soon.push_back(msg);
    }

    /// Has `msg` handled at `at`, or as soon as possible when that is past. Timers of one instant fire in
    /// the order of these calls.
    pub fn call_at(&mut self, at: Nanos, msg: A::Msg) -> TimerKey {
        let slot = u32::try_from(self.ports.timers.insert(msg)).expect("fewer than 2^32 timers");
        self.core.wheel.insert(at, (self.actor, slot))
    }

    /// Disarms a timer and gives its message back; `None` when it has fired or was cancelled.
    pub fn cancel(&mut self, key: TimerKey) -> Option<A::Msg> {
        let (actor, slot) = self.core.wheel.cancel(key)?;
        debug_assert_eq!(actor, self.actor, "a timer is cancelled by the actor that armed it");
        self.ports.timers.try_remove(slot as usize)
    }

    /// Begins a connection that this actor owns.
    ///
    /// # Errors
    /// As [`Host::connect`].
    pub fn connect(&mut self, target: &Target) -> io::Result<StreamId> {
        let stream = self.host.connect(target)?;
        self.core.own(stream, self.actor);
        Ok(stream)
    }

    /// Begins to listen; this actor owns the listener and all that it accepts.
    ///
    /// # Errors
    /// As [`Host::listen`].
    pub fn listen(&mut self, at: &Target) -> io::Result<StreamId> {
        let listener = self.host.listen(at)?;
        self.core.own(listener, self.actor);
        Ok(listener)
    }

    /// The address that a stream or listener is bound to.
    #[must_use]
    pub fn local_addr(&self, stream: StreamId) -> Option<SocketAddr> {
        self.host.local_addr(stream)
    }

    /// Reads without waiting; see [`Host::read`].
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        self.core.enter(Work::Reads, self.host);
        let outcome = self.host.read(stream, buf);
        self.core.leave(self.host);
        if let Ok(outcome) = &outcome {
            self.core.saw_clock(outcome.at);
            if self.core.meter.on && outcome.bytes > 0 {
                self.core.meter.read(outcome.at, &mut self.core.stats.unread);
            }
        }
        outcome
    }

    /// Writes without waiting; see [`Host::write`].
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.core.enter(Work::Writes, self.host);
        let written = self.host.write(stream, bufs);
        self.core.leave(self.host);
        written
    }

    /// What went wrong with the TLS of a stream; see [`Host::tls_fault`].
    #[must_use]
    pub fn tls_fault(&self, stream: StreamId) -> Option<&str> {
        self.host.tls_fault(stream)
    }

    /// Ends a stream or listener.
    pub fn close(&mut self, stream: StreamId, how: Close) {
        self.core.disown(stream);
        self.host.close(stream, how);
    }

    /// The system's own figures up to now.
    #[must_use]
    pub fn stats(&self) -> &crate::stats::TurnStats {
        &self.core.stats
    }

    /// What the host has counted up to now.
    #[must_use]
    pub fn host_counts(&self) -> HostCounts {
        self.host.counts()
    }

    /// Ends this actor after this call: its timers never fire, what is sent to it is dropped.
    pub fn stop(&mut self) {
        self.core.leaving = true;
    }

    /// Ends the whole system after this call.
    pub fn stop_system(&mut self) {
        self.core.stopped = true;
    }
}
