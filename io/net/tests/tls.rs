//! TLS between [`MioHost`] and peers that are not hosts: how ends are told apart, what is resumed, what a
//! stranger's bytes do.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "the peers are plain sockets, in threads of their own"
)]

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use takt_engine::{Close, Host, Ready, StreamId, Target, Then, TlsLayer};
use takt_net::tls::{BlockingTls, ClientOptions, ClientTls, ServerOptions, ServerTls};
use takt_net::{MioHost, WaitMode};
use takt_time::Span;

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls")).join(name)
}

fn client() -> ClientTls {
    let options = ClientOptions { ca: Some(file("ca.pem")), ..ClientOptions::default() };
    ClientTls::new(&options).expect("a client")
}

struct Rig {
    host: MioHost,
    seen: Vec<Ready>,
}

impl Rig {
    /// A host with a client's configuration and a server's, both number 0.
    fn new() -> Self {
        let mut host = MioHost::new(WaitMode::Park).expect("a host");
        host.add_client_tls(client());
        let server =
            ServerOptions { cert: file("server.pem"), key: file("server.key"), client_ca: None };
        host.add_server_tls(ServerTls::new(&server).expect("a server"));
        Self { host, seen: Vec::new() }
    }

    fn connect(&mut self, to: SocketAddr) -> StreamId {
        self.host.connect(&secured(to)).expect("connect")
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

    /// Whether the handshake was resumed.
    fn secured(&mut self, stream: StreamId) -> bool {
        self.next(|r| match r {
            Ready::Secured { stream: s, resumed } if *s == stream => Some(*resumed),
            Ready::Closed(s, kind) if *s == stream => panic!("closed: {kind}"),
            _ => None,
        })
    }

    /// Reads to the end, whichever it is.
    fn read_all(&mut self, stream: StreamId) -> (Vec<u8>, Result<(), ErrorKind>) {
        let mut got = Vec::new();
        loop {
            self.next(|r| (*r == Ready::Readable(stream)).then_some(()));
            loop {
                let mut buf = [0; 1_000];
                match self.host.read(stream, &mut buf) {
                    Err(error) => return (got, Err(error.kind())),
                    Ok(outcome) => {
                        got.extend_from_slice(&buf[..outcome.bytes]);
                        match outcome.then {
                            Then::More => {}
                            Then::Drained => break,
                            Then::End => return (got, Ok(())),
                        }
                    }
                }
            }
        }
    }
}

fn secured(to: SocketAddr) -> Target {
    Target::Tls { to, from: None, layer: TlsLayer { config: 0, name: "localhost".into() } }
}

type Peer = StreamOwned<ServerConnection, TcpStream>;

/// A server of `connections` connections in a thread, one after another.
fn peer(
    connections: usize,
    act: impl Fn(&mut Peer) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        for _ in 0..connections {
            let (tcp, _) = listener.accept().unwrap();
            tcp.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            act(&mut StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), tcp));
        }
    });
    (address, thread)
}

#[test]
fn an_end_that_tls_announced_is_an_end_and_any_other_is_a_cut() {
    for polite in [true, false] {
        let (address, thread) = peer(1, move |peer| {
            peer.write_all(b"to the end").unwrap();
            if polite {
                peer.conn.send_close_notify();
            }
            peer.flush().unwrap();
            peer.sock.shutdown(Shutdown::Write).unwrap();
            // Until the other side has gone as well.
            let _ = peer.sock.read(&mut [0; 16]);
        });
        let mut rig = Rig::new();
        let stream = rig.connect(address);
        assert!(!rig.secured(stream));
        let (got, end) = rig.read_all(stream);
        assert_eq!(got, b"to the end");
        assert_eq!(end, if polite { Ok(()) } else { Err(ErrorKind::UnexpectedEof) });
        assert_eq!(rig.host.tls_fault(stream), None, "nothing is wrong with its TLS");
        rig.host.close(stream, Close::Orderly);
        thread.join().unwrap();
    }
}

