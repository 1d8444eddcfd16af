//! Phases: what load, from which samples, and when it stops.

use takt_dataset::ConversationFormat;
use takt_record::PhaseKind;
use takt_time::Span;
use takt_wire::Api;

use super::agentic;
use super::dataset::Source;
use super::endpoint::EndpointConfig;
use super::error::ConfigError;
use super::keys;
use super::load::Load;
use super::reader::{Field, Table};
use super::score::Scoring;

/// A phase, checked.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) kind: PhaseKind,
    pub(crate) load: Load,
    pub(crate) source: Source,
    pub(crate) stop: Stop,
    pub(crate) drain_after: bool,
    pub(crate) drain_timeout: Option<Span>,
    pub(crate) seed: u64,
    /// How often each sample is asked; more than once in an accuracy phase only.
    pub(crate) repeats: u32,
    pub(crate) score: Option<Scoring>,
}

/// When a phase stops issuing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stop {
    pub(crate) requests: Option<u64>,
    pub(crate) duration: Option<Span>,
    pub(crate) min_duration: Option<Span>,
    pub(crate) max_duration: Option<Span>,
    /// Mean arrivals a second, where the pattern has them.
    rate: Option<f64>,
    /// Ends with a recording.
    traced: bool,
}

impl Stop {
    fn read(phase: &Table<'_>, load: &Load) -> Result<Self, ConfigError> {
        let span = |key| phase.get(key).map(|f| f.span()).transpose();
        let requests = phase.get("requests").map(|f| f.count(1, u64::MAX)).transpose()?;
        let (duration, min, max) =
            (span("duration")?, span("min_duration")?, span("max_duration")?);
        if requests.is_some() || duration.is_some() {
            let why = "it repeats the dataset, and `requests` or `duration` says when to stop";
            phase.refuse("min_duration", why)?;
        }
        if matches!(load, Load::Trace { .. }) {
            phase.refuse("min_duration", "a trace is replayed once")?;
        }
        if load.agentic().is_some_and(|agentic| agentic.conversations.is_some()) {
            phase.refuse("min_duration", "`num_trajectories_to_issue` says when to stop")?;
        }
        if matches!(load, Load::Ramp { .. }) && duration.is_none() {
            return Err(phase.error(
                "pattern `ramp` needs `duration`, the time from `rate` to `rate_to` (--duration 60s)",
            ));
        }
        if duration.zip(max).is_some_and(|(duration, max)| max >= duration) {
            phase.refuse("max_duration", "`duration` ends the phase no later")?;
        }
        if min.zip(max).is_some_and(|(min, max)| max < min) {
            return Err(phase.error("`max_duration` is shorter than `min_duration`"));
        }
        let (rate, traced) = (load.rate(), matches!(load, Load::Trace { .. }));
        Ok(Self { requests, duration, min_duration: min, max_duration: max, rate, traced })
    }

    /// Refuses a phase that would have no end.
    pub(super) fn must_end(&self, phase: &Table<'_>, why: &str) -> Result<(), ConfigError> {
        if self.requests.is_some() || self.duration.is_some() || self.traced {
            return Ok(());
        }
        Err(phase.error(format!(
            "says not when to stop, and {why}; give `requests` (--requests 500) or `duration` \
             (--duration 60s)"
        )))
    }

    /// Requests that it issues unless time ends it: those that were asked for, or one `pass` over the dataset.
    /// `None` where only time ends it.
    pub(crate) fn counted(&self, pass: u64) -> Option<u64> {
        let timed = self.duration.is_some() || self.min_duration.is_some();
        self.requests.or((!timed).then_some(pass))
    }

    /// How many different prompts to make up: one a request, as far as that can be known and kept.
    pub(super) fn prompts(&self) -> usize {
        let by_time = self.duration.zip(self.rate).map(|(d, r)| (d.as_secs_f64() * r * 1.2) as u64);
        let wanted = self.requests.into_iter().chain(by_time).min().unwrap_or(PROMPTS_MAX);
        wanted.clamp(1, PROMPTS_MAX) as usize
    }
}

/// Reads the phases. A seed of its own comes from the session's and the phase's place, so that a warm-up does
/// not send what the phase after it measures.
pub(super) fn read_all(
    root: &Table<'_>,
    endpoint: &EndpointConfig,
    seed: u64,
) -> Result<Vec<Phase>, ConfigError> {
    let why = "say what load to make: --rate, --replay, --concurrency or --max-throughput, or phases in a \
         file";
    let list = root.need("phases", why)?;
    let session = root.get("dataset");
    let mut phases: Vec<Phase> = Vec::new();
    for (place, field) in list.items().iter().enumerate() {
        let table = field.table(&keys::PHASE)?;
        let seed = seed.wrapping_add(place as u64);
        let phase = Phase::read(&table, session.as_ref(), endpoint, seed)?;
        if endpoint.api == Api::Raw
            && !endpoint.body.is_empty()
            && matches!(phase.source, Source::File(_))
        {
            let says = "`endpoint.body` has no effect: api `raw` sends the rows of the dataset";
            return Err(table.error(says));
        }
        if phases.iter().any(|other| other.name == phase.name) {
            let says = format!("another phase is called `{}` too; names must differ", phase.name);
            return Err(table.error(says));
        }
        phases.push(phase);
    }
    if phases.is_empty() {
        return Err(list.error(format!("is empty; {why}")));
    }
    if phases.len() > PHASES_MAX {
        return Err(list.error(format!("has more than {PHASES_MAX} phases")));
    }
    Ok(phases)
}

