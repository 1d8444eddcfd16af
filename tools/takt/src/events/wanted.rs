//! Which events are asked for.

use std::collections::BTreeSet;

use anyhow::bail;
use takt_record::{EventType, PhaseId, Record, SessionPlan};
use takt_time::Nanos;

use crate::config::nearest;

/// The events that are asked for: those of some phases, and of some types.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Empty: all, and what belongs to no phase.
    phases: BTreeSet<PhaseId>,
    /// Empty: all.
    types: BTreeSet<EventType>,
    last_at: Nanos,
}

impl Wanted {
    /// Phases by their names, types by their words or what is before the dot.
    pub(super) fn read(
        phases: &[String],
        types: &[String],
        plan: &SessionPlan,
    ) -> anyhow::Result<Self> {
        let mut wanted = Self::default();
        for name in phases {
            let Some(place) = plan.phases.iter().position(|phase| phase.name == *name) else {
                let known: Vec<_> = plan.phases.iter().map(|phase| phase.name.as_str()).collect();
                bail!("--phase {name}: the run has no such phase; it has {}", known.join(", "));
            };
            // A plan has no more phases than ids.
            wanted.phases.insert(PhaseId(place as u16));
        }
        for word in types {
            let fits = |t: &&EventType| {
                t.as_str() == word || t.as_str().split_once('.').is_some_and(|(f, _)| f == word)
            };
            let before = wanted.types.len();
            wanted.types.extend(EventType::ALL.iter().filter(fits));
            if wanted.types.len() == before && !EventType::ALL.iter().any(|t| fits(&t)) {
                match nearest(word, EventType::ALL.iter().map(|t| t.as_str())) {
                    Some(near) => bail!("--type {word}: is not known; did you mean {near}?"),
                    None => {
                        let all: Vec<_> = EventType::ALL.iter().map(|t| t.as_str()).collect();
                        bail!("--type {word}: is not known; there are {}", all.join(", "));
                    }
                }
            }
        }
        Ok(wanted)
    }

    /// Is `record` asked for?
    pub(super) fn record(&mut self, record: &Record<'_>) -> bool {
        self.last_at = self.last_at.max(record.at());
        let of_phase = self.phases.is_empty()
            || record.phase().is_some_and(|phase| self.phases.contains(&phase));
        of_phase && (self.types.is_empty() || self.types.contains(&EventType::of(record)))
    }

    /// When the last record was.
    pub(super) fn last_at(&self) -> Nanos {
        self.last_at
    }
}
