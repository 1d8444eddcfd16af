//! What [`MioHost`] does that only the operating system can show: source addresses, socket files, foreign
//! descriptors, peers that are not hosts. The rest is in the conformance suite.

#![allow(clippy::disallowed_types, reason = "the peers are plain sockets")]

use std::io::{IoSlice, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};

use takt_engine::{Close, Host, Ready, StreamId, Target, Then, Woken};
use takt_net::{MioHost, WaitMode};
use takt_time::{Nanos, Span};

struct Rig {
    host: MioHost,
    seen: Vec<Ready>,
}

impl Rig {
    fn new() -> Self {
        Self { host: MioHost::new(WaitMode::Park).expect("a host"), seen: Vec::new() }
    }

    fn next<T>(&mut self, pick: impl Fn(&Ready) -> Option<T>) -> T {
        let limit = self.host.now() + Span::from_secs(20);
        loop {
            if let Some(place) = self.seen.iter().position(|r| pick(r).is_some()) {
                return pick(&self.seen.remove(place)).expect("just picked");
            }
            assert!(self.host.now() < limit, "waited in vain, saw {:?}", self.seen);
            self.host.park(Some(limit), &mut self.seen).expect("park");
        }
    }

    /// A listener on the loopback and its address.
    fn listen(&mut self) -> (StreamId, SocketAddr) {
        let listener =
            self.host.listen(&Target::tcp((Ipv4Addr::LOCALHOST, 0).into())).expect("listen");
        (listener, self.host.local_addr(listener).expect("an address"))
    }

    fn accept(&mut self) -> StreamId {
        self.next(|r| match r {
            Ready::Accepted { stream, .. } => Some(*stream),
            _ => None,
        })
    }

    fn read(&mut self, stream: StreamId) -> (Vec<u8>, Then) {
        self.next(|r| (*r == Ready::Readable(stream)).then_some(()));
        let mut got = Vec::new();
        loop {
            let mut buf = [0; 1_000];
            let outcome = self.host.read(stream, &mut buf).expect("read");
            got.extend_from_slice(&buf[..outcome.bytes]);
            if outcome.then != Then::More {
                return (got, outcome.then);
            }
        }
    }
}

#[test]
fn looks_that_do_not_wait_are_enough_to_see_everything() {
    for mode in [WaitMode::Park, WaitMode::default(), WaitMode::Spin] {
        let mut rig = Rig { host: MioHost::new(mode).unwrap(), seen: Vec::new() };
        let (_, addr) = rig.listen();
        let client = rig.host.connect(&Target::tcp(addr)).unwrap();
        let limit = rig.host.now() + Span::from_secs(20);
        let mut looks = 0;
        while rig.seen.len() < 2 {
            assert!(rig.host.now() < limit, "{mode}: saw {:?}", rig.seen);
            let past = rig.host.now();
            assert_eq!(rig.host.park(Some(past), &mut rig.seen).unwrap(), Woken::Polled);
            looks += 1;
        }
        assert!(rig.seen.contains(&Ready::Connected(client)), "{mode}: saw {:?}", rig.seen);
        assert_eq!(rig.host.stats().polls, looks);
    }
}

#[test]
fn more_connections_than_are_taken_at_a_time_are_all_accepted() {
    // Both ends are descriptors of this process.
    takt_net::limits::raise_open_files().unwrap();
    let mut rig = Rig::new();
    let (_, addr) = rig.listen();
    let peers: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(addr).unwrap()).collect();
    for _ in &peers {
        rig.accept();
    }
    assert_eq!(rig.host.stats().accepted, 300);
}

#[test]
fn a_connection_comes_from_the_source_address_asked_for() {
    let mut rig = Rig::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
    let to = server.local_addr().unwrap();
    let client = rig.host.connect(&Target::Tcp { to, from: Some(from) }).unwrap();
    let (_, peer) = server.accept().unwrap();
    assert_eq!((peer.ip(), Some(peer)), (from, rig.host.local_addr(client)));
}

#[test]
fn a_source_address_that_is_not_ours_is_an_error_of_the_call() {
    let mut rig = Rig::new();
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    for from in ["192.0.2.1", "::1"] {
        let from = Some(from.parse().unwrap());
        assert!(rig.host.connect(&Target::Tcp { to, from }).is_err(), "{from:?}");
        assert!(rig.host.listen(&Target::Tcp { to, from }).is_err(), "{from:?}");
    }
}

