//! Files of prompts, in every format: the same samples or the same message however the bytes arrive, and what
//! is accepted is what another reader of the format reads.
//!
//! Input: options, split, then the file. Options: bits 0 and 1, the format (JSONL, JSON, CSV, text); bit 2, `b` is
//! mapped as the prompt; bit 3, `c` as the truth; bit 4, small limits; bit 5 (small letters), a file of conversations:
//! then bits 0 and 1 are its format (agentic, messages, ShareGPT, MT-bench) and bit 2 says that it is an array.
//!
//! The other readers are the crate `csv`, serde_json row by row, and `str::split`. takt is stricter than all of
//! them, so only what it accepts is compared.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use serde_json::Value;
use serde_json::value::RawValue;
use takt_dataset::{Columns, ConversationFormat, Dataset, Format, Limits, Options, Prompt};

use super::conversations::conversations;
use super::pieces::{bit, options, pieces};

/// The target.
pub fn dataset(data: &[u8]) {
    let Some(([flags, how], file)) = options(data) else { return };
    let format = FORMATS[usize::from(flags & 3)];
    let column = |number: u32, name: &str| bit(flags, number).then(|| name.to_owned());
    let columns = Columns { prompt: column(2, "b"), system: None, truth: column(3, "c") };
    let limits = Limits { row_bytes_max: 24, rows_max: 2 };
    let limits = if bit(flags, 4) { limits } else { Limits::default() };
    if bit(flags, 5) {
        let format = ConversationFormat::ALL[usize::from(flags & 3)];
        return conversations(file, format, bit(flags, 2), &limits, how);
    }
    let options = Options { columns, limits };
    let whole = Dataset::read(file, "f", format, &options);
    for (how, room) in [(b'1', 1), (how, 7)] {
        let trickle = BufReader::with_capacity(room, Trickle::new(pieces(file, how)));
        let split = Dataset::read(trickle, "f", format, &options);
        assert_eq!(told(&split), told(&whole), "split {how}");
    }
    match whole {
        Ok(set) => accepted(&set, file, format),
        Err(error) => assert!(error.to_string().starts_with('f'), "it names its file: {error}"),
    }
}

fn told(read: &Result<Dataset, takt_dataset::DatasetError>) -> String {
    match read {
        Ok(set) => format!("{:?} {:?}", set.samples(), set.columns()),
        Err(error) => error.to_string(),
    }
}

fn accepted(set: &Dataset, file: &[u8], format: Format) {
    assert!(!set.is_empty());
    let bytes: u64 = set.samples().iter().map(takt_dataset::Sample::bytes).sum();
    assert_eq!(bytes, set.total_bytes());
    assert!(set.samples().is_sorted_by(|a, b| match format {
        // Objects of one array may share a line.
        Format::Json => a.row <= b.row,
        _ => a.row < b.row,
    }));
    let text = std::str::from_utf8(file).expect("only UTF-8 is accepted");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let column = set.columns().map_or("", |used| used.prompt.as_str());
    let other = match format {
        Format::Jsonl => {
            let rows = text.split('\n').filter(|line| !line.trim().is_empty());
            rows.map(|row| from_json(row, column)).collect()
        }
        Format::Json => {
            let rows: Vec<Box<RawValue>> = serde_json::from_str(text).expect("it is an array");
            rows.iter().map(|row| from_json(row.get(), column)).collect()
        }
        Format::Csv => from_csv(text, column),
        _ => lines(text),
    };
    let prompts: Vec<String> = set.samples().iter().map(|sample| shown(&sample.prompt)).collect();
    assert_eq!(prompts, other);
}

/// Text as it is, messages as the tree that they are.
fn shown(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Text(text) => text.to_string(),
        Prompt::Messages(json) => {
            let messages: Value = serde_json::from_str(json.get()).expect("messages are JSON");
            messages.to_string()
        }
    }
}

fn from_json(row: &str, column: &str) -> String {
    let row: HashMap<String, Box<RawValue>> = serde_json::from_str(row).expect("it is an object");
    match serde_json::from_str(row[column].get()).expect("it is JSON") {
        Value::String(text) if column == "messages" => from_messages(&text),
        Value::String(text) => text,
        messages => messages.to_string(),
    }
}

/// Messages written as text, where any white space around them is no part of them.
fn from_messages(text: &str) -> String {
    serde_json::from_str::<Value>(text.trim()).expect("messages are JSON").to_string()
}

fn from_csv(text: &str, column: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().expect("it has a header").clone();
    let place = header.iter().position(|name| name == column).expect("the column is there");
    let cells = reader.records().map(|row| row.expect("a row")[place].to_owned());
    if column == "messages" {
        cells.map(|text| from_messages(&text)).collect()
    } else {
        cells.collect()
    }
}

fn lines(text: &str) -> Vec<String> {
    let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// Gives a piece a read, and is interrupted before each.
pub(super) struct Trickle<'a> {
    pieces: std::vec::IntoIter<&'a [u8]>,
    here: &'a [u8],
    interrupted: bool,
}

impl<'a> Trickle<'a> {
    pub(super) fn new(pieces: Vec<&'a [u8]>) -> Self {
        Self { pieces: pieces.into_iter(), here: &[], interrupted: false }
    }
}

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(into)?;
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Trickle<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.here.is_empty() {
            self.interrupted = !self.interrupted;
            if self.interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
            self.here = self.pieces.next().unwrap_or_default();
        }
        Ok(self.here)
    }

    fn consume(&mut self, n: usize) {
        self.here = &self.here[n..];
    }
}

const FORMATS: [Format; 4] = [Format::Jsonl, Format::Json, Format::Csv, Format::Text];
