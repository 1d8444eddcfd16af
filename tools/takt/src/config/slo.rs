//! `slo`: what a request, and a phase, must keep.
//!
//! Each metric has a number, which every single request is held to, or percentiles, which the phase is held
//! to. Goodput counts the requests that keep all numbers; of percentiles a single request keeps the most
//! lenient. A percentile that is missed is said in the report, and ends a run with `--strict` in code 5.

use serde_json::{Map, Value as Json, json};

use super::endpoint::EndpointConfig;
use super::error::ConfigError;
use super::keys;
use super::node::Value;
use super::reader::{Field, Table};

/// The objectives of a run, of one metric at least.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slo(Vec<(&'static str, Objective)>);

/// The objective of one metric, in milliseconds.
#[derive(Clone, Debug, PartialEq)]
enum Objective {
    /// For each request.
    Each(f64),
    /// For percentiles of a phase, by name.
    Percentiles(Vec<(&'static str, f64)>),
}

impl Slo {
    pub(super) fn read(
        root: &Table<'_>,
        endpoint: &EndpointConfig,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(field) = root.get("slo") else { return Ok(None) };
        let table = field.table(&keys::SLO)?;
        if !endpoint.stream {
            for key in ["ttft_ms", "tpot_ms"] {
                table.refuse(key, "answers are not streamed, so nobody sees their tokens come")?;
            }
        }
        let mut objectives = Vec::new();
        for key in ["ttft_ms", "tpot_ms", "latency_ms"] {
            if let Some(field) = table.get(key) {
                objectives.push((key, Objective::read(&field)?));
            }
        }
        if objectives.is_empty() {
            return Err(table.error("holds no objective; write {ttft_ms: {p99: 500}}"));
        }
        Ok(Some(Self(objectives)))
    }

    pub(super) fn to_json(&self) -> Json {
        let objective = |objective: &Objective| match objective {
            Objective::Each(limit) => json!(limit),
            Objective::Percentiles(limits) => {
                limits.iter().map(|(name, limit)| ((*name).to_owned(), json!(limit))).collect()
            }
        };
        let all = self.0.iter().map(|(key, o)| ((*key).to_owned(), objective(o)));
        Json::Object(all.collect::<Map<_, _>>())
    }
}

impl Objective {
    fn read(field: &Field<'_>) -> Result<Self, ConfigError> {
        if !matches!(field.node.value, Value::Map(_)) {
            return field.positive().map(Self::Each);
        }
        let table = field.table(&keys::PERCENTILES)?;
        let mut limits = Vec::new();
        for name in keys::PERCENTILES.names() {
            if let Some(field) = table.get(name) {
                limits.push((name, field.positive()?));
            }
        }
        if limits.is_empty() {
            return Err(table.error("holds no percentile; write {p99: 500}"));
        }
        if let Some([(low, at), (high, below)]) =
            limits.windows(2).find(|two| two[0].1 > two[1].1).map(|two| [two[0], two[1]])
        {
            return Err(table.error(format!(
                "asks {high} to be at most {below} and {low} at most {at}; {low} is never above {high}"
            )));
        }
        Ok(Self::Percentiles(limits))
    }
}
