//! What the tests share: a host whose clock and sockets are variables, and our own client side to read
//! answers with.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use takt_engine::{
    Addr, Close, Host, ReadOutcome, Ready, StreamId, System, Target, Then, Wake, Woken,
};
use takt_time::Nanos;
use takt_wire::{ContentType, Limits, Part, ResponseParser};

use crate::config::{InstantConfig, Mode, ServerConfig, TimedConfig};
use crate::counts::Counts;
use crate::distribution::CountDistribution;
use crate::server::{Server, ServerMsg};

/// Nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const STREAM: &str = r#"{"stream":true}"#;

fn config(mode: Mode) -> ServerConfig {
    ServerConfig::new(Target::tcp(([127, 0, 0, 1], 0).into()), mode)
}

pub(crate) fn instant() -> ServerConfig {
    config(Mode::Instant(InstantConfig::default()))
}

/// First token after 20 ms, then two more every 5 ms, with changes.
pub(crate) fn timed(change: impl FnOnce(&mut TimedConfig)) -> ServerConfig {
    let mut timed = TimedConfig {
        ttft: "20ms".parse().unwrap(),
        tpot: "5ms".parse().unwrap(),
        tokens: CountDistribution::fixed(3),
        ..TimedConfig::default()
    };
    change(&mut timed);
    config(Mode::Timed(timed))
}

pub(crate) fn rig(config: ServerConfig) -> Rig {
    Rig::new(Server::new(config).unwrap())
}

/// A request; an object without what its route must be told gets that, too.
pub(crate) fn post(path: &str, extra: &str, body: &str) -> String {
    let needed = match path {
        CHAT => "messages",
        "/v1/completions" => "prompt",
        "/v1/responses" | "/v1/embeddings" => "input",
        "/generate" => "text",
        _ => "",
    };
    match body.strip_suffix('}') {
        Some(rest) if !needed.is_empty() && !body.contains(&format!("\"{needed}\"")) => {
            let comma = if rest == "{" { "" } else { "," };
            post_as_is(path, extra, &format!("{rest}{comma}\"{needed}\":[]}}"))
        }
        _ => post_as_is(path, extra, body),
    }
}

pub(crate) fn post_as_is(path: &str, extra: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\n{extra}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// An answer as a client reads it.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) status: u16,
    pub(crate) streamed: bool,
    pub(crate) keep_alive: bool,
    pub(crate) body: String,
    pub(crate) complete: bool,
}

impl Read {
    /// The data of each event.
    pub(crate) fn events(&self) -> Vec<String> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.map(str::to_owned).collect()
    }
}

/// The answers in `wire`, to requests that were not HEAD.
pub(crate) fn read_answers(mut wire: &[u8]) -> Vec<Read> {
    let mut answers = Vec::new();
    while !wire.is_empty() {
        let mut parser = ResponseParser::new(Limits::default());
        let mut read = Read::default();
        let used = parser.feed(wire, &mut |part| match part {
            Part::Head(head) => {
                read.status = head.status;
                read.streamed = head.content_type == ContentType::EventStream;
                read.keep_alive = head.keep_alive;
            }
            Part::Body(bytes) => read.body.push_str(std::str::from_utf8(bytes).unwrap()),
            Part::End => read.complete = true,
        });
        wire = &wire[used.unwrap()..];
        answers.push(read);
    }
    answers
}

/// A client's end of a connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    stream: StreamId,
    to_server: VecDeque<u8>,
    ended: bool,
    broken: bool,
    /// It breaks behind the next read.
    breaks: bool,
    /// Bytes that the socket takes until the client reads.
    room: usize,
    was_full: bool,
    /// Each write: its instant, and its bytes.
    pub(crate) writes: Vec<(Nanos, Vec<u8>)>,
    pub(crate) closed: Option<(Nanos, Close)>,
}

#[derive(Debug, Default)]
struct World {
    now: Nanos,
    /// The clock stops here.
    limit: Nanos,
    at_limit: bool,
    pipes: Vec<Pipe>,
    /// Whether each read or write so far was a write.
    calls: Vec<bool>,
    events: Vec<Ready>,
    deaf: bool,
}

struct TestHost(Rc<RefCell<World>>);

/// A server in a world of its own.
pub(crate) struct Rig {
    world: Rc<RefCell<World>>,
    system: System<TestHost>,
    server: Addr<ServerMsg>,
    pub(crate) counts: Arc<Counts>,
}

impl Rig {
    pub(crate) fn new(server: Server) -> Self {
        Self::build(server, false)
    }

    /// On a machine where nothing can listen.
    pub(crate) fn deaf(server: Server) -> Self {
        Self::build(server, true)
    }

    fn build(server: Server, deaf: bool) -> Self {
        let world = Rc::new(RefCell::new(World { deaf, ..World::default() }));
        let mut system = System::new(TestHost(world.clone()));
        let (counts, capacity) = (server.counts(), server.mailbox_capacity());
        let server = system.spawn(server, capacity);
        let mut rig = Self { world, system, server, counts };
        rig.run_to(0);
        rig
    }

    pub(crate) fn tell(&self, msg: ServerMsg) {
        self.server.send(msg);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.system.is_stopped()
    }

    /// Runs until the clock shows `ns` and nothing is left to do.
    pub(crate) fn run_to(&mut self, ns: u64) {
        {
            let mut world = self.world.borrow_mut();
            (world.limit, world.at_limit) = (Nanos::from_nanos(ns), false);
        }
        while !self.world.borrow().at_limit && !self.system.is_stopped() {
            self.system.turn().unwrap();
        }
    }

