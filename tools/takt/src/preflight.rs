//! Is anybody there? Names looked up and one connection made to each endpoint before a run begins.

use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use takt_engine::Target;
use takt_net::resolve;
use takt_time::Span;
use takt_wire::{Endpoint, Scheme};

use crate::exit::{Exit, Failure};

/// An endpoint that took a connection.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) target: Target,
    /// What else was tried, and why that did not do.
    pub(crate) notes: Vec<String>,
    url: String,
}

impl Reached {
    /// For the `host` of a result: where requests really went.
    pub(crate) fn to_json(&self) -> Value {
        let address = match &self.target {
            Target::Tcp { to, .. } => to.to_string(),
            Target::Unix(path) => path.display().to_string(),
        };
        json!({"url": self.url, "address": address, "notes": self.notes})
    }
}

/// Reaches every endpoint, waiting for each address at most for `patience`.
pub(crate) fn reach(endpoints: &[Endpoint], patience: Span) -> Result<Vec<Reached>, Failure> {
    endpoints.iter().map(|endpoint| reach_one(endpoint, patience)).collect()
}

fn reach_one(endpoint: &Endpoint, patience: Span) -> Result<Reached, Failure> {
    let url = endpoint.to_string();
    let unreachable = |why: &dyn std::fmt::Display| {
        Failure::says(Exit::Setup, format!("{url} cannot be reached: {why}; is the server up?"))
    };
    let host = endpoint.host();
    if endpoint.scheme() == Scheme::Unix {
        UnixStream::connect(host).map_err(|error| unreachable(&error))?;
        return Ok(Reached { target: Target::Unix(host.into()), notes: Vec::new(), url });
    }
    let addresses = resolve::resolve(host, endpoint.port())
        .map_err(|error| unreachable(&format!("the name {host}: {error}")))?;
    let found = resolve::probe(&addresses, patience).map_err(|error| unreachable(&error))?;
    Ok(Reached { target: Target::tcp(found.addr), notes: found.notes, url })
}
