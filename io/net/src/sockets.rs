//! The sockets of a host: what each system call and each event of the kernel means to the owner.
//!
//! ```text
//!   connect -> Connecting -- writable, no error --> Open -- close --> gone
//!                  |                                 ^
//!                  +-- an error --> Failed           +-- accepted
//! ```
//!
//! Sockets are registered once, edge-triggered. A read that is shorter than its buffer has emptied the
//! socket, so no second read is needed to learn that, unless the peer has ended its side: then no edge
//! would follow and the owner reads on to the end.
//!
//! A unix socket signals room at each read of its peer, wanted or not. So a unix stream listens for room
//! only while a write is short; a TCP socket signals it only after a short write and is left alone.
//!
//! What TLS adds is in `secure`.

use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Interest, Registry};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, sockopt};
use socket2::SockRef;
use takt_engine::{Close, Ready, StreamId, Target, Then};
use takt_time::{Nanos, Span};

use crate::arrivals::Arrivals;
use crate::clock;
use crate::secure::{Raw, Secure};
use crate::slots::{Entry, Family, Slots, State, Stream};
use crate::socket::{self, Outcome};
use crate::stats::HostStats;
use crate::sys;
use crate::token::Source;

/// The sockets of one host.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) registry: Registry,
    pub(crate) slots: Slots,
    pub(crate) secure: Secure,
    pub(crate) arrivals: Arrivals,
    /// Outcomes known before the kernel has anything to say; told by the next park.
    queued: Vec<Ready>,
    /// Listeners with more connections waiting than were taken at a time.
    unfinished: Vec<StreamId>,
    /// Listeners that could not accept, and when to try again at the latest.
    paused: Vec<StreamId>,
    retry_at: Option<Nanos>,
    pub(crate) stats: HostStats,
}

impl Sockets {
    pub(crate) fn new(registry: Registry) -> Self {
        Self {
            registry,
            slots: Slots::default(),
            secure: Secure::default(),
            arrivals: Arrivals::default(),
            queued: Vec::new(),
            unfinished: Vec::new(),
            paused: Vec::new(),
            retry_at: None,
            stats: HostStats::default(),
        }
    }

    pub(crate) fn connect(&mut self, target: &Target) -> io::Result<StreamId> {
        let tls = self.secure.layer(target)?;
        let attempt = socket::connect(target)?;
        self.stats.connects += 1;
        let state = match attempt.outcome {
            Outcome::UnderWay => State::Connecting,
            Outcome::Connected if tls.is_some() => State::Securing,
            Outcome::Connected => State::Open,
            Outcome::Failed(_) => State::Failed,
        };
        let mut stream = Stream::new(attempt.fd, attempt.family, state);
        stream.tls = tls;
        if self.arrivals.wanted && stream.family == Family::Tcp {
            // What the kernel does not stamp has no stamp; the request is none the worse.
            stream.stamped = self.arrivals.ask(stream.fd.as_fd()).is_ok();
        }
        let id = match attempt.outcome {
            Outcome::UnderWay => self.add_stream(stream)?,
            Outcome::Connected => {
                let id = self.add_stream(stream)?;
                self.queued.push(Ready::Connected(id));
                self.queue_handshake(id);
                id
            }
            Outcome::Failed(kind) => {
                let id = self.slots.insert(Entry::Stream(stream));
                self.queued.push(Ready::Closed(id, kind));
                id
            }
        };
        Ok(id)
    }

    pub(crate) fn listen(&mut self, at: &Target) -> io::Result<StreamId> {
        if let Target::Tls { layer, .. } = at {
            self.secure.server(layer.config)?;
        }
        let listener = socket::listen(at)?;
        let fd = listener.fd.as_raw_fd();
        let id = self.slots.insert(Entry::Listener(listener));
        self.register(fd, id, Interest::READABLE)?;
        Ok(id)
    }

