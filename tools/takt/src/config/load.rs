//! Load patterns: when requests are sent.

use std::path::PathBuf;

use takt_dataset::TimesFormat;

use super::agentic::AgenticLoad;
use super::error::ConfigError;
use super::keys;
use super::reader::{Field, Table};

/// A load pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Load {
    Poisson { rate: f64 },
    Constant { rate: f64 },
    Gamma { rate: f64, burstiness: f64 },
    Ramp { from: f64, to: f64, spacing: Spacing },
    Trace { times: Option<TimesFile>, speed: f64 },
    MaxThroughput { max_in_flight: u64 },
    Concurrency { target: u32 },
    Agentic(Box<AgenticLoad>),
}

/// How the arrivals of a ramp are spaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spacing {
    Poisson,
    Constant,
    Gamma { burstiness: f64 },
}

/// A file of times that are not those of the dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimesFile {
    pub(crate) path: PathBuf,
    pub(crate) format: TimesFormat,
}

impl Spacing {
    /// `arrivals` and `burstiness`.
    pub(super) fn words(self) -> (&'static str, Option<f64>) {
        match self {
            Self::Poisson => ("poisson", None),
            Self::Constant => ("constant", None),
            Self::Gamma { burstiness } => ("gamma", Some(burstiness)),
        }
    }
}

impl Load {
    /// Its name in the configuration.
    pub(crate) fn pattern(&self) -> &'static str {
        match self {
            Self::Poisson { .. } => "poisson",
            Self::Constant { .. } => "constant",
            Self::Gamma { .. } => "gamma",
            Self::Ramp { .. } => "ramp",
            Self::Trace { .. } => "trace",
            Self::MaxThroughput { .. } => "max_throughput",
            Self::Concurrency { .. } => "concurrency",
            Self::Agentic(_) => "agentic",
        }
    }

    /// Mean arrivals a second of an open loop, where they are known without its times.
    pub(crate) fn rate(&self) -> Option<f64> {
        match self {
            Self::Poisson { rate } | Self::Constant { rate } | Self::Gamma { rate, .. } => {
                Some(*rate)
            }
            Self::Ramp { from, to, .. } => Some((from + to) / 2.0),
            Self::Trace { .. }
            | Self::MaxThroughput { .. }
            | Self::Concurrency { .. }
            | Self::Agentic(_) => None,
        }
    }

    /// It sends at the moments of a schedule, whatever the endpoint does.
    pub(crate) fn is_timed(&self) -> bool {
        match self {
            Self::Poisson { .. }
            | Self::Constant { .. }
            | Self::Gamma { .. }
            | Self::Ramp { .. }
            | Self::Trace { .. } => true,
            Self::MaxThroughput { .. } | Self::Concurrency { .. } | Self::Agentic(_) => false,
        }
    }

    /// Requests that it keeps in flight, where it says so.
    pub(crate) fn in_flight(&self) -> Option<u64> {
        match self {
            Self::MaxThroughput { max_in_flight } => Some(*max_in_flight),
            Self::Concurrency { target } => Some((*target).into()),
            Self::Agentic(agentic) => agentic.target().map(u64::from),
            Self::Poisson { .. }
            | Self::Constant { .. }
            | Self::Gamma { .. }
            | Self::Ramp { .. }
            | Self::Trace { .. } => None,
        }
    }

    /// What it says of conversations, if they are its load.
    pub(crate) fn agentic(&self) -> Option<&AgenticLoad> {
        match self {
            Self::Agentic(agentic) => Some(agentic),
            _ => None,
        }
    }

    /// How many times as fast as recorded it sends.
    pub(crate) fn speed(&self) -> f64 {
        match self {
            Self::Trace { speed, .. } => *speed,
            _ => 1.0,
        }
    }

    /// Whether it sends the rows of its dataset as they were recorded, each at its own time.
    pub(crate) fn replays_rows(&self) -> bool {
        matches!(self, Self::Trace { times: None, .. })
    }

    /// Whether its times are drawn in a way that the reference implementation does not have.
    pub(crate) fn draws_gaps_of_its_own(&self) -> bool {
        match self {
            Self::Gamma { .. } => true,
            Self::Ramp { spacing, .. } => *spacing != Spacing::Constant,
            Self::Agentic(agentic) => agentic.draws_gaps(),
            _ => false,
        }
    }

    pub(super) fn read(field: &Field<'_>) -> Result<Self, ConfigError> {
        let table = field.table(&keys::LOAD)?;
        let says = "poisson, constant, gamma, ramp, trace, max_throughput, concurrency or agentic";
        let pattern = table.need("pattern", says)?.choice(&PATTERNS.map(|w| (w, w)), &[])?;
        table.only_for(pattern)?;
        Ok(match pattern {
            "poisson" => Self::Poisson { rate: rate(&table, "rate")? },
            "constant" => Self::Constant { rate: rate(&table, "rate")? },
            "gamma" => Self::Gamma { rate: rate(&table, "rate")?, burstiness: burstiness(&table)? },
            "ramp" => ramp(&table)?,
            "trace" => {
                let speed = table.get("speed").map(|f| within(&f, 1e-6, 1e6)).transpose()?;
                let times = table.get("path").map(|f| times(&f)).transpose()?;
                Self::Trace { times, speed: speed.unwrap_or(1.0) }
            }
            "max_throughput" => {
                let bound = table.get("max_in_flight").map(|f| f.count(1, u64::MAX)).transpose()?;
                Self::MaxThroughput { max_in_flight: bound.unwrap_or(IN_FLIGHT) }
            }
            "agentic" => Self::Agentic(Box::new(AgenticLoad::read(&table)?)),
            _ => {
                let target = table.need("target_concurrency", "requests to keep in flight")?;
                Self::Concurrency { target: target.count(1, TARGET_MAX)? as u32 }
            }
        })
    }
}

