//! `takt probe`: is it there, and does it answer as the API says?
//!
//! A few requests, one after another over one connection, with plain blocking sockets: this is no
//! measurement. What is read of the answers goes through the same reader as in a run, so what the probe
//! understands a run understands.

mod exchange;
mod models;
mod says;

use std::time::Duration;

use takt_net::tls::ClientTls;
use takt_time::Span;
use takt_wire::Endpoint;

use crate::cli::{Format, ProbeArgs};
use crate::config::{self, Config, EndpointConfig, Node, Origin, put};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::preflight::{self, Reached};
use crate::{flags, outcome, run, samples};
use exchange::Exchange;

pub(crate) use exchange::Line;

/// What was seen of one address.
struct Probed {
    reached: Reached,
    /// Where the list of models was asked for: what it said.
    models: Option<models::Models>,
    /// The model that was used; empty where none was named.
    model: String,
    exchanges: Vec<Exchange>,
}

/// Probes every address.
pub(crate) fn probe(args: &ProbeArgs, console: &Console) -> Result<Exit, Failure> {
    let config = configuration(args).or_exit(Exit::Input)?;
    console.hide(&config.secrets);
    let tls = run::client_tls(&config, console)?;
    let mut all = Vec::new();
    for url in &config.endpoint.urls {
        all.push(one(&config, url, tls.as_ref(), args, console)?);
    }
    for exchange in all.iter_mut().flat_map(|probed| &mut probed.exchanges) {
        exchange.texts().for_each(|text| config::clear(text, &config.secrets));
    }
    let mut text = match args.format {
        Format::Text => says::text(&all, config.endpoint.api),
        Format::Json => says::json(&all, config.endpoint.api),
    };
    config::clear(&mut text, &config.secrets);
    outcome::print(&text)?;
    let failed: Vec<_> =
        all.iter().flat_map(|p| &p.exchanges).filter_map(Exchange::fault).collect();
    let Some(first) = failed.first() else { return Ok(Exit::Done) };
    let sent: usize = all.iter().map(|probed| probed.exchanges.len()).sum();
    console.error(format!("{} of {sent} requests failed; the first: {first}", failed.len()));
    Ok(Exit::Failed)
}

/// The configuration of a run that does nothing, for its endpoint.
fn configuration(args: &ProbeArgs) -> anyhow::Result<Config> {
    let mut tree = Node::map();
    flags::put_endpoint(&mut tree, &args.endpoint)?;
    let phases = Node::from_argument(PHASES, &Origin::Implied)?;
    put(&mut tree, &["phases"], phases)?;
    Ok(Config::read(&tree, "probe")?)
}

fn one(
    config: &Config,
    url: &Endpoint,
    tls: Option<&ClientTls>,
    args: &ProbeArgs,
    console: &Console,
) -> Result<Probed, Failure> {
    let mut found = preflight::reach(std::slice::from_ref(url), args.timeout, tls)?;
    let Some(reached) = found.pop() else {
        return Err(Failure::says(Exit::Internal, "an address was neither reached nor refused"));
    };
    reached.notes.iter().for_each(|note| console.warn(note));
    let timeout = Duration::from_nanos(args.timeout.as_nanos()).max(Duration::from_millis(1));
    let mut line = Line::new(reached.target.clone(), tls.cloned(), timeout);
    let mut endpoint = config.endpoint.clone();
    let mut models = None;
    if endpoint.model.is_empty() && endpoint.api.names_model() {
        let listed = models::list(&mut line, &endpoint, url).or_exit(Exit::Failed)?;
        endpoint.model = listed.first(url)?;
        models = Some(listed);
    }
    let exchanges = ask(&mut line, &endpoint, url, args)?;
    Ok(Probed { reached, models, model: endpoint.model, exchanges })
}

/// One request for a whole answer, then those for streamed ones, where the API has them.
fn ask(
    line: &mut Line,
    endpoint: &EndpointConfig,
    url: &Endpoint,
    args: &ProbeArgs,
) -> Result<Vec<Exchange>, Failure> {
    let mut exchanges = Vec::new();
    for place in 0..=args.requests {
        let stream = place > 0 && endpoint.api.streams();
        let asked = EndpointConfig { stream, ..endpoint.clone() };
        let mut request = samples::one(&asked, url, &args.prompt).or_exit(Exit::Input)?;
        request.patch_id(format!("{place:032x}").as_bytes().try_into().unwrap_or(&[b'0'; 32]));
        exchanges.push(line.exchange(&request, endpoint.api, stream));
    }
    Ok(exchanges)
}

/// Milliseconds from `start`, where it came to that.
fn ms(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_millis_f64)
}

const PHASES: &str =
    "[{name: probe, requests: 1, load: {pattern: concurrency, target_concurrency: 1}}]";
