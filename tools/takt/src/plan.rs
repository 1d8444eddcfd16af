//! From a configuration to what the actors and the records need: phases, strategies, the session's plan.

use takt_actors::{
    Burst, Concurrency, Constant, Limits, Order, PhaseConfig, Poisson, Purpose, Strategy, Timed,
    stream,
};
use takt_record::{PhasePlan, SessionPlan};
use takt_wire::Api;

use crate::config::{Config, Load, OrderKind, Phase};
use crate::identity::Identity;

/// The plan of the session, for the journal's head and the result.
pub(crate) fn session(
    config: &Config,
    identity: &Identity,
    host: serde_json::Value,
) -> SessionPlan {
    SessionPlan {
        session_id: identity.session_id.clone(),
        takt: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: identity.started_at.clone(),
        phases: config.phases.iter().map(|phase| phase_plan(config, phase)).collect(),
        config: config.resolved(),
        host,
    }
}

fn phase_plan(config: &Config, phase: &Phase) -> PhasePlan {
    PhasePlan {
        name: phase.name.clone(),
        kind: phase.kind,
        pattern: phase.load.pattern().to_owned(),
        rate: phase.load.rate(),
        target_concurrency: match phase.load {
            Load::Concurrency { target } => Some(target),
            Load::Poisson { .. } | Load::Constant { .. } | Load::MaxThroughput { .. } => None,
        },
        requests: phase.stop.requests,
        stream: config.endpoint.stream && config.endpoint.api != Api::Raw,
    }
}

/// What the session is to do in a phase over `samples` samples.
pub(crate) fn phase(
    config: &Config,
    phase: &Phase,
    samples: u32,
) -> Result<PhaseConfig, takt_actors::BadRate> {
    let rng = || stream(phase.seed, Purpose::Order);
    let order = match config.order {
        OrderKind::WithoutReplacement => Order::without_replacement(samples, rng()),
        OrderKind::WithReplacement => Order::with_replacement(samples, rng()),
        OrderKind::Sequential => Order::sequential(samples),
    };
    let strategy: Box<dyn Strategy> = match phase.load {
        Load::Poisson { rate } => {
            let arrivals = Poisson::new(rate, stream(phase.seed, Purpose::Arrivals))?;
            Box::new(Timed::new(Box::new(arrivals), order))
        }
        Load::Constant { rate } => Box::new(Timed::new(Box::new(Constant::new(rate)?), order)),
        Load::MaxThroughput { max_in_flight } => Box::new(Burst::new(order, Some(max_in_flight))),
        Load::Concurrency { target } => Box::new(Concurrency::new(order, target)),
    };
    Ok(PhaseConfig {
        name: phase.name.clone(),
        kind: phase.kind,
        strategy,
        samples,
        limits: Limits {
            requests: phase.stop.requests,
            duration: phase.stop.duration,
            min_duration: phase.stop.min_duration,
            max_duration: phase.stop.max_duration,
        },
        drain_after: phase.drain_after,
        drain_timeout: phase.drain_timeout,
    })
}

/// Connections to open before the first phase, over `samples` samples: no more than it uses at once, since
/// a server with a thread a connection has none left when idle ones hold them. Few for an open loop, where
/// nobody knows; some more where thousands a second are asked for, which no such server serves.
pub(crate) fn warm_connections(config: &Config, samples: u32) -> usize {
    let Some(phase) = config.phases.first() else { return 0 };
    let wanted = match phase.load {
        Load::Concurrency { target } => u64::from(target),
        Load::MaxThroughput { max_in_flight } => max_in_flight,
        Load::Poisson { rate } | Load::Constant { rate } => {
            ((rate / 10.0) as u64).min(WARM_OPEN).max((rate / 500.0) as u64).min(WARM_OPEN_FAST)
        }
    };
    let stop = &phase.stop;
    let once = stop.duration.is_none() && stop.min_duration.is_none();
    let requests = stop.requests.or(once.then_some(u64::from(samples))).unwrap_or(u64::MAX);
    let most = config.max_connections.map_or(usize::MAX, |max| max * config.endpoint.urls.len());
    (wanted.min(requests).min(WARM_MAX) as usize).min(most)
}

const WARM_OPEN: u64 = 8;
const WARM_OPEN_FAST: u64 = 64;
const WARM_MAX: u64 = 1_024;
