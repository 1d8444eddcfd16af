//! A scripted host and a probe in place of the session.
//!
//! The network is a list of what happens when: a test says how each connect ends ([`Dial`]) and what the
//! server does on each request ([`Act`]). Time moves only while the system is parked, and by [`WRITE_TAKES`]
//! for each write, so that the stamps before and after it differ.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use takt_engine::{
    Actor, Close, Context, Host, ReadOutcome, Ready, StreamId, System, Target, Then, Wake, Woken,
};
use takt_record::{
    Fold, InlineSink, PhaseId, Publisher, PublisherConfig, Record, RequestId, RequestKey,
    SharedPublisher,
};
use takt_time::{Nanos, Span};
use takt_wire::{
    Api, Endpoint, Limits, Method, PreparedRequest, RequestBuilder, RequestParser, Step,
};

use crate::api::{Answered, Cancel, Replies, Request, SampleIssuer, Samples};
use crate::client::{Balance, Client, ClientConfig, ClientHandle, EndpointTarget, PhaseRoute};
use crate::session::SessionMsg;

/// How long a write takes.
pub(super) const WRITE_TAKES: Span = Span::from_micros(1);
/// How long a connect takes unless a test says otherwise.
pub(super) const CONNECT_TAKES: Span = Span::from_micros(30);

/// How a connect ends.
#[derive(Clone, Debug)]
pub(super) enum Dial {
    Up(Span),
    Fail(Span, ErrorKind),
    NoAttempt(ErrorKind),
    Silent,
}

/// What the server does, so long after the request.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Send(Span, Vec<u8>),
    End(Span),
    Reset(Span),
}

/// A request as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Number of its connection, from 0 in the order of the connects.
    pub(super) connection: usize,
    /// Number on that connection, from 0.
    pub(super) nth: usize,
    pub(super) id: RequestId,
    pub(super) at: Nanos,
}

type Server = Box<dyn FnMut(&Asked) -> Vec<Act>>;

/// The scripted host.
pub(super) struct Net {
    now: Nanos,
    /// Nothing is waited for beyond this.
    horizon: Nanos,
    happenings: BTreeMap<(Nanos, u64), (usize, Happening)>,
    serial: u64,
    ready: Vec<Ready>,
    ends: Vec<Wire>,
    pub(super) dial: Box<dyn FnMut(usize, Nanos) -> Dial>,
    pub(super) server: Server,
    /// When each connect was tried.
    pub(super) dials: Vec<Nanos>,
    pub(super) asked: Vec<Asked>,
    /// What a socket takes before it is full; it drains as much at a time.
    pub(super) room: usize,
    /// Whether a full socket drains.
    pub(super) drains: bool,
    /// Resets are told by no event: the next write finds them.
    pub(super) break_silently: bool,
}

#[derive(Clone, Debug)]
enum Happening {
    Connected,
    Refused(ErrorKind),
    Bytes(Vec<u8>),
    End,
    Reset,
    Room,
}

/// Both ends of one connection.
struct Wire {
    inbox: VecDeque<u8>,
    ended: bool,
    reset: bool,
    closed: Option<Close>,
    taken: usize,
    parser: RequestParser,
    nth: usize,
}

impl Net {
    fn new() -> Self {
        Self {
            now: Nanos::from_nanos(1_000_000_000),
            horizon: Nanos::from_nanos(1_000_000_000),
            happenings: BTreeMap::new(),
            serial: 0,
            ready: Vec::new(),
            ends: Vec::new(),
            dial: Box::new(|_, _| Dial::Up(CONNECT_TAKES)),
            server: Box::new(|_| vec![Act::Send(Span::from_micros(50), answer())]),
            dials: Vec::new(),
            asked: Vec::new(),
            room: usize::MAX,
            drains: true,
            break_silently: false,
        }
    }

    /// How many connections stand and were not closed by the client.
    pub(super) fn open(&self) -> usize {
        self.ends.iter().filter(|end| end.closed.is_none()).count()
    }

    /// How the client closed a connection.
    pub(super) fn closed(&self, connection: usize) -> Option<Close> {
        self.ends[connection].closed
    }

    /// Has the server do something on a connection by itself.
    pub(super) fn act(&mut self, connection: usize, act: Act) {
        let (after, happening) = match act {
            Act::Send(after, bytes) => (after, Happening::Bytes(bytes)),
            Act::End(after) => (after, Happening::End),
            Act::Reset(after) => (after, Happening::Reset),
        };
        self.happen(after, connection, happening);
    }