    pub(crate) fn local_addr(&self, id: StreamId) -> Option<SocketAddr> {
        let fd = match self.slots.get(id)? {
            Entry::Stream(stream) | Entry::Leaving(stream) => &stream.fd,
            Entry::Listener(listener) => &listener.fd,
        };
        SockRef::from(fd).local_addr().ok()?.as_socket()
    }

    /// Reads; tells the kernel's stamp of the last segment, where there is one.
    pub(crate) fn read(
        &mut self,
        id: StreamId,
        buf: &mut [u8],
    ) -> io::Result<(usize, Then, Option<u64>)> {
        let stream = self.slots.stream_mut(id).ok_or(ErrorKind::NotConnected)?;
        self.stats.reads += 1;
        if let Some(layer) = &mut stream.tls {
            let end_is_near = stream.read_closed;
            let mut raw = Raw::of(stream.fd.as_fd(), stream.stamped);
            let read = layer.read(&mut raw, buf, end_is_near, &mut self.secure.buffers);
            return read.map(|(bytes, then)| (bytes, then, raw.stamp));
        }
        if stream.stamped {
            return read_stamped(stream, buf);
        }
        let room = buf.len();
        let (bytes, then) = match rustix::net::recv(&stream.fd, buf, RecvFlags::empty()) {
            Ok((_, 0)) if room > 0 => (0, Then::End),
            Ok((_, bytes)) if bytes == room || stream.read_closed => (bytes, Then::More),
            Ok((_, bytes)) => (bytes, Then::Drained),
            Err(Errno::AGAIN) => (0, Then::Drained),
            Err(Errno::INTR) => (0, Then::More),
            Err(error) => return Err(error.into()),
        };
        Ok((bytes, then, None))
    }

    pub(crate) fn write(&mut self, id: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let stream = self.slots.stream_mut(id).ok_or(ErrorKind::NotConnected)?;
        self.stats.writes += 1;
        if let Some(layer) = &mut stream.tls {
            let wanted: usize = bufs.iter().map(|slice| slice.len()).sum();
            let written = layer.write(
                &mut Raw::of(stream.fd.as_fd(), false),
                bufs,
                &mut self.secure.buffers,
            )?;
            stream.write_blocked |= written < wanted;
            return Ok(written);
        }
        let mut written = 0;
        // More slices than one call takes are a short write to the kernel, not a full socket.
        for some in bufs.chunks(SLICES_PER_WRITE) {
            let wanted: usize = some.iter().map(|slice| slice.len()).sum();
            if wanted == 0 {
                continue;
            }
            let bytes = match retry_on_intr(|| send(stream.fd.as_fd(), some)) {
                Ok(bytes) => bytes,
                Err(Errno::AGAIN) => 0,
                // What went before has been taken; the next write will say the same again.
                Err(_) if written > 0 => return Ok(written),
                Err(error) => return Err(error.into()),
            };
            written += bytes;
            if bytes < wanted {
                stream.write_blocked = true;
                if stream.family == Family::Unix {
                    listen_for(
                        &self.registry,
                        stream,
                        id,
                        Interest::READABLE | Interest::WRITABLE,
                    )?;
                }
                break;
            }
        }
        Ok(written)
    }

    pub(crate) fn close(&mut self, id: StreamId, how: Close) {
        let Some(entry) = self.slots.remove(id) else { return };
        self.queued.retain(|ready| ready.stream() != Some(id));
        match entry {
            Entry::Listener(_) => {
                self.unfinished.retain(|listener| *listener != id);
                self.paused.retain(|listener| *listener != id);
            }
            Entry::Stream(stream) => match how {
                // Closing then sends a reset. It can only fail on a socket that is dead already.
                Close::Reset => drop(SockRef::from(&stream.fd).set_linger(Some(Duration::ZERO))),
                Close::Orderly => {
                    discard_input(&stream.fd);
                    if stream.tls.is_some() {
                        self.leave(stream);
                    }
                }
            },
            // Nobody has its id.
            Entry::Leaving(_) => {}
        }
        // A descriptor is free again.
        self.unfinished.append(&mut self.paused);
    }

