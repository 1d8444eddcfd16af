//! What is simulated: everything a run is made of, drawn from one seed.
//!
//! Each seed switches on a subset of what there is (swarm testing: Groce and others, 2012): a run in which
//! everything goes wrong at once hides more than one in which three things do.

use std::num::NonZeroU32;

use takt_actors::{Balance, Limits};
use takt_mock::{
    BatchLimits, CacheConfig, CostModel, CountDistribution, ErrorShare, InstantConfig, Mode,
    Saying, SchedulerConfig, TimedConfig,
};
use takt_record::PhaseKind;
use takt_time::Span;

use super::link::{Cuts, Link};
use super::random::{Chance, Purpose};
use super::talks::{CONTEXT, Talks};

/// One simulated session.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where everything else comes from.
    pub seed: u64,
    /// The network.
    pub link: Link,
    /// What carries requests.
    pub transport: Transport,
    /// The phases of the session.
    pub phases: Vec<Phase>,
    /// When the session is told to stop, counted from its start.
    pub stops: Vec<Span>,
    /// When profiler windows of the servers open and close in turn, counted from its start.
    pub windows: Vec<Span>,
    /// How long a stop waits.
    pub stop_grace: Span,
    /// See [`takt_actors::SessionConfig`].
    pub idle_timeout: Option<Span>,
    /// See [`takt_actors::SessionConfig`].
    pub run_timeout: Option<Span>,
    /// See [`takt_actors::SessionConfig`].
    pub rehearse_ahead: Option<Span>,
    /// How records are received.
    pub records: Records,
}

/// What carries requests.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A planned endpoint without a network.
    Planned(Service),
    /// The HTTP client and reference servers.
    Http(Box<Http>),
}

/// What a planned endpoint does.
#[derive(Clone, Debug)]
pub struct Service {
    /// The longest that it takes.
    pub longest: Span,
    /// Failures out of a thousand.
    pub fails: u32,
    /// Requests out of a thousand that are never answered.
    pub never: u32,
}

/// Client and servers.
#[derive(Clone, Debug)]
pub struct Http {
    /// How a server answers; each has the same plans.
    pub mode: Mode,
    /// Servers.
    pub servers: usize,
    /// One more endpoint, where nobody listens.
    pub dead_endpoint: bool,
    /// The first server dies then, counted from the start.
    pub dies: Option<Span>,
    /// A server closes so long after an answer.
    pub close_after: Option<Span>,
    /// The most connections that a server takes.
    pub server_connections: usize,
    /// The most connections that the client makes to an endpoint.
    pub connections: Option<usize>,
    /// Connections made beforehand.
    pub warm: usize,
    /// The session begins only when they stand, or have failed.
    pub begin_warm: bool,
    /// See [`takt_actors::ClientConfig`].
    pub retry_stale: bool,
    /// See [`takt_actors::ClientConfig`].
    pub balance: Balance,
    /// See [`takt_actors::ClientConfig`].
    pub connect_timeout: Option<Span>,
    /// See [`takt_actors::ClientConfig`].
    pub first_byte_timeout: Option<Span>,
    /// See [`takt_actors::ClientConfig`].
    pub request_timeout: Option<Span>,
}

/// One phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What it is for.
    pub kind: PhaseKind,
    /// Its own chances.
    pub seed: u64,
    /// Draws its order, and the gaps of a Poisson process, as the reference implementation does.
    pub mt19937: bool,
    /// When it issues.
    pub load: Load,
    /// Which sample.
    pub order: OrderKind,
    /// Samples in its dataset.
    pub samples: u32,
    /// When it stops issuing.
    pub limits: Limits,
    /// See [`takt_actors::PhaseConfig`].
    pub drain_after: bool,
    /// See [`takt_actors::PhaseConfig`].
    pub drain_timeout: Option<Span>,
    /// Asks for event streams.
    pub stream: bool,
    /// Asks streams for their usage.
    pub usage: bool,
    /// Bytes of the longest prompt.
    pub prompt_bytes: usize,
    /// Limits every other answer to so many tokens.
    pub max_tokens: Option<u32>,
}

