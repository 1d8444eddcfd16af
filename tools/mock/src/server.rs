//! The server as an actor.
//!
//! One buffer for reading and one for writing serve all connections; a connection keeps bytes of its own
//! only while a socket is full or a request waits behind another. What several requests in one read are
//! answered with leaves in one write.
//!
//! A connection's answers leave in the order of its requests, so it has one generation under way at most,
//! and nothing of what comes behind it is parsed before that is done. Slots are given first come first
//! served. A client that ends its side still gets its answers; one that resets gets its slot taken.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;

use takt_engine::{Actor, Close, Context, Ready, StreamId, Then};
use takt_time::{Nanos, Span};
use takt_wire::{CONTINUE, RequestParser, Step};

use crate::config::{ConfigError, Mode, ServerConfig};
use crate::connection::{Connection, Connections, Job, Service, Stage};
use crate::counts::Counts;
use crate::page::Page;
use crate::site::{Reply, Site, misread};
use crate::truth::TruthSink;

/// The reference server. Spawn it with a mailbox of [`Server::mailbox_capacity`].
pub struct Server {
    config: ServerConfig,
    site: Site,
    counts: Arc<Counts>,
    connections: Connections,
    sink: Option<Box<dyn TruthSink>>,
    told: Option<Told>,
    /// Requests so far.
    requests: u64,
    running: usize,
    /// Connections whose job waits for a slot.
    waiting: VecDeque<StreamId>,
    /// A message to admit them is under way.
    admitting: bool,
    /// What was read last.
    buf: Vec<u8>,
    /// What is written next.
    out: Vec<u8>,
    /// Room to make JSON in.
    data: Vec<u8>,
}

type Told = Box<dyn FnOnce(io::Result<SocketAddr>)>;

/// What a server is told.
#[derive(Debug)]
pub enum ServerMsg {
    /// Reset all connections and stop the system.
    Stop,
    /// What it leaves for itself.
    Own(Own),
}

/// What a server leaves for itself. Nobody else can make one.
#[derive(Debug)]
pub struct Own(Task);

#[derive(Clone, Copy, Debug)]
enum Task {
    /// The next part of the connection's answer is due.
    Due(StreamId),
    /// Go on with what the connection has sent.
    ReadOn(StreamId),
    /// Close it.
    Leave(StreamId),
    /// Give free slots to those who wait.
    Admit,
}

type Cx<'a> = Context<'a, Server>;

