//! The data set: samples in file order, and the one function that reads them.

use std::io::BufRead;
use std::path::Path;

use crate::columns::{Columns, ColumnsUsed};
use crate::error::DatasetError;
use crate::format::Format;
use crate::rows::Rows;
use crate::sample::Sample;
use crate::source::Source;
use crate::{csv, json, jsonl, text};

/// Samples held in memory, at least one, in the order of the file.
///
/// How often and in which order they are used, when the run is longer or shorter than the data set,
/// is the business of the sample order, not of this type.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// What reports call it: the file's stem, or `synthetic`. The caller may change it.
    pub name: String,
    samples: Box<[Sample]>,
    columns: Option<ColumnsUsed>,
    total_bytes: u64,
}

impl Dataset {
    /// Reads all of `input`, which is the contents of `file` (used in messages and for the name,
    /// not opened), and checks every row.
    ///
    /// # Errors
    ///
    /// The first row that cannot be used, an input that has none, or a failure to read.
    pub fn read(
        input: impl BufRead,
        file: &str,
        format: Format,
        options: &Options,
    ) -> Result<Dataset, DatasetError> {
        let mut input = input;
        let mut source = Source::new(&mut input, options.limits.row_bytes_max);
        let mut rows = Rows::new(options);
        let read = match format {
            Format::Jsonl => jsonl::read(&mut source, &mut rows),
            Format::Json => json::read(&mut source, &mut rows),
            Format::Csv => csv::read(&mut source, &mut rows),
            Format::Text => text::read(&mut source, &mut rows),
        };
        let done = read.and_then(|()| rows.finish());
        let (samples, columns) = done.map_err(|at| at.in_file(file))?;
        Ok(Dataset::from_samples(stem(file), samples, columns))
    }

    pub(crate) fn from_samples(
        name: String,
        samples: Vec<Sample>,
        columns: Option<ColumnsUsed>,
    ) -> Dataset {
        let total_bytes = samples.iter().map(Sample::bytes).sum();
        Dataset { name, samples: samples.into_boxed_slice(), columns, total_bytes }
    }

    /// How many samples there are; at least one.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Always false: an empty data set is refused when it is read.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The sample at `index`, from 0 in file order.
    pub fn get(&self, index: usize) -> Option<&Sample> {
        self.samples.get(index)
    }

    /// All samples in file order.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The bytes of prompts and system prompts together, as they go out when each sample is sent
    /// once. Truths and parameters are not in it.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Which columns were taken for what, and which were not used; `None` where the input has no
    /// columns. Worth a line in the log of a run.
    pub fn columns(&self) -> Option<&ColumnsUsed> {
        self.columns.as_ref()
    }
}

/// How to read: everything besides the format.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which column plays which role; automatic where left open.
    pub columns: Columns,
    /// What is too much.
    pub limits: Limits,
}

/// Bounds on what is read, so that the wrong file ends in a message rather than in no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of one row, line end not counted. Default 64 MiB: a prompt of ten million
    /// tokens, or some images in base64, fits.
    pub row_bytes_max: usize,
    /// The most rows. Default 10 million. More is an error, not a silent cut.
    pub rows_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { row_bytes_max: 64 << 20, rows_max: 10_000_000 }
    }
}

pub(crate) fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| file.into(), |s| s.to_string_lossy().into_owned())
}
