//! Runs a scenario to its end and holds it to all checks.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, sync_channel};

use serde_json::Value;
use takt_actors::planned::{Plan, Planned};
use takt_actors::{
    Arrivals, Burst, Client, ClientConfig, ClientHandle, Concurrency, Constant, EndpointTarget,
    Gamma, Gaps, Mt19937, Order, PhaseConfig, PhaseRoute, Poisson, Ramp, ReferencePoisson,
    SampleIssuer, Samples, Session, SessionConfig, SessionMsg, SessionOutcome, Share, Strategy,
    Timed, Trace, stream,
};
use takt_engine::{Actor, Addr, Context, System, Target};
use takt_mock::{Counts, Server, ServerConfig};
use takt_record::{
    Blame, ConversationsPlan, ErrorKind, FailedBy, Failure, PhasePlan, Publisher, PublisherConfig,
    PublisherCounters, RampRates, RequestKey, ResultDoc, SessionEvent, SessionPlan,
    SharedPublisher, Stage, WindowEvent,
};
use takt_time::{Nanos, Span};
use takt_wire::{Api, Limits};

use super::check;
use super::drive::{Drive, Stuck};
use super::host::{SimHost, World};
use super::kept::Kept;
use super::log::{Fussy, Received, Told, Witness};
use super::random::{Chance, Purpose};
use super::samples::Prepared;
use super::scenario::{Http, Load, OrderKind, Phase, Scenario, Service, Transport};
use super::talks::{self, Beginning, Talks};

/// A run that came to its end, and all that is known of it.
pub struct Ran {
    /// What was run.
    pub scenario: Scenario,
    /// Every record.
    pub records: Vec<Kept>,
    /// The session's own account; absent when it never gave one.
    pub outcome: Option<SessionOutcome>,
    /// The report made from the records as they came.
    pub result: ResultDoc,
    /// The journal.
    pub journal: Vec<u8>,
    /// Numbers of blocks that came out of line.
    pub out_of_line: Vec<u64>,
    /// What the publisher counted.
    pub published: PublisherCounters,
    /// What the servers say.
    pub told: Vec<Told>,
    /// Streams of the client that are still open, and the most there were.
    pub client_streams: (usize, usize),
    /// What is left at servers that live: connections, requests in service, requests that wait.
    pub left_at_servers: Vec<(u64, u64, u64)>,
    /// When the client read bytes.
    pub heard: Vec<Nanos>,
    /// When the session was started and when it had ended.
    pub span: (Nanos, Nanos),
    /// Proof of what was dispatched when, by all systems.
    pub trace_hash: u64,
    /// Dispatches of all systems.
    pub dispatches: u64,
}

/// A run that is not as it must be.
#[derive(Clone, Debug)]
pub struct Failed {
    /// What is wrong.
    pub what: Vec<String>,
    /// Of what was run.
    pub scenario: Box<Scenario>,
    /// The last dispatches.
    pub trace: String,
}