    /// Tells what is known without asking the kernel for events, and goes on with listeners that were
    /// left half done. `now` is when the caller last looked at the clock.
    pub(crate) fn tell(&mut self, now: Nanos, ready: &mut Vec<Ready>) {
        ready.append(&mut self.queued);
        if self.retry_at.is_some_and(|at| at <= now) {
            self.unfinished.append(&mut self.paused);
            self.retry_at = None;
        }
        if !self.unfinished.is_empty() {
            for listener in std::mem::take(&mut self.unfinished) {
                self.accept(listener, ready);
            }
        }
    }

    /// When [`Sockets::tell`] has to be called at the latest.
    pub(crate) fn retry_at(&self) -> Option<Nanos> {
        self.retry_at
    }

    /// What an event of the kernel means. Events for a socket that is gone mean nothing.
    pub(crate) fn event(&mut self, id: StreamId, event: &Event, ready: &mut Vec<Ready>) {
        match self.slots.get(id) {
            Some(Entry::Stream(_)) => self.stream_event(id, event, ready),
            Some(Entry::Listener(_)) => self.accept(id, ready),
            Some(Entry::Leaving(_)) => self.go_on_leaving(id, event),
            None => {}
        }
    }

    fn stream_event(&mut self, id: StreamId, event: &Event, ready: &mut Vec<Ready>) {
        let Some(stream) = self.slots.stream_mut(id) else { return };
        match stream.state {
            State::Failed => return,
            State::Connecting => {
                if !(event.is_writable() || event.is_error() || event.is_write_closed()) {
                    return;
                }
                if let Err(error) = sockopt::socket_error(&stream.fd).and_then(|outcome| outcome) {
                    stream.state = State::Failed;
                    ready.push(Ready::Closed(id, io::Error::from(error).kind()));
                    return;
                }
                ready.push(Ready::Connected(id));
                if stream.tls.is_some() {
                    stream.state = State::Securing;
                    stream.read_closed |= event.is_read_closed();
                    return self.queue_handshake(id);
                }
                stream.state = State::Open;
            }
            State::Securing => {
                stream.read_closed |= event.is_read_closed() || event.is_error();
                return self.queue_handshake(id);
            }
            State::Open => {}
        }
        stream.read_closed |= event.is_read_closed() || event.is_error();
        if event.is_readable() || stream.read_closed {
            ready.push(Ready::Readable(id));
        }
        if event.is_writable()
            && let Some(layer) = &mut stream.tls
            && layer.owes()
        {
            match layer.flush(&mut Raw::of(stream.fd.as_fd(), false)) {
                Ok(true) => {}
                Ok(false) => return,
                // The next read or write says what it is.
                Err(_) => ready.push(Ready::Readable(id)),
            }
        }
        if stream.write_blocked && event.is_writable() {
            stream.write_blocked = false;
            if stream.family == Family::Unix {
                // It fails only if the descriptor were not registered, which it is.
                let back = listen_for(&self.registry, stream, id, Interest::READABLE);
                debug_assert!(back.is_ok(), "{id:?}: {back:?}");
            }
            ready.push(Ready::Writable(id));
        }
    }

    /// Accepts what waits, up to a bound. When that fails (descriptors, memory) the listener pauses
    /// until a socket of this host is closed or a moment has passed, instead of failing in a loop.
    fn accept(&mut self, listener: StreamId, ready: &mut Vec<Ready>) {
        for _ in 0..ACCEPTS_AT_A_TIME {
            let Some(Entry::Listener(door)) = self.slots.get(listener) else { return };
            let (family, tls) = (door.family, door.tls);
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let taken = match rustix::net::accept_with(&door.fd, flags) {
                Ok(fd) => match tls {
                    None => self.add_stream(Stream::new(fd, family, State::Open)),
                    Some(config) => self.secure.accepted(config, listener).and_then(|layer| {
                        let mut stream = Stream::new(fd, family, State::Securing);
                        stream.tls = Some(layer);
                        self.add_stream(stream)
                    }),
                },
                Err(Errno::AGAIN) => return,
                // The peer has given up meanwhile, or a signal came: the next one.
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                Err(error) => Err(error.into()),
            };
            let Ok(stream) = taken else {
                self.stats.accepts_paused += 1;
                if !self.paused.contains(&listener) {
                    self.paused.push(listener);
                }
                self.retry_at = Some(clock::now() + ACCEPT_PAUSE);
                return;
            };
            self.stats.accepted += 1;
            if family == Family::Tcp
                && let Some(open) = self.slots.stream_mut(stream)
            {
                // It can only fail on a connection that is dead already; the first read will say so.
                let _ = sockopt::set_tcp_nodelay(&open.fd, true);
            }
            // One with TLS is told of when it is secured.
            if tls.is_none() {
                ready.push(Ready::Accepted { listener, stream });
            }
        }
        if !self.unfinished.contains(&listener) {
            self.unfinished.push(listener);
        }
    }

