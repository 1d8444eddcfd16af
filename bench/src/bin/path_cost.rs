//! What takt's own part of the hot path costs, on a host that costs next to nothing: for counting instructions, so
//! that a busy machine disturbs nothing. `cargo xtask bench counts` does the counting.
//!
//! ```text
//! path_cost --of message|timer|request|raw|shared|open|stream|served --count 100000
//! ```
//!
//! `message` is a message from actor to actor and `timer` a timer armed and fired. `request` is a whole request of a
//! closed loop, 64 in flight: session, strategy, client, one write, one read of a chat answer, its records packed.
//! `raw` is the same with an answer in which nothing is looked for, `shared` is one of two reactors that share a run and take
//! turns, `open` is on a schedule, one request each 10 us, and `stream` has sixteen tokens, each event read alone.
//! `served` is a request to the instant server from one of 64 connections: one read, one write.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "addresses and answers are written below")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use takt_actors::{
    Claims, Client, ClientConfig, Concurrency, Constant, EndpointTarget, Order, OutcomeSlot,
    PhaseConfig, PhaseRoute, Samples, Session, SessionConfig, Share, Strategy, Timed,
};
use takt_bench::{Args, BadArg, request};
use takt_engine::{
    Actor, Addr, Close, Context, Host, ReadOutcome, Ready, StreamId, System, Target, Then,
    VirtualClock, Wake, Woken,
};
use takt_mock::{InstantConfig, Mode, Server, ServerConfig};
use takt_record::{
    Block, BlockSink, Fold, InlineSink, Outcome, Publisher, PublisherConfig, Record,
    SharedPublisher,
};
use takt_time::{Nanos, Span};
use takt_wire::{
    Api, BodyBuilder, Endpoint, Framing, Method, PreparedRequest, Prompt, RequestBuilder,
    write_event_chunk, write_head, write_last_chunk,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::read(std::env::args().skip(1))?;
    let of: String = args.take("of")?.unwrap_or_default();
    let count: u64 = args.take("count")?.unwrap_or(100_000);
    args.done()?;
    let done = match of.as_str() {
        "message" => alone(Spin { left: count, by_timer: false })?,
        "timer" => alone(Spin { left: count, by_timer: true })?,
        "request" => closed(count, &whole(), CHAT)?,
        "raw" => closed(count, &whole(), RAW)?,
        "stream" => closed(count, &streamed(), STREAM)?,
        "open" => {
            let strategy = Timed::new(Box::new(Constant::new(100_000.0)?), order());
            session(count, &whole(), CHAT, strategy, Box::new(Again(None)))?
        }
        "shared" => shared(count)?,
        "served" => served(count)?,
        _ => {
            let known = "--of is message, timer, request, raw, shared, open, stream or served";
            return Err(BadArg(known.into()).into());
        }
    };
    println!("{done} of {count}");
    Ok(())
}

/// Sends to itself, or has itself called, so often.
struct Spin {
    left: u64,
    by_timer: bool,
}

impl Actor for Spin {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        cx.addr().send(());
    }

    fn handle(&mut self, (): (), cx: &mut Context<'_, Self>) {
        if self.left == 0 {
            return cx.stop_system();
        }
        self.left -= 1;
        if self.by_timer {
            cx.call_at(cx.now() + Span::from_nanos(777), ());
        } else {
            cx.addr().send(());
        }
    }
}

fn alone(spin: Spin) -> io::Result<u64> {
    let count = spin.left;
    let mut system = System::new(VirtualClock::default());
    let _: Addr<()> = system.spawn(spin, 8);
    system.run()?;
    Ok(count)
}

/// A closed loop of `count` requests, behind one of a few whose records are looked at: what fails costs something else.
fn closed(count: u64, answer: &[Vec<u8>], asked: Asked) -> Result<u64, Box<dyn Error>> {
    let strategy = || Concurrency::new(order(), IN_FLIGHT);
    let seen = Rc::new(RefCell::new(Succeeded(0)));
    let few = 2 * u64::from(IN_FLIGHT);
    session(few, answer, asked, strategy(), Box::new(InlineSink::new(seen.clone())))?;
    if seen.borrow().0 != few {
        return Err(format!("{} of {few} succeeded", seen.borrow().0).into());
    }
    Ok(session(count, answer, asked, strategy(), Box::new(Again(None)))?)
}

struct Succeeded(u64);

impl Fold for Succeeded {
    fn fold(&mut self, record: &Record<'_>) {
        let succeeded = matches!(record, Record::Completed(done) if done.outcome == Outcome::Ok);
        self.0 += u64::from(succeeded);
    }
}

/// A whole session of `count` requests, each answered with `answer`, read by read. Gives how many were issued.
fn session(
    count: u64,
    answer: &[Vec<u8>],
    asked: Asked,
    strategy: impl Strategy + 'static,
    sink: Box<dyn BlockSink>,
) -> io::Result<u64> {
    let mut one = One::new(answer, asked, phase(strategy).requests(count), sink);
    one.system.run()?;
    Ok(one.issued())
}