#[test]
fn an_address_in_use_cannot_be_listened_at() {
    let mut rig = Rig::new();
    let (_, taken) = rig.listen();
    let error = rig.host.listen(&Target::tcp(taken)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn a_peer_that_has_only_stopped_writing_still_gets_the_answer() {
    let mut rig = Rig::new();
    let (_, addr) = rig.listen();
    let mut peer = TcpStream::connect(addr).unwrap();
    let server = rig.accept();
    peer.write_all(b"request").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let mut got = rig.read(server);
    if got.1 == Then::Drained {
        got.1 = rig.read(server).1;
    }
    assert_eq!(got, (b"request".to_vec(), Then::End));
    assert_eq!(rig.host.write(server, &[IoSlice::new(b"answer")]).unwrap(), 6);
    rig.host.close(server, Close::Orderly);
    let mut answer = String::new();
    peer.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
}

#[test]
fn an_orderly_close_delivers_what_was_written_though_input_was_left_unread() {
    let mut rig = Rig::new();
    let (_, addr) = rig.listen();
    let mut peer = TcpStream::connect(addr).unwrap();
    let server = rig.accept();
    peer.write_all(&[b'?'; 20_000]).unwrap();
    rig.next(|r| (*r == Ready::Readable(server)).then_some(()));
    assert_eq!(rig.host.write(server, &[IoSlice::new(b"no")]).unwrap(), 2);
    rig.host.close(server, Close::Orderly);
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("an end, not a reset");
    assert_eq!(answer, "no");
}

#[test]
fn a_socket_file_that_nobody_listens_on_is_replaced_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut rig = Rig::new();

    let stale = folder.path().join("stale");
    drop(UnixListener::bind(&stale).unwrap());
    let listener = rig.host.listen(&Target::Unix(stale.clone())).unwrap();
    UnixStream::connect(&stale).unwrap();
    rig.host.close(listener, Close::Orderly);
    assert!(!stale.exists(), "the file goes with its listener");

    let live = folder.path().join("live");
    let _other = UnixListener::bind(&live).unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "not a socket").unwrap();
    for taken in [live, text] {
        let error = rig.host.listen(&Target::Unix(taken.clone())).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        assert!(taken.exists());
    }
}

#[test]
fn a_foreign_descriptor_is_told_by_its_token_until_it_is_forgotten() {
    let mut rig = Rig::new();
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    rig.host.register_foreign(ours.as_raw_fd(), 77).unwrap();
    for _ in 0..3 {
        theirs.write_all(b"x").unwrap();
        rig.next(|r| (*r == Ready::Foreign(77)).then_some(()));
        ours.read_exact(&mut [0]).unwrap();
    }
    rig.host.forget_foreign(ours.as_raw_fd()).unwrap();
    theirs.write_all(b"x").unwrap();
    assert_eq!(rig.host.park(Some(Nanos::ZERO), &mut rig.seen).unwrap(), Woken::Polled);
    assert_eq!(rig.seen, []);
    assert!(rig.host.forget_foreign(ours.as_raw_fd()).is_err());
}

#[test]
fn the_host_counts_what_it_does() {
    let mut rig = Rig::new();
    let (_, addr) = rig.listen();
    let client = rig.host.connect(&Target::tcp(addr)).unwrap();
    let server = rig.accept();
    rig.host.write(client, &[IoSlice::new(b"x")]).unwrap();
    assert_eq!(rig.read(server).0, b"x");
    loop {
        // Anew each time: a deadline that has passed meanwhile is only looked at.
        let soon = rig.host.now() + Span::from_millis(1);
        if rig.host.park(Some(soon), &mut rig.seen).unwrap() == Woken::Deadline {
            break;
        }
    }
    let stats = rig.host.stats();
    assert_eq!((stats.connects, stats.accepted, stats.reads, stats.writes), (1, 1, 1, 1));
    assert_eq!(stats.guard, None);
    assert!(stats.wake_ups.count >= 1 && stats.wake_ups.p50 <= stats.wake_ups.max);
    // One that found the connection, one that the timer ended.
    assert!(stats.polls >= 2);
}
