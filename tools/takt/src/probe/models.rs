//! The list of models that a server has.

use anyhow::Context as _;
use serde_json::Value;
use takt_wire::{Endpoint, Method, Route};

use super::exchange::Line;
use crate::config::EndpointConfig;
use crate::exit::{Exit, Failure};
use crate::samples;

/// What the server said when it was asked for its models.
pub(super) struct Models {
    pub(super) status: u16,
    pub(super) names: Vec<String>,
}

/// Asks `/v1/models`.
pub(super) fn list(
    line: &mut Line,
    endpoint: &EndpointConfig,
    url: &Endpoint,
) -> anyhow::Result<Models> {
    let request = samples::builder(endpoint, url, Method::Get, Route::Versioned("models"))?;
    let (status, body) = line.fetch(&request.build(&[])).with_context(|| {
        format!("{url}: the list of models could not be read (--model NAME does without it)")
    })?;
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    let rows = json.get("data").and_then(Value::as_array);
    let names = rows.into_iter().flatten().filter_map(|row| Some(row.get("id")?.as_str()?.into()));
    Ok(Models { status, names: names.take(NAMES_MAX).collect() })
}

impl Models {
    /// The one that is used when none is named.
    pub(super) fn first(&self, url: &Endpoint) -> Result<String, Failure> {
        self.names.first().cloned().ok_or_else(|| {
            let status = self.status;
            let exit = if status == 200 { Exit::Input } else { Exit::Failed };
            Failure::says(
                exit,
                format!("{url} lists no models (/v1/models: status {status}); give --model NAME"),
            )
        })
    }
}

const NAMES_MAX: usize = 1_000;
