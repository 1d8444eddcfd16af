//! The times of a recording, counted from its first row.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use takt_time::Span;

use super::{RecordingFormat, bad, find, text_of};
use crate::dataset::Limits;
use crate::error::{At, DatasetError, Fault};
use crate::row::{Cell, Row};
use crate::source::Source;

/// A file of times alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimesFormat {
    /// Those of a recording, whatever else its rows hold.
    Recording(RecordingFormat),
    /// Seconds, one number a line.
    Text,
}

impl TimesFormat {
    /// By the file's suffix: `.csv` has a column `TIMESTAMP` as Azure's have, `.jsonl` a `timestamp` in
    /// milliseconds as Mooncake's have, `.txt` seconds. `None` for any other.
    pub fn from_path(path: &Path) -> Option<Self> {
        let suffix = path.extension()?.to_string_lossy().to_ascii_lowercase();
        match suffix.as_str() {
            "csv" => Some(Self::Recording(RecordingFormat::Azure)),
            "jsonl" => Some(Self::Recording(RecordingFormat::Mooncake)),
            "txt" => Some(Self::Text),
            _ => None,
        }
    }
}

/// Reads the times of all of `input`, which is the contents of `file` (used in messages), counted from the
/// first one.
///
/// # Errors
///
/// The first row that has no time or goes back, an input without rows, or a failure to read.
pub fn read_times(
    input: impl BufRead,
    file: &str,
    format: TimesFormat,
    limits: &Limits,
) -> Result<Arc<[Span]>, DatasetError> {
    let mut input = input;
    let mut source = Source::new(&mut input, limits.row_bytes_max);
    let mut moments = Moments::new(limits);
    let read = match format {
        TimesFormat::Recording(format) => format.each_row(&mut source, &mut |row, place| {
            moments.take(row, format).map_err(|fault| place.row(fault))
        }),
        TimesFormat::Text => seconds(&mut source, &mut moments),
    };
    read.and_then(|()| moments.finish()).map_err(|at| at.in_file(file))
}

fn seconds(source: &mut Source<'_>, moments: &mut Moments) -> Result<(), At> {
    let mut line = String::new();
    while source.read_line(&mut line, 0)? {
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        let want = "seconds, 0 or more";
        let at = scaled(text, 1e9).ok_or_else(|| bad("seconds", want, Cell::Text(text)));
        at.and_then(|at| moments.push(at)).map_err(|fault| At::line(source.line(), fault))?;
    }
    Ok(())
}

/// Times as they come in.
pub(super) struct Moments {
    first_ns: u64,
    times: Vec<Span>,
    rows_max: usize,
}

impl Moments {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { first_ns: 0, times: Vec::new(), rows_max: limits.rows_max }
    }

    /// Takes the time of a row.
    pub(super) fn take(&mut self, row: &Row<'_>, format: RecordingFormat) -> Result<(), Fault> {
        let (column, want) = match format {
            RecordingFormat::Azure => {
                ("TIMESTAMP", "a date and a time such as 2023-11-16 18:17:03.9799600")
            }
            RecordingFormat::Mooncake => ("timestamp", "milliseconds, 0 or more"),
        };
        let cell = find(row, column, format)?;
        let at = match format {
            RecordingFormat::Azure => date(text_of(cell)),
            RecordingFormat::Mooncake => scaled(text_of(cell), 1e6),
        };
        self.push(at.ok_or_else(|| bad(column, want, cell))?)
    }

    fn push(&mut self, at_ns: u64) -> Result<(), Fault> {
        let max = self.rows_max;
        if self.times.len() >= max {
            return Err(Fault::TooManyRows { max });
        }
        if self.times.is_empty() {
            self.first_ns = at_ns;
        }
        let since = at_ns.checked_sub(self.first_ns).map(Span::from_nanos);
        let since = since.filter(|since| self.times.last().is_none_or(|last| since >= last));
        self.times.push(since.ok_or(Fault::BackInTime)?);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Arc<[Span]>, At> {
        if self.times.is_empty() {
            return Err(At::nowhere(Fault::Empty));
        }
        Ok(self.times.into())
    }
}

/// Nanoseconds of a date and time without zone, or in UTC.
fn date(text: &str) -> Option<u64> {
    let text = text.strip_suffix("+00:00").unwrap_or(text);
    let since = humantime::parse_rfc3339_weak(text).ok()?.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.ok()?.as_nanos()).ok()
}

/// Nanoseconds of a number that is not negative.
fn scaled(text: &str, unit_ns: f64) -> Option<u64> {
    let number: f64 = text.parse().ok()?;
    let ns = (number * unit_ns).round();
    // Beyond this a number has no nanoseconds left: three months.
    (number >= 0.0 && ns <= (1_u64 << f64::MANTISSA_DIGITS) as f64).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(file: &str, text: &str) -> Result<Vec<u64>, String> {
        let format = TimesFormat::from_path(file.as_ref()).expect("a suffix of times");
        let read = read_times(text.as_bytes(), file, format, &Limits::default());
        read.map(|times| times.iter().map(|at| at.as_nanos()).collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn times_alone_are_enough_and_the_first_is_0() {
        let csv = "X,TIMESTAMP\n1,2024-05-10 00:00:00.009930+00:00\n2,2024-05-10T00:00:01Z\n";
        assert_eq!(times("t.csv", csv), Ok(vec![0, 990_070_000]));
        let jsonl = "{\"timestamp\": 3000}\n{\"timestamp\": 3000.5}\n";
        assert_eq!(times("t.jsonl", jsonl), Ok(vec![0, 500_000]));
        assert_eq!(times("t.txt", "10\n10.25\n1.1e1\n\n"), Ok(vec![0, 250_000_000, 1_000_000_000]));
    }

    #[test]
    fn what_is_no_time_is_refused_with_its_line() {
        for (file, text, says) in [
            ("t.txt", "1\nsoon\n", "t.txt:2: `seconds` must be seconds, 0 or more, not `soon`"),
            ("t.txt", "1\n0.5\n", "t.txt:2: its time is before that of the row above"),
            ("t.txt", "nan\n", "t.txt:1: `seconds` must be"),
            ("t.txt", "", "t.txt: the data set is empty"),
            ("t.jsonl", "{\"timestamp\": 1e30}\n", "t.jsonl:1: `timestamp` must be"),
            ("t.csv", "TIMESTAMP\n2023-13-16 18:17:03\n", "t.csv:2: `TIMESTAMP` must be"),
            ("t.csv", "TIMESTAMP\n1960-01-01 00:00:00\n", "t.csv:2: `TIMESTAMP` must be"),
        ] {
            let error = times(file, text).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
        assert_eq!(TimesFormat::from_path("t.parquet".as_ref()), None);
    }

    #[test]
    fn rows_are_bounded() {
        let limits = Limits { rows_max: 2, ..Limits::default() };
        let read = read_times("1\n2\n3\n".as_bytes(), "t.txt", TimesFormat::Text, &limits);
        assert!(read.unwrap_err().to_string().starts_with("t.txt:3: more than 2 rows"));
    }
}