impl Server {
    /// A server by `config`.
    ///
    /// # Errors
    /// When the configuration cannot be served.
    pub fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        if let Mode::Timed(timed) = &config.mode {
            timed.check()?;
        }
        let site = Site::new(&config);
        Ok(Self {
            counts: site.counts.clone(),
            site,
            config,
            connections: Connections::default(),
            sink: None,
            told: None,
            requests: 0,
            running: 0,
            waiting: VecDeque::new(),
            admitting: false,
            buf: vec![0; READ_LEN],
            out: Vec::with_capacity(READ_LEN),
            data: Vec::with_capacity(1024),
        })
    }

    /// Hands the truth about each request to `sink`. Without a sink nothing is stamped or kept for it.
    #[must_use]
    pub fn with_truth(mut self, sink: Box<dyn TruthSink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Calls `told` with the address once the server listens (the port that was chosen for port 0), or
    /// with the error because of which it does not; then the system is stopped. A unix socket has no
    /// such address: `told` gets the unspecified one.
    #[must_use]
    pub fn on_listening(mut self, told: impl FnOnce(io::Result<SocketAddr>) + 'static) -> Self {
        self.told = Some(Box::new(told));
        self
    }

    /// What the server counts, to be looked at from anywhere.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Messages that its mailbox must hold: one that it leaves for itself for each connection, and a few
    /// from outside.
    #[must_use]
    pub fn mailbox_capacity(&self) -> usize {
        self.config.connections_max + 16
    }

    fn accept(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        if self.connections.open() >= self.config.connections_max {
            self.counts.was_reset();
            cx.close(stream, Close::Reset);
            return;
        }
        self.connections.insert(stream, self.config.limits, self.sink.is_some());
        self.counts.opened();
    }

    /// Reads until the socket is drained, or for so long that others should have a turn.
    fn read_on(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        for _ in 0..READS_MAX {
            let Some(connection) = self.connections.get(stream) else { return };
            connection.unread = connection.input.len() >= INPUT_MAX;
            if connection.unread {
                return;
            }
            let Ok(outcome) = cx.read(stream, &mut self.buf) else {
                return self.drop_connection(stream, Close::Reset, cx);
            };
            if outcome.bytes > 0 {
                self.take_in(stream, outcome.bytes, outcome.at, cx);
            }
            match outcome.then {
                Then::More => {}
                Then::Drained => return,
                Then::End => {
                    if let Some(connection) = self.connections.get(stream) {
                        connection.peer_ended = true;
                    }
                    return;
                }
            }
        }
        self.read_later(stream, cx);
    }

    fn read_later(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        if let Some(connection) = self.connections.get(stream)
            && !std::mem::replace(&mut connection.soon, true)
        {
            cx.call_soon(Task::ReadOn(stream).into());
        }
    }

    /// Deals with the first `len` bytes of the buffer, which were read at `at`.
    #[inline]
    fn take_in(&mut self, stream: StreamId, len: usize, at: Nanos, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.stage != Stage::Open {
            return;
        }
        if connection.is_busy() || !connection.input.is_empty() {
            connection.input.extend_from_slice(&self.buf[..len]);
            return;
        }
        let buf = std::mem::take(&mut self.buf);
        let used = self.serve(stream, &buf[..len], at, cx);
        if used < len
            && let Some(connection) = self.connections.get(stream)
        {
            connection.input.extend_from_slice(&buf[used..len]);
        }
        self.buf = buf;
    }

    /// Serves what was read earlier and had to wait.
    fn serve_input(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.is_busy() || connection.input.is_empty() {
            return;
        }
        let mut input = std::mem::take(&mut connection.input);
        let used = self.serve(stream, &input, cx.now(), cx);
        if let Some(connection) = self.connections.get(stream) {
            input.drain(..used);
            connection.input = input;
        }
    }

    /// Looks, at the end of a call, whether a connection waits for something that no event will bring.
    #[inline]
    fn rest(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.is_busy() {
            return;
        }
        if !connection.input.is_empty() || connection.unread {
            self.read_later(stream, cx);
        } else if connection.peer_ended {
            self.drop_connection(stream, Close::Orderly, cx);
        }
    }

    /// Answers requests until the bytes are used or one has to wait; gives the number of bytes used.
    fn serve(&mut self, stream: StreamId, bytes: &[u8], at: Nanos, cx: &mut Cx<'_>) -> usize {
        let Some(connection) = self.connections.get(stream) else { return bytes.len() };
        let Connection { parser, output, job, ledger, stage, .. } = connection;
        let mut page = Page {
            out: &mut self.out,
            data: &mut self.data,
            held: output.len(),
            ledger: ledger.as_deref_mut(),
            counts: &self.counts,
        };
        let (mut used, mut large) = (0, false);
        while *stage == Stage::Open && job.is_none() && page.out.len() < OUT_MAX {
            match parser.next(&bytes[used..]) {
                Ok(Step::Request { used: more, request }) => {
                    used += more;
                    if let Some(ledger) = &mut page.ledger {
                        ledger.arrived(self.requests, &request, at);
                    }
                    self.requests += 1;
                    large = request.body.len() > KEPT_BODY_MAX;
                    match self.site.answer(&request, &mut page) {
                        Reply::Written => {
                            if !request.keep_alive || self.config.close_after.is_some() {
                                *stage = Stage::Leaving;
                            }
                        }
                        Reply::Generate(generation) => {
                            let service = Service::Waiting;
                            *job = Some(Box::new(Job { generation, service, timer: None }));
                        }
                    }
                }
                Ok(Step::Continue { used: more }) => {
                    used += more;
                    page.out.extend_from_slice(CONTINUE);
                }
                Ok(Step::More) => {
                    used = bytes.len();
                    break;
                }
                Err(error) => {
                    misread(error, &mut page);
                    *stage = Stage::Leaving;
                }
            }
        }
        if large {
            // The parser would keep the room of a large body for as long as the connection lives.
            *parser = RequestParser::new(self.config.limits);
        }
        if *stage != Stage::Open {
            used = bytes.len();
        }
        let generates = job.is_some();
        self.flush(stream, cx);
        if generates {
            self.queue(stream, at, cx);
        }
        used
    }

    /// Gives the connection's job a slot, or a place in the queue.
    fn queue(&mut self, stream: StreamId, at: Nanos, cx: &mut Cx<'_>) {
        if self.connections.get(stream).is_none() {
            return;
        }
        if self.waiting.is_empty() && self.running < self.site.slots() {
            self.start(stream, at, cx);
        } else {
            self.waiting.push_back(stream);
            self.counts.in_service(self.running, self.waiting.len());
        }
    }

    /// Gives free slots to those who wait.
    fn admit(&mut self, cx: &mut Cx<'_>) {
        self.admitting = false;
        while self.running < self.site.slots() {
            let Some(stream) = self.waiting.pop_front() else { return };
            self.start(stream, cx.now(), cx);
            self.rest(stream, cx);
        }
    }

    /// Begins the service of the connection's job.
    fn start(&mut self, stream: StreamId, at: Nanos, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        let Some(job) = &mut connection.job else { return };
        job.service = Service::Running;
        self.running += 1;
        self.counts.in_service(self.running, self.waiting.len());
        let mut page = Page {
            out: &mut self.out,
            data: &mut self.data,
            held: connection.output.len(),
            ledger: connection.ledger.as_deref_mut(),
            counts: &self.counts,
        };
        job.generation.begin(at, &self.site.names, &mut page);
        self.go_on(stream, cx);
    }

    /// Writes what is due of the connection's answer and arms the timer for what is not.
    fn go_on(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        let Some(job) = &mut connection.job else { return };
        let mut page = Page {
            out: &mut self.out,
            data: &mut self.data,
            held: connection.output.len(),
            ledger: connection.ledger.as_deref_mut(),
            counts: &self.counts,
        };
        job.generation.advance(cx.now(), BACKLOG_MAX, &self.site.names, &mut page);
        job.timer = None;
        if job.generation.is_done() && job.service == Service::Running {
            job.service = Service::Served;
            if !job.generation.keep_alive || self.config.close_after.is_some() {
                connection.stage = Stage::Leaving;
            }
            self.free_slot(cx);
        }
        self.flush(stream, cx);
        let Some(connection) = self.connections.get(stream) else { return };
        let Some(job) = &mut connection.job else { return };
        // A client that reads too slowly is gone on with when it has taken all that is held.
        if connection.output.len() <= BACKLOG_MAX
            && let Some(at) = job.generation.next_at()
        {
            job.timer = Some(cx.call_at(at, Task::Due(stream).into()));
        }
    }

    fn free_slot(&mut self, cx: &mut Cx<'_>) {
        self.running -= 1;
        self.counts.in_service(self.running, self.waiting.len());
        if !self.waiting.is_empty() && !std::mem::replace(&mut self.admitting, true) {
            cx.call_soon(Task::Admit.into());
        }
    }

    /// Writes what is on the page, behind what is held.
    fn flush(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return self.out.clear() };
        if !connection.output.is_empty() {
            connection.output.append(&mut self.out);
            return;
        }
        if !self.out.is_empty() {
            let written = write(connection, &self.out, &mut self.sink, cx);
            let Ok(written) = written else {
                self.out.clear();
                return self.drop_connection(stream, Close::Reset, cx);
            };
            connection.output.extend_from_slice(&self.out[written..]);
            self.out.clear();
        }
        self.settle(stream, cx);
    }

    /// Writes what is held, now that the socket has room.
    fn write_on(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.output.is_empty() {
            return;
        }
        let output = std::mem::take(&mut connection.output);
        let Ok(written) = write(connection, &output, &mut self.sink, cx) else {
            return self.drop_connection(stream, Close::Reset, cx);
        };
        if written < output.len() {
            connection.output = output;
            connection.output.drain(..written);
            return;
        }
        if connection.job.as_ref().is_some_and(|job| job.timer.is_none()) {
            self.go_on(stream, cx);
        } else {
            self.settle(stream, cx);
        }
    }

    /// Ends what has ended, for a connection of which all that was ready may have been written.
    #[inline]
    fn settle(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if !connection.output.is_empty() {
            return;
        }
        if connection.job.as_ref().is_some_and(|job| job.generation.is_done()) {
            connection.job = None;
        }
        if connection.stage == Stage::Leaving && connection.job.is_none() {
            match self.config.close_after {
                Some(delay) if delay > Span::ZERO => {
                    connection.stage = Stage::Lingering;
                    cx.call_at(cx.now() + delay, Task::Leave(stream).into());
                }
                _ => self.drop_connection(stream, Close::Orderly, cx),
            }
        }
    }

    fn drop_connection(&mut self, stream: StreamId, how: Close, cx: &mut Cx<'_>) {
        let Some(mut connection) = self.connections.remove(stream) else { return };
        cx.close(stream, how);
        self.counts.closed();
        if let (Some(ledger), Some(sink)) = (&mut connection.ledger, &mut self.sink) {
            ledger.broken(sink.as_mut());
        }
        let Some(job) = connection.job else { return };
        self.counts.went_away();
        if let Some(timer) = job.timer {
            cx.cancel(timer);
        }
        match job.service {
            Service::Waiting => {
                self.waiting.retain(|&waiting| waiting != stream);
                self.counts.in_service(self.running, self.waiting.len());
            }
            Service::Running => self.free_slot(cx),
            Service::Served => {}
        }
    }
}

