//! The limits of the verdict.
//!
//! A key has the name of its reason and is the limit that the report prints with it.

use serde_json::{Map, Value as Json, json};
use takt_report::Limits;
use takt_time::Span;

use super::error::ConfigError;
use super::keys;
use super::reader::Table;

/// A limit in the unit of its key.
struct Limit {
    key: &'static str,
    get: fn(&Limits) -> f64,
    set: fn(&mut Limits, f64),
}

/// A limit that is a number as it stands.
macro_rules! plain {
    ($key:literal, $field:ident) => {
        Limit { key: $key, get: |limits| limits.$field, set: |limits, value| limits.$field = value }
    };
}

/// A limit that is a time, given in microseconds.
macro_rules! micros {
    ($key:literal, $field:ident) => {
        Limit {
            key: $key,
            get: |limits| limits.$field.as_micros_f64(),
            set: |limits, value| limits.$field = Span::from_secs_f64(value / 1e6),
        }
    };
}

const LIMITS: [Limit; 20] = [
    micros!("lateness_p99_us", lateness),
    plain!("lateness_gap_share", lateness_gap_share),
    plain!("off_schedule", off_schedule),
    plain!("runnable", runnable),
    plain!("stolen", stolen),
    plain!("involuntary_per_s", involuntary),
    micros!("unread_us", unread),
    plain!("unread_share", unread_share),
    plain!("socket_wait", socket_wait),
    plain!("ring_spilled", spilled),
    plain!("limited", limited),
    plain!("local_limit", refused),
    plain!("leftover", leftover),
    Limit {
        key: "survivors",
        get: |limits| 1.0 - limits.casualties,
        set: |limits, value| limits.casualties = 1.0 - value,
    },
    plain!("coalesced", coalesced),
    plain!("token_counts", disagreeing),
    plain!("unseen_tokens", unseen),
    plain!("unasked_stream", unasked),
    plain!("client_bound", busy),
    plain!("fold_share", fold),
];

/// Reads the section `verdict`.
pub(super) fn read(root: &Table<'_>) -> Result<Limits, ConfigError> {
    let mut limits = Limits::default();
    let Some(field) = root.get("verdict") else { return Ok(limits) };
    let table = field.table(&keys::VERDICT)?;
    for Limit { key, set, .. } in LIMITS {
        let Some(field) = table.get(key) else { continue };
        let value = field.positive()?;
        if key == "survivors" && value >= 1.0 {
            return Err(field.error("must be below 1: the share of requests that must succeed"));
        }
        set(&mut limits, value);
    }
    Ok(limits)
}

/// The section written out again.
pub(super) fn to_json(limits: &Limits) -> Json {
    LIMITS.iter().map(|limit| (limit.key.to_owned(), json!((limit.get)(limits)))).collect()
}

/// The limits that a resolved configuration holds; those of earlier versions hold none.
pub(crate) fn verdict_limits(config: &Json) -> Limits {
    let mut limits = Limits::default();
    let none = Map::new();
    let section = config.get("verdict").and_then(Json::as_object).unwrap_or(&none);
    for Limit { key, set, .. } in LIMITS {
        if let Some(value) = section.get(key).and_then(Json::as_f64) {
            set(&mut limits, value);
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_goes_out_and_comes_back_and_has_a_key_in_the_table() {
        let mut limits = Limits::default();
        for (place, limit) in LIMITS.iter().enumerate() {
            let value = 0.25 + place as f64 / 64.0;
            (limit.set)(&mut limits, value);
            assert!(((limit.get)(&limits) - value).abs() < 1e-3, "{}", limit.key);
            assert!(keys::VERDICT.has(limit.key), "{}", limit.key);
        }
        assert_eq!(keys::VERDICT.keys.len(), LIMITS.len());
        let config = json!({"verdict": to_json(&limits)});
        assert_eq!(verdict_limits(&config), limits);
        assert_eq!(verdict_limits(&json!({})), Limits::default());
    }
}