    /// A new connection, by its number.
    pub(crate) fn connect(&mut self) -> usize {
        let mut world = self.world.borrow_mut();
        let number = world.pipes.len();
        let stream = StreamId::new(number as u32 + 1, 0);
        world.pipes.push(Pipe {
            stream,
            to_server: VecDeque::new(),
            ended: false,
            broken: false,
            breaks: false,
            room: usize::MAX,
            was_full: false,
            writes: Vec::new(),
            closed: None,
        });
        world.events.push(Ready::Accepted { listener: LISTENER, stream });
        number
    }

    pub(crate) fn send(&mut self, number: usize, bytes: impl AsRef<[u8]>) {
        self.touch(number, |pipe| pipe.to_server.extend(bytes.as_ref()));
    }

    /// The client ends its side.
    pub(crate) fn end(&mut self, number: usize) {
        self.touch(number, |pipe| pipe.ended = true);
    }

    /// The client resets.
    pub(crate) fn reset(&mut self, number: usize) {
        self.touch(number, |pipe| pipe.broken = true);
    }

    /// The client resets behind the next read.
    pub(crate) fn reset_when_read(&mut self, number: usize) {
        self.touch(number, |pipe| pipe.breaks = true);
    }

    /// Of each read and write so far, whether it was a write.
    pub(crate) fn calls(&self) -> Vec<bool> {
        self.world.borrow().calls.clone()
    }

    /// The socket takes `room` bytes from now on.
    pub(crate) fn give_room(&mut self, number: usize, room: usize) {
        let mut world = self.world.borrow_mut();
        let pipe = &mut world.pipes[number];
        pipe.room = room;
        if std::mem::take(&mut pipe.was_full) {
            let stream = pipe.stream;
            world.events.push(Ready::Writable(stream));
        }
    }

    pub(crate) fn with<R>(&self, number: usize, look: impl FnOnce(&Pipe) -> R) -> R {
        look(&self.world.borrow().pipes[number])
    }

    /// Everything that came back.
    pub(crate) fn received(&self, number: usize) -> Vec<u8> {
        self.with(number, |pipe| pipe.writes.iter().flat_map(|(_, bytes)| bytes.clone()).collect())
    }

    pub(crate) fn answers(&self, number: usize) -> Vec<Read> {
        read_answers(&self.received(number))
    }

    fn touch(&mut self, number: usize, change: impl FnOnce(&mut Pipe)) {
        let mut world = self.world.borrow_mut();
        let pipe = &mut world.pipes[number];
        change(pipe);
        let stream = pipe.stream;
        world.events.push(Ready::Readable(stream));
    }
}

impl World {
    fn pipe(&mut self, stream: StreamId) -> io::Result<&mut Pipe> {
        let pipe = self.pipes.iter_mut().find(|pipe| pipe.stream == stream).unwrap();
        assert_eq!(pipe.closed, None, "{stream:?} is used after it was closed");
        if pipe.broken { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(pipe) }
    }
}

impl Host for TestHost {
    fn now(&self) -> Nanos {
        self.0.borrow().now
    }

    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        let world = &mut *self.0.borrow_mut();
        if !world.events.is_empty() {
            ready.append(&mut world.events);
            return Ok(Woken::Readiness);
        }
        let until = until.unwrap_or(Nanos::MAX);
        if until <= world.now {
            return Ok(Woken::Polled);
        }
        world.at_limit = until > world.limit;
        world.now = until.min(world.limit).max(world.now);
        Ok(if world.at_limit { Woken::Spurious } else { Woken::Deadline })
    }

    fn connect(&mut self, _: &Target) -> io::Result<StreamId> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn listen(&mut self, _: &Target) -> io::Result<StreamId> {
        if self.0.borrow().deaf { Err(io::ErrorKind::AddrInUse.into()) } else { Ok(LISTENER) }
    }

    fn local_addr(&self, _: StreamId) -> Option<SocketAddr> {
        Some(([127, 0, 0, 1], 8_000).into())
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        let world = &mut *self.0.borrow_mut();
        let at = world.now;
        world.calls.push(false);
        let pipe = world.pipe(stream)?;
        pipe.broken = pipe.breaks;
        let bytes = buf.len().min(pipe.to_server.len());
        for (place, byte) in buf.iter_mut().zip(pipe.to_server.drain(..bytes)) {
            *place = byte;
        }
        let then = match (pipe.to_server.is_empty(), pipe.ended) {
            (true, true) => Then::End,
            (true, false) => Then::Drained,
            (false, _) => Then::More,
        };
        Ok(ReadOutcome { bytes, at, arrived: None, then })
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let world = &mut *self.0.borrow_mut();
        let now = world.now;
        world.calls.push(true);
        let pipe = world.pipe(stream)?;
        let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.to_vec()).collect();
        let taken = bytes.len().min(pipe.room);
        pipe.room -= taken;
        pipe.was_full = taken < bytes.len();
        if taken > 0 {
            pipe.writes.push((now, bytes[..taken].to_vec()));
        }
        Ok(taken)
    }

    fn close(&mut self, stream: StreamId, how: Close) {
        let world = &mut *self.0.borrow_mut();
        let now = world.now;
        let Some(pipe) = world.pipes.iter_mut().find(|pipe| pipe.stream == stream) else {
            return assert_eq!(stream, LISTENER);
        };
        assert_eq!(pipe.closed, None, "{stream:?} is closed twice");
        pipe.closed = Some((now, how));
    }

    fn waker(&self) -> Arc<dyn Wake> {
        struct Nobody;
        impl Wake for Nobody {
            fn wake(&self) {}
        }
        Arc::new(Nobody)
    }
}

const LISTENER: StreamId = StreamId::new(0, 0);
