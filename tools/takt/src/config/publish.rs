//! What a run tells others while it goes on: addresses for subscribers, an aggregator, a control socket.

use std::path::PathBuf;

use takt_time::Span;

use super::error::ConfigError;
use super::keys;
use super::reader::{Field, Table};

/// The section `publish`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publish {
    /// Where events are published.
    pub(crate) events: Option<String>,
    /// Where snapshots are published.
    pub(crate) snapshots: Option<String>,
    pub(crate) aggregator: Aggregator,
    /// Messages that wait for one subscriber before it loses some.
    pub(crate) queue: u32,
}

/// A fold in another process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Aggregator {
    /// None.
    #[default]
    Off,
    /// One that the run starts and stops.
    Own,
    /// One that somebody else has started, or will; the run waits for it at this address.
    At(String),
}

impl Default for Publish {
    fn default() -> Self {
        Self { events: None, snapshots: None, aggregator: Aggregator::Off, queue: QUEUE }
    }
}

impl Publish {
    pub(super) fn read(root: &Table<'_>) -> Result<Self, ConfigError> {
        let Some(field) = root.get("publish") else { return Ok(Self::default()) };
        let table = field.table(&keys::PUBLISH)?;
        let events = table.get("events").map(|f| address(&f)).transpose()?;
        let snapshots = table.get("snapshots").map(|f| address(&f)).transpose()?;
        let aggregator = match table.get("aggregator") {
            None => Aggregator::Off,
            Some(field) => match field.flag() {
                Ok(true) => needs_zmq(&field).map(|()| Aggregator::Own)?,
                Ok(false) => Aggregator::Off,
                Err(_) => Aggregator::At(address(&field)?),
            },
        };
        let at = match &aggregator {
            Aggregator::At(address) => Some(address),
            Aggregator::Off | Aggregator::Own => None,
        };
        let addresses: Vec<_> = [&events, &snapshots].into_iter().flatten().chain(at).collect();
        // Port `*` is another one each time.
        let taken = |at: &str| addresses.iter().filter(|other| ***other == at).count() > 1;
        if let Some(twice) = addresses.iter().find(|at| taken(at) && !at.ends_with(":*")) {
            return Err(table.error(format!("{twice} is given twice; each needs its own")));
        }
        let queue = match table.get("queue") {
            Some(_) if events.is_none() && snapshots.is_none() => {
                table.refuse("queue", "nothing is published; set `publish.events`")?;
                QUEUE
            }
            Some(field) => field.count(1, QUEUE_MAX)? as u32,
            None => QUEUE,
        };
        Ok(Self { events, snapshots, aggregator, queue })
    }
}

/// How long a process that belongs to the run may take to be ready. `why` not, when there is none.
pub(super) fn service_ready_timeout(
    limits: Option<&Table<'_>>,
    any: bool,
) -> Result<Span, ConfigError> {
    let Some(limits) = limits else { return Ok(READY) };
    if !any {
        let why = "the run has no process to wait for: no aggregator, no `pacer: process`";
        limits.refuse("service_ready_timeout", why)?;
    }
    limits.get("service_ready_timeout").map_or(Ok(READY), |field| field.span())
}

/// The path of the control socket, `unix:` before it or not.
pub(super) fn control(root: &Table<'_>) -> Result<Option<PathBuf>, ConfigError> {
    let Some(field) = root.get("control") else { return Ok(None) };
    let text = field.text()?;
    if text.contains("://") {
        return Err(field.error("is the path of a unix socket, such as /run/takt.sock"));
    }
    let path = match text.strip_prefix("unix:") {
        Some(path) => PathBuf::from(path),
        None => field.path()?,
    };
    if path.as_os_str().len() > SOCKET_PATH_MAX {
        return Err(field.error(format!("a socket's path has at most {SOCKET_PATH_MAX} bytes")));
    }
    Ok(Some(path))
}

/// An address that ZMQ can bind.
fn address(field: &Field<'_>) -> Result<String, ConfigError> {
    let text = field.text()?;
    check(text).map_err(|says| field.error(says))?;
    needs_zmq(field)?;
    Ok(text.to_owned())
}

fn needs_zmq(field: &Field<'_>) -> Result<(), ConfigError> {
    if cfg!(feature = "zmq") {
        return Ok(());
    }
    Err(field.error("needs ZMQ, and this takt was built without it (feature `zmq`)"))
}

/// Says what is wrong with a ZMQ address.
pub(crate) fn check(text: &str) -> Result<(), String> {
    if let Some(path) = text.strip_prefix("ipc://") {
        return match path.len() {
            0 => Err("has no path: write ipc:///run/takt-events".to_owned()),
            n if n > SOCKET_PATH_MAX => {
                Err(format!("a socket's path has at most {SOCKET_PATH_MAX} bytes"))
            }
            _ => Ok(()),
        };
    }
    let Some(rest) = text.strip_prefix("tcp://") else {
        return Err("is no address: write ipc:///run/takt-events or tcp://127.0.0.1:5556".into());
    };
    match rest.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty() && (port == "*" || port.parse::<u16>().is_ok_and(|p| p > 0)) =>
        {
            Ok(())
        }
        _ => Err("needs a host and a port: write tcp://127.0.0.1:5556 or tcp://*:5556".to_owned()),
    }
}

/// Messages of up to some hundred kilobytes each: a second and a half of a full reactor.
const QUEUE: u32 = 256;
const QUEUE_MAX: u64 = 1 << 20;
/// What the system takes, its end mark left out.
const SOCKET_PATH_MAX: usize = 107;
const READY: Span = Span::from_secs(30);