fn ramp(table: &Table<'_>) -> Result<Load, ConfigError> {
    let end = |key| {
        let field = table.need(key, "requests a second; 0 may be one end of a ramp")?;
        if field.is_zero() { Ok(0.0) } else { within(&field, RATE_MIN, RATE_MAX) }
    };
    let (from, to) = (end("rate")?, end("rate_to")?);
    if from == 0.0 && to == 0.0 {
        return Err(table.error("a ramp from 0 to 0 has no arrivals"));
    }
    Ok(Load::Ramp { from, to, spacing: spacing(table)? })
}

/// `arrivals`, and `burstiness` where that takes one.
pub(super) fn spacing(table: &Table<'_>) -> Result<Spacing, ConfigError> {
    let words = ["poisson", "constant", "gamma"].map(|word| (word, word));
    let arrivals = table.get("arrivals").map(|f| f.choice(&words, &[])).transpose()?;
    let arrivals = arrivals.unwrap_or("poisson");
    if arrivals != "gamma" {
        table.refuse("burstiness", "it is for `arrivals: gamma`")?;
    }
    Ok(match arrivals {
        "poisson" => Spacing::Poisson,
        "constant" => Spacing::Constant,
        _ => Spacing::Gamma { burstiness: burstiness(table)? },
    })
}

pub(super) fn rate(table: &Table<'_>, key: &str) -> Result<f64, ConfigError> {
    within(&table.need(key, "requests a second, on average")?, RATE_MIN, RATE_MAX)
}

fn burstiness(table: &Table<'_>) -> Result<f64, ConfigError> {
    let why = "1 is as poisson, less comes in bursts, more comes evenly (--burstiness 0.25)";
    within(&table.need("burstiness", why)?, 1e-3, 1e6)
}

fn times(field: &Field<'_>) -> Result<TimesFile, ConfigError> {
    let path = field.path()?;
    let format = TimesFormat::from_path(&path).ok_or_else(|| {
        field.error(
            "times are read from .csv (with a column TIMESTAMP), .jsonl (`timestamp` in ms) or .txt \
             (seconds, one number a line)",
        )
    })?;
    Ok(TimesFile { path, format })
}

/// A number within the bounds of the arrival processes.
fn within(field: &Field<'_>, least: f64, most: f64) -> Result<f64, ConfigError> {
    let number = field.positive()?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(field.error(format!("must be between {least:e} and {most:e}")))
    }
}

const PATTERNS: [&str; 8] =
    ["poisson", "constant", "gamma", "ramp", "trace", "max_throughput", "concurrency", "agentic"];
const RATE_MIN: f64 = 1e-9;
const RATE_MAX: f64 = 1e9;
/// Semaphore permits; far above any number of descriptors.
pub(super) const TARGET_MAX: u64 = 10_000_000;
/// What `max_throughput` keeps in flight when nobody says: enough for 100,000 a second at 40 ms each.
/// Without a bound a slow server would have the client fill its memory with waiting requests.
const IN_FLIGHT: u64 = 4_096;