impl Phase {
    fn read(
        table: &Table<'_>,
        session: Option<&Field<'_>>,
        endpoint: &EndpointConfig,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let api = endpoint.api;
        let kinds = PhaseKind::ALL.iter().map(|kind| (kind.as_str(), *kind)).collect::<Vec<_>>();
        let kind = match table.get("type") {
            Some(field) => field.choice(&kinds, &[])?,
            None => PhaseKind::Performance,
        };
        table.only_for(kind.as_str())?;
        let said = table.need("load", "such as {pattern: poisson, rate: 50}")?;
        let mut load = Load::read(&said)?;
        let stop = Stop::read(table, &load)?;
        let mut source = Source::read(table.get("dataset").as_ref(), session, api, table, &stop)?;
        agentic::settle(&mut load, &source, &stop, endpoint, &said)?;
        if matches!(load, Load::Trace { times: None, .. })
            && !matches!(source, Source::Recording(_))
        {
            return Err(table.error(
                "pattern `trace` has no times: give the phase a dataset of format `azure` or \
                 `mooncake` (--dataset-format), or a file of times as `load.path`",
            ));
        }
        let score = score(table, &mut source)?;
        let drain_after = match table.get("drain_after") {
            Some(field) => field.flag()?,
            None => kind != PhaseKind::Warmup,
        };
        if !drain_after {
            let why = "this phase is not drained; set `drain_after: true` (off for a warm-up)";
            table.refuse("drain_timeout", why)?;
            if kind == PhaseKind::Accuracy || score.is_some() {
                return Err(table
                    .error("its answers are kept, so they are waited for: `drain_after: true`"));
            }
        }
        let repeats = repeats(table, &load, &stop)?;
        Ok(Self {
            name: table.need("name", "each phase has one of its own")?.text()?.to_owned(),
            kind,
            load,
            source,
            stop,
            drain_after,
            drain_timeout: table.get("drain_timeout").map(|f| f.span()).transpose()?,
            seed: table.get("seed").map_or(Ok(seed), |f| f.count(0, u64::MAX))?,
            repeats,
            score,
        })
    }

    /// In words: that its answers are kept.
    pub(super) fn keeps_answers(&self) -> String {
        format!("phase `{}` keeps its answers", self.name)
    }

    /// Whether the text of its answers is kept.
    pub(crate) fn keeps_text(&self) -> bool {
        self.kind == PhaseKind::Accuracy || self.score.is_some()
    }
}

/// How the phase is scored; the column of the truth becomes one of its `source`.
fn score(table: &Table<'_>, source: &mut Source) -> Result<Option<Scoring>, ConfigError> {
    let Some(field) = table.get("score") else { return Ok(None) };
    let scoring = Scoring::read(&field)?;
    if scoring.is_inline()
        && !matches!(source, Source::Conversations(file) if file.format == ConversationFormat::Agentic)
    {
        let says =
            "`agentic_inline` compares turns with recorded ones: a dataset of format `agentic`";
        return Err(field.error(says));
    }
    if scoring.truth.is_some() {
        let Source::File(file) = source else {
            let says = "`truth` is a column of a file, and these prompts come from none";
            return Err(field.error(says));
        };
        file.columns.truth.clone_from(&scoring.truth);
    }
    Ok(Some(scoring))
}

fn repeats(table: &Table<'_>, load: &Load, stop: &Stop) -> Result<u32, ConfigError> {
    if matches!(load, Load::Trace { .. }) {
        table.refuse("repeats", "a trace ends with its last row")?;
    }
    if load.agentic().is_some_and(|agentic| agentic.conversations.is_some()) {
        table.refuse("repeats", "`num_trajectories_to_issue` says when to stop")?;
    }
    for (key, given) in [
        ("requests", stop.requests.is_some()),
        ("duration", stop.duration.is_some()),
        ("min_duration", stop.min_duration.is_some()),
    ] {
        if given {
            table.refuse("repeats", &format!("`{key}` says when to stop"))?;
        }
    }
    table.get("repeats").map_or(Ok(1), |field| Ok(field.count(1, REPEATS_MAX)? as u32))
}

/// Prompts of the default length that are made up: some 13 MB of them.
const PROMPTS_MAX: u64 = 16_384;
/// More is a slip of the finger.
const REPEATS_MAX: u64 = 1_000_000;
/// Phases are numbered by 16 bits.
const PHASES_MAX: usize = u16::MAX as usize;
