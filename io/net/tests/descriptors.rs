//! What happens when descriptors run out. In a process of its own, whose limit it lowers.

#![allow(clippy::disallowed_types, reason = "the peers are plain sockets")]

use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use takt_engine::{Close, Host, Ready, StreamId, Target};
use takt_net::{MioHost, WaitMode};
use takt_time::Span;

/// More than the process may open.
const LIMIT: u64 = 64;

#[test]
fn a_listener_without_descriptors_pauses_and_goes_on_when_there_are_some() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let mut host = MioHost::new(WaitMode::Park).unwrap();
    let listener = host.listen(&Target::tcp((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
    let addr = host.local_addr(listener).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(LIMIT), maximum }).unwrap();

    // Peers take every descriptor but one, so that of the connections only the first is accepted.
    let mut peers: Vec<TcpStream> = std::iter::from_fn(|| TcpStream::connect(addr).ok()).collect();
    drop(peers.pop());
    let first = accepted(&mut host, 5);
    assert_eq!(first.len(), 1);
    let stats = host.stats();
    assert!(stats.accepts_paused >= 1);
    // It tries once a pause, which is as long as each of these parks.
    assert!(stats.accepts_paused <= 10, "{stats:?}");
    let error = host.connect(&Target::tcp(addr)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));

    // A descriptor that the host itself gives back is used at once, with no pause.
    host.close(first[0], Close::Orderly);
    assert_eq!(accepted(&mut host, 1).len(), 1);
    // One that comes free elsewhere is found after the pause. The peer that was dropped had connected
    // too, and two are accepted already.
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    assert_eq!(accepted(&mut host, 50).len(), peers.len() + 1 - 2);
    assert_reachable(&mut host, addr);
}

/// The streams accepted within so many parks of at most 10 ms.
fn accepted(host: &mut MioHost, parks: usize) -> Vec<StreamId> {
    let mut ready = Vec::new();
    for _ in 0..parks {
        let limit = host.now() + Span::from_millis(10);
        host.park(Some(limit), &mut ready).expect("park");
    }
    let streams = ready.iter().filter_map(|r| match r {
        Ready::Accepted { stream, .. } => Some(*stream),
        _ => None,
    });
    streams.collect()
}

fn assert_reachable(host: &mut MioHost, addr: SocketAddr) {
    let _peer = TcpStream::connect(addr).expect("connect");
    assert_eq!(accepted(host, 5).len(), 1);
}
