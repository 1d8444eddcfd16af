//! The only door to clock and sockets.
//!
//! A [`Host`] hides what a run stands on: `MioHost` in `takt-net` is the operating system, `SimHost` in
//! the test crate is a virtual clock with a modelled network. Everything above, client and server alike,
//! is written against this trait and so runs on both.
//!
//! Streams are non-blocking and readiness is edge-triggered: after a [`Ready::Readable`] the owner reads
//! until an outcome says [`Then::Drained`] or [`Then::End`]; after a short write it waits for
//! [`Ready::Writable`]. A host holds no policy: no retry, no pool, no time-out.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use takt_time::{Nanos, Span};

/// Clock, sockets and waiting, for one reactor thread.
pub trait Host {
    /// The monotonic clock.
    fn now(&self) -> Nanos;

    /// Waits until `until`, a readiness event or a wake-up from another thread, whichever is first, and
    /// appends what is ready to `ready`. `None` waits without a limit; an instant that is not in the
    /// future makes this a look at the sockets that does not wait.
    ///
    /// May return early with nothing (an early wake-up is harmless); must not return later than it can.
    ///
    /// # Errors
    /// When the operating system's poll fails for another reason than an interrupt.
    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken>;

    /// Begins a connection. [`Ready::Connected`] or [`Ready::Closed`] follows, always later than this call.
    ///
    /// # Errors
    /// When no attempt could be made: no descriptor, no port, an address family that is not there.
    fn connect(&mut self, target: &Target) -> io::Result<StreamId>;

    /// Begins to listen. [`Ready::Accepted`] follows for each connection.
    ///
    /// # Errors
    /// When the address cannot be bound.
    fn listen(&mut self, at: &Target) -> io::Result<StreamId>;

    /// The address that a listener or a stream is bound to (the port chosen for port 0), if it has one.
    fn local_addr(&self, stream: StreamId) -> Option<SocketAddr>;

    /// Reads what is there into `buf`, without waiting.
    ///
    /// # Errors
    /// When the connection is broken (a reset, a TLS record that is wrong); `UnexpectedEof` when one with
    /// TLS was ended without TLS's own end, so that nobody knows whether it was all. The stream stays open
    /// until [`Host::close`].
    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome>;

    /// Writes as much as the socket takes, without waiting, and returns that count of bytes. Fewer than
    /// given (0 included) means that the socket is full: [`Ready::Writable`] follows.
    ///
    /// # Errors
    /// When the connection is broken. The stream stays open until [`Host::close`].
    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize>;

    /// What went wrong with the TLS of a stream, in words that say how to mend it, if something did. To be
    /// asked before the stream is closed.
    fn tls_fault(&self, _stream: StreamId) -> Option<&str> {
        None
    }

    /// Ends a stream or a listener. Its id is never used again and no event for it follows.
    fn close(&mut self, stream: StreamId, how: Close);

    /// A handle by which other threads end a [`Host::park`].
    fn waker(&self) -> Arc<dyn Wake>;

    /// What it has counted of itself; all `None` of a host that counts nothing.
    fn counts(&self) -> HostCounts {
        HostCounts::default()
    }
}

/// What a host counts of itself since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Calls that looked at the sockets.
    pub polls: Option<u64>,
    /// Calls that read, those that found nothing included.
    pub reads: Option<u64>,
    /// Calls that wrote, those that found no room included.
    pub writes: Option<u64>,
    /// How late the kernel woke the thread, median; absent until it slept on a timer.
    pub wake_up_p50: Option<Span>,
    /// The same, 99th percentile.
    pub wake_up_p99: Option<Span>,
    /// The head start before a deadline, where the host takes one.
    pub head_start: Option<Span>,
}

/// Ends a [`Host::park`] from another thread. A wake-up while nothing is parked makes the next park
/// return at once, or is seen by the inbox that is looked at each turn; either way it is not lost.
pub trait Wake: Send + Sync {
    /// Wakes the reactor.
    fn wake(&self);
}

/// Names a stream or listener of one host. Never reused: the slot's generation is part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    index: u32,
    generation: u32,
}

