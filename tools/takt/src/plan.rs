//! From a configuration to what the actors and the records need: phases, strategies, the session's plan.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context as _;
use takt_actors::{
    Agentic, AgenticConfig, Arrivals, BadArrivals, Begin, Burst, Chance, Concurrency, Constant,
    Gamma, Gaps, Limits, Mt19937, Order, Paced, Pacer, PhaseConfig, Poisson, Purpose, Ramp,
    ReferencePoisson, Samples, Strategy, Think, Timed, Trace, Until, stream,
};
use takt_record::{ConversationsPlan, PhaseKind, PhasePlan, RampRates, SessionPlan};
use takt_time::Span;

use crate::config::{self, AgenticLoad, Config, Generator, Load, OrderKind, Phase, Spacing};
use crate::identity::Identity;
use crate::samples::Prepared;
use crate::shares::Shares;

/// Times of each phase that replays a recording.
pub(crate) type Times = [Option<Arc<[Span]>>];

/// The plan of the session, for the journal's head and the result.
pub(crate) fn session(
    config: &Config,
    times: &Times,
    identity: &Identity,
    host: serde_json::Value,
) -> SessionPlan {
    let phases = config.phases.iter().zip(times);
    SessionPlan {
        session_id: identity.session_id.clone(),
        takt: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: identity.started_at.clone(),
        phases: phases.map(|(phase, times)| phase_plan(config, phase, times.as_deref())).collect(),
        config: config.resolved(),
        host,
    }
}

fn phase_plan(config: &Config, phase: &Phase, times: Option<&[Span]>) -> PhasePlan {
    PhasePlan {
        name: phase.name.clone(),
        kind: phase.kind,
        pattern: phase.load.pattern().to_owned(),
        rate: phase.load.rate().or_else(|| mean_rate(&phase.load, times?)),
        ramp: match phase.load {
            Load::Ramp { from, to, .. } => Some(RampRates { from, to }),
            _ => None,
        },
        target_concurrency: match phase.load {
            Load::Concurrency { target } => Some(target),
            Load::Agentic(ref agentic) => agentic.target(),
            _ => None,
        },
        // A recording ends, whatever more was asked for.
        requests: match times {
            Some(times) => phase.stop.requests.map(|requests| requests.min(times.len() as u64)),
            None => phase.stop.requests,
        },
        stream: config.endpoint.stream && config.endpoint.api.streams(),
        conversations: phase.load.agentic().map(|agentic| ConversationsPlan {
            arrivals_per_s: match agentic.begin {
                config::Begin::Arrivals(rate, _) => Some(rate),
                config::Begin::Concurrency(_) => None,
            },
            ids: Vec::new(),
        }),
    }
}

/// Mean arrivals a second of a recording, from its first to its last.
fn mean_rate(load: &Load, times: &[Span]) -> Option<f64> {
    let last = times.last().filter(|last| **last > Span::ZERO)?;
    Some((times.len() - 1) as f64 / last.as_secs_f64() * load.speed())
}