/// Two closed loops that take their requests from one count, turn by turn.
fn shared(count: u64) -> Result<u64, Box<dyn Error>> {
    let claims = Claims::default();
    let one = || {
        let mut phase = phase(Concurrency::new(order(), IN_FLIGHT / 2)).requests(count);
        phase.share = Share::Claimed(claims.clone());
        One::new(&whole(), CHAT, phase, Box::new(Again(None)))
    };
    let mut two = [one(), one()];
    while two.iter().any(|one| !one.system.is_stopped()) {
        two.iter_mut().try_for_each(|one| one.system.turn())?;
    }
    let issued: Vec<u64> = two.iter().map(One::issued).collect();
    if issued.iter().any(|issued| *issued < count / 3) {
        return Err("one of the two did nearly all".into());
    }
    let sum: u64 = issued.iter().sum();
    if sum != count {
        return Err(format!("{sum} of {count} were issued").into());
    }
    Ok(sum)
}

fn phase(strategy: impl Strategy + 'static) -> PhaseConfig {
    PhaseConfig::new("counted", strategy, SAMPLES)
}

/// A reactor and its session.
struct One {
    system: System<Canned>,
    outcome: OutcomeSlot,
}

impl One {
    fn new(answer: &[Vec<u8>], asked: Asked, phase: PhaseConfig, sink: Box<dyn BlockSink>) -> Self {
        let mut system = System::new(Canned::new(answer));
        let samples: Rc<RefCell<dyn Samples>> = Rc::new(RefCell::new(Prepared::new(asked.stream)));
        let route = PhaseRoute {
            samples,
            api: asked.api,
            stream: asked.stream,
            keep_text: false,
            hears: false,
            turn_timeout: None,
        };
        let publisher = SharedPublisher::new(Publisher::new(sink, PublisherConfig::default()));
        let target = EndpointTarget::new(Target::tcp(([127, 0, 0, 1], 1).into()));
        let config = ClientConfig::new(vec![target], vec![route]);
        let client = Client::spawn(&mut system, config, publisher.clone(), 1 << 16);
        let (session, outcome) =
            Session::new(SessionConfig::new(vec![phase]), Box::new(client), publisher);
        system.spawn(session, 1 << 16);
        Self { system, outcome }
    }

    fn issued(&self) -> u64 {
        let outcome = self.outcome.take();
        outcome.map_or(0, |outcome| outcome.phases.iter().map(|phase| phase.issued).sum())
    }
}

/// The instant server, until it has answered so many.
fn served(count: u64) -> Result<u64, Box<dyn Error>> {
    let mut system = System::new(Canned::new(&[request("127.0.0.1:8000")]));
    let listen = Target::tcp(([127, 0, 0, 1], 0).into());
    let config = ServerConfig::new(listen, Mode::Instant(InstantConfig::default()));
    let server = Server::new(config)?;
    let capacity = server.mailbox_capacity();
    system.spawn(server, capacity);
    let mut turns = 0;
    while system.host().writes < count {
        system.turn()?;
        turns += 1;
        if turns > 100 + count {
            return Err("the server does not answer".into());
        }
    }
    Ok(system.host().writes)
}

fn order() -> Order {
    Order::sequential(SAMPLES)
}

/// An answer that does not stream, in one read.
fn whole() -> Vec<Vec<u8>> {
    let body = br#"{"id":"chatcmpl-7f","object":"chat.completion","created":1767225600,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":" the question is known"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":4,"total_tokens":24}}"#;
    let mut bytes = Vec::new();
    let framing = Framing::Length(body.len() as u64);
    write_head(&mut bytes, 200, "application/json", framing, true, &[]);
    bytes.extend_from_slice(body);
    vec![bytes]
}

