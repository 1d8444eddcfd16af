//! The reference server on the operating system: real sockets, a client of the standard library.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a server on a thread of its own, and blocking clients"
)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use takt_engine::{Remote, System, Target};
use takt_mock::{
    Counts, Event, InstantConfig, Mode, Plan, PlanKey, Server, ServerConfig, ServerMsg,
    TimedConfig, Truth, TruthSink,
};
use takt_net::{MioHost, WaitMode, now};
use takt_time::{Nanos, Span};
use takt_wire::{Limits, Part, ResponseParser};

/// A server on a thread of its own; stopped when it is dropped.
struct Running {
    addr: Option<SocketAddr>,
    counts: Arc<Counts>,
    remote: Remote<ServerMsg>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(server: Server) -> Self {
        let (tell, told) = mpsc::channel();
        let counts = server.counts();
        let server = server.on_listening({
            let tell = tell.clone();
            move |at| tell.send((at.expect("listening"), None)).expect("somebody waits")
        });
        let thread = std::thread::spawn(move || {
            let mut system = System::new(MioHost::new(WaitMode::Park).expect("a host"));
            let capacity = server.mailbox_capacity();
            let addr = system.spawn(server, capacity);
            let remote = system.remote(&addr, 4);
            tell.send((None, Some(remote))).expect("somebody waits");
            system.run().expect("a run");
        });
        let (_, remote) = told.recv().expect("a remote");
        let (addr, _) = told.recv().expect("an address");
        Self { addr, counts, remote: remote.expect("the first message"), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr.expect("TCP")).expect("a connection");
        // A hang becomes a failure.
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let sent = self.remote.send(ServerMsg::Stop);
        let thread = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            sent.expect("room for a message");
            thread.expect("a thread").expect("a server that ended well");
        }
    }
}

fn local(mode: Mode) -> ServerConfig {
    ServerConfig::new(Target::tcp((Ipv4Addr::LOCALHOST, 0).into()), mode)
}

fn post(id: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nX-Request-Id: {id}\r\n\
         Content-Length: {len}\r\n\r\n{body}"
    )
}

/// Reads one answer: its status and body, and when each read returned that had something of the body.
fn read_answer(stream: &mut impl Read) -> (u16, String, Vec<Nanos>) {
    let mut parser = ResponseParser::new(Limits::default());
    let (mut status, mut body, mut ended) = (0, Vec::new(), false);
    let (mut stamps, mut buf) = (Vec::new(), vec![0; 64 << 10]);
    while !ended {
        let len = stream.read(&mut buf).expect("an answer");
        assert_ne!(len, 0, "the server closed before the end of its answer");
        let (at, before) = (now(), body.len());
        let used = parser.feed(&buf[..len], &mut |part| match part {
            Part::Head(head) => status = head.status,
            Part::Body(bytes) => body.extend_from_slice(bytes),
            Part::End => ended = true,
        });
        assert_eq!(used, Ok(len), "nothing was asked for beyond this answer");
        if body.len() > before {
            stamps.push(at);
        }
    }
    (status, String::from_utf8(body).expect("text"), stamps)
}