/// Runs a scenario and checks it.
///
/// # Errors
/// [`Failed`] when it panics, hangs or breaks a rule.
pub fn run(scenario: &Scenario) -> Result<Ran, Box<Failed>> {
    let world = World::new(scenario.seed, scenario.link.clone());
    let mut client = System::new(world.host());
    let mut servers: Vec<System<SimHost>> = Vec::new();
    let mut counts = Vec::new();
    let witness = Witness::default();
    if let Transport::Http(http) = &scenario.transport {
        for number in 0..http.servers {
            let mut system = System::new(world.host());
            counts.push(serve(&mut system, http, number, &witness));
            servers.push(system);
        }
        if let Some(span) = http.dies {
            world.die_after(span, servers[0].host());
        }
    }
    let received = Rc::new(RefCell::new(Received::new(&plan(scenario))));
    let sink = Fussy {
        into: received.clone(),
        refuses: scenario.records.refused,
        chance: Chance::new(scenario.seed, Purpose::Records),
    };
    let config = PublisherConfig {
        block_bytes: scenario.records.block_bytes,
        overflow_blocks: scenario.records.overflow_blocks,
        ..PublisherConfig::default()
    };
    let publisher = SharedPublisher::new(Publisher::new(Box::new(sink), config));
    let samples: Vec<_> = scenario.phases.iter().map(samples).collect();
    let (transport, warm) = transport(scenario, &samples, &mut client, &publisher);
    let phases = scenario.phases.iter().zip(&samples).enumerate();
    let phases = phases.map(|(number, (one, samples))| phase(number, one, samples)).collect();
    let mut session = SessionConfig::new(phases);
    session.session_key = scenario.seed;
    session.stop_grace = scenario.stop_grace;
    session.idle_timeout = scenario.idle_timeout;
    session.run_timeout = scenario.run_timeout;
    session.rehearse_ahead = scenario.rehearse_ahead;
    session.begin_at_once = warm.is_none();
    let (session, outcome) = Session::new(session, transport, publisher.clone());
    let session = client.spawn(session, MAILBOX);
    if let Some(warm) = warm {
        let session = session.clone();
        warm.when_warm(move |_| session.send(SessionMsg::Begin));
    }
    client.spawn(Profiler::new(session.clone(), &scenario.windows), 64);
    client.spawn(Stopper { session, stops: scenario.stops.clone() }, 8);

    let started = world.now();
    let mut drive = Drive::new(world.clone(), started + HORIZON);
    let mut ended = started;
    let drove = catch_unwind(AssertUnwindSafe(|| {
        let mut systems: Vec<&mut System<SimHost>> =
            std::iter::once(&mut client).chain(&mut servers).collect();
        drive.run(&mut systems)?;
        ended = world.now();
        drive.run_dry(&mut systems)
    }));
    let trace = |client: &System<SimHost>, servers: &[System<SimHost>]| {
        std::iter::once(client).chain(servers).map(|s| format!("{:?}", s.trace())).collect()
    };
    let failed = |what: Vec<String>, trace: String| {
        Box::new(Failed { what, scenario: Box::new(scenario.clone()), trace })
    };
    match drove {
        Ok(Ok(())) => {}
        Ok(Err(Stuck(words))) => return Err(failed(vec![words], String::new())),
        Err(panic) => {
            return Err(failed(vec![words_of(panic.as_ref())], trace(&client, &servers)));
        }
    }
    // As the program does before it ends: whoever refused a block gets it again.
    for _ in 0..FLUSHES {
        if publisher.waiting() == 0 {
            break;
        }
        publisher.flush();
    }
    let hash_of = |hash: u64, system: &System<SimHost>| {
        hash.rotate_left(17).wrapping_mul(HASH) ^ system.trace().hash()
    };
    let received = &mut *received.borrow_mut();
    let ran = Ran {
        scenario: scenario.clone(),
        records: std::mem::take(&mut received.records),
        outcome: outcome.take(),
        result: received.fold.result(&takt_report::Limits::default()),
        journal: received.journal.get_ref().clone(),
        out_of_line: std::mem::take(&mut received.out_of_line),
        published: publisher.counters(),
        told: witness.take(),
        client_streams: client.host().open_streams(),
        heard: client.host().heard().to_vec(),
        left_at_servers: left(&mut servers, &counts),
        span: (started, ended),
        trace_hash: servers.iter().fold(hash_of(0, &client), hash_of),
        dispatches: std::iter::once(&client).chain(&servers).map(|s| s.trace().count()).sum(),
    };
    let what = check::all(&ran);
    if what.is_empty() { Ok(ran) } else { Err(failed(what, trace(&client, &servers))) }
}

impl Ran {
    /// When and by what the session failed, if it did.
    #[must_use]
    pub fn failed(&self) -> Option<(Nanos, FailedBy)> {
        self.records.iter().find_map(|record| match record {
            Kept::Session(session) => match session.event {
                SessionEvent::Failed(by) => Some((session.at, by)),
                _ => None,
            },
            _ => None,
        })
    }
}

