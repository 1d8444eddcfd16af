//! From a file, flags and `--set` to a configuration in which nothing is implied.
//!
//! ```text
//! CONFIG.yaml ─> Node ──${VAR}──> flags and --set put in ──> Table: keys known? ──> Config ──> plan
//!                 │ every value with its line or flag            │ errors name both    │
//!                                                                                       └─> config.yaml
//! ```
//!
//! What is accepted is honoured, what is unknown is refused with the nearest name, and what would do
//! nothing where it stands is refused too. Secrets are held as [`Secret`], which prints as a mark.

mod agentic;
mod connections;
mod dataset;
mod endpoint;
mod error;
mod journal;
mod keys;
mod load;
mod node;
mod opprof;
mod order;
mod pacer;
mod phase;
mod publish;
mod reactors;
mod reader;
mod reference;
mod resolved;
mod score;
mod secret;
mod set;
mod size;
mod slo;
mod stamps;
#[cfg(test)]
mod tests;
mod vars;
mod verdict;

use std::path::{Path, PathBuf};

use takt_net::WaitMode;
use takt_time::Span;

pub(crate) use agentic::{AgenticLoad, Begin};
pub(crate) use connections::ConnectionsConfig;
pub(crate) use dataset::{ConversationSource, FileSource, RecordingSource, Source};
pub(crate) use endpoint::EndpointConfig;
pub(crate) use error::{ConfigError, nearest};
pub(crate) use journal::Journal;
pub(crate) use keys::meaning;
pub(crate) use load::{Load, Spacing};
pub(crate) use node::{Key, Node, Origin, Value};
pub(crate) use opprof::{Opprof, Windows, numbers};
pub(crate) use order::{Generator, OrderKind};
pub(crate) use pacer::Pacer;
pub(crate) use phase::Phase;
#[cfg(feature = "zmq")]
pub(crate) use publish::check as check_address;
pub(crate) use publish::{Aggregator, Publish};
pub(crate) use reference::reference;
pub(crate) use resolved::{phases_alone, without_secrets};
pub(crate) use score::{By, Program, Scoring};
pub(crate) use secret::{Secret, clear};
pub(crate) use set::{apply as apply_set, put};
pub(crate) use verdict::verdict_limits;

use reader::Table;
use slo::Slo;
use stamps::Stamps;

/// A configuration, checked as far as that goes without looking at data sets and endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// What the run is called.
    pub(crate) name: String,
    pub(crate) endpoint: EndpointConfig,
    /// How the reactor waits.
    pub(crate) wait: WaitMode,
    /// The core that the reactor's thread is pinned to; a further reactor to the one behind it, and so on.
    pub(crate) core: Option<usize>,
    /// How many reactors drive the load.
    pub(crate) reactors: u32,
    /// Who waits for the moments of a schedule.
    pub(crate) pacer: Pacer,
    /// The core that it is pinned to, when it is not the reactor.
    pub(crate) pacer_core: Option<usize>,
    pub(crate) stamps: Stamps,
    pub(crate) connections: ConnectionsConfig,
    /// What the journal keeps.
    pub(crate) journal: Journal,
    /// What the phases' own seeds come from.
    pub(crate) seed: u64,
    pub(crate) order: OrderKind,
    pub(crate) rng: Generator,
    pub(crate) limits: RunLimits,
    pub(crate) slo: Option<Slo>,
    /// When a run is to be trusted.
    pub(crate) verdict: takt_report::Limits,
    /// Everything that must be printed nowhere.
    pub(crate) secrets: Vec<Secret>,
    /// At least one.
    pub(crate) phases: Vec<Phase>,
    pub(crate) publish: Publish,
    /// Path of the control socket.
    pub(crate) control: Option<PathBuf>,
    /// What is taken of the server.
    pub(crate) opprof: Option<Opprof>,
    /// What counts output tokens.
    pub(crate) tokenizer: Option<PathBuf>,
    /// How long a process that belongs to the run may take to be ready.
    pub(crate) service_ready_timeout: Span,
}

/// Limits of time, on each request and on the run; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunLimits {
    pub(crate) request_timeout: Option<Span>,
    pub(crate) first_byte_timeout: Option<Span>,
    pub(crate) connect_timeout: Option<Span>,
    /// Silence of the endpoint while requests are in flight.
    pub(crate) endpoint_response_idle_timeout: Option<Span>,
    /// The whole run, from its first moment to the end of its last phase.
    pub(crate) run_timeout: Option<Span>,
}

/// Reads a configuration file into a tree, its variables filled in.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<Node> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| anyhow::anyhow!("{}: cannot be read: {error}", path.display()))?;
    let mut tree = Node::from_yaml(&text, &path.display().to_string())?;
    if tree.is_null() {
        tree.value = Value::Map(Vec::new());
    }
    vars::fill_in(&mut tree, &environment)?;
    Ok(tree)
}

