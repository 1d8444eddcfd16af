//! The network as a whole: who listens where, which connections there are, and what happens next.

use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;

use takt_engine::{Close, ReadOutcome, Ready, StreamId, Target};
use takt_time::{Nanos, Span};

use super::connection::{Around, Connection};
use super::link::Link;
use super::pipe::Mishap;
use super::queue::{ConnectionId, Event, Queue, Side};
use super::random::{Chance, Purpose};
use super::slots::{Slots, What};

/// Clock, hosts, listeners and connections of one world.
pub(super) struct Net {
    pub(super) now: Nanos,
    pub(super) around: Around,
    pub(super) hosts: Vec<Slots>,
    accidents: Chance,
    listeners: Vec<Listener>,
    connections: Vec<Option<Box<Connection>>>,
    next_port: u16,
}

struct Listener {
    host: usize,
    stream: StreamId,
    at: Target,
    open: bool,
    /// Connections that nobody has accepted yet.
    pending: u32,
}

impl Net {
    pub(super) fn new(seed: u64, link: Link) -> Self {
        let around = Around {
            link,
            queue: Queue::default(),
            segments: Chance::new(seed, Purpose::Segments),
            ready: Vec::new(),
        };
        Self {
            now: START,
            around,
            hosts: Vec::new(),
            accidents: Chance::new(seed, Purpose::Accidents),
            listeners: Vec::new(),
            connections: Vec::new(),
            next_port: FIRST_PORT,
        }
    }

    pub(super) fn add_host(&mut self) -> usize {
        self.hosts.push(Slots::default());
        self.around.ready.push(Vec::new());
        self.hosts.len() - 1
    }

    /// A call of a host to the network takes its time.
    pub(super) fn charge(&mut self) {
        self.now += self.around.link.call_cost;
    }

    pub(super) fn listen(&mut self, host: usize, at: &Target) -> io::Result<StreamId> {
        plain(at)?;
        let at = match at {
            Target::Tcp { to, .. } if to.port() == 0 => {
                Target::tcp(SocketAddr::new(to.ip(), self.port()))
            }
            other => other.clone(),
        };
        if self.listener(&at).is_some() {
            return Err(ErrorKind::AddrInUse.into());
        }
        let number = self.listeners.len();
        let stream = self.hosts[host].open(What::Listener(number), at.addr());
        self.listeners.push(Listener { host, stream, at, open: true, pending: 0 });
        Ok(stream)
    }