#[test]
fn a_close_says_goodbye_behind_everything_that_was_written() {
    let mut rig = Rig::new();
    let listener = rig.host.listen(&secured((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
    let address = rig.host.local_addr(listener).unwrap();
    let reader = std::thread::spawn(move || {
        let tcp = TcpStream::connect(address).unwrap();
        let mut tls =
            BlockingTls::secure(tcp, &client(), "localhost", Duration::from_secs(20)).unwrap();
        // So that the server's socket is full when it closes.
        std::thread::yield_now();
        let mut got = Vec::new();
        // Without a goodbye this is an error.
        tls.read_to_end(&mut got).unwrap();
        got
    });
    let stream = rig.next(|r| match r {
        Ready::Accepted { stream, .. } => Some(*stream),
        _ => None,
    });
    let piece = vec![7; 1 << 20];
    let mut sent = 0;
    loop {
        let written = rig.host.write(stream, &[IoSlice::new(&piece)]).unwrap();
        sent += written;
        if written < piece.len() {
            break;
        }
    }
    rig.host.close(stream, Close::Orderly);
    while !reader.is_finished() {
        let soon = rig.host.now() + Span::from_millis(1);
        rig.host.park(Some(soon), &mut rig.seen).unwrap();
    }
    let got = reader.join().unwrap();
    assert_eq!(got.len(), sent);
    assert!(got.iter().all(|byte| *byte == 7));
}

#[test]
fn the_second_connection_resumes_the_session_of_the_first() {
    let (address, thread) = peer(2, |peer| {
        peer.write_all(b"x").unwrap();
        peer.conn.send_close_notify();
        peer.flush().unwrap();
        let _ = peer.read(&mut [0; 16]);
    });
    let mut rig = Rig::new();
    for resumed in [false, true] {
        let stream = rig.connect(address);
        assert_eq!(rig.secured(stream), resumed);
        // The ticket comes behind the handshake.
        assert_eq!(rig.read_all(stream), (b"x".to_vec(), Ok(())));
        rig.host.close(stream, Close::Orderly);
    }
    thread.join().unwrap();
    assert_eq!((rig.host.stats().secured, rig.host.stats().resumed), (2, 1));
}

#[test]
fn c10_a_server_of_another_name_is_told_of_with_both_names() {
    let (address, thread) = peer(1, |peer| {
        assert!(peer.read(&mut [0; 16]).is_err());
    });
    let mut rig = Rig::new();
    let layer = TlsLayer { config: 0, name: "other.example".into() };
    let target = Target::Tls { to: address, from: None, layer };
    let stream = rig.host.connect(&target).unwrap();
    let kind = rig.next(|r| match r {
        Ready::Closed(s, kind) if *s == stream => Some(*kind),
        _ => None,
    });
    assert_eq!(kind, ErrorKind::InvalidData);
    let fault = rig.host.tls_fault(stream).expect("words").to_owned();
    for part in ["localhost", "not for other.example", "--insecure"] {
        assert!(fault.contains(part), "{fault}");
    }
    rig.host.close(stream, Close::Orderly);
    thread.join().unwrap();
}

#[test]
fn strangers_at_a_door_with_tls_are_sent_away_and_counted() {
    let mut rig = Rig::new();
    let listener = rig.host.listen(&secured((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
    let address = rig.host.local_addr(listener).unwrap();
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"", &[0x16, 3, 1, 255, 255, 0, 0]] {
        let before = rig.host.stats().not_secured;
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(words).unwrap();
        stranger.shutdown(Shutdown::Write).unwrap();
        let limit = rig.host.now() + Span::from_secs(20);
        while rig.host.stats().not_secured == before {
            assert!(rig.host.now() < limit, "{words:?} was not sent away");
            let soon = rig.host.now() + Span::from_millis(1);
            rig.host.park(Some(soon), &mut rig.seen).unwrap();
        }
    }
    assert!(rig.seen.is_empty(), "nobody has heard of them: {:?}", rig.seen);
}

#[test]
fn a_record_that_is_not_what_was_sent_is_an_error_with_words() {
    let (address, thread) = peer(1, |peer| {
        peer.write_all(b"good").unwrap();
        // An application record whose bytes are nobody's.
        peer.sock.write_all(&[0x17, 3, 3, 0, 32]).unwrap();
        peer.sock.write_all(&[9; 32]).unwrap();
        let _ = peer.sock.read(&mut [0; 64]);
        let _ = peer.sock.read(&mut [0; 64]);
    });
    let mut rig = Rig::new();
    let stream = rig.connect(address);
    rig.secured(stream);
    assert_eq!(rig.read_all(stream), (b"good".to_vec(), Err(ErrorKind::InvalidData)));
    assert!(rig.host.tls_fault(stream).is_some());
    // It says so as often as it is asked, and takes nothing more.
    assert!(rig.host.read(stream, &mut [0; 8]).is_err());
    assert!(rig.host.write(stream, &[IoSlice::new(b"x")]).is_err());
    rig.host.close(stream, Close::Orderly);
    thread.join().unwrap();
}

#[test]
fn configurations_that_are_not_there_and_names_that_are_none_are_no_attempts() {
    let mut rig = Rig::new();
    let to = (Ipv4Addr::LOCALHOST, 1).into();
    for (config, name) in [(7, "localhost"), (0, "not a name")] {
        let layer = TlsLayer { config, name: name.into() };
        let target = Target::Tls { to, from: None, layer };
        let error = rig.host.connect(&target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
    }
    let layer = TlsLayer { config: 7, name: "".into() };
    assert!(rig.host.listen(&Target::Tls { to, from: None, layer }).is_err());
}
