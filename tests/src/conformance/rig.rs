//! What every case of the suite goes through: one host, driven by its events, and checked at each park.

use std::io::IoSlice;

use takt_engine::{Close, Host, Ready, StreamId, Target, Then, Woken};
use takt_time::{Nanos, Span};

use super::Bench;

/// A host with one listener, and what it has told that no case has asked for yet.
pub(super) struct Rig<H> {
    pub(super) host: H,
    pub(super) listener: StreamId,
    pub(super) at: Target,
    pub(super) reach: Target,
    pub(super) seen: Vec<Ready>,
    closed: Vec<StreamId>,
}

impl<H: Host> Rig<H> {
    pub(super) fn new(bench: &mut impl Bench<H = H>) -> Self {
        let mut host = bench.host();
        let at = bench.door();
        let listener = host.listen(&at).expect("listen");
        let reach = reach(&host, listener, &at);
        Self { host, listener, at, reach, seen: Vec::new(), closed: Vec::new() }
    }

    /// Parks once and checks what holds for every park.
    pub(super) fn park(&mut self, until: Option<Nanos>) -> Woken {
        let already = self.seen.len();
        let before = self.host.now();
        let woken = self.host.park(until, &mut self.seen).expect("park");
        let after = self.host.now();
        assert!(before <= after, "the clock went back");
        let fresh = &self.seen[already..];
        match woken {
            Woken::Deadline => {
                let until = until.expect("no deadline without one");
                assert!(until <= after, "{:?} early", until.saturating_since(after));
            }
            Woken::Readiness => assert!(!fresh.is_empty()),
            Woken::Polled => assert!(until.is_some_and(|at| at <= after)),
            Woken::Remote | Woken::Spurious => {}
        }
        for told in fresh {
            let named = told.stream();
            assert!(
                !self.closed.iter().any(|gone| Some(*gone) == named),
                "{told:?} after its close"
            );
        }
        woken
    }

    /// The first event so far untaken that fits, waiting for it if need be.
    pub(super) fn next(&mut self, what: &str, fits: impl Fn(&Ready) -> bool) -> Ready {
        let limit = self.host.now() + PATIENCE;
        loop {
            if let Some(told) = self.take(&fits) {
                return told;
            }
            assert!(self.host.now() < limit, "waited in vain for {what}, saw {:?}", self.seen);
            self.park(Some(limit));
        }
    }

    /// The first event so far untaken that fits.
    pub(super) fn take(&mut self, fits: impl Fn(&Ready) -> bool) -> Option<Ready> {
        let place = self.seen.iter().position(fits)?;
        Some(self.seen.remove(place))
    }

    pub(super) fn connect(&mut self) -> StreamId {
        let reach = self.reach.clone();
        self.host.connect(&reach).expect("connect")
    }

    pub(super) fn accept(&mut self) -> StreamId {
        let told = self.next("Accepted", |r| matches!(r, Ready::Accepted { .. }));
        let Ready::Accepted { stream, .. } = told else { unreachable!("as asked for") };
        stream
    }

    /// A connection: the client's end and the server's.
    pub(super) fn pair(&mut self) -> (StreamId, StreamId) {
        let client = self.connect();
        self.stands(client);
        (client, self.accept())
    }

    /// Waits until a connection can be written to.
    pub(super) fn stands(&mut self, client: StreamId) {
        self.next("Connected", |r| *r == Ready::Connected(client));
        if let Target::Tls { .. } = self.at {
            self.next(
                "Secured",
                |r| matches!(r, Ready::Secured { stream, .. } if *stream == client),
            );
        }
    }

    /// Writes what fits into an empty socket.
    pub(super) fn send(&mut self, stream: StreamId, bytes: &[u8]) {
        assert_eq!(self.host.write(stream, &[IoSlice::new(bytes)]).expect("write"), bytes.len());
    }

    /// Writes until the socket takes no more, and returns how much it took.
    pub(super) fn fill(&mut self, stream: StreamId, byte: u8) -> usize {
        let piece = vec![byte; 65_536];
        let mut written = 0;
        for _ in 0..FILL_PIECES {
            let taken = self.host.write(stream, &[IoSlice::new(&piece)]).expect("write");
            written += taken;
            if taken < piece.len() {
                return written;
            }
        }
        panic!("a socket that is never full took {written} bytes");
    }