    pub(super) fn connect(&mut self, host: usize, to: &Target) -> io::Result<StreamId> {
        self.charge();
        plain(to)?;
        let (latency, now) = (self.around.link.latency, self.now);
        let faults = &self.around.link.faults;
        if self.accidents.per_mille(faults.no_descriptor) {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        let id = self.connections.len();
        let (at, event) = if self.accidents.per_mille(faults.black_hole) {
            (now + SYSTEM_PATIENCE, Event::Refuse(id, ErrorKind::TimedOut))
        } else if self.accidents.per_mille(faults.refused) {
            (now + latency + latency, Event::Refuse(id, ErrorKind::ConnectionRefused))
        } else {
            (now + latency, Event::Knock(id, 0))
        };
        self.around.queue.push(at, event);
        let own = match to {
            Target::Tcp { to, from } => Some(SocketAddr::new(from.unwrap_or(to.ip()), self.port())),
            Target::Unix(_) | Target::Tls { .. } => None,
        };
        let stream = self.hosts[host].open(What::End(id, Side::Caller), own);
        self.connections.push(Some(Box::new(Connection::new(id, (host, stream), to.clone()))));
        Ok(stream)
    }

    pub(super) fn read(
        &mut self,
        host: usize,
        stream: StreamId,
        buf: &mut [u8],
    ) -> io::Result<ReadOutcome> {
        self.charge();
        let now = self.now;
        let (side, connection, around) = self.end(host, stream)?;
        connection.read(side, buf, now, around)
    }

    pub(super) fn write(
        &mut self,
        host: usize,
        stream: StreamId,
        bufs: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        self.charge();
        let now = self.now;
        let (side, connection, around) = self.end(host, stream)?;
        connection.write(side, bufs, now, around)
    }

    fn end(
        &mut self,
        host: usize,
        stream: StreamId,
    ) -> io::Result<(Side, &mut Connection, &mut Around)> {
        let Some(What::End(id, side)) = self.hosts[host].get(stream) else {
            return Err(ErrorKind::NotConnected.into());
        };
        let connection = self.connections[id].as_deref_mut();
        let connection = connection.expect("an open end keeps its connection");
        Ok((side, connection, &mut self.around))
    }

    pub(super) fn close(&mut self, host: usize, stream: StreamId, how: Close) {
        let Some(what) = self.hosts[host].close(stream) else { return };
        let told = std::mem::take(&mut self.around.ready[host]);
        let (gone, kept) = told.into_iter().partition(|told| told.stream() == Some(stream));
        self.around.ready[host] = kept;
        let gone: Vec<Ready> = gone;
        match what {
            What::Listener(number) => {
                self.listeners[number].open = false;
                for told in gone {
                    if let Ready::Accepted { stream, .. } = told {
                        self.close(host, stream, Close::Reset);
                    }
                }
            }
            What::End(id, side) => self.with(id, |connection, now, around, _| {
                connection.close(side, how, now, around);
            }),
        }
    }

    /// Does all that is due.
    pub(super) fn catch_up(&mut self) {
        while let Some((at, event)) = self.around.queue.pop_due(self.now) {
            self.happen(event, at);
        }
    }

    /// Hands over what a host is to be told.
    pub(super) fn tell(&mut self, host: usize, into: &mut Vec<Ready>) {
        for told in &self.around.ready[host] {
            if let Ready::Accepted { listener, .. } = told
                && let Some(What::Listener(number)) = self.hosts[host].get(*listener)
            {
                self.listeners[number].pending -= 1;
            }
        }
        into.append(&mut self.around.ready[host]);
    }

    fn happen(&mut self, event: Event, now: Nanos) {
        match event {
            Event::Knock(id, tries) => self.knock(id, tries, now),
            Event::Refuse(id, kind) => self.with(id, |connection, _, around, _| {
                connection.refused(kind, around);
            }),
            Event::Establish(id) => self.establish(id, now),
            Event::Accept(id) => self.accept(id, now),
            Event::Arrive(id, from, size) => self.with(id, |connection, _, around, _| {
                connection.arrive(from, size, now, around);
            }),
            Event::End(id, from) => self.with(id, |connection, _, around, _| {
                connection.arrive_end(from, around);
            }),
            Event::Reset(id, to) => self.with(id, |connection, _, around, _| {
                connection.arrive_reset(to, around);
            }),
            Event::Break(id) => self.with(id, |connection, _, around, _| {
                connection.break_down(now, around);
            }),
            Event::Pump(id, from) => self.with(id, |connection, _, around, _| {
                connection.pump(from, now, around);
            }),
            Event::Room(id, side) => self.with(id, |connection, _, around, _| {
                connection.room(side, around);
            }),
            Event::Wake(waker) => waker.wake(),
            Event::Die(host) => self.die(host),
        }
    }

    /// The machine's program is gone; its system resets what it had open.
    fn die(&mut self, host: usize) {
        for stream in self.hosts[host].die() {
            self.close(host, stream, Close::Reset);
        }
        self.around.ready[host].clear();
    }

    /// Works on a connection that is still there, and forgets it when that ended it.
    fn with(
        &mut self,
        id: ConnectionId,
        act: impl FnOnce(&mut Connection, Nanos, &mut Around, &mut Chance),
    ) {
        let Some(connection) = self.connections[id].as_deref_mut() else { return };
        act(connection, self.now, &mut self.around, &mut self.accidents);
        if connection.is_over() {
            self.connections[id] = None;
        }
    }

    fn knock(&mut self, id: ConnectionId, tries: u32, now: Nanos) {
        let Some(connection) = self.connections[id].as_deref() else { return };
        let latency = self.around.link.latency;
        let event = match self.listener(&connection.to) {
            None => match connection.to {
                Target::Tcp { .. } | Target::Tls { .. } => {
                    Event::Refuse(id, ErrorKind::ConnectionRefused)
                }
                Target::Unix(_) => Event::Refuse(id, ErrorKind::NotFound),
            },
            Some(number) if self.listeners[number].pending < self.around.link.backlog => {
                self.listeners[number].pending += 1;
                let connection = self.connections[id].as_deref_mut().expect("looked up above");
                connection.called = Some(number);
                Event::Establish(id)
            }
            // The knock is lost; the caller's system tries again after 1, 2, 4, 8 … seconds.
            Some(_) if tries < KNOCKS_MOST => {
                let again = now + Span::from_secs(1 << tries);
                return self.around.queue.push(again, Event::Knock(id, tries + 1));
            }
            Some(_) => Event::Refuse(id, ErrorKind::TimedOut),
        };
        self.around.queue.push(now + latency, event);
    }

    fn establish(&mut self, id: ConnectionId, now: Nanos) {
        self.with(id, |connection, _, around, accidents| {
            let accepted_at = now + around.link.latency;
            connection.stands(accepted_at, around);
            around.queue.push(accepted_at, Event::Accept(id));
            plan_accidents(connection, now, around, accidents);
        });
    }

    fn accept(&mut self, id: ConnectionId, now: Nanos) {
        let Some(connection) = self.connections[id].as_deref_mut() else { return };
        let called = connection.called.map(|number| &self.listeners[number]);
        let Some(listener) = called.filter(|listener| listener.open) else {
            connection.nobody_accepts(now, &mut self.around);
            return;
        };
        let (host, address) = (listener.host, listener.at.addr());
        let stream = self.hosts[host].open(What::End(id, Side::Callee), address);
        connection.accepted(host, stream);
        let listener = listener.stream;
        self.around.ready[host].push(Ready::Accepted { listener, stream });
    }

    /// Who listens at a place.
    fn listener(&self, to: &Target) -> Option<usize> {
        let hears = |at: &Target| match (at, to) {
            (Target::Tcp { to: at, .. }, Target::Tcp { to, .. }) => {
                at.port() == to.port() && (at.ip() == to.ip() || at.ip().is_unspecified())
            }
            (at, to) => at == to,
        };
        self.listeners.iter().position(|listener| listener.open && hears(&listener.at))
    }

    fn port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        port
    }
}

