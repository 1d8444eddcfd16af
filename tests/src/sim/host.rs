//! [`World`] and [`SimHost`]: the engine's host in virtual time.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use takt_engine::{Close, Host, ReadOutcome, Ready, StreamId, Target, Wake, Woken};
use takt_time::{Nanos, Span};

use super::link::Link;
use super::net::Net;
use super::queue::Event;

/// A virtual clock and a network, shared by the hosts made from it.
#[derive(Clone)]
pub struct World(Rc<RefCell<Net>>);

/// One machine of a world.
pub struct SimHost {
    world: World,
    number: usize,
    waiting: Waiting,
    woken: Arc<Woke>,
    /// Moves the clock itself when it is parked; else the driver of several hosts does.
    alone: bool,
    /// When bytes were read here.
    heard: Vec<Nanos>,
}

/// What a host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// For nothing: it has more to do at this instant.
    No,
    /// For readiness, or until then.
    Until(Nanos),
    /// For readiness.
    ForEver,
}

impl World {
    /// A world with this network between its hosts, whose chances are those of `seed`.
    #[must_use]
    pub fn new(seed: u64, link: Link) -> Self {
        Self(Rc::new(RefCell::new(Net::new(seed, link))))
    }

    /// One more host, to be moved by [`super::Drive`] together with the others.
    #[must_use]
    pub fn host(&self) -> SimHost {
        let number = self.0.borrow_mut().add_host();
        let woken = Arc::new(Woke(AtomicBool::new(false)));
        SimHost {
            world: self.clone(),
            number,
            waiting: Waiting::No,
            woken,
            alone: false,
            heard: Vec::new(),
        }
    }

    /// The only host of this world, which moves the clock when it is parked.
    #[must_use]
    pub fn lone_host(&self) -> SimHost {
        SimHost { alone: true, ..self.host() }
    }

    /// The clock.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.0.borrow().now
    }

    /// Has `waker` used after `span`.
    pub fn wake_after(&self, span: Span, waker: Arc<dyn Wake>) {
        let mut net = self.0.borrow_mut();
        let at = net.now + span;
        net.around.queue.push(at, Event::Wake(waker));
    }

    /// Has a host die after `span`: its system is not stepped again, what it had open is reset.
    pub fn die_after(&self, span: Span, host: &SimHost) {
        let mut net = self.0.borrow_mut();
        let at = net.now + span;
        net.around.queue.push(at, Event::Die(host.number));
    }

    /// When something happens in the network next.
    pub(super) fn next_at(&self) -> Option<Nanos> {
        self.0.borrow().around.queue.next_at()
    }

    /// Moves the clock to `at`, if that is later, and does all that is due by then.
    pub(super) fn move_to(&self, at: Nanos) {
        let mut net = self.0.borrow_mut();
        net.now = net.now.max(at);
        net.catch_up();
    }
}

impl SimHost {
    /// Streams and listeners that are open here, and the most there were at once.
    #[must_use]
    pub fn open_streams(&self) -> (usize, usize) {
        self.world.0.borrow().hosts[self.number].count()
    }

    /// The instants at which bytes were read here, in order.
    #[must_use]
    pub fn heard(&self) -> &[Nanos] {
        &self.heard
    }

    /// Whether a turn of its system would do anything now.
    pub(super) fn has_work(&self) -> bool {
        let net = self.world.0.borrow();
        if net.hosts[self.number].dead {
            return false;
        }
        let due = match self.waiting {
            Waiting::No => true,
            Waiting::Until(at) => at <= net.now,
            Waiting::ForEver => false,
        };
        due || !net.around.ready[self.number].is_empty() || self.woken.0.load(Ordering::Relaxed)
    }

    /// Until when it waits at the most.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        match self.waiting {
            Waiting::Until(at) if !self.is_dead() => Some(at),
            Waiting::Until(_) | Waiting::No | Waiting::ForEver => None,
        }
    }

    /// Whether it has died.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.world.0.borrow().hosts[self.number].dead
    }

    /// What there is to report at this instant, if anything.
    fn look(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> Option<Woken> {
        let net = &mut *self.world.0.borrow_mut();
        net.catch_up();
        let before = ready.len();
        net.tell(self.number, ready);
        if ready.len() > before {
            return Some(Woken::Readiness);
        }
        if self.woken.0.swap(false, Ordering::Relaxed) {
            return Some(Woken::Remote);
        }
        until.is_some_and(|at| at <= net.now).then_some(Woken::Polled)
    }
}

impl Host for SimHost {
    fn now(&self) -> Nanos {
        self.world.now()
    }

    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        self.waiting = Waiting::No;
        if until.is_some_and(|at| at <= self.now()) {
            // A look at the sockets is a call like others. (A wait takes its time anyhow.)
            self.world.0.borrow_mut().charge();
        }
        if let Some(woken) = self.look(until, ready) {
            return Ok(woken);
        }
        if !self.alone {
            self.waiting = until.map_or(Waiting::ForEver, Waiting::Until);
            return Ok(Woken::Spurious);
        }
        loop {
            let next = self.world.next_at();
            let at = next.into_iter().chain(until).min();
            let at = at.expect("parked for ever with nothing that could ever end it");
            self.world.move_to(at);
            match self.look(until, ready) {
                Some(Woken::Polled) => return Ok(Woken::Deadline),
                Some(woken) => return Ok(woken),
                None => {}
            }
        }
    }

    fn connect(&mut self, target: &Target) -> io::Result<StreamId> {
        self.world.0.borrow_mut().connect(self.number, target)
    }

    fn listen(&mut self, at: &Target) -> io::Result<StreamId> {
        self.world.0.borrow_mut().listen(self.number, at)
    }

    fn local_addr(&self, stream: StreamId) -> Option<SocketAddr> {
        self.world.0.borrow().hosts[self.number].address(stream)
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        let outcome = self.world.0.borrow_mut().read(self.number, stream, buf)?;
        if outcome.bytes > 0 && self.heard.last() != Some(&outcome.at) {
            self.heard.push(outcome.at);
        }
        Ok(outcome)
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.world.0.borrow_mut().write(self.number, stream, bufs)
    }

    fn close(&mut self, stream: StreamId, how: Close) {
        self.world.0.borrow_mut().close(self.number, stream, how);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.woken.clone()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World at {:?}", self.now())
    }
}

struct Woke(AtomicBool);

impl Wake for Woke {
    fn wake(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
