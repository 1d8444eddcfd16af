//! Service level objectives, as far as one request can meet or miss them.

use serde_json::Value;
use takt_record::{SessionPlan, Times};
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
