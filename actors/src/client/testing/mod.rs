//! A scripted host and a probe in place of the session.
//!
//! A test says how each connect ends ([`Dial`]) and what the server does on each request ([`Act`]). Time
//! moves only while the system is parked, and by [`WRITE_TAKES`] for each write, so that the stamps before
//! and after it differ.

mod net;

use std::cell::{Ref, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use takt_engine::{Actor, Context, System, Target};
use takt_record::{
    Fold, InlineSink, PhaseId, Publisher, PublisherConfig, Record, RequestId, RequestKey,
    SharedPublisher,
};
use takt_time::{Nanos, Span};
use takt_wire::{Api, Endpoint, Method, PreparedRequest, RequestBuilder};

pub(super) use net::{Act, Asked, Dial, Net};

use crate::api::{Answered, Cancel, Replies, Request, SampleIssuer, Samples};
use crate::client::{Client, ClientConfig, ClientHandle, EndpointTarget, PhaseRoute};
use crate::session::SessionMsg;

/// How long a write takes.
pub(super) const WRITE_TAKES: Span = Span::from_micros(1);
/// How long a connect takes unless a test says otherwise.
pub(super) const CONNECT_TAKES: Span = Span::from_micros(30);

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

    /// Rehearses the next request, of phase 0.
    pub(super) fn rehearse(&mut self) {
        self.rehearse_in(PhaseId(0));
    }

    /// Rehearses the next request, of `phase`.
    pub(super) fn rehearse_in(&mut self, phase: PhaseId) {
        let request = self.next(phase);
        self.issued -= 1;
        self.client.rehearse(request);
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
    pub(super) fn published(&self) -> Ref<'_, Published> {
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
    let route =
        PhaseRoute { samples, api, stream, keep_text: false, hears: false, turn_timeout: None };
    let target = Target::tcp(SocketAddr::from(([127, 0, 0, 1], 1)));
    ClientConfig::new(vec![EndpointTarget::new(target)], vec![route.clone(), route])
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