/// Sixteen tokens, an event a read, the head with the first and the end with the last.
fn streamed() -> Vec<Vec<u8>> {
    let event = |delta: &str, finish: &str| {
        let mut bytes = Vec::new();
        let data = format!(
            r#"{{"id":"chatcmpl-7f","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
        );
        write_event_chunk(&mut bytes, data.as_bytes());
        bytes
    };
    let mut head = Vec::new();
    write_head(&mut head, 200, "text/event-stream", Framing::Chunked, true, &[]);
    head.extend(event(r#"{"role":"assistant","content":""}"#, "null"));
    let mut end = event("{}", "\"stop\"");
    write_event_chunk(&mut end, b"[DONE]");
    write_last_chunk(&mut end);
    let token = |_| event(r#"{"content":" word"}"#, "null");
    std::iter::once(head).chain((0..16).map(token)).chain([end]).collect()
}

/// A host behind whose every connection somebody sends the same bytes after each write, read by read. To one that listens
/// they come, [`IN_FLIGHT`] of them, and send first.
struct Canned {
    now: Nanos,
    writes: u64,
    answer: Vec<Vec<u8>>,
    /// What is left to be read of each connection: the number of the next read.
    next: Vec<usize>,
    ready: VecDeque<Ready>,
}

impl Canned {
    fn new(answer: &[Vec<u8>]) -> Self {
        let now = Nanos::from_nanos(1_000_000_000);
        let (next, ready) = (Vec::new(), VecDeque::new());
        Self { now, writes: 0, answer: answer.to_vec(), next, ready }
    }

    /// A new connection, with so many reads behind it.
    fn open(&mut self, read: usize) -> StreamId {
        let stream = StreamId::new(self.next.len() as u32, 0);
        self.next.push(read);
        stream
    }
}

impl Host for Canned {
    fn now(&self) -> Nanos {
        self.now
    }

    fn park(&mut self, until: Option<Nanos>, ready: &mut Vec<Ready>) -> io::Result<Woken> {
        self.now += Span::from_nanos(200);
        if !self.ready.is_empty() {
            // As many as a busy reactor finds.
            ready.extend(self.ready.drain(..self.ready.len().min(16)));
            return Ok(Woken::Readiness);
        }
        match until {
            Some(at) if at > self.now => {
                self.now = at;
                Ok(Woken::Deadline)
            }
            _ => Ok(Woken::Polled),
        }
    }

    fn connect(&mut self, _: &Target) -> io::Result<StreamId> {
        let stream = self.open(self.answer.len());
        self.ready.push_back(Ready::Connected(stream));
        Ok(stream)
    }

    fn listen(&mut self, _: &Target) -> io::Result<StreamId> {
        let listener = self.open(self.answer.len());
        for _ in 0..IN_FLIGHT {
            let stream = self.open(0);
            self.ready.extend([Ready::Accepted { listener, stream }, Ready::Readable(stream)]);
        }
        Ok(listener)
    }

    fn local_addr(&self, _: StreamId) -> Option<SocketAddr> {
        None
    }

    fn read(&mut self, stream: StreamId, buf: &mut [u8]) -> io::Result<ReadOutcome> {
        let next = &mut self.next[stream.index()];
        let bytes = self.answer.get(*next).map_or(0, |piece| {
            buf[..piece.len()].copy_from_slice(piece);
            *next += 1;
            piece.len()
        });
        if *next < self.answer.len() {
            self.ready.push_back(Ready::Readable(stream));
        }
        Ok(ReadOutcome { bytes, at: self.now, arrived: None, then: Then::Drained })
    }

    fn write(&mut self, stream: StreamId, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.writes += 1;
        self.next[stream.index()] = 0;
        self.ready.push_back(Ready::Readable(stream));
        Ok(bufs.iter().map(|buf| buf.len()).sum())
    }

    fn close(&mut self, _: StreamId, _: Close) {}

    fn waker(&self) -> Arc<dyn Wake> {
        struct Nobody;
        impl Wake for Nobody {
            fn wake(&self) {}
        }
        Arc::new(Nobody)
    }
}

/// Gives each block back at once, to be filled again.
struct Again(Option<Block>);

impl BlockSink for Again {
    fn offer(&mut self, block: Block) -> Result<(), Block> {
        self.0 = Some(block);
        Ok(())
    }

    fn spare(&mut self) -> Option<Block> {
        self.0.take()
    }
}

/// A few requests, prepared.
struct Prepared(Vec<PreparedRequest>);

impl Prepared {
    fn new(stream: bool) -> Self {
        let endpoint = Endpoint::parse("http://127.0.0.1:1").unwrap();
        let target = endpoint.target(Api::OpenaiChat.route());
        let requests = RequestBuilder::new(Method::Post, &endpoint, &target).unwrap();
        let requests = requests.streaming(stream);
        let bodies = BodyBuilder::new(Api::OpenaiChat, "m", stream);
        let prompt = Prompt::Text { text: "How far is the moon?", system: None };
        let one = || requests.build(&bodies.build(&prompt, None).unwrap());
        Self((0..SAMPLES).map(|_| one()).collect())
    }
}

impl Samples for Prepared {
    fn len(&self) -> u32 {
        SAMPLES
    }

    fn request(&mut self, sample: u32, _endpoint: usize) -> &mut PreparedRequest {
        &mut self.0[sample as usize]
    }
}

/// How answers are read.
#[derive(Clone, Copy)]
struct Asked {
    api: Api,
    stream: bool,
}

const CHAT: Asked = Asked { api: Api::OpenaiChat, stream: false };
const STREAM: Asked = Asked { api: Api::OpenaiChat, stream: true };
const RAW: Asked = Asked { api: Api::Raw, stream: false };
const SAMPLES: u32 = 16;
const IN_FLIGHT: u32 = 64;