/// One write, its bytes noted in the ledger with the moment right before it.
#[inline]
fn write(
    connection: &mut Connection,
    bytes: &[u8],
    sink: &mut Option<Box<dyn TruthSink>>,
    cx: &mut Cx<'_>,
) -> io::Result<usize> {
    let (Some(ledger), Some(sink)) = (&mut connection.ledger, sink) else {
        return cx.write(connection.stream, &[IoSlice::new(bytes)]);
    };
    let at = cx.stamp();
    let written = cx.write(connection.stream, &[IoSlice::new(bytes)])?;
    ledger.written(written, at, sink.as_mut());
    Ok(written)
}

impl Actor for Server {
    type Msg = ServerMsg;

    fn started(&mut self, cx: &mut Cx<'_>) {
        let unspecified = SocketAddr::from(([0, 0, 0, 0], 0));
        let listening = cx.listen(&self.config.listen);
        let listening = listening.map(|stream| cx.local_addr(stream).unwrap_or(unspecified));
        if listening.is_err() {
            cx.stop_system();
        }
        if let Some(told) = self.told.take() {
            told(listening);
        }
    }

    fn handle(&mut self, msg: ServerMsg, cx: &mut Cx<'_>) {
        let task = match msg {
            ServerMsg::Stop => return cx.stop_system(),
            ServerMsg::Own(Own(task)) => task,
        };
        match task {
            Task::Due(stream) => {
                self.go_on(stream, cx);
                self.rest(stream, cx);
            }
            Task::ReadOn(stream) => {
                if let Some(connection) = self.connections.get(stream) {
                    connection.soon = false;
                }
                self.serve_input(stream, cx);
                self.read_on(stream, cx);
                self.rest(stream, cx);
            }
            Task::Leave(stream) => self.drop_connection(stream, Close::Orderly, cx),
            Task::Admit => self.admit(cx),
        }
    }