/// A load pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Arrivals a second.
    Poisson(f64),
    /// Arrivals a second.
    Constant(f64),
    /// Arrivals a second, burstiness.
    Gamma(f64, f64),
    /// Arrivals a second at the beginning, at the end, and when that is; evenly spaced or at random.
    Ramp(f64, f64, Span, bool),
    /// So many recorded arrivals, so many a second, so many times as fast.
    Trace(u32, f64, f64),
    /// In flight.
    Concurrency(u32),
    /// In flight at most.
    Burst(Option<u64>),
    /// Conversations; the phase's samples are these.
    Agentic(Talks),
}

/// A sample order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// Shuffled passes.
    WithoutReplacement,
    /// Independent choices.
    WithReplacement,
    /// As they come.
    Sequential,
    /// This one.
    Single(u32),
}

/// How records are received.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    /// Bytes of a block.
    pub block_bytes: usize,
    /// How often out of a thousand times a block is refused.
    pub refused: u32,
    /// Blocks that may wait meanwhile.
    pub overflow_blocks: usize,
}

impl Scenario {
    /// The scenario of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut chance = Chance::new(seed, Purpose::Scenario);
        let c = &mut chance;
        let peaceful = c.per_mille(400);
        let link = Link::draw(c, peaceful);
        let count = c.size(1, 4);
        let mut phases: Vec<Phase> = (0..count).map(|n| phase(c, n + 1 == count)).collect();
        // From a stream of its own: everything else stays what it was for the seed.
        let mut patterns = Chance::new(seed, Purpose::Patterns);
        phases.iter_mut().for_each(|phase| phase.vary(&mut patterns));
        let mut talks = Chance::new(seed, Purpose::Talks);
        phases.iter_mut().for_each(|phase| phase.talk(&mut talks, peaceful));
        if let Cuts::Apart(most) | Cuts::Spaced(most, _) = link.cuts {
            phases.iter_mut().for_each(|p| p.prompt_bytes = p.prompt_bytes.min(most * PIECES));
        }
        let transport = if c.per_mille(100) {
            Transport::Planned(planned(c, peaceful, &mut phases))
        } else {
            Transport::Http(Box::new(http(c, peaceful, link.faults.hang())))
        };
        let stops = if c.per_mille(250) {
            let first = c.span(Span::from_nanos(1), Span::from_secs(5));
            let second = c.coin().then(|| first + c.span(Span::from_nanos(1), Span::from_secs(1)));
            std::iter::once(first).chain(second).collect()
        } else {
            Vec::new()
        };
        let mut records = Records {
            block_bytes: c.magnitude(512, 64 << 10) as usize,
            refused: c.pick(&[0, 0, 300]),
            overflow_blocks: ENOUGH,
        };
        if c.per_mille(50) {
            // Such that records are lost.
            records = Records { block_bytes: 512, refused: 950, overflow_blocks: c.size(0, 3) };
        }
        let stop_grace = c.span(Span::from_micros(1), Span::from_secs(10));
        let mut rehearsal = Chance::new(seed, Purpose::Rehearsal);
        let before = Span::from_nanos(rehearsal.magnitude(1, 1 << 24));
        let mut scenario = Self {
            seed,
            link,
            transport,
            phases,
            stops,
            windows: Vec::new(),
            stop_grace,
            idle_timeout: None,
            run_timeout: None,
            rehearse_ahead: rehearsal.coin().then_some(before),
            records,
        };
        scenario.limit(c);
        if scenario.is_peaceful()
            && let Transport::Http(http) = &scenario.transport
        {
            scenario.phases.iter_mut().for_each(|phase| phase.fit(&http.mode));
        }
        if c.per_mille(250) {
            let mut at = Span::ZERO;
            for _ in 0..c.size(1, 6) {
                at += c.span(Span::from_nanos(1), Span::from_secs(2));
                scenario.windows.push(at);
            }
        }
        scenario
    }

    /// Limits of the session's own. Where something watches for silence, nothing else need end a request
    /// that hangs.
    fn limit(&mut self, c: &mut Chance) {
        if c.per_mille(250) {
            self.idle_timeout = Some(c.span(Span::from_micros(100), Span::from_secs(20)));
            if let Transport::Http(http) = &mut self.transport
                && c.coin()
            {
                http.request_timeout = None;
            }
        }
        if c.per_mille(100) {
            self.run_timeout = Some(c.span(Span::from_micros(1), Span::from_secs(5)));
        }
    }

    /// An ordinary session: Poisson arrivals of `rate` a second for `span`, streamed answers of four tokens.
    #[must_use]
    pub fn steady(seed: u64, rate: f64, span: Span) -> Self {
        let timed = TimedConfig {
            seed,
            ttft: "lognormal:20ms,0.4".parse().expect("a distribution"),
            tpot: "exp:2ms".parse().expect("a distribution"),
            tokens: CountDistribution::fixed(4),
            ..TimedConfig::default()
        };
        let http = Http {
            mode: Mode::Timed(timed),
            servers: 1,
            dead_endpoint: false,
            dies: None,
            close_after: None,
            server_connections: ENOUGH,
            connections: None,
            warm: 0,
            begin_warm: false,
            retry_stale: true,
            balance: Balance::RoundRobin,
            connect_timeout: None,
            first_byte_timeout: None,
            request_timeout: None,
        };
        let phase = Phase {
            kind: PhaseKind::Performance,
            seed,
            mt19937: false,
            load: Load::Poisson(rate),
            order: OrderKind::WithoutReplacement,
            samples: 1_000,
            limits: Limits { duration: Some(span), ..Limits::default() },
            drain_after: true,
            drain_timeout: None,
            stream: true,
            usage: true,
            prompt_bytes: 500,
            max_tokens: None,
        };
        Self {
            seed,
            link: Link::flawless(Span::from_micros(200)),
            transport: Transport::Http(Box::new(http)),
            phases: vec![phase],
            stops: Vec::new(),
            windows: Vec::new(),
            stop_grace: Span::from_secs(10),
            idle_timeout: None,
            run_timeout: None,
            rehearse_ahead: None,
            records: Records { block_bytes: 32 << 10, refused: 0, overflow_blocks: ENOUGH },
        }
    }

    /// Whether nothing but what is planned may go wrong with a request: each is answered as the server
    /// planned it, unless it is given up.
    #[must_use]
    pub fn is_peaceful(&self) -> bool {
        let Transport::Http(http) = &self.transport else { return false };
        self.link.faults.are_none()
            && !matches!(http.mode, Mode::Hostile(_))
            && self.link.backlog >= MANY
            && !http.dead_endpoint
            && http.dies.is_none()
            && (http.close_after.is_none() || http.retry_stale)
            && http.server_connections >= ENOUGH
            && http.connect_timeout.is_none()
            && http.first_byte_timeout.is_none()
            && http.request_timeout.is_none()
            && !self.phases.iter().any(Phase::has_turn_timeout)
    }
}