/// Where to connect to or listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// TCP. `from` is the source address of an outgoing connection, chosen by the system when absent.
    Tcp {
        /// The peer's address, or the address to listen at.
        to: SocketAddr,
        /// Source address.
        from: Option<IpAddr>,
    },
    /// A unix stream socket by path.
    Unix(PathBuf),
    /// TLS over TCP. Whoever owns the stream sees plain bytes; they may be written from
    /// [`Ready::Secured`] on.
    Tls {
        /// The peer's address, or the address to listen at.
        to: SocketAddr,
        /// Source address, as for TCP.
        from: Option<IpAddr>,
        /// How it is secured.
        layer: TlsLayer,
    },
}

/// What a host needs to know to secure a connection. The configuration itself (roots, certificates) is
/// the host's, which gave out the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsLayer {
    /// Number of a configuration that was given to the host.
    pub config: u32,
    /// The name that the peer's certificate must be for; empty for a listener.
    pub name: Arc<str>,
}

/// What a host reports. `Accepted` and `Foreign` aside, each names a stream that its owner opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The connection stands; it may be written to, and read from as [`Ready::Readable`] says. One with
    /// TLS has a handshake before it: then [`Ready::Secured`] or [`Ready::Closed`] follows.
    Connected(StreamId),
    /// The TLS handshake of a connection has ended well. An accepted one is told of only then.
    Secured {
        /// Which.
        stream: StreamId,
        /// The session was resumed by a ticket: no certificate was checked again.
        resumed: bool,
    },
    /// `listener` has a new connection; it belongs to the listener's owner.
    Accepted {
        /// The listener.
        listener: StreamId,
        /// The new connection.
        stream: StreamId,
    },
    /// There may be bytes, an end or an error to read.
    Readable(StreamId),
    /// A write that fell short may go on.
    Writable(StreamId),
    /// The connection could not be made, or died before anything could be read from it.
    Closed(StreamId, io::ErrorKind),
    /// A descriptor that does not belong to the host is ready (a message queue's, say), by its token.
    Foreign(u64),
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Bytes placed at the start of the buffer.
    pub bytes: usize,
    /// When the read returned, by [`Host::now`].
    pub at: Nanos,
    /// When the last of the bytes came to this machine, by the same clock, where the host tells: before `at` by
    /// as long as they lay in the socket.
    pub arrived: Option<Nanos>,
    /// Whether to read again.
    pub then: Then,
}

/// What follows a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// There may be more now: read again, no event will say so.
    More,
    /// Nothing more now: [`Ready::Readable`] follows when there is.
    Drained,
    /// The peer has ended its side, and all it sent has been read.
    End,
}

/// How to end a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// What was written is still delivered (FIN).
    Orderly,
    /// At once, what is under way is lost (RST).
    Reset,
}

/// Why a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The deadline was already there: only a look at the sockets.
    Polled,
    /// The deadline came.
    Deadline,
    /// Something is ready.
    Readiness,
    /// Another thread.
    Remote,
    /// None of these; a signal, an early timer.
    Spurious,
}

impl StreamId {
    /// For hosts: slot `index` in its `generation`-th use.
    #[must_use]
    pub const fn new(index: u32, generation: u32) -> Self {
        Self { index, generation }
    }

    /// The slot: small and dense, fit to index a table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Which use of the slot this is.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}.{}", self.index, self.generation)
    }
}

impl Ready {
    /// The stream whose owner gets this event; `None` for a foreign descriptor.
    #[must_use]
    pub fn stream(&self) -> Option<StreamId> {
        match *self {
            Self::Connected(s)
            | Self::Secured { stream: s, .. }
            | Self::Readable(s)
            | Self::Writable(s)
            | Self::Closed(s, _) => Some(s),
            Self::Accepted { listener, .. } => Some(listener),
            Self::Foreign(_) => None,
        }
    }
}

impl Target {
    /// TCP to `to`, from any address.
    #[must_use]
    pub const fn tcp(to: SocketAddr) -> Self {
        Self::Tcp { to, from: None }
    }

    /// The TCP address of it, if it has one.
    #[must_use]
    pub fn addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp { to, .. } | Self::Tls { to, .. } => Some(*to),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { to, .. } => write!(f, "{to}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tls { to, .. } => write!(f, "tls:{to}"),
        }
    }
}
