//! The server as an actor.
//!
//! One buffer for reading and one for writing serve all connections; a connection keeps bytes of its own
//! only while a socket is full, a request waits behind another, or a small answer for its batch. What several requests in one
//! read are answered with leaves in one write. In `instant`, the small answers to a batch of what is ready leave when all of
//! the batch is read, as a client's requests do: that takes less of the processor than going back and forth.
//!
//! A connection's answers leave in the order of its requests, so it has one generation under way at most,
//! and nothing of what comes behind it is parsed before that is done. Slots are given first come first
//! served. A client that ends its side still gets its answers; one that resets gets its slot taken.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use takt_engine::{Actor, Close, Context, Ready, StreamId};

use crate::config::{ConfigError, Mode, ServerConfig};
use crate::connection::{Connection, Connections};
use crate::counts::Counts;
use crate::scheduler::Scheduling;
use crate::site::Site;
use crate::truth::TruthSink;

/// The reference server. Spawn it with a mailbox of [`Server::mailbox_capacity`].
pub struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) site: Site,
    pub(crate) counts: Arc<Counts>,
    pub(crate) connections: Connections,
    pub(crate) sink: Option<Sink>,
    told: Option<Told>,
    /// The simulated scheduler, in its mode.
    pub(crate) scheduling: Option<Box<Scheduling>>,
    /// Until it is gone.
    pub(crate) listener: Option<StreamId>,
    /// Requests so far.
    pub(crate) requests: u64,
    pub(crate) running: usize,
    /// Connections whose job waits for a slot.
    pub(crate) waiting: VecDeque<StreamId>,
    /// A message to admit them is under way.
    pub(crate) admitting: bool,
    /// Connections whose answers wait for the batch to be read; a message is under way while there are any.
    pub(crate) answered: Vec<StreamId>,
    /// What was read last.
    pub(crate) buf: Vec<u8>,
    /// What is written next.
    pub(crate) out: Vec<u8>,
    /// Room to make JSON in.
    pub(crate) data: Vec<u8>,
}

/// A boxed sink for the truth.
pub(crate) type Sink = Box<dyn TruthSink + Send>;

type Told = Box<dyn FnOnce(io::Result<Option<SocketAddr>>) + Send>;

/// What a server is told.
#[derive(Debug)]
pub enum ServerMsg {
    /// Reset all connections and stop the system. The sink is told of what was under way.
    Stop,
    /// What it leaves for itself.
    Own(Own),
}

/// What a server leaves for itself. Nobody else can make one.
#[derive(Debug)]
pub struct Own(Task);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// The next part of the connection's answer is due.
    Due(StreamId),
    /// Write the answers that were made since the last time.
    Write,
    /// Go on with what the connection has sent.
    ReadOn(StreamId),
    /// Close it.
    Leave(StreamId),
    /// Close it, if it has had no answer since this one.
    LeaveIdle(StreamId, u64),
    /// Give free slots to those who wait.
    Admit,
    /// Begin a step of the scheduler, if there is anything to do.
    Step,
    /// The step under way is complete.
    StepEnds,
}

/// The world of a server.
pub(crate) type Cx<'a> = Context<'a, Server>;

impl Server {
    /// A server by `config`.
    ///
    /// # Errors
    /// When the configuration cannot be served.
    pub fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        match &config.mode {
            Mode::Instant(_) => {}
            Mode::Timed(timed) => timed.check()?,
            Mode::Scheduler(scheduler) => scheduler.check()?,
            Mode::Hostile(hostile) => hostile.check()?,
        }
        let site = Site::new(&config);
        let scheduling = Scheduling::of(&config, &site).map(Box::new);
        Ok(Self {
            counts: site.counts.clone(),
            site,
            config,
            connections: Connections::default(),
            sink: None,
            told: None,
            scheduling,
            listener: None,
            requests: 0,
            running: 0,
            waiting: VecDeque::new(),
            admitting: false,
            answered: Vec::new(),
            buf: vec![0; READ_LEN],
            out: Vec::with_capacity(READ_LEN),
            data: Vec::with_capacity(1024),
        })
    }

    /// Hands the truth about each request to `sink`. Without a sink nothing is stamped or kept for it.
    #[must_use]
    pub fn with_truth(mut self, sink: impl TruthSink + Send + 'static) -> Self {
        self.sink = Some(Box::new(sink));
        self
    }

    /// Calls `told` on the server's thread once the server listens, with its address (the port that was
    /// chosen for port 0; a unix socket has none), or with the error because of which it does not listen:
    /// then the system is stopped.
    #[must_use]
    pub fn on_listening(
        mut self,
        told: impl FnOnce(io::Result<Option<SocketAddr>>) + Send + 'static,
    ) -> Self {
        self.told = Some(Box::new(told));
        self
    }

    /// What the server counts, to be looked at from anywhere.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        self.counts.clone()
    }

    /// Messages that its mailbox must hold: one that it leaves for itself for each connection, and a few more.
    #[must_use]
    pub fn mailbox_capacity(&self) -> usize {
        self.config.connections_max + 16
    }
}

impl Actor for Server {
    type Msg = ServerMsg;

    fn started(&mut self, cx: &mut Cx<'_>) {
        let listening = cx.listen(&self.config.listen);
        self.listener = listening.as_ref().ok().copied();
        let listening = listening.map(|stream| cx.local_addr(stream));
        if listening.is_err() {
            cx.stop_system();
        }
        if let Some(told) = self.told.take() {
            told(listening);
        }
    }

    fn handle(&mut self, msg: ServerMsg, cx: &mut Cx<'_>) {
        let task = match msg {
            ServerMsg::Stop => {
                for stream in self.connections.streams() {
                    self.drop_connection(stream, Close::Reset, cx);
                }
                if let Some(scheduling) = &mut self.scheduling {
                    scheduling.end();
                }
                return cx.stop_system();
            }
            ServerMsg::Own(Own(task)) => task,
        };
        match task {
            Task::Due(stream) => {
                self.go_on(stream, cx.now(), cx);
                self.rest(stream, cx);
            }
            Task::Write => self.write_answers(cx),
            Task::ReadOn(stream) => {
                if let Some(connection) = self.connections.get(stream) {
                    connection.soon = false;
                }
                self.serve_input(stream, cx);
                self.read_on(stream, cx);
                self.rest(stream, cx);
            }
            Task::Leave(stream) => self.drop_connection(stream, Close::Orderly, cx),
            Task::LeaveIdle(stream, answered) => {
                let idle = |connection: &mut Connection| {
                    connection.answered == answered
                        && !connection.is_busy()
                        && connection.input.is_empty()
                };
                if self.connections.get(stream).is_some_and(idle) {
                    self.drop_connection(stream, Close::Orderly, cx);
                }
            }
            Task::Admit => self.admit(cx),
            Task::Step => self.step(cx),
            Task::StepEnds => self.step_ends(cx),
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
            Ready::Connected(_) | Ready::Secured { .. } | Ready::Foreign(_) => {}
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