/// What the session is to do in a phase over `samples` samples, at `times` if it replays some. `clock` says
/// when they have come, if that is not the reactor's business. The phase is in `place` among all, and shared as in
/// `shares`.
pub(crate) fn phase(
    config: &Config,
    place: usize,
    shares: &Shares,
    prepared: &Rc<RefCell<Prepared>>,
    times: Option<&Arc<[Span]>>,
    clock: Option<Box<dyn Pacer>>,
) -> anyhow::Result<PhaseConfig> {
    let phase = &config.phases[place];
    let samples = prepared.borrow().len();
    let talks = prepared.borrow().talks().map(|talks| talks.scripts.len() as u32);
    let order = order(config, phase, talks.unwrap_or(samples))?;
    let strategy: Box<dyn Strategy> = match (arrivals(config.rng, phase, times)?, clock) {
        (Some(_), Some(clock)) => Box::new(Paced::new(clock, order)),
        (Some(arrivals), None) => Box::new(Timed::new(arrivals, order)),
        (None, _) => match &phase.load {
            Load::Concurrency { target } => {
                Box::new(Concurrency::new(order, shares.part((*target).into()) as u32))
            }
            Load::Agentic(load) => agentic(phase, load, order, prepared)?,
            _ => Box::new(Burst::new(order, phase.load.in_flight().map(|most| shares.part(most)))),
        },
    };
    Ok(PhaseConfig {
        name: phase.name.clone(),
        kind: phase.kind,
        strategy,
        // Without a limit of its own a phase issues its dataset once, or its recording.
        samples: match times {
            Some(times) => u32::try_from(times.len()).unwrap_or(u32::MAX),
            // Conversations know of their own when they are through.
            None if talks.is_some() => 0,
            None => pass(phase, samples),
        },
        limits: Limits {
            requests: phase.stop.requests,
            duration: phase.stop.duration,
            min_duration: phase.stop.min_duration,
            max_duration: phase.stop.max_duration,
        },
        share: shares.of_phase(place, phase.load.is_timed()),
        drain_after: phase.drain_after,
        drain_timeout: phase.drain_timeout,
    })
}

fn order(config: &Config, phase: &Phase, samples: u32) -> anyhow::Result<Order> {
    // Answers are compared row by row and run by run.
    if phase.load.replays_rows() || phase.kind == PhaseKind::Accuracy {
        return Ok(Order::sequential(samples));
    }
    let rng = || match config.rng {
        Generator::Xoshiro => Chance::from(stream(phase.seed, Purpose::Order)),
        Generator::Mt19937 => Mt19937::new(phase.seed).into(),
    };
    Ok(match config.order {
        OrderKind::WithoutReplacement => Order::without_replacement(samples, rng()),
        OrderKind::WithReplacement => Order::with_replacement(samples, rng()),
        OrderKind::Sequential => Order::sequential(samples),
        OrderKind::Single(place) => {
            anyhow::ensure!(
                place < samples,
                "order single:{place}: phase `{}` has {samples} samples, counted from 0",
                phase.name
            );
            Order::single(place)
        }
    })
}

/// When a timed phase sends, at `times` if it replays some; `None` of one that is not timed.
pub(crate) fn arrivals(
    rng: Generator,
    phase: &Phase,
    times: Option<&Arc<[Span]>>,
) -> Result<Option<Box<dyn Arrivals>>, BadArrivals> {
    let gaps = || stream(phase.seed, Purpose::Arrivals);
    let arrivals: Box<dyn Arrivals> = match phase.load {
        Load::MaxThroughput { .. } | Load::Concurrency { .. } | Load::Agentic(_) => {
            return Ok(None);
        }
        Load::Poisson { rate } => match rng {
            Generator::Xoshiro => Box::new(Poisson::new(rate, gaps())?),
            Generator::Mt19937 => Box::new(ReferencePoisson::new(rate, Mt19937::new(phase.seed))?),
        },
        Load::Constant { rate } => Box::new(Constant::new(rate)?),
        Load::Gamma { rate, burstiness } => Box::new(Gamma::new(rate, burstiness, gaps())?),
        Load::Ramp { from, to, spacing } => {
            let gaps = match spacing {
                Spacing::Poisson => Gaps::exponential(gaps()),
                Spacing::Constant => Gaps::even(),
                Spacing::Gamma { burstiness } => Gaps::gamma(burstiness, gaps())?,
            };
            // A ramp without a duration was refused.
            Box::new(Ramp::new(from, to, phase.stop.duration.unwrap_or_default(), gaps)?)
        }
        Load::Trace { speed, .. } => {
            Box::new(Trace::new(times.cloned().unwrap_or_default(), speed)?)
        }
    };
    Ok(Some(arrivals))
}