    /// The server resets a connection, if it is there.
    pub(super) fn kill(&mut self, connection: usize) {
        if connection < self.ends.len() {
            self.act(connection, Act::Reset(Span::ZERO));
        }
    }

    /// Lets happen what is due, and tells nobody.
    pub(super) fn pass_silently(&mut self) {
        self.pass();
        self.ready.clear();
    }

    fn happen(&mut self, after: Span, connection: usize, happening: Happening) {
        self.serial += 1;
        self.happenings.insert((self.now + after, self.serial), (connection, happening));
    }

    /// Lets happen what is due.
    fn pass(&mut self) {
        while let Some(entry) = self.happenings.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let (connection, happening) = entry.remove();
            let end = &mut self.ends[connection];
            if end.closed.is_some() {
                continue;
            }
            let id = StreamId::new(connection as u32, 0);
            let event = match happening {
                Happening::Connected => Ready::Connected(id),
                Happening::Refused(kind) => Ready::Closed(id, kind),
                Happening::Bytes(bytes) => {
                    end.inbox.extend(bytes);
                    Ready::Readable(id)
                }
                Happening::End => {
                    end.ended = true;
                    Ready::Readable(id)
                }
                Happening::Reset => {
                    end.reset = true;
                    if self.break_silently {
                        continue;
                    }
                    Ready::Readable(id)
                }
                Happening::Room => {
                    end.taken = 0;
                    Ready::Writable(id)
                }
            };
            if !self.ready.contains(&event) {
                self.ready.push(event);
            }
        }
    }

    /// The server reads.
    fn arrive(&mut self, connection: usize, mut bytes: &[u8]) {
        let now = self.now;
        let mut acts = Vec::new();
        let end = &mut self.ends[connection];
        loop {
            match end.parser.next(bytes).expect("the client speaks HTTP") {
                Step::Request { used, request } => {
                    let id = request.id.and_then(RequestId::from_hex).expect("an id");
                    let asked = Asked { connection, nth: end.nth, id, at: now };
                    end.nth += 1;
                    acts.extend((self.server)(&asked));
                    self.asked.push(asked);
                    bytes = &bytes[used..];
                }
                Step::More => break,
                Step::Continue { .. } => panic!("the client does not ask for 100 Continue"),
            }
        }
        for act in acts {
            self.act(connection, act);
        }
    }
}