impl Phase {
    /// Puts one of the rarer patterns in place of an open loop, now and then, and a rarer order.
    fn vary(&mut self, c: &mut Chance) {
        self.mt19937 = c.per_mille(300);
        if c.per_mille(100) {
            self.order = OrderKind::Single(c.between(0, u64::from(self.samples) - 1) as u32);
        }
        let (Load::Poisson(rate) | Load::Constant(rate)) = self.load else { return };
        let other = c.between(0, 1_000) as f64 / 500.0 * rate;
        self.load = match c.between(0, 5) {
            0 => Load::Gamma(rate, c.pick(&[0.05, 0.25, 1.0, 4.0])),
            1 => {
                let over = Span::from_secs_f64(c.magnitude(1, 400) as f64 / rate);
                // What comes after the ramp must not be next to nothing, or it never ends.
                let (from, to) =
                    if c.coin() { (rate, other.max(rate / 4.0)) } else { (other, rate) };
                Load::Ramp(from, to, over, c.coin())
            }
            2 => {
                // A trace is replayed once.
                self.limits.min_duration = None;
                Load::Trace(c.magnitude(1, 500) as u32, rate, c.pick(&[0.5, 1.0, 3.0, 1_000.0]))
            }
            _ => return,
        };
    }

    /// Requests in a pass: what a phase without a limit issues.
    #[must_use]
    pub fn pass(&self) -> u32 {
        match self.load {
            Load::Trace(arrivals, ..) => arrivals,
            _ => self.samples,
        }
    }
}