/// The plan of a scenario's session.
pub(super) fn plan(scenario: &Scenario) -> SessionPlan {
    let phases = scenario.phases.iter().enumerate().map(|(number, phase)| {
        let (pattern, rate, target) = match phase.load {
            Load::Poisson(rate) => ("poisson", Some(rate), None),
            Load::Constant(rate) => ("constant", Some(rate), None),
            Load::Gamma(rate, _) => ("gamma", Some(rate), None),
            Load::Ramp(from, to, ..) => ("ramp", Some((from + to) / 2.0), None),
            Load::Trace(_, rate, speed) => ("trace", Some(rate * speed), None),
            Load::Concurrency(target) => ("concurrency", None, Some(target)),
            Load::Burst(_) => ("max_throughput", None, None),
            Load::Agentic(talks) => match talks.begin {
                Beginning::Active(target) => ("agentic", None, Some(target)),
                Beginning::Arrivals(..) => ("agentic", None, None),
            },
        };
        PhasePlan {
            name: format!("phase {number}"),
            kind: phase.kind,
            pattern: pattern.to_owned(),
            rate,
            ramp: match phase.load {
                Load::Ramp(from, to, ..) => Some(RampRates { from, to }),
                _ => None,
            },
            target_concurrency: target,
            requests: match phase.load {
                Load::Trace(arrivals, ..) => {
                    phase.limits.requests.map(|requests| requests.min(arrivals.into()))
                }
                _ => phase.limits.requests,
            },
            stream: phase.stream,
            conversations: matches!(phase.load, Load::Agentic(_)).then(ConversationsPlan::default),
        }
    });
    SessionPlan {
        session_id: format!("{:032x}", scenario.seed),
        takt: "simulated".to_owned(),
        started_at: "1970-01-01T00:00:00Z".to_owned(),
        phases: phases.collect(),
        config: Value::Null,
        host: Value::Null,
    }
}

/// The order of a phase, to be drawn by whoever needs it.
pub(super) fn order(phase: &Phase) -> Order {
    let rng = || match phase.mt19937 {
        true => takt_actors::Chance::from(Mt19937::new(phase.seed)),
        false => stream(phase.seed, takt_actors::Purpose::Order).into(),
    };
    match phase.order {
        OrderKind::WithoutReplacement => Order::without_replacement(phase.samples, rng()),
        OrderKind::WithReplacement => Order::with_replacement(phase.samples, rng()),
        OrderKind::Sequential => Order::sequential(phase.samples),
        OrderKind::Single(sample) => Order::single(sample),
    }
}

/// The arrivals of a phase, if it has any.
pub(super) fn arrivals(phase: &Phase) -> Option<Box<dyn Arrivals>> {
    let usable = "rates are drawn between two and fifty thousand";
    let rng = || stream(phase.seed, takt_actors::Purpose::Arrivals);
    match phase.load {
        Load::Poisson(rate) if phase.mt19937 => {
            let rng = Mt19937::new(phase.seed);
            Some(Box::new(ReferencePoisson::new(rate, rng).expect(usable)))
        }
        Load::Poisson(rate) => Some(Box::new(Poisson::new(rate, rng()).expect(usable))),
        Load::Constant(rate) => Some(Box::new(Constant::new(rate).expect(usable))),
        Load::Gamma(rate, burstiness) => {
            Some(Box::new(Gamma::new(rate, burstiness, rng()).expect(usable)))
        }
        Load::Ramp(from, to, over, even) => {
            let gaps = if even { Gaps::even() } else { Gaps::exponential(rng()) };
            Some(Box::new(Ramp::new(from, to, over, gaps).expect(usable)))
        }
        Load::Trace(arrivals, rate, speed) => {
            // Recorded to the millisecond, so that some come together.
            let mut recorded = Poisson::new(rate, rng()).expect(usable);
            let whole = |at: Span| Span::from_millis(at.as_nanos() / 1_000_000);
            let times = (0..arrivals).filter_map(|_| recorded.next()).map(whole);
            let times: std::sync::Arc<[Span]> = times.collect();
            Some(Box::new(Trace::new(times, speed).expect(usable)))
        }
        Load::Concurrency(_) | Load::Burst(_) | Load::Agentic(_) => None,
    }
}