impl Host for Net {
    fn now(&self) -> Nanos {
        self.now
    }

    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        self.pass();
        let until = until.unwrap_or(self.horizon).min(self.horizon);
        if self.ready.is_empty() && until > self.now {
            let next = self.happenings.keys().next().map_or(until, |&(at, _)| at.min(until));
            self.now = self.now.max(next);
            self.pass();
        }
        ready.append(&mut self.ready);
        Ok(if ready.is_empty() { Woken::Deadline } else { Woken::Readiness })
    }

    fn connect(&mut self, _target: &Target) -> io::Result<StreamId> {
        let number = self.ends.len();
        self.dials.push(self.now);
        let dial = (self.dial)(self.dials.len() - 1, self.now);
        if let Dial::NoAttempt(kind) = dial {
            return Err(kind.into());
        }
        self.ends.push(Wire {
            inbox: VecDeque::new(),
            ended: false,
            reset: false,
            closed: None,
            taken: 0,
            parser: RequestParser::new(Limits::default()),
            nth: 0,
        });
        match dial {
            Dial::Up(after) => self.happen(after, number, Happening::Connected),
            Dial::Fail(after, kind) => self.happen(after, number, Happening::Refused(kind)),
            Dial::NoAttempt(_) | Dial::Silent => {}
        }
        Ok(StreamId::new(number as u32, 0))
    }

    fn listen(&mut self, _at: &Target) -> io::Result<StreamId> {
        unreachable!("a client does not listen")
    }

    fn local_addr(&self, _stream: StreamId) -> Option<SocketAddr> {
        None
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        let end = &mut self.ends[stream.index()];
        assert_eq!(end.closed, None, "a closed stream is not read");
        // As on Linux: what came before the reset can still be read.
        if end.reset && end.inbox.is_empty() {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let hinted = end.ended || (end.reset && !self.break_silently);
        let bytes = end.inbox.len().min(buf.len());
        for (to, from) in buf.iter_mut().zip(end.inbox.drain(..bytes)) {
            *to = from;
        }
        let then = match (bytes, hinted) {
            (0, true) => Then::End,
            (_, true) => Then::More,
            (_, false) if bytes == buf.len() => Then::More,
            (_, false) => Then::Drained,
        };
        Ok(ReadOutcome { bytes, at: self.now, then })
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.now += WRITE_TAKES;
        let connection = stream.index();
        let end = &mut self.ends[connection];
        assert_eq!(end.closed, None, "a closed stream is not written to");
        if end.reset {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let [bytes] = bufs else { panic!("one slice a write") };
        let taken = bytes.len().min(self.room - end.taken);
        if self.room < usize::MAX {
            end.taken += taken;
        }
        if taken < bytes.len() && self.drains {
            self.happen(Span::from_micros(10), connection, Happening::Room);
        }
        // What has met the server's end on its way is lost.
        if !self.ends[connection].ended {
            self.arrive(connection, &bytes[..taken]);
        }
        Ok(taken)
    }

    fn close(&mut self, stream: StreamId, how: Close) {
        let end = &mut self.ends[stream.index()];
        assert_eq!(end.closed.replace(how), None, "a stream is closed once");
    }

    fn waker(&self) -> Arc<dyn Wake> {
        struct Nobody;
        impl Wake for Nobody {
            fn wake(&self) {}
        }
        Arc::new(Nobody)
    }
}

/// In place of the session: keeps what is answered, and issues one request more for each as long as it has
/// some.
struct Probe(Rc<RefCell<Seen>>);

/// What the probe saw.
#[derive(Default)]
struct Seen {
    answers: Vec<Answered>,
    next: VecDeque<Request>,
    issuer: Option<ClientHandle>,
}

impl Actor for Probe {
    type Msg = SessionMsg;

    fn handle(&mut self, msg: SessionMsg, cx: &mut Context<'_, Self>) {
        let SessionMsg::Answered(answer) = msg else { panic!("{msg:?}") };
        let mut seen = self.0.borrow_mut();
        seen.answers.push(answer);
        if let Some(mut request) = seen.next.pop_front() {
            request.issued = cx.now();
            seen.issuer.as_mut().expect("attached").issue(request);
        }
    }
}

/// Keeps the records that the client publishes itself.
#[derive(Default)]
pub(super) struct Published {
    pub(super) tokens: Vec<takt_record::Token>,
    pub(super) text: String,
}

impl Fold for Published {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Token(token) => self.tokens.push(*token),
            Record::Text(text) => self.text.push_str(text.text),
            other => panic!("not the client's to publish: {other:?}"),
        }
    }
}

/// One prepared request, the same for all samples.
struct OneSample(PreparedRequest);

impl Samples for OneSample {
    fn len(&self) -> u32 {
        1
    }

    fn request(&mut self, _sample: u32, _endpoint: usize) -> &mut PreparedRequest {
        &mut self.0
    }
}

/// A client between a scripted network and a probe.
pub(super) struct Rig {
    system: System<Net>,
    pub(super) client: ClientHandle,
    seen: Rc<RefCell<Seen>>,
    published: Rc<RefCell<Published>>,
    publisher: SharedPublisher,
    issued: u64,
}

impl Rig {
    /// A client of the raw API, changed by `change`.
    pub(super) fn new(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = config(Api::Raw, BODY);
        change(&mut config);
        Self::of(config)
    }

    /// A client of the chat API that asks for streams.
    pub(super) fn chat(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = config(Api::OpenaiChat, BODY);
        change(&mut config);
        Self::of(config)
    }

    fn of(config: ClientConfig) -> Self {
        let mut system = System::new(Net::new());
        let published = Rc::<RefCell<Published>>::default();
        let sink = Box::new(InlineSink::new(published.clone()));
        let publisher = SharedPublisher::new(Publisher::new(sink, PublisherConfig::default()));
        let mut client = Client::spawn(&mut system, config, publisher.clone(), 4096);
        let seen = Rc::<RefCell<Seen>>::default();
        seen.borrow_mut().issuer = Some(client.clone());
        let probe = system.spawn(Probe(seen.clone()), 4096);
        client.attach(Replies(probe));
        Self { system, client, seen, published, publisher, issued: 0 }
    }

