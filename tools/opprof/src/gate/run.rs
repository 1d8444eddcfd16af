//! One run of an arm, and the lines of a file of runs.
//!
//! A line has `pair`, `arm` and the five figures `thr`, `ttft50`, `ttft95`, `tpot50`, `tpot95`; `pair`
//! and `arm` may be lists of one, as one source of such files writes them. The order of the lines is the
//! order in which the runs ran. What else a line may tell is in [`Beside`], every key of its own name.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::Value;
use takt_report::paired::Metric;

use crate::lines::{Line, Lines};

/// Which side of the comparison a run is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// Without what is tested.
    Off,
    /// With it.
    On,
}

impl Arm {
    /// Its name in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// What one run came to.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRun {
    /// The pair that it belongs to.
    pub pair: String,
    /// Its side.
    pub arm: Arm,
    /// The primary figures, in the order of [`Metric::ALL`]; `None` for one that was not had.
    pub figures: [Option<f64>; Metric::ALL.len()],
    /// What is known of it besides.
    pub beside: Beside,
}

/// What may be known of a run besides its figures. Absent is not checked, never zero.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Beside {
    /// Requests that failed.
    pub errors: Option<u64>,
    /// Step records lost because the queue was full.
    pub dropped: Option<u64>,
    /// A digest of all outputs, for a trace that must give the same each time.
    pub outputs: Option<String>,
    /// The configuration of client and server.
    pub config: Option<Value>,
    /// Processor time that the server used, seconds.
    pub cpu_s: Option<f64>,
    /// Bytes of records a step.
    pub log_bytes_per_step: Option<f64>,
    /// The most records that waited at once.
    pub queue_high_watermark: Option<u64>,
    /// What spoke against the run itself, such as a busy host; empty when nothing did.
    pub suspect: Option<Vec<String>>,
}

/// Why a file of runs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// A line is no run.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The file itself.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A line as it stands in the file.
#[derive(Deserialize)]
struct Raw {
    pair: Value,
    arm: Value,
    thr: Option<f64>,
    ttft50: Option<f64>,
    ttft95: Option<f64>,
    tpot50: Option<f64>,
    tpot95: Option<f64>,
    #[serde(flatten)]
    beside: Beside,
}

/// Reads a file of runs; empty lines are passed over.
///
/// # Errors
/// The first line that is no run, or the input's error.
pub fn read_runs(input: impl BufRead) -> Result<Vec<GateRun>, RunsError> {
    let mut lines = Lines::new(input);
    let mut runs = Vec::new();
    loop {
        let line = lines.number() + 1;
        let bytes = match lines.next_line()? {
            Line::Whole(bytes) | Line::Torn(bytes) => bytes,
            Line::End => return Ok(runs),
        };
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        runs.push(run(bytes).map_err(|why| RunsError::Line { line, why })?);
    }
}

fn run(line: &[u8]) -> Result<GateRun, String> {
    let raw: Raw = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let arm = match word("arm", &raw.arm)?.as_str() {
        "off" => Arm::Off,
        "on" => Arm::On,
        other => return Err(format!("arm: `{other}`, expected off or on")),
    };
    let figures = [raw.thr, raw.ttft50, raw.ttft95, raw.tpot50, raw.tpot95];
    for (name, value) in KEYS.iter().zip(figures) {
        if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(format!("{name}: {value}, expected a number above 0"));
        }
    }
    Ok(GateRun { pair: word("pair", &raw.pair)?, arm, figures, beside: raw.beside })
}

/// A text or a number, bare or as the one element of a list.
fn word(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Array(list) if list.len() == 1 => word(key, &list[0]),
        _ => Err(format!("{key}: {value}, expected a text or a list of one")),
    }
}

/// The keys of the figures, in the order of [`Metric::ALL`].
const KEYS: [&str; Metric::ALL.len()] = ["thr", "ttft50", "ttft95", "tpot50", "tpot95"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_pair_and_arm_are_read() {
        let text = "{\"pair\":[\"1\"],\"arm\":[\"off\"],\"thr\":2.5}\n\n\
                    {\"pair\":1,\"arm\":\"on\",\"tpot95\":3,\"errors\":0,\"config\":{\"a\":1}}";
        let runs = read_runs(text.as_bytes()).unwrap();
        assert_eq!((runs[0].pair.as_str(), runs[0].arm), ("1", Arm::Off));
        assert_eq!(runs[0].figures, [Some(2.5), None, None, None, None]);
        assert_eq!(
            (runs[1].pair.as_str(), runs[1].arm, runs[1].figures[4]),
            ("1", Arm::On, Some(3.0))
        );
        assert_eq!(runs[1].beside.errors, Some(0));
        assert_eq!(runs[1].beside.config, Some(serde_json::json!({"a": 1})));
    }

    #[test]
    fn what_is_no_run_is_refused_by_line() {
        for (text, says) in [
            ("{\"pair\":\"1\",\"arm\":\"of\"}", "line 1: arm: `of`"),
            ("{\"pair\":\"1\",\"arm\":\"on\",\"thr\":0}", "line 1: thr: 0, expected"),
            ("{\"pair\":[1,2],\"arm\":\"on\"}", "line 1: pair: [1,2], expected"),
            ("{\"pair\":\"1\",\"arm\":\"on\"}\n{", "line 2: EOF"),
        ] {
            let error = read_runs(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
