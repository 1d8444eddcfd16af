//! Recordings of a service: when requests came, how long they were, what they had in common.
//!
//! Such files hold no text, for the privacy of those who asked. So prompts are made up, of the length that
//! was recorded and with the beginnings that were shared; see [`Texts`]. They are not made beforehand: an
//! hour of a busy service is gigabytes of prompts and some megabytes of this.
//!
//! ```text
//!  Azure     csv   TIMESTAMP,ContextTokens,GeneratedTokens         2023-11-16 18:17:03.9799600,4808,10
//!  Mooncake  jsonl {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, …]}
//! ```
//!
//! A Mooncake timestamp counts milliseconds. Each of its hash ids stands for 512 tokens of input, the last
//! one for what is left: requests whose lists begin alike begin with the same text. Times count from the
//! first row and may not go back.

mod moments;
mod texts;

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use takt_time::Span;

use crate::dataset::{Limits, stem};
use crate::error::{At, DatasetError, Fault};
use crate::row::{Cell, Row, TakeRow};
use crate::source::Source;
use crate::{csv, jsonl};

use moments::Moments;
pub use moments::{TimesFormat, read_times};
pub use texts::Texts;

/// How a recording is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordingFormat {
    /// CSV of the Azure public data set (`AzureLLMInferenceTrace`).
    Azure,
    /// JSON Lines of the Mooncake release.
    Mooncake,
}

/// Calls to a service in the order in which they came; at least one.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What reports call it: the file's stem.
    pub name: String,
    calls: Box<[Call]>,
    times: Arc<[Span]>,
    /// Blocks of all calls, one call's after the other's.
    blocks: Box<[u32]>,
    /// Prompts, or blocks of prompts, that are to differ.
    distinct: usize,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Tokens of the prompt.
    pub input_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// The physical line where its row starts, from 1.
    pub row: u64,
    /// Where its blocks end in the list of all.
    blocks_end: usize,
}

impl RecordingFormat {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Azure, Self::Mooncake];

    /// The name that the configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Azure => "azure",
            Self::Mooncake => "mooncake",
        }
    }

    fn each_row(self, source: &mut Source<'_>, take: TakeRow<'_>) -> Result<(), At> {
        match self {
            Self::Azure => csv::each(source, take),
            Self::Mooncake => jsonl::each(source, take),
        }
    }
}

impl Recording {
    /// Reads all of `input`, which is the contents of `file` (used in messages and for the name), and
    /// checks every row.
    ///
    /// # Errors
    ///
    /// The first row that cannot be used, an input that has none, or a failure to read.
    pub fn read(
        input: impl BufRead,
        file: &str,
        format: RecordingFormat,
        limits: &Limits,
    ) -> Result<Self, DatasetError> {
        let mut input = input;
        let mut source = Source::new(&mut input, limits.row_bytes_max);
        let mut so_far = SoFar::new(format, limits);
        let read = format.each_row(&mut source, &mut |row, place| {
            so_far.take(row, place.line()).map_err(|fault| place.row(fault))
        });
        read.and_then(|()| so_far.finish(stem(file))).map_err(|at| at.in_file(file))
    }

    /// How many calls there are; at least one.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Always false: an empty recording is refused when it is read.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The calls in the order of the file.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// When the calls came, counted from the first one.
    pub fn times(&self) -> &Arc<[Span]> {
        &self.times
    }

    /// The blocks of the call at `index`, numbered from 0 in the order in which they first occur; none
    /// where nothing is shared.
    fn blocks(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.calls[before].blocks_end);
        &self.blocks[start..self.calls[index].blocks_end]
    }
}

/// What was read so far.
struct SoFar {
    format: RecordingFormat,
    moments: Moments,
    calls: Vec<Call>,
    blocks: Vec<u32>,
    numbers: HashMap<u64, u32>,
}

impl SoFar {
    fn new(format: RecordingFormat, limits: &Limits) -> Self {
        let (calls, blocks) = (Vec::new(), Vec::new());
        Self { format, moments: Moments::new(limits), calls, blocks, numbers: HashMap::new() }
    }

