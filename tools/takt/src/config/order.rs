//! Which sample is sent next, and what its choice is drawn from.

use super::error::ConfigError;
use super::phase::Phase;
use super::reader::{Field, Table, word_of};

/// In which order samples are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderKind {
    WithoutReplacement,
    WithReplacement,
    Sequential,
    /// The one at this place, from 0.
    Single(u32),
}

/// Where orders, and the gaps of Poisson arrivals, are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generator {
    /// xoshiro256++, a stream for each purpose.
    Xoshiro,
    /// As the reference implementation draws them.
    Mt19937,
}

impl OrderKind {
    pub(super) fn read(root: &Table<'_>) -> Result<Self, ConfigError> {
        let Some(field) = root.get("order") else { return Ok(Self::WithoutReplacement) };
        let Ok(text) = field.text() else { return field.choice(&WORDS, &[]) };
        match text.split_once(':') {
            Some((SINGLE, place)) => {
                place.trim().parse().map(Self::Single).map_err(|_| bad(&field))
            }
            None if text == SINGLE => Err(bad(&field)),
            _ => field.choice(&WORDS, &[]),
        }
    }

    /// As the configuration spells it.
    pub(crate) fn word(self) -> String {
        match self {
            Self::Single(place) => format!("{SINGLE}:{place}"),
            other => word_of(&WORDS, other).to_owned(),
        }
    }

    fn is_drawn(self) -> bool {
        matches!(self, Self::WithoutReplacement | Self::WithReplacement)
    }
}

impl Generator {
    pub(super) fn read(root: &Table<'_>) -> Result<Self, ConfigError> {
        match root.get("rng") {
            Some(field) => field.choice(&GENERATORS, &[]),
            None => Ok(Self::Xoshiro),
        }
    }

    pub(crate) fn word(self) -> &'static str {
        word_of(&GENERATORS, self)
    }

    /// Refuses a generator that would have no effect, or have none of what it is asked for.
    pub(super) fn check(
        self,
        root: &Table<'_>,
        order: OrderKind,
        phases: &[Phase],
    ) -> Result<(), ConfigError> {
        let Some(field) = root.get("rng").filter(|_| self == Self::Mt19937) else { return Ok(()) };
        if let Some(phase) = phases.iter().find(|phase| phase.load.draws_gaps_of_its_own()) {
            return Err(field.error(format!(
                "`mt19937` draws what the reference implementation draws, and that has no such arrivals \
                 (phase `{}`, pattern `{}`); leave it out",
                phase.name,
                phase.load.pattern()
            )));
        }
        let draws = |phase: &Phase| {
            let poisson = matches!(phase.load, super::Load::Poisson { .. });
            poisson || (order.is_drawn() && !phase.load.replays_rows())
        };
        if !phases.iter().any(draws) {
            return Err(field.error("has no effect: no phase draws its order or its gaps"));
        }
        Ok(())
    }
}

fn bad(field: &Field<'_>) -> ConfigError {
    field.error("must say which one: write single:INDEX, such as single:0 for the first sample")
}

const SINGLE: &str = "single";
const WORDS: [(&str, OrderKind); 3] = [
    ("without_replacement", OrderKind::WithoutReplacement),
    ("with_replacement", OrderKind::WithReplacement),
    ("sequential", OrderKind::Sequential),
];
const GENERATORS: [(&str, Generator); 2] =
    [("xoshiro", Generator::Xoshiro), ("mt19937", Generator::Mt19937)];
