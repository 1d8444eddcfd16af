//! `engine.reactors`: how many reactors drive the load, each on a core of its own.

use super::connections::ConnectionsConfig;
use super::error::ConfigError;
use super::keys;
use super::pacer::Pacer;
use super::phase::Phase;
use super::publish::{Aggregator, Publish};
use super::reader::{Field, Table};

/// Reads the number, and refuses what only one reactor can do.
pub(super) fn read(
    root: &Table<'_>,
    pacer: Pacer,
    phases: &[Phase],
    publish: &Publish,
    connections: &ConnectionsConfig,
) -> Result<u32, ConfigError> {
    let Some(engine) = root.get("engine") else { return Ok(1) };
    let Some(field) = engine.table(&keys::ENGINE)?.get("reactors") else { return Ok(1) };
    let reactors = field.count(1, MOST)? as u32;
    if reactors > 1 {
        fits(root, &field, pacer, phases, publish)?;
    }
    if let Some(max) = connections.max.filter(|max| *max < reactors as usize) {
        return Err(field.error(format!("each needs a connection, and `connections.max` is {max}")));
    }
    Ok(reactors)
}

fn fits(
    root: &Table<'_>,
    field: &Field<'_>,
    pacer: Pacer,
    phases: &[Phase],
    publish: &Publish,
) -> Result<(), ConfigError> {
    let refuse =
        |what: String| Err(field.error(format!("more than one cannot be had with {what}")));
    if pacer != Pacer::Inline {
        return refuse(format!("`engine.pacer: {}`: each reactor waits for itself", pacer.word()));
    }
    if let Some(phase) = phases.iter().find(|phase| phase.load.agentic().is_some()) {
        return refuse(format!(
            "pattern `agentic` (phase `{}`): the turns of a conversation follow from each other",
            phase.name
        ));
    }
    if root.get("opprof").is_some() {
        return refuse("`opprof`: one session records the windows".to_owned());
    }
    let told = publish.events.is_some() || publish.snapshots.is_some();
    if told || publish.aggregator != Aggregator::Off {
        return refuse("`publish`: there is one stream of events for each".to_owned());
    }
    Ok(())
}

/// More than any machine has use for.
const MOST: u64 = 256;
