//! The server's side of a run: `opprof`.

use std::path::PathBuf;

use serde_json::{Value as Json, json};
use takt_opprof::{Prompts, Regime};
use takt_record::PhaseKind;
use takt_time::Span;

use super::endpoint::EndpointConfig;
use super::error::ConfigError;
use super::journal::Journal;
use super::keys;
use super::phase::Phase;
use super::reader::{Field, Table};
use super::resolved::{absolute, span};

/// What is taken of the server while a run goes on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opprof {
    /// Where it writes its step records.
    pub(crate) records: Option<PathBuf>,
    /// The scheduler, when the records are of several.
    pub(crate) engine: Option<String>,
    /// Its profiler's windows.
    pub(crate) windows: Option<Windows>,
}

/// Windows of a profiler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Windows {
    /// Where the profiler writes.
    pub(crate) traces: PathBuf,
    /// How many, one after another; of a run, in each performance phase.
    pub(crate) count: u32,
    pub(crate) apart: Span,
    /// When one begins.
    pub(crate) regime: Regime,
    /// For so many steps in a row.
    pub(crate) steady: u32,
    pub(crate) steps: u64,
    pub(crate) within: Span,
    pub(crate) steps_within: Span,
    pub(crate) written_within: Span,
    /// Time around a window that counts as profiled.
    pub(crate) margin: Span,
    pub(crate) ranks: Option<usize>,
    pub(crate) taxonomy: bool,
    pub(crate) server_log: Option<PathBuf>,
}

impl Opprof {
    /// Reads the section.
    pub(super) fn read(
        root: &Table<'_>,
        endpoint: &EndpointConfig,
        phases: &[Phase],
        journal: Journal,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(field) = root.get("opprof") else { return Ok(None) };
        let table = field.table(&keys::OPPROF)?;
        if endpoint.urls.len() > 1 {
            return Err(field.error("is of one server, and `endpoint.url` names several"));
        }
        if phases.iter().all(|phase| phase.kind != PhaseKind::Performance) {
            return Err(field.error("has no effect: no phase is of type performance"));
        }
        let records = table.get("records").map(|f| f.path()).transpose()?;
        if records.is_some() {
            // Latencies stand beside the records request by request.
            journal.must_keep_all(root, "`opprof.records` needs every request")?;
        }
        let engine = table.get("engine").map(|f| f.text().map(str::to_owned)).transpose()?;
        if records.is_none() {
            for key in ["engine", "decode", "prompts", "steady", "within"] {
                table.refuse(key, "steps are watched in `records`, which is not given")?;
            }
        }
        let windows = match table.get("traces") {
            Some(traces) => Some(Windows::read(&table, traces.path()?)?),
            None => {
                for key in keys::OPPROF.names().filter(|key| !ALWAYS.contains(key)) {
                    table.refuse(key, "there are no windows without `traces`")?;
                }
                None
            }
        };
        if records.is_none() && windows.is_none() {
            return Err(field.error("needs `records`, `traces` or both: there is nothing to take"));
        }
        Ok(Some(Self { records, engine, windows }))
    }

    /// The section written out again.
    pub(super) fn to_json(&self) -> Json {
        let mut json = json!({
            "records": self.records.as_deref().map(absolute),
            "engine": self.engine,
        });
        let (Some(windows), Some(map)) = (&self.windows, json.as_object_mut()) else { return json };
        let Windows { regime, .. } = windows;
        let more = json!({
            "traces": absolute(&windows.traces),
            "windows": windows.count,
            "apart": span(Some(windows.apart)),
            "steps": windows.steps,
            "steps_within": span(Some(windows.steps_within)),
            "written_within": span(Some(windows.written_within)),
            "margin": span(Some(windows.margin)),
            "ranks": windows.ranks,
            "taxonomy": windows.taxonomy,
            "server_log": windows.server_log.as_deref().map(absolute),
        });
        map.extend(more.as_object().cloned().unwrap_or_default());
        if !regime.is_any() {
            let decode = regime.decode.map(|(from, to)| format!("{from}..{to}"));
            map.insert("decode".to_owned(), json!(decode));
            map.insert("prompts".to_owned(), json!(regime.prompts.name()));
            map.insert("steady".to_owned(), json!(windows.steady));
            map.insert("within".to_owned(), json!(span(Some(windows.within))));
        }
        json
    }
}

impl Windows {
    /// As many windows as without any wish, of a profiler that writes there.
    pub(crate) fn of(traces: PathBuf) -> Self {
        Self {
            traces,
            count: 1,
            apart: Span::from_secs(1),
            regime: Regime { decode: None, prompts: Prompts::Any },
            steady: 3,
            steps: 8,
            within: Span::from_secs(60),
            steps_within: Span::from_secs(10),
            written_within: Span::from_secs(60),
            margin: Span::from_millis(50),
            ranks: None,
            taxonomy: false,
            server_log: None,
        }
    }

    fn read(table: &Table<'_>, traces: PathBuf) -> Result<Self, ConfigError> {
        let mut windows = Self::of(traces);
        for (key, place) in [
            ("apart", &mut windows.apart),
            ("within", &mut windows.within),
            ("steps_within", &mut windows.steps_within),
            ("written_within", &mut windows.written_within),
            ("margin", &mut windows.margin),
        ] {
            if let Some(field) = table.get(key) {
                *place = field.span()?;
            }
        }
        let count = |key: &str, most: u64| table.get(key).map(|f| f.count(1, most)).transpose();
        if let Some(count) = count("windows", WINDOWS_MAX)? {
            windows.count = count as u32;
        }
        if let Some(steps) = count("steps", u64::MAX)? {
            windows.steps = steps;
        }
        windows.ranks = count("ranks", u64::from(u16::MAX))?.map(|ranks| ranks as usize);
        if let Some(field) = table.get("taxonomy") {
            windows.taxonomy = field.flag()?;
        }
        windows.server_log = table.get("server_log").map(|f| f.path()).transpose()?;
        windows.regime.decode = table.get("decode").map(|f| decode(&f)).transpose()?;
        if let Some(field) = table.get("prompts") {
            windows.regime.prompts = field.choice(&PROMPTS, &[])?;
        }
        if windows.regime.is_any() {
            for key in ["steady", "within"] {
                table.refuse(key, "a window begins at once without `decode` or `prompts`")?;
            }
        }
        if let Some(steady) = count("steady", u64::from(u32::MAX))? {
            windows.steady = steady as u32;
        }
        Ok(windows)
    }
}

fn decode(field: &Field<'_>) -> Result<(u64, u64), ConfigError> {
    // A single number is no text in a file.
    match field.count(0, u64::MAX) {
        Ok(number) => Ok((number, number)),
        Err(_) => numbers(field.text()?).map_err(|says| field.error(says)),
    }
}

/// Two numbers, such as 30..40, or one that is both.
pub(crate) fn numbers(text: &str) -> Result<(u64, u64), String> {
    let parse = || {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        Some((from.trim().parse::<u64>().ok()?, to.trim().parse::<u64>().ok()?))
    };
    match parse() {
        Some((from, to)) if from <= to => Ok((from, to)),
        Some(_) => Err("the second number is the smaller one".to_owned()),
        None => Err("expected two numbers, such as 30..40".to_owned()),
    }
}

const PROMPTS: [(&str, Prompts); 3] =
    [("any", Prompts::Any), ("none", Prompts::None), ("some", Prompts::Some)];
/// Keys that have an effect without windows.
const ALWAYS: [&str; 3] = ["records", "engine", "traces"];
const WINDOWS_MAX: u64 = 10_000;