fn phase(number: usize, phase: &Phase, samples: &Rc<RefCell<dyn Samples>>) -> PhaseConfig {
    let strategy: Box<dyn Strategy> = match phase.load {
        Load::Agentic(ref load) => Box::new(talks::strategy(phase, load, order(phase), samples)),
        Load::Concurrency(target) => Box::new(Concurrency::new(order(phase), target)),
        Load::Burst(bound) => Box::new(Burst::new(order(phase), bound)),
        Load::Poisson(_)
        | Load::Constant(_)
        | Load::Gamma(..)
        | Load::Ramp(..)
        | Load::Trace(..) => {
            let arrivals = arrivals(phase).expect("an open loop has arrivals");
            Box::new(Timed::new(arrivals, order(phase)))
        }
    };
    PhaseConfig {
        name: format!("phase {number}"),
        kind: phase.kind,
        strategy,
        samples: if matches!(phase.load, Load::Agentic(_)) { 0 } else { phase.pass() },
        limits: phase.limits,
        share: Share::All,
        drain_after: phase.drain_after,
        drain_timeout: phase.drain_timeout,
    }
}

/// The requests of a phase.
fn samples(phase: &Phase) -> Rc<RefCell<dyn Samples>> {
    match phase.load {
        Load::Agentic(ref load) => Rc::new(RefCell::new(talks::requests(phase, load))),
        _ => Rc::new(RefCell::new(Prepared::new(phase))),
    }
}

/// What carries the requests, and whom to ask when it is warm if the session waits for that.
fn transport(
    scenario: &Scenario,
    samples: &[Rc<RefCell<dyn Samples>>],
    system: &mut System<SimHost>,
    publisher: &SharedPublisher,
) -> (Box<dyn SampleIssuer>, Option<ClientHandle>) {
    let http = match &scenario.transport {
        Transport::Planned(service) => return (planned(service, scenario.seed, system), None),
        Transport::Http(http) => http,
    };
    let live = (0..http.servers).map(address);
    let endpoints = live.chain(http.dead_endpoint.then(|| address(99)));
    let route = |(phase, samples): (&Phase, &Rc<RefCell<dyn Samples>>)| PhaseRoute {
        samples: samples.clone(),
        api: Api::OpenaiChat,
        stream: phase.stream,
        keep_text: phase.kind == takt_record::PhaseKind::Accuracy,
        hears: matches!(phase.load, Load::Agentic(Talks { live: true, .. })),
        turn_timeout: match phase.load {
            Load::Agentic(talks) => talks.turn_timeout,
            _ => None,
        },
    };
    let config = ClientConfig {
        endpoints: endpoints.map(|at| EndpointTarget::new(Target::tcp(at))).collect(),
        balance: http.balance,
        max_connections: http.connections,
        retry_stale: http.retry_stale,
        connect_timeout: http.connect_timeout,
        first_byte_timeout: http.first_byte_timeout,
        request_timeout: http.request_timeout,
        warm_connections: http.warm,
        limits: Limits::default(),
        phases: scenario.phases.iter().zip(samples).map(route).collect(),
    };
    let client = Client::spawn(system, config, publisher.clone(), MAILBOX);
    (Box::new(client.clone()), http.begin_warm.then_some(client))
}