/// Draws what will happen to a connection that has just come to stand.
fn plan_accidents(
    connection: &mut Connection,
    now: Nanos,
    around: &mut Around,
    chance: &mut Chance,
) {
    let faults = &around.link.faults;
    let longest = faults.longest_stall;
    let plans = [
        (faults.reset_at_byte, Mishap::Reset),
        (faults.end_at_byte, Mishap::End),
        (faults.stall_at_byte, Mishap::Stall(longest)),
    ];
    for (often, what) in plans {
        if !chance.per_mille(often) {
            continue;
        }
        let from = chance.pick(&[Side::Caller, Side::Callee]);
        let at_byte = chance.between(0, faults.accident_bytes);
        let what = match what {
            Mishap::Stall(Span::MAX) if chance.coin() => Mishap::Stall(Span::MAX),
            Mishap::Stall(longest) => {
                let most = longest.min(Span::from_secs(2));
                Mishap::Stall(chance.span(Span::from_micros(1), most))
            }
            other => other,
        };
        connection.plan(from, at_byte, what);
    }
    if chance.per_mille(faults.reset_at_time) {
        let life = chance.span(Span::from_micros(10), Span::from_secs(5));
        around.queue.push(now + life, Event::Break(connection.id));
    }
}

/// A modelled network carries no TLS: what that does to bytes is the library's and is tested on sockets.
fn plain(target: &Target) -> io::Result<()> {
    match target {
        Target::Tcp { .. } | Target::Unix(_) => Ok(()),
        Target::Tls { .. } => Err(ErrorKind::Unsupported.into()),
    }
}

/// The clock does not begin at its origin: a zero where none should be would pass unseen.
const START: Nanos = Nanos::from_nanos(1_000_000_000);
const FIRST_PORT: u16 = 32_768;
/// Attempts after the first, as Linux makes them (`tcp_syn_retries`).
const KNOCKS_MOST: u32 = 6;
/// After so long Linux gives up an attempt that nobody answers.
pub const SYSTEM_PATIENCE: Span = Span::from_secs(127);
/// Linux: too many open files.
const EMFILE: i32 = 24;