fn phase(c: &mut Chance, last: bool) -> Phase {
    let requests = c.magnitude(1, 400);
    let rate = c.magnitude(2, 50_000) as f64 / c.pick(&[1.0, 3.0]);
    let load = match c.between(0, 3) {
        0 => Load::Poisson(rate),
        1 => Load::Constant(rate),
        2 => Load::Concurrency(c.magnitude(1, 64) as u32),
        _ => Load::Burst(c.per_mille(700).then(|| c.magnitude(1, 100))),
    };
    let kind = match c.between(0, 9) {
        0..4 if !last => PhaseKind::Warmup,
        9 => PhaseKind::Accuracy,
        _ => PhaseKind::Performance,
    };
    let samples = c.magnitude(1, 60) as u32;
    let longest = if requests <= 20 { 300_000 } else { 3_000 };
    let drains = kind != PhaseKind::Warmup || c.per_mille(200);
    Phase {
        kind,
        seed: c.any(),
        mt19937: false,
        load,
        order: c.pick(&[
            OrderKind::WithoutReplacement,
            OrderKind::WithoutReplacement,
            OrderKind::WithReplacement,
            OrderKind::Sequential,
        ]),
        samples,
        limits: limits(c, load, requests),
        drain_after: drains && !c.per_mille(100),
        drain_timeout: c.per_mille(200).then(|| c.span(Span::from_micros(1), Span::from_secs(5))),
        stream: c.per_mille(750),
        usage: c.per_mille(800),
        prompt_bytes: c.magnitude(1, longest) as usize,
        max_tokens: c.per_mille(300).then(|| c.magnitude(1, 20) as u32),
    }
}

/// Spans alone limit open loops only: a closed loop over a network without latency knows no time.
fn limits(c: &mut Chance, load: Load, requests: u64) -> Limits {
    let none = Limits::default();
    let counted = Limits { requests: Some(requests), ..none };
    let (Load::Poisson(rate) | Load::Constant(rate)) = load else {
        return match c.between(0, 4) {
            0 => none,
            1 => {
                let max_duration = Some(c.span(Span::from_micros(1), Span::from_secs(3)));
                Limits { max_duration, ..counted }
            }
            _ => counted,
        };
    };
    let span = Span::from_secs_f64(requests as f64 / rate);
    match c.between(0, 6) {
        0 => none,
        1 => Limits { duration: Some(span), ..none },
        2 => Limits { duration: Some(span), ..counted },
        3 => Limits { min_duration: Some(span), ..none },
        4 => Limits { max_duration: Some(span), ..counted },
        _ => counted,
    }
}

fn planned(c: &mut Chance, peaceful: bool, phases: &mut [Phase]) -> Service {
    let never = if peaceful { 0 } else { c.pick(&[0, 10, 100]) };
    if never > 0 {
        for phase in phases {
            let timeout = c.span(Span::from_micros(1), Span::from_secs(5));
            phase.drain_timeout = Some(timeout);
            // A closed loop whose places are all lost would wait for ever, rightly.
            let closed = matches!(phase.load, Load::Concurrency(_) | Load::Burst(Some(_)));
            if closed || matches!(phase.load, Load::Agentic(_)) {
                let most = phase.limits.max_duration.unwrap_or(Span::from_secs(3));
                phase.limits.max_duration = Some(most);
            }
        }
    }
    Service {
        longest: c.span(Span::from_nanos(1), Span::from_secs(2)),
        fails: c.pick(&[0, 0, 50, 1000]),
        never,
    }
}

