//! The `hostile` mode: answers that servers, gateways and networks spoil, each fault by a name.
//!
//! ```text
//! Generation ──all of it, at once──> Answer ──fault──> Answer ──bytes──> Script: what leaves when, and how
//!  (a good answer, planned)          head, parts with times                it ends
//! ```
//!
//! There is one mechanism. A good answer is generated in advance as it would have left, read back into head
//! and parts ([`answer`]), changed by one small function ([`faults`] is the table of them), and written out
//! again as bytes with times and an ending ([`script`]). So a fault works on every route: it changes what is
//! there. A route whose answers have nothing for it to change is found by trying ([`trial`]), and requests that
//! should meet it there are refused; whole answers of a route that streams are left alone by faults of streams.
//!
//! Which requests meet a fault, and which of several, follows from the seed and the request's key alone, like
//! the plan. Routes that generate nothing are answered well.

mod answer;
mod edit;
mod faults;
mod script;
#[cfg(test)]
mod tests;
mod trial;

use std::fmt;
use std::str::FromStr;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use takt_time::Span;

use crate::config::{ConfigError, TimedConfig};
use crate::openai::Api;
use crate::plan::PlanKey;
pub(crate) use answer::End;
pub(crate) use script::{Rehearsed, Script};

/// The `hostile` mode.
#[derive(Clone, Debug, PartialEq)]
pub struct HostileConfig {
    /// The good answers that the faults spoil.
    pub answers: TimedConfig,
    /// One of them is drawn for each request that meets a fault.
    pub faults: Vec<Fault>,
    /// Share of the generating requests that meet a fault; 0 to 1.
    pub share: f64,
}

/// A way to answer wrongly. As text: its name, or `NAME=SETTING` (`cut-after-tokens=3`, `stall=500ms`).
#[derive(Clone, Copy, PartialEq)]
pub struct Fault {
    kind: &'static faults::Kind,
    setting: Setting,
}

/// What a fault is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// It takes nothing.
    Nothing,
    /// Tokens or bytes: the fault says.
    Count(u64),
    Time(Span),
    /// Of a redirect, 300 to 399.
    Status(u16),
}

/// A text that names no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// There is none of that name.
    #[error("there is no fault {0:?}")]
    Unknown(String),
    /// It takes no setting.
    #[error("{0} takes no setting; write the name alone")]
    TakesNothing(&'static str),
    /// The setting is not of its kind.
    #[error("{name}: {text:?} is no {kind}, such as {name}={default}")]
    Setting {
        /// The fault.
        name: &'static str,
        /// What it was given.
        text: String,
        /// What it takes.
        kind: &'static str,
        /// What it has when nothing is given.
        default: String,
    },
}

/// What is known of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// Its name.
    pub name: &'static str,
    /// Rows of the project's list of cases.
    pub cases: &'static str,
    /// What it does, in one line.
    pub says: &'static str,
    /// What it has when no setting is given, if it takes one.
    pub default: Option<String>,
    /// Routes whose answers have nothing for it to change; they refuse requests that should meet it.
    pub lacks: Vec<&'static str>,
}

impl Fault {
    /// All faults, in the order of the list of cases.
    pub fn all() -> impl Iterator<Item = FaultRow> {
        faults::KINDS.iter().map(|kind| FaultRow {
            name: kind.name,
            cases: kind.cases,
            says: kind.says,
            default: match kind.default {
                Setting::Nothing => None,
                setting => Some(setting.to_string()),
            },
            lacks: Self { kind, setting: kind.default }.lacks().map(Api::path).collect(),
        })
    }

    /// The APIs whose answers have nothing for it to change.
    pub fn lacks(self) -> impl Iterator<Item = Api> {
        Api::ALL.into_iter().filter(move |api| !trial::changes(self, *api))
    }

    /// Whether the good answer to be spoiled is of the form that was not asked for.
    pub(crate) fn flips(self) -> bool {
        self.kind.flips
    }
}

impl HostileConfig {
    /// Whether it can be served.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let share = (0.0..=1.0).contains(&self.share);
        if share { self.answers.check() } else { Err(ConfigError::FaultShare(self.share)) }
    }

    /// The fault that the request `key` meets, if any.
    pub(crate) fn draw(&self, key: PlanKey<'_>) -> Option<Fault> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.answers.seed ^ key.hash() ^ STREAM);
        let met = rng.random::<f64>() < self.share;
        let which = rng.random_range(0..self.faults.len().max(1));
        self.faults.get(which).copied().filter(|_| met)
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, given) = match text.split_once('=') {
            Some((name, given)) => (name.trim(), Some(given.trim())),
            None => (text.trim(), None),
        };
        let known = faults::KINDS.iter().find(|kind| kind.name == name);
        let kind = known.ok_or_else(|| FaultError::Unknown(name.to_owned()))?;
        let Some(given) = given else { return Ok(Self { kind, setting: kind.default }) };
        let (setting, what) = match kind.default {
            Setting::Nothing => return Err(FaultError::TakesNothing(kind.name)),
            Setting::Count(_) => (given.parse().ok().map(Setting::Count), "number"),
            Setting::Time(_) => (given.parse().ok().map(Setting::Time), "time"),
            Setting::Status(_) => {
                let status = given.parse().ok().filter(|status| (300..400).contains(status));
                (status.map(Setting::Status), "status of 300 to 399")
            }
        };
        let setting = setting.filter(|s| !matches!(s, Setting::Count(0))).ok_or_else(|| {
            let (name, default) = (kind.name, kind.default.to_string());
            FaultError::Setting { name, text: given.to_owned(), kind: what, default }
        })?;
        Ok(Self { kind, setting })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.setting {
            Setting::Nothing => f.write_str(self.kind.name),
            setting => write!(f, "{}={setting}", self.kind.name),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Count(count) => write!(f, "{count}"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Time(span) => write!(f, "{}", span.exact()),
        }
    }
}

/// Keeps the draw of a fault apart from the draws of the plan.
const STREAM: u64 = 0x0b5e_55ed_dead_5eed;