    fn ready(&mut self, event: Ready, cx: &mut Cx<'_>) {
        match event {
            Ready::Accepted { stream, .. } => self.accept(stream, cx),
            Ready::Readable(stream) => {
                self.read_on(stream, cx);
                self.rest(stream, cx);
            }
            Ready::Writable(stream) => {
                self.write_on(stream, cx);
                self.rest(stream, cx);
            }
            Ready::Closed(stream, _) => self.drop_connection(stream, Close::Reset, cx),
            Ready::Connected(_) | Ready::Foreign(_) => {}
        }
    }
}

impl From<Task> for ServerMsg {
    fn from(task: Task) -> Self {
        Self::Own(Own(task))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.connections.open();
        f.debug_struct("Server").field("config", &self.config).field("open", &open).finish()
    }
}

/// Bytes of one read.
const READ_LEN: usize = 64 << 10;
/// Reads of one connection before others have a turn.
const READS_MAX: usize = 16;
/// Bytes kept unparsed of a connection; beyond it nothing is read, and TCP holds the client back.
const INPUT_MAX: usize = 64 << 10;
/// Bytes of answers gathered for one write.
const OUT_MAX: usize = 256 << 10;
/// Bytes of a generation held for a client that does not read; beyond it nothing is generated.
const BACKLOG_MAX: usize = 1 << 20;
/// A larger body than this leaves no room behind.
const KEPT_BODY_MAX: usize = 64 << 10;
