//! Service level objectives, as far as one request can meet or miss them.

use serde_json::Value;
use takt_record::{Distribution, Percentiles, PhaseResult, SessionPlan, SloGate, Times};
use takt_time::{Nanos, Span};

/// Limits that a request must keep to count as goodput.
///
/// From `slo` of the configuration: `{ttft_ms: {p99: 500}, tpot_ms: 50, latency_ms: …}`. Of several
/// percentiles the most lenient limit is the one that a single request is held to. What a request does
/// not have (TTFT without a stream, TPOT of one token) is not held against it.
#[derive(Clone, Debug)]
pub(crate) struct Slo {
    given: Value,
    latency: Option<Span>,
    ttft: Option<Span>,
    tpot: Option<Span>,
}

impl Slo {
    /// The objective of a session; `None` when none of its limits is about single requests.
    pub(crate) fn of(plan: &SessionPlan) -> Option<Self> {
        let given = plan.config.get("slo")?;
        let limit = |key| {
            let ms = match given.get(key)? {
                Value::Object(limits) => {
                    limits.values().filter_map(Value::as_f64).reduce(f64::max)?
                }
                one => one.as_f64()?,
            };
            Some(Span::from_secs_f64(ms / 1e3))
        };
        let (latency, ttft, tpot) = (limit("latency_ms"), limit("ttft_ms"), limit("tpot_ms"));
        let any = latency.or(ttft).or(tpot).is_some();
        any.then(|| Self { given: given.clone(), latency, ttft, tpot })
    }

    /// The objective as it was given.
    pub(crate) fn given(&self) -> &Value {
        &self.given
    }

    /// The percentiles of the objective held against a phase, from the schedule where there is one.
    pub(crate) fn gates(&self, result: &PhaseResult) -> Vec<SloGate> {
        let views = [
            ("ttft_ms", result.ttft_ms.from_schedule.or(result.ttft_ms.from_send)),
            ("tpot_ms", result.tpot_ms),
            ("latency_ms", result.latency_ms.from_schedule.or(result.latency_ms.from_send)),
        ];
        let mut gates = Vec::new();
        for (metric, distribution) in views {
            let Some(Value::Object(limits)) = self.given.get(metric) else { continue };
            for (name, limit) in limits {
                let percentile = name.trim_start_matches('p').to_owned();
                let Some((limit, read)) = limit.as_f64().zip(reader(&percentile)) else { continue };
                let value = distribution.map(|Distribution { p, .. }| read(&p));
                let met = value.is_some_and(|value| value <= limit);
                gates.push(SloGate { metric: metric.to_owned(), percentile, limit, value, met });
            }
        }
        gates
    }

    /// Did a request that succeeded keep all limits? Latency and TTFT run from the schedule if there is
    /// one: that is what a user of the service would have seen.
    pub(crate) fn met(&self, times: &Times, tpot: Option<Span>) -> bool {
        let Some(start) = times.scheduled.or(times.sent) else { return false };
        let since = |at: Nanos| at.saturating_since(start);
        let within = |value: Option<Span>, limit: Option<Span>| match (value, limit) {
            (Some(value), Some(limit)) => value <= limit,
            _ => true,
        };
        within(Some(since(times.end)), self.latency)
            && within(times.first_token.map(since), self.ttft)
            && within(tpot, self.tpot)
    }
}

/// Where a percentile of this name stands.
fn reader(name: &str) -> Option<fn(&Percentiles) -> f64> {
    Some(match name {
        "1" => |p| p.p1,
        "5" => |p| p.p5,
        "10" => |p| p.p10,
        "25" => |p| p.p25,
        "50" => |p| p.p50,
        "75" => |p| p.p75,
        "90" => |p| p.p90,
        "95" => |p| p.p95,
        "99" => |p| p.p99,
        "99.9" => |p| p.p99_9,
        _ => return None,
    })
}