    pub(crate) fn add_stream(&mut self, stream: Stream) -> io::Result<StreamId> {
        let interest = match stream.family {
            Family::Tcp => Interest::READABLE | Interest::WRITABLE,
            Family::Unix => Interest::READABLE,
        };
        let fd = stream.fd.as_raw_fd();
        let id = self.slots.insert(Entry::Stream(stream));
        self.register(fd, id, interest)?;
        Ok(id)
    }

    /// Registers a descriptor that has just been given the slot `id`, or gives the slot back.
    fn register(&mut self, fd: i32, id: StreamId, interest: Interest) -> io::Result<()> {
        let registered =
            self.registry.register(&mut SourceFd(&fd), Source::Socket(id).token(), interest);
        if registered.is_err() {
            self.slots.remove(id);
        }
        registered
    }
}

/// The read of a stream whose bytes are stamped; means what the other one means.
fn read_stamped(stream: &Stream, buf: &mut [u8]) -> io::Result<(usize, Then, Option<u64>)> {
    let room = buf.len();
    Ok(match sys::receive_stamped(stream.fd.as_fd(), buf) {
        Ok((0, _)) if room > 0 => (0, Then::End, None),
        Ok((bytes, stamp)) if bytes == room || stream.read_closed => (bytes, Then::More, stamp),
        Ok((bytes, stamp)) => (bytes, Then::Drained, stamp),
        Err(error) if error.kind() == ErrorKind::WouldBlock => (0, Then::Drained, None),
        Err(error) if error.kind() == ErrorKind::Interrupted => (0, Then::More, None),
        Err(error) => return Err(error),
    })
}

fn listen_for(
    registry: &Registry,
    stream: &Stream,
    id: StreamId,
    interest: Interest,
) -> io::Result<()> {
    let fd = stream.fd.as_raw_fd();
    registry.reregister(&mut SourceFd(&fd), Source::Socket(id).token(), interest)
}

fn send(fd: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> Result<usize, Errno> {
    match bufs {
        [one] => rustix::net::send(fd, one, SendFlags::NOSIGNAL),
        several => {
            let mut no_control = SendAncillaryBuffer::default();
            rustix::net::sendmsg(fd, several, &mut no_control, SendFlags::NOSIGNAL)
        }
    }
}

/// Reads away what nobody asked for, up to a bound: closing a socket with unread input makes the kernel
/// send a reset, which destroys what was written but not yet delivered.
fn discard_input(fd: &OwnedFd) {
    let mut waste = [0_u8; 4_096];
    for _ in 0..DISCARDS {
        match rustix::net::recv(fd, &mut waste, RecvFlags::empty()) {
            Ok((_, bytes)) if bytes == waste.len() => {}
            _ => return,
        }
    }
}

/// `IOV_MAX` of Linux.
const SLICES_PER_WRITE: usize = 1_024;
/// Connections taken from one listener before other sockets get their turn.
const ACCEPTS_AT_A_TIME: usize = 256;
/// How long a listener that cannot accept pauses, when no socket of this host is closed before.
const ACCEPT_PAUSE: Span = Span::from_millis(10);
/// Pieces of 4 KiB that an orderly close reads away at most.
const DISCARDS: usize = 16;