    fn take(&mut self, row: &Row<'_>, line: u64) -> Result<(), Fault> {
        let (input, output) = match self.format {
            RecordingFormat::Azure => ("ContextTokens", "GeneratedTokens"),
            RecordingFormat::Mooncake => ("input_length", "output_length"),
        };
        self.moments.take(row, self.format)?;
        let input_tokens = tokens(row, input, self.format)?;
        let output_tokens = tokens(row, output, self.format)?;
        if self.format == RecordingFormat::Mooncake {
            self.take_blocks(row, input_tokens)?;
        }
        let blocks_end = self.blocks.len();
        self.calls.push(Call { input_tokens, output_tokens, row: line, blocks_end });
        Ok(())
    }

    fn take_blocks(&mut self, row: &Row<'_>, tokens: u32) -> Result<(), Fault> {
        let cell = find(row, HASH_IDS, self.format)?;
        let bad = || bad(HASH_IDS, "an array of whole numbers", cell);
        let Cell::Json(raw) = cell else { return Err(bad()) };
        let ids: Vec<u64> = serde_json::from_str(raw.get()).map_err(|_| bad())?;
        let want = tokens.div_ceil(BLOCK_TOKENS) as usize;
        if ids.len() != want {
            let (blocks, block_tokens) = (ids.len(), BLOCK_TOKENS);
            return Err(Fault::BlockCount { blocks, tokens, want, block_tokens });
        }
        for id in ids {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            self.blocks.push(*self.numbers.entry(id).or_insert(next));
        }
        Ok(())
    }

    fn finish(self, name: String) -> Result<Recording, At> {
        let times = self.moments.finish()?;
        let distinct = match self.format {
            RecordingFormat::Azure => self.calls.len(),
            RecordingFormat::Mooncake => self.numbers.len(),
        };
        let (calls, blocks) = (self.calls.into_boxed_slice(), self.blocks.into_boxed_slice());
        Ok(Recording { name, calls, times, blocks, distinct })
    }
}

fn tokens(row: &Row<'_>, column: &'static str, format: RecordingFormat) -> Result<u32, Fault> {
    let cell = find(row, column, format)?;
    let tokens =
        text_of(cell).parse::<u32>().ok().filter(|tokens| (1..=TOKENS_MAX).contains(tokens));
    tokens.ok_or_else(|| bad(column, "a whole number from 1 to 10000000", cell))
}

/// The cell in `column`, which every row of `format` has.
fn find<'a>(
    row: &Row<'a>,
    column: &'static str,
    format: RecordingFormat,
) -> Result<Cell<'a>, Fault> {
    let mut found = row.iter().filter(|(name, _)| name == column);
    match (found.next(), found.next()) {
        (Some((_, cell)), None) => Ok(*cell),
        (Some(_), Some(_)) => Err(Fault::DuplicateColumn { column: column.to_owned() }),
        (None, _) => {
            let present = row.iter().map(|(name, _)| name.clone().into_owned()).collect();
            Err(Fault::MissingField { column, format: format.name(), present })
        }
    }
}

fn bad(column: &'static str, want: &'static str, cell: Cell<'_>) -> Fault {
    Fault::BadField { column, want, found: text_of(cell).to_owned() }
}

/// The text of a field, or of a JSON value as it is written.
fn text_of<'a>(cell: Cell<'a>) -> &'a str {
    match cell {
        Cell::Text(text) => text.trim(),
        Cell::Json(raw) => raw.get(),
    }
}