fn http(c: &mut Chance, peaceful: bool, hangs: bool) -> Http {
    let mut timeout = |often| {
        (!peaceful && c.per_mille(often))
            .then(|| c.span(Span::from_micros(10), Span::from_secs(30)))
    };
    let (connect_timeout, first_byte_timeout) = (timeout(300), timeout(200));
    let mut request_timeout = timeout(250);
    if hangs {
        request_timeout.get_or_insert(Span::from_secs(30));
    }
    Http {
        mode: mode(c),
        servers: c.pick(&[1, 1, 1, 2, 3]),
        dead_endpoint: !peaceful && c.per_mille(100),
        dies: (!peaceful && c.per_mille(100))
            .then(|| c.span(Span::from_micros(1), Span::from_secs(3))),
        close_after: c
            .per_mille(100)
            .then(|| c.pick(&[Span::ZERO, Span::from_micros(30), Span::from_millis(2)])),
        server_connections: if !peaceful && c.per_mille(100) { c.size(1, 10) } else { ENOUGH },
        connections: c.per_mille(400).then(|| c.magnitude(1, 64) as usize),
        warm: c.pick(&[0, 0, 3, 64]),
        begin_warm: c.per_mille(300),
        retry_stale: c.per_mille(800),
        balance: c.pick(&[Balance::RoundRobin, Balance::LeastInFlight]),
        connect_timeout,
        first_byte_timeout,
        request_timeout,
    }
}

fn mode(c: &mut Chance) -> Mode {
    let few = |c: &mut Chance| NonZeroU32::new(c.magnitude(1, 5) as u32).expect("one at least");
    if c.per_mille(150) {
        return Mode::Instant(InstantConfig { tokens: few(c) });
    }
    let ttft = c.span(Span::from_nanos(1), Span::from_millis(800)).as_nanos();
    let tpot = c.span(Span::from_nanos(1), Span::from_millis(50)).as_nanos();
    let shape = |c: &mut Chance, ns: u64| match c.between(0, 4) {
        0 => "0".to_owned(),
        1 => format!("{ns}ns"),
        2 => format!("uniform:0..{ns}ns"),
        3 => format!("exp:{ns}ns"),
        _ => format!("lognormal:{ns}ns,0.7"),
    };
    let parsed = "written by the rules of the distributions";
    let errors = match c.between(0, 4) {
        0 => vec![ErrorShare { status: 429, share: 0.1 }, ErrorShare { status: 500, share: 0.1 }],
        _ => Vec::new(),
    };
    let answers = TimedConfig {
        seed: c.any(),
        ttft: shape(c, ttft).parse().expect(parsed),
        tpot: shape(c, tpot).parse().expect(parsed),
        tokens: format!("uniform:1..{}", c.magnitude(1, 60)).parse().expect(parsed),
        tokens_per_event: if c.per_mille(800) { NonZeroU32::MIN } else { few(c) },
        role_first: c.coin(),
        tail: if c.per_mille(800) {
            Span::ZERO
        } else {
            c.span(Span::from_nanos(1), Span::from_millis(5))
        },
        slots: c.per_mille(300).then(|| few(c)),
        errors,
        saying: Saying::Words,
    };
    if c.per_mille(850) {
        return Mode::Timed(answers);
    }
    // So little room that requests wait, are cut and thrown out.
    let some = |most: u32| NonZeroU32::new(most).expect("one at least");
    Mode::Scheduler(Box::new(SchedulerConfig {
        answers: TimedConfig { slots: None, tokens_per_event: NonZeroU32::MIN, ..answers },
        batch: BatchLimits {
            tokens: some(16 << c.between(0, 6) as u32),
            requests: some(1 << c.between(0, 8) as u32),
        },
        cache: CacheConfig {
            blocks: some(256 << c.between(0, 5) as u32),
            block_tokens: some(16),
            prefixes: c.coin(),
        },
        context_max: some(CONTEXT),
        cost: CostModel {
            step: c.span(Span::from_nanos(1), Span::from_millis(5)),
            ..CostModel::default()
        },
        ..SchedulerConfig::default()
    }))
}

/// Connections, or blocks, that no scenario needs more of.
const ENOUGH: usize = 65_536;
/// Connections that no scenario asks for at once.
const MANY: u32 = 2_000;
/// Pieces that a request is cut into at the most, or the simulation of bytes would take all the time.
const PIECES: usize = 400;
