//! [`MioHost`]: a [`Host`] on the operating system.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll};
use takt_engine::{Close, Host, HostCounts, ReadOutcome, Ready, StreamId, Target, Wake, Woken};
use takt_time::Nanos;

use crate::clock;
use crate::lateness::{Guard, Lateness};
use crate::sockets::Sockets;
use crate::stats::HostStats;
use crate::timer::Timer;
use crate::tls::{ClientTls, ServerTls};
use crate::token::Source;
use crate::wait::WaitMode;

/// The operating system as a [`Host`]: epoll by way of mio, always edge-triggered, `CLOCK_MONOTONIC`.
///
/// How it waits is in the `park` module next to this one; what events mean is in `sockets`.
///
/// An event is told when it is collected. An owner that closes stream B while it handles an event of
/// stream A may still find an event of B further on in the same list: look-ups by id then find nothing.
/// A stream that was reported [`Ready::Closed`] keeps its descriptor until its owner closes it.
pub struct MioHost {
    pub(crate) poll: Poll,
    pub(crate) events: Events,
    pub(crate) mode: WaitMode,
    pub(crate) timer: Timer,
    pub(crate) guard: Guard,
    pub(crate) lateness: Lateness,
    pub(crate) sockets: Sockets,
    pub(crate) foreign: Vec<Foreign>,
    waker: Arc<MioWaker>,
}

/// A descriptor of somebody else, and the name under which its owner wants to hear of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Foreign {
    fd: RawFd,
    pub(crate) token: u64,
}

#[derive(Debug)]
struct MioWaker(mio::Waker);

impl MioHost {
    /// A host without sockets, for the thread that will run it.
    ///
    /// # Errors
    /// When a descriptor (epoll, timer, event) cannot be had.
    pub fn new(mode: WaitMode) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new()?;
        let registry = poll.registry();
        registry.register(
            &mut SourceFd(&timer.raw()),
            Source::Timer.token(),
            Interest::READABLE,
        )?;
        let waker = Arc::new(MioWaker(mio::Waker::new(registry, Source::Waker.token())?));
        let cap = match mode {
            WaitMode::Guard { cap } => cap,
            WaitMode::Park | WaitMode::Spin => WaitMode::GUARD_CAP,
        };
        Ok(Self {
            sockets: Sockets::new(registry.try_clone()?),
            poll,
            events: Events::with_capacity(EVENTS),
            mode,
            timer,
            guard: Guard::new(cap),
            lateness: Lateness::new(),
            foreign: Vec::new(),
            waker,
        })
    }

    /// How this host waits.
    #[must_use]
    pub fn mode(&self) -> WaitMode {
        self.mode
    }

    /// What the host has counted so far.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        let guard = matches!(self.mode, WaitMode::Guard { .. }).then(|| self.guard.current());
        HostStats { wake_ups: self.lateness.summary(), guard, ..self.sockets.stats }
    }

    /// Takes in what connections with TLS trust and show; gives the number that
    /// [`takt_engine::TlsLayer::config`] names it by.
    pub fn add_client_tls(&mut self, tls: ClientTls) -> u32 {
        self.sockets.secure.add_client(tls)
    }

    /// The same for listeners with TLS.
    pub fn add_server_tls(&mut self, tls: ServerTls) -> u32 {
        self.sockets.secure.add_server(tls)
    }

    /// From now on [`ReadOutcome::arrived`] is told of connections that are begun over TCP, with TLS or without:
    /// the kernel stamps what comes in. Unix sockets have no such stamps.
    pub fn stamp_arrivals(&mut self) {
        self.sockets.arrivals.wanted = true;
    }

    /// Reports [`Ready::Foreign`] with `token` each time that `fd` becomes readable, edge-triggered: its
    /// owner reads until there is nothing more. The descriptor stays its owner's, who must call
    /// [`MioHost::forget_foreign`] before closing it.
    ///
    /// # Errors
    /// When the descriptor cannot be polled.
    pub fn register_foreign(&mut self, fd: RawFd, token: u64) -> io::Result<()> {
        let place = self.foreign.len() as u32;
        self.poll.registry().register(
            &mut SourceFd(&fd),
            Source::Foreign(place).token(),
            Interest::READABLE,
        )?;
        self.foreign.push(Foreign { fd, token });
        Ok(())
    }

    /// Ends [`MioHost::register_foreign`] for `fd`.
    ///
    /// # Errors
    /// When it is not registered.
    pub fn forget_foreign(&mut self, fd: RawFd) -> io::Result<()> {
        self.poll.registry().deregister(&mut SourceFd(&fd))?;
        // The place stays, so that the others keep theirs: registrations are few and long-lived.
        if let Some(gone) = self.foreign.iter_mut().find(|f| f.fd == fd) {
            gone.fd = -1;
        }
        Ok(())
    }
}

impl Host for MioHost {
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        self.wait(until, ready)
    }

    fn connect(&mut self, target: &Target) -> io::Result<StreamId> {
        self.sockets.connect(target)
    }

    fn listen(&mut self, at: &Target) -> io::Result<StreamId> {
        self.sockets.listen(at)
    }

    fn local_addr(&self, stream: StreamId) -> Option<SocketAddr> {
        self.sockets.local_addr(stream)
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        let (bytes, then, stamp) = self.sockets.read(stream, buf)?;
        let at = clock::now();
        let arrived = stamp.and_then(|wall_ns| self.sockets.arrivals.instant(wall_ns, at));
        Ok(ReadOutcome { bytes, at, arrived, then })
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.sockets.write(stream, bufs)
    }

    fn tls_fault(&self, stream: StreamId) -> Option<&str> {
        self.sockets.tls_fault(stream)
    }

    fn close(&mut self, stream: StreamId, how: Close) {
        self.sockets.close(stream, how);
    }

    fn waker(&self) -> Arc<dyn Wake> {
        self.waker.clone()
    }

    fn counts(&self) -> HostCounts {
        let HostStats { polls, reads, writes, wake_ups, guard, .. } = self.stats();
        let slept = (wake_ups.count > 0).then_some(wake_ups);
        HostCounts {
            polls: Some(polls),
            reads: Some(reads),
            writes: Some(writes),
            wake_up_p50: slept.map(|seen| seen.p50),
            wake_up_p99: slept.map(|seen| seen.p99),
            head_start: guard,
        }
    }
}

impl Wake for MioWaker {
    fn wake(&self) {
        // An event descriptor's write fails only on overflow, which mio handles.
        let woken = self.0.wake();
        debug_assert!(woken.is_ok(), "{woken:?}");
    }
}

impl fmt::Debug for MioHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MioHost").field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// Events taken from the kernel at a time; more come with the next poll.
const EVENTS: usize = 1_024;