    /// Reads, as events say, until at least `bytes` have come.
    pub(super) fn receive(&mut self, stream: StreamId, bytes: usize) -> Vec<u8> {
        let mut got = Vec::new();
        while got.len() < bytes {
            let then = self.drain(stream, &mut got);
            assert_eq!(then, Then::Drained, "the end after {} of {bytes} bytes", got.len());
        }
        got
    }

    /// Reads, as events say, to the end.
    pub(super) fn receive_all(&mut self, stream: StreamId) -> Vec<u8> {
        let mut got = Vec::new();
        while self.drain(stream, &mut got) != Then::End {}
        got
    }

    /// Waits for `Readable` and reads until nothing more is there now.
    pub(super) fn drain(&mut self, stream: StreamId, into: &mut Vec<u8>) -> Then {
        self.next("Readable", |r| *r == Ready::Readable(stream));
        let mut buf = vec![0; 16_384];
        loop {
            let before = self.host.now();
            let outcome = self.host.read(stream, &mut buf).expect("read");
            assert!(
                before <= outcome.at && outcome.at <= self.host.now(),
                "stamped at {:?}",
                outcome.at
            );
            assert!(outcome.then != Then::End || outcome.bytes == 0);
            into.extend_from_slice(&buf[..outcome.bytes]);
            if outcome.then != Then::More {
                return outcome.then;
            }
        }
    }

    /// Closes, and from then on holds the host to silence about the stream.
    pub(super) fn close(&mut self, stream: StreamId, how: Close) {
        self.host.close(stream, how);
        self.seen.retain(|told| told.stream() != Some(stream));
        self.closed.push(stream);
    }

    /// Parks for a moment; [`Rig::park`] checks that no closed stream is named.
    pub(super) fn assert_silent(&mut self, stream: StreamId) {
        assert!(self.closed.contains(&stream));
        assert!(!self.park_for(self.soon(), |r| r.stream() == Some(stream)));
    }

    /// Parks until an event that fits, which is taken, or until then. Whether there was one.
    pub(super) fn park_for(&mut self, until: Nanos, fits: impl Fn(&Ready) -> bool) -> bool {
        while self.host.now() < until {
            self.park(Some(until));
            if self.take(&fits).is_some() {
                return true;
            }
        }
        false
    }

    pub(super) fn park_until_remote(&mut self, limit: Option<Nanos>) {
        for _ in 0..FALSE_STARTS {
            match self.park(limit) {
                Woken::Remote => return,
                Woken::Spurious => {}
                other => panic!("{other:?} in place of the wake-up"),
            }
        }
        panic!("woken {FALSE_STARTS} times for nothing");
    }

    /// Parks again after early wake-ups until the deadline is told.
    pub(super) fn park_to_the_end(&mut self, until: Nanos) {
        for _ in 0..FALSE_STARTS {
            match self.park(Some(until)) {
                // It may have passed before the park had a look at the clock.
                Woken::Deadline | Woken::Polled => return,
                Woken::Remote | Woken::Spurious => {}
                Woken::Readiness => panic!("{:?}", self.seen),
            }
        }
        panic!("woken {FALSE_STARTS} times for nothing");
    }

    /// A moment in which a host that has something to say would have said it.
    pub(super) fn soon(&self) -> Nanos {
        self.host.now() + Span::from_millis(2)
    }
}

/// Where to connect to so as to arrive at `listener`.
pub(super) fn reach(host: &impl Host, listener: StreamId, at: &Target) -> Target {
    match (host.local_addr(listener), at) {
        (Some(to), Target::Tls { from, layer, .. }) => {
            Target::Tls { to, from: *from, layer: layer.clone() }
        }
        (Some(to), Target::Tcp { .. } | Target::Unix(_)) => Target::tcp(to),
        (None, _) => at.clone(),
    }
}

/// By the host's clock: how long anything may take before a case gives up.
pub(super) const PATIENCE: Span = Span::from_secs(10);
/// Early wake-ups in a row that are still taken for harmless.
const FALSE_STARTS: usize = 100;
/// 64 MiB: no socket buffer holds that.
const FILL_PIECES: usize = 1_024;