/// A phase of conversations, begun in `order`.
fn agentic(
    phase: &Phase,
    load: &AgenticLoad,
    order: Order,
    prepared: &Rc<RefCell<Prepared>>,
) -> anyhow::Result<Box<dyn Strategy>> {
    let talks = prepared.borrow().talks().cloned();
    let scripts = talks.context("a phase of conversations has some")?.scripts;
    let gaps = || stream(phase.seed, Purpose::Arrivals);
    let begin = match load.begin {
        config::Begin::Concurrency(target) => Begin::Concurrency(target),
        config::Begin::Arrivals(rate, spacing) => Begin::Arrivals(match spacing {
            Spacing::Poisson => Box::new(Poisson::new(rate, gaps())?),
            Spacing::Constant => Box::new(Constant::new(rate)?),
            Spacing::Gamma { burstiness } => Box::new(Gamma::new(rate, burstiness, gaps())?),
        }),
    };
    let stop = &phase.stop;
    let until = match load.conversations {
        Some(count) => Until::Conversations(count),
        None if stop.requests.is_some() || stop.duration.is_some() => Until::Endless,
        None if phase.repeats > 1 => {
            Until::Conversations(scripts.len() as u64 * u64::from(phase.repeats))
        }
        None => Until::Passes(stop.min_duration),
    };
    let histories: Rc<RefCell<dyn Samples>> = prepared.clone();
    let config = AgenticConfig {
        begin,
        until,
        recorded_delays: load.delays,
        think: load.think.map(|time| Think::new(time, phase.seed)),
        stop_on_first_complete: load.stop_on_first,
        histories: load.live.then_some(histories),
    };
    Ok(Box::new(Agentic::new(scripts, order, config)))
}

/// Requests that a phase will issue unless time ends it, over samples that are made ready.
pub(crate) fn length(phase: &Phase, prepared: &Prepared) -> u32 {
    let samples = prepared.len();
    let (Some(load), Some(talks)) = (phase.load.agentic(), prepared.talks()) else {
        return pass(phase, samples);
    };
    match load.conversations {
        // Which ones is not known beforehand where they are drawn.
        Some(count) => {
            let turns = count as f64 * f64::from(samples) / talks.scripts.len() as f64;
            turns.round().min(f64::from(u32::MAX)) as u32
        }
        None => pass(phase, samples),
    }
}

/// The requests of one pass of a phase over `samples` samples: every one as often as it is to be asked.
pub(crate) fn pass(phase: &Phase, samples: u32) -> u32 {
    samples.saturating_mul(phase.repeats)
}

/// Connections to open before the first phase, over `samples` samples: no more than it uses at once, since
/// a server with a thread a connection has none left when idle ones hold them. Few for an open loop, where
/// nobody knows; some more where thousands a second are asked for, which no such server serves.
pub(crate) fn warm_connections(config: &Config, samples: u32) -> usize {
    let Some(phase) = config.phases.first() else { return 0 };
    let wanted = match phase.load {
        Load::Concurrency { target } => u64::from(target),
        Load::Agentic(ref agentic) => agentic.target().map_or(WARM_OPEN, u64::from),
        Load::MaxThroughput { max_in_flight } => max_in_flight,
        Load::Trace { .. } => WARM_OPEN,
        Load::Poisson { .. } | Load::Constant { .. } | Load::Gamma { .. } | Load::Ramp { .. } => {
            let rate = phase.load.rate().unwrap_or_default();
            ((rate / 10.0) as u64).min(WARM_OPEN).max((rate / 500.0) as u64).min(WARM_OPEN_FAST)
        }
    };
    let requests = phase.stop.counted(pass(phase, samples).into()).unwrap_or(u64::MAX);
    if let Some(warm) = config.connections.warm {
        return warm;
    }
    let most = config.connections.max.map_or(usize::MAX, |max| max * config.endpoint.urls.len());
    (wanted.min(requests).min(WARM_MAX) as usize).min(most)
}

const WARM_OPEN: u64 = 8;
const WARM_OPEN_FAST: u64 = 64;
const WARM_MAX: u64 = 1_024;