/// A variable of the environment; one that is not UTF-8 counts as not set.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Config {
    /// Reads the tree for meaning. `default_name` is the run's name when it gives none.
    pub(crate) fn read(tree: &Node, default_name: &str) -> Result<Self, ConfigError> {
        Self::understand(tree, default_name)
            .map_err(|error| error.without(&secret::sorted(&tree.all_secrets())))
    }

    fn understand(tree: &Node, default_name: &str) -> Result<Self, ConfigError> {
        let root = Table::open(tree, "", &keys::ROOT)?;
        let name = match root.get("name") {
            Some(field) => field.text()?.to_owned(),
            None => default_name.to_owned(),
        };
        let endpoint = root.need("endpoint", "give its `url` (--url http://127.0.0.1:8000)")?;
        let endpoint = EndpointConfig::read(&endpoint.table(&keys::ENDPOINT)?)?;
        let (wait, core, (pacer, pacer_core)) = engine(&root)?;
        let stamps = match root.get("engine") {
            Some(field) => Stamps::read(&field.table(&keys::ENGINE)?, &endpoint)?,
            None => Stamps::default(),
        };
        let connections = ConnectionsConfig::read(&root, &endpoint)?;
        let seed = root.get("seed").map_or(Ok(DEFAULT_SEED), |f| f.count(0, u64::MAX))?;
        let (order, rng) = (OrderKind::read(&root)?, Generator::read(&root)?);
        let journal = Journal::read(&root)?;
        let limits = limits(&root)?;
        let slo = Slo::read(&root, &endpoint)?;
        let mut secrets = secret::all_of(&endpoint);
        secrets.extend(tree.all_secrets());
        let secrets = secret::sorted(&secrets);
        let phases = phase::read_all(&root, &endpoint, seed)?;
        rng.check(&root, order, &phases)?;
        if let Some(phase) = phases.iter().find(|phase| phase.keeps_text()) {
            journal.must_keep_all(&root, &phase.keeps_answers())?;
        }
        let tokenizer = tokenizer(&root, &endpoint, &phases, journal)?;
        let opprof = Opprof::read(&root, &endpoint, &phases, journal)?;
        if let Some(field) = root.get("engine").and_then(|f| f.below("pacer")) {
            pacer.suits(&phases, &field)?;
        }
        let publish = Publish::read(&root)?;
        let services = publish.aggregator != Aggregator::Off || pacer == Pacer::Process;
        let limits_table = root.get("limits").map(|f| f.table(&keys::LIMITS)).transpose()?;
        let service_ready_timeout =
            publish::service_ready_timeout(limits_table.as_ref(), services)?;
        Ok(Self {
            name,
            endpoint,
            wait,
            core,
            reactors: reactors::read(&root, pacer, &phases, &publish, &connections)?,
            pacer,
            pacer_core,
            stamps,
            connections,
            journal,
            seed,
            order,
            rng,
            limits,
            slo,
            verdict: verdict::read(&root)?,
            secrets,
            phases,
            publish,
            control: publish::control(&root)?,
            opprof,
            tokenizer,
            service_ready_timeout,
        })
    }
}

/// How the reactor waits, where it runs, and who paces it, where.
type Engine = (WaitMode, Option<usize>, (Pacer, Option<usize>));

/// What counts tokens: the answers that it counts are kept in the journal.
fn tokenizer(
    root: &Table<'_>,
    endpoint: &EndpointConfig,
    phases: &[Phase],
    journal: Journal,
) -> Result<Option<PathBuf>, ConfigError> {
    let Some(field) = root.get("tokenizer") else { return Ok(None) };
    if endpoint.api == takt_wire::Api::Raw {
        return Err(field.error("has no effect with `api: raw`, whose answers have no tokens"));
    }
    if let Some(phase) = phases.iter().find(|phase| phase.kind != takt_record::PhaseKind::Warmup) {
        journal.must_keep_all(root, &phase.keeps_answers())?;
    }
    field.path().map(Some)
}

fn engine(root: &Table<'_>) -> Result<Engine, ConfigError> {
    let Some(field) = root.get("engine") else { return Ok(Engine::default()) };
    let table = field.table(&keys::ENGINE)?;
    let wait = match table.get("wait") {
        Some(field) => field
            .text()?
            .parse()
            .map_err(|e: takt_net::WaitModeError| field.error(e.to_string()))?,
        None => WaitMode::default(),
    };
    let core = table.get("core").map(|f| f.count(0, u64::from(u32::MAX))).transpose()?;
    let core = core.map(|core| core as usize);
    Ok((wait, core, Pacer::read(&table, core)?))
}

fn limits(root: &Table<'_>) -> Result<RunLimits, ConfigError> {
    let Some(field) = root.get("limits") else { return Ok(RunLimits::default()) };
    let table = field.table(&keys::LIMITS)?;
    let span = |key| table.get(key).map(|f| f.span()).transpose();
    Ok(RunLimits {
        request_timeout: span("request_timeout")?,
        first_byte_timeout: span("first_byte_timeout")?,
        connect_timeout: span("connect_timeout")?,
        endpoint_response_idle_timeout: span("endpoint_response_idle_timeout")?,
        run_timeout: span("run_timeout")?,
    })
}

/// The seed of a configuration that gives none: runs repeat unless they are told not to.
const DEFAULT_SEED: u64 = 42;