    pub(super) fn net(&mut self) -> &mut Net {
        self.system.host()
    }

    pub(super) fn now(&mut self) -> Nanos {
        self.net().now
    }

    /// Has the server act like this on every request.
    pub(super) fn serve(mut self, server: impl FnMut(&Asked) -> Vec<Act> + 'static) -> Self {
        self.net().server = Box::new(server);
        self
    }

    /// Has connects end like this.
    pub(super) fn dial(mut self, dial: impl FnMut(usize, Nanos) -> Dial + 'static) -> Self {
        self.net().dial = Box::new(dial);
        self
    }

    /// Issues one request of phase 0.
    pub(super) fn issue(&mut self) {
        self.issue_in(PhaseId(0));
    }

    /// Issues one request.
    pub(super) fn issue_in(&mut self, phase: PhaseId) {
        let request = self.next(phase);
        self.client.issue(request);
    }

    /// Keeps so many requests of phase 0 ready, one to be issued for each answer.
    pub(super) fn then_issue(&mut self, count: usize) {
        for _ in 0..count {
            let request = self.next(PhaseId(0));
            self.seen.borrow_mut().next.push_back(request);
        }
    }

    fn next(&mut self, phase: PhaseId) -> Request {
        let key = RequestKey { phase, ordinal: self.issued };
        self.issued += 1;
        let issued = self.now();
        Request {
            key,
            id: RequestId::new(SESSION, key),
            sample: 0,
            scheduled: None,
            issued,
            turn: None,
        }
    }

    /// The number at which a request was issued, by its id.
    pub(super) fn ordinal(asked: &Asked) -> u64 {
        asked.id.key(SESSION).expect("an id of this session").ordinal
    }

    pub(super) fn cancel(&mut self, which: Cancel) {
        self.client.cancel(which);
    }

    /// Lets so much time pass.
    pub(super) fn run(&mut self, span: Span) -> &mut Self {
        let until = self.now() + span;
        self.net().horizon = until;
        let mut turns = 0;
        while self.now() < until && !self.system.is_stopped() {
            self.system.turn().expect("the host does not fail");
            turns += 1;
            assert!(turns < 100_000, "the client spins");
        }
        // What was sent in the last turn.
        self.system.turn().expect("the host does not fail");
        self
    }

    /// All answers so far, in their order.
    pub(super) fn answers(&self) -> Vec<Answered> {
        self.seen.borrow().answers.clone()
    }

    /// What the client published.
    pub(super) fn published(&self) -> std::cell::Ref<'_, Published> {
        self.publisher.flush();
        self.published.borrow()
    }

    /// How many requests were issued, those kept ready included.
    pub(super) fn issued(&self) -> u64 {
        self.issued
    }
}

/// As [`Rig::new`] has it, with two endpoints.
pub(super) fn config_for_two() -> ClientConfig {
    let mut config = config(Api::Raw, BODY);
    config.endpoints.push(config.endpoints[0].clone());
    config
}

fn config(api: Api, body: &[u8]) -> ClientConfig {
    let endpoint = Endpoint::parse("http://127.0.0.1:1").expect("address");
    let builder = RequestBuilder::new(Method::Post, &endpoint, "/x").expect("target");
    let stream = api.streams();
    let prepared = builder.streaming(stream).build(body);
    let samples = Rc::new(RefCell::new(OneSample(prepared)));
    let route = PhaseRoute { samples, api, stream, keep_text: false };
    ClientConfig {
        endpoints: vec![EndpointTarget {
            target: Target::tcp(SocketAddr::from(([127, 0, 0, 1], 1))),
        }],
        balance: Balance::RoundRobin,
        max_connections: None,
        retry_stale: true,
        connect_timeout: None,
        first_byte_timeout: None,
        request_timeout: None,
        warm_connections: 0,
        limits: Limits::default(),
        phases: vec![route.clone(), route],
    }
}

/// An answer of [`ANSWER_BODY`] that leaves the connection open.
pub(super) fn answer() -> Vec<u8> {
    let len = ANSWER_BODY.len();
    let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n").into_bytes();
    bytes.extend_from_slice(ANSWER_BODY);
    bytes
}

pub(super) const ANSWER_BODY: &[u8] = b"well done";
/// The body of every request.
pub(super) const BODY: &[u8] = b"{\"q\":\"how much is six times seven?\"}";
const SESSION: u64 = 7;