/// Tokens that a hash id of Mooncake stands for.
const BLOCK_TOKENS: u32 = 512;
const HASH_IDS: &str = "hash_ids";
/// Longer than any context.
const TOKENS_MAX: u32 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                         2023-11-16 23:59:59.9799600,4808,10\r\n\
                         2023-11-17 00:00:00.9800000,3,8\r\n\
                         2023-11-17 00:00:00.9800000,110,27";
    const MOONCAKE: &str = r#"{"timestamp": 27000, "input_length": 1025, "output_length": 5, "hash_ids": [7, 9, 70]}
{"timestamp": 27000, "input_length": 600, "output_length": 1, "hash_ids": [7, 8]}
{"timestamp": 27003, "input_length": 512, "output_length": 2, "hash_ids": [9]}"#;

    fn read(format: RecordingFormat, text: &str) -> Result<Recording, String> {
        let read = Recording::read(text.as_bytes(), "dir/f.x", format, &Limits::default());
        read.map_err(|error| error.to_string())
    }

    fn ns(recording: &Recording) -> Vec<u64> {
        recording.times().iter().map(|at| at.as_nanos()).collect()
    }

    #[test]
    fn azure_rows_are_times_from_the_first_and_lengths() {
        let recording = read(RecordingFormat::Azure, AZURE).unwrap();
        assert_eq!(ns(&recording), [0, 1_000_040_000, 1_000_040_000]);
        let calls = recording.calls().iter().map(|c| (c.input_tokens, c.output_tokens, c.row));
        assert_eq!(calls.collect::<Vec<_>>(), [(4808, 10, 2), (3, 8, 3), (110, 27, 4)]);
        assert_eq!((recording.name.as_str(), recording.blocks(1)), ("f", &[][..]));
    }

    #[test]
    fn mooncake_rows_are_times_lengths_and_blocks_by_first_occurrence() {
        let recording = read(RecordingFormat::Mooncake, MOONCAKE).unwrap();
        assert_eq!(ns(&recording), [0, 0, 3_000_000]);
        let blocks: Vec<_> = (0..3).map(|n| recording.blocks(n).to_vec()).collect();
        assert_eq!(blocks, [vec![0, 1, 2], vec![0, 3], vec![1]]);
        assert_eq!(recording.distinct, 4);
    }

    #[test]
    fn a_bad_row_is_refused_with_file_line_and_reason() {
        use RecordingFormat::{Azure, Mooncake};
        for (format, text, from, to, expected) in [
            (
                Azure,
                AZURE,
                "3,8",
                "0,8",
                "dir/f.x:3: `ContextTokens` must be a whole number from 1",
            ),
            (Azure, AZURE, "3,8", "3,-8", "dir/f.x:3: `GeneratedTokens` must be a whole number"),
            (Azure, AZURE, "3,8", "3", "dir/f.x:3: 2 fields where the header has 3"),
            (Azure, AZURE, "-17 00:00:00.98", "-17 24:00:00.98", "dir/f.x:3: `TIMESTAMP` must be"),
            (Azure, AZURE, "11-17", "11-15", "dir/f.x:3: its time is before that of the row above"),
            (Azure, AZURE, "ContextTokens", "Tokens", "dir/f.x:2: no column `ContextTokens`"),
            (Mooncake, MOONCAKE, "27003", "26999", "dir/f.x:3: its time is before"),
            (Mooncake, MOONCAKE, "27003", "\"x\"", "dir/f.x:3: `timestamp` must be"),
            (Mooncake, MOONCAKE, "27003", "-1", "dir/f.x:3: `timestamp` must be"),
            (Mooncake, MOONCAKE, "[7, 8]", "[7]", "dir/f.x:2: 1 `hash_ids` for 600 tokens"),
            (Mooncake, MOONCAKE, "[7, 8]", "[7, -8]", "dir/f.x:2: `hash_ids` must be an array"),
            (
                Mooncake,
                MOONCAKE,
                "\"output_length\": 2",
                "\"o\": 2",
                "dir/f.x:3: no column `output",
            ),
            (Mooncake, MOONCAKE, "[9]}", "[9}", "dir/f.x:3: not JSON"),
        ] {
            assert!(text.contains(from), "{from}");
            let says = read(format, &text.replacen(from, to, 1)).unwrap_err();
            assert!(says.starts_with(expected), "{says}\nexpected {expected}");
        }
        assert!(read(Azure, "").unwrap_err().contains("empty"));
        assert!(read(Mooncake, "\n").unwrap_err().contains("empty"));
    }
}