fn planned(service: &Service, seed: u64, system: &mut System<SimHost>) -> Box<dyn SampleIssuer> {
    let (service, mut chance) = (service.clone(), Chance::new(seed, Purpose::Accidents));
    let failure = Failure {
        kind: ErrorKind::HttpStatus,
        blame: Blame::Server,
        stage: Stage::Head,
        status: Some(500),
    };
    let (transport, _) = Planned::spawn(system, move |_| {
        let took = Span::from_nanos(chance.between(0, service.longest.as_nanos()));
        if chance.per_mille(service.never) {
            Plan::Never
        } else if chance.per_mille(service.fails) {
            Plan::Fail(took, failure)
        } else {
            Plan::Answer(took)
        }
    });
    Box::new(transport)
}

fn serve(
    system: &mut System<SimHost>,
    http: &Http,
    number: usize,
    witness: &Witness,
) -> std::sync::Arc<Counts> {
    let mut config = ServerConfig::new(Target::tcp(address(number)), http.mode.clone());
    config.connections_max = http.server_connections;
    config.close_after = http.close_after;
    let server = Server::new(config).expect("shares and statuses are in range");
    let server = server.with_truth(witness.clone());
    let (counts, capacity) = (server.counts(), server.mailbox_capacity());
    system.spawn(server, capacity);
    // It listens before anything else happens.
    system.turn().expect("a simulated park does not fail");
    counts
}

fn left(
    servers: &mut [System<SimHost>],
    counts: &[std::sync::Arc<Counts>],
) -> Vec<(u64, u64, u64)> {
    let alive = servers.iter_mut().zip(counts).filter_map(|(system, counts)| {
        (!system.host().is_dead()).then(|| (counts.open(), counts.running(), counts.waiting()))
    });
    alive.collect()
}

fn address(number: usize) -> SocketAddr {
    ([10, 0, 0, number as u8 + 1], 8000).into()
}

/// Tells the session to stop, as a signal would.
struct Stopper {
    session: Addr<SessionMsg>,
    stops: Vec<Span>,
}

impl Actor for Stopper {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        for &after in &self.stops {
            cx.call_at(cx.now() + after, ());
        }
    }

    fn handle(&mut self, (): (), _cx: &mut Context<'_, Self>) {
        self.session.send(SessionMsg::Stop);
    }
}

/// Tells the session of profiler windows, as whoever takes them would.
struct Profiler {
    session: Addr<SessionMsg>,
    windows: Vec<Span>,
    told: SyncSender<Nanos>,
}

impl Profiler {
    fn new(session: Addr<SessionMsg>, windows: &[Span]) -> Self {
        Self { session, windows: windows.to_vec(), told: sync_channel(0).0 }
    }
}

impl Actor for Profiler {
    type Msg = WindowEvent;

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        let events = [WindowEvent::Opened, WindowEvent::Closed].into_iter().cycle();
        for (&after, event) in self.windows.iter().zip(events) {
            cx.call_at(cx.now() + after, event);
        }
    }

    fn handle(&mut self, event: WindowEvent, _cx: &mut Context<'_, Self>) {
        self.session.send(SessionMsg::Window(event, self.told.clone()));
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panic: {}", words.unwrap_or("without words"))
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} failed", self.scenario.seed)?;
        for what in &self.what {
            writeln!(f, "  {what}")?;
        }
        writeln!(f, "{:#?}", self.scenario)?;
        f.write_str(&self.trace)
    }
}

/// The name of a request in messages.
pub(super) fn name(key: RequestKey) -> String {
    format!("request {}.{}", key.phase.0, key.ordinal)
}

/// A session that still runs after so long has hung.
const HORIZON: Span = Span::from_secs(100_000);
/// Messages that can be under way to one actor: all requests of a session and more.
const MAILBOX: usize = 1 << 16;
/// A block that is refused nineteen times out of twenty is taken long before.
const FLUSHES: usize = 100_000;
/// 2^64 over the golden ratio: spreads.
const HASH: u64 = 0x9e37_79b9_7f4a_7c15;