#[test]
fn many_clients_on_kept_connections_each_get_their_answers() {
    let instant = InstantConfig { tokens: NonZeroU32::new(2).expect("two") };
    let server = Running::start(Server::new(local(Mode::Instant(instant))).expect("a server"));
    let mut clients: Vec<TcpStream> = (0..50).map(|_| server.connect()).collect();
    for round in 0..20 {
        for client in &mut clients {
            client
                .write_all(post(&round.to_string(), r#"{"messages":[]}"#).as_bytes())
                .expect("sent");
        }
        for client in &mut clients {
            let (status, body, _) = read_answer(client);
            assert_eq!(status, 200);
            assert!(body.contains("\"completion_tokens\":2"), "{body}");
        }
    }
    assert_eq!((server.counts.connections(), server.counts.with_status(200)), (50, 1_000));
}

#[test]
fn a_large_request_and_a_client_that_reads_late_are_served() {
    let tokens = NonZeroU32::new(20_000).expect("many");
    let instant = Mode::Instant(InstantConfig { tokens });
    let server = Running::start(Server::new(local(instant)).expect("a server"));
    let mut client = server.connect();
    // More than the socket buffers hold, each way.
    let padding = "x".repeat(8 << 20);
    let body = format!("{{\"prompt\":\"{padding}\",\"stream\":true}}");
    client.write_all(post("large", &body).as_bytes()).expect("sent");
    let (status, body, _) = read_answer(&mut client);
    assert_eq!((status, body.matches("\"content\":\" ").count()), (200, 20_000));
    assert!(body.ends_with("data: [DONE]\n\n"));
}

#[test]
fn unix_sockets_serve_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mock");
    let config =
        ServerConfig::new(Target::Unix(path.clone()), Mode::Instant(InstantConfig::default()));
    let _server = Running::start(Server::new(config).expect("a server"));
    let mut client = UnixStream::connect(path).expect("a connection");
    client.write_all(post("u", r#"{"messages":[]}"#).as_bytes()).expect("sent");
    assert_eq!(read_answer(&mut client).0, 200);
}

/// Truth by id.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Line>>>);

/// A request's id, its arrival and its events.
type Line = (String, Nanos, Vec<Event>);

impl TruthSink for Told {
    fn truth(&mut self, line: &Truth<'_>) {
        let id = String::from_utf8_lossy(line.id.unwrap_or_default()).into_owned();
        self.0.lock().expect("no panic").push((id, line.arrived, line.events.to_vec()));
    }
}

#[test]
fn planned_written_and_read_times_come_in_that_order_on_one_clock() {
    let timed = TimedConfig {
        ttft: "uniform:5ms..20ms".parse().expect("a distribution"),
        tpot: "exp:1ms".parse().expect("a distribution"),
        tokens: "uniform:5..20".parse().expect("a distribution"),
        ..TimedConfig::default()
    };
    let told = Told::default();
    let server = Server::new(local(Mode::Timed(timed.clone()))).expect("a server");
    let server = Running::start(server.with_truth(told.clone()));
    let clients: Vec<_> = (0..8).map(|n| (n.to_string(), server.connect())).collect();
    let clients: Vec<_> = clients
        .into_iter()
        .map(|(id, mut client)| {
            std::thread::spawn(move || {
                let sent = now();
                client
                    .write_all(post(&id, r#"{"messages":[],"stream":true}"#).as_bytes())
                    .expect("sent");
                let (status, body, stamps) = read_answer(&mut client);
                (id, sent, status, body, stamps)
            })
        })
        .collect();
    let read: Vec<_> = clients.into_iter().map(|t| t.join().expect("a client")).collect();
    drop(server);
    let told = told.0.lock().expect("no panic");
    assert_eq!(told.len(), read.len());
    for (id, sent, status, body, stamps) in &read {
        let (_, arrived, events) = told.iter().find(|(told, ..)| told == id).expect("its truth");
        let mut plan = Plan::draw(&timed, PlanKey::Id(id.as_bytes()));
        assert_eq!(*status, 200);
        assert_eq!(body.matches("\"content\":\" ").count(), plan.tokens() as usize);
        assert_eq!(events.len(), plan.tokens() as usize);
        assert!(arrived >= sent);
        let mut gap = plan.ttft();
        let mut before = *arrived;
        for event in events {
            // Service may begin a moment after the arrival, and never before it.
            let planned_gap = event.planned - before;
            assert!(if before == *arrived { planned_gap >= gap } else { planned_gap == gap });
            assert!(event.written >= event.planned, "{event:?}");
            (before, gap) = (event.planned, plan.next_gap());
        }
        // No byte is read before the write that carries it has begun.
        assert!(stamps.last().expect("reads") >= &events.last().expect("events").written);
        assert!(stamps.last().expect("reads").saturating_since(*sent) > Span::from_millis(5));
    }
}
