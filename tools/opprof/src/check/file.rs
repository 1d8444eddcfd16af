//! One file of records, from its first line to where it ends or was cut.

use std::io::{self, BufRead};

use takt_record::{StepLine, StepRecord, step_line};

use super::{Finding, StreamEnd, rules};
use crate::lines::{Line, Lines};

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the footer.
    Footer,
    /// With a whole line, and no footer: its writer was killed, or still runs.
    NoFooter,
    /// In the middle of a line of so many bytes, which are left out.
    Torn(u64),
}

/// What a file was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReport {
    /// Records in it.
    pub records: u64,
    /// Steps that ran the model.
    pub executed: u64,
    /// Those of them that say how their graph ran.
    pub with_graph: u64,
    /// Steps with computed-again tokens among their decode tokens.
    pub resumed: u64,
    /// Records that were lost, by the word of its records and its footer.
    pub dropped: u64,
    /// The most records that waited at once, by its footer.
    pub queue_high_watermark: Option<u64>,
    /// Wall clock of its first and its last step.
    pub wall_ns: Option<(u64, u64)>,
    /// The first failed checks, at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// All failed checks.
    pub failed: u64,
    /// How it ends.
    pub ending: Ending,
    /// It goes on with the stream of the file before.
    pub continues: bool,
    /// How far its stream has come.
    pub stream: StreamEnd,
}

/// The first step of a file, by which files are put in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Heading {
    /// The scheduler.
    pub engine_id: String,
    /// When it was scheduled.
    pub submit_wall_ns: u64,
}

/// As many failed checks of a file are kept with their words.
pub const FINDINGS_MAX: usize = 100;

/// The first step of `input`; `None` when its first line is none.
///
/// # Errors
/// The input's.
pub fn heading(input: impl BufRead) -> io::Result<Option<Heading>> {
    Ok(match Lines::new(input).next_line()? {
        Line::Whole(line) => match step_line(line) {
            Ok(StepLine::Record(record)) => Some(Heading {
                engine_id: record.engine_id.into_owned(),
                submit_wall_ns: record.submit_wall_ns,
            }),
            Ok(StepLine::Footer(_)) | Err(_) => None,
        },
        Line::Torn(_) | Line::End => None,
    })
}

/// Checks all of `input`. `before` is how far the same scheduler's file before has come.
///
/// # Errors
/// The input's. That it ends too early is none.
pub fn check_file(input: impl BufRead, before: Option<&StreamEnd>) -> io::Result<FileReport> {
    check_with(FileCheck::new(before.cloned()), input)
}

/// The same of a file that may begin at any step: those before it were left out when it was copied.
///
/// # Errors
/// As [`check_file`].
pub fn check_part(input: impl BufRead, before: Option<&StreamEnd>) -> io::Result<FileReport> {
    check_with(FileCheck { part: true, ..FileCheck::new(before.cloned()) }, input)
}

fn check_with(mut check: FileCheck, input: impl BufRead) -> io::Result<FileReport> {
    let mut lines = Lines::new(input);
    let torn = loop {
        let number = lines.number() + 1;
        match lines.next_line()? {
            Line::Whole(line) => check.line(number, line),
            Line::Torn(line) => break Some(line.len() as u64),
            Line::End => break lines.was_cut().then_some(0),
        }
    };
    Ok(check.end(torn))
}

/// The checks of one file, fed line by line: for records that are read for another reason as well.
#[derive(Debug)]
pub struct FileCheck {
    before: Option<StreamEnd>,
    report: FileReport,
    /// It may begin at any step.
    part: bool,
}

impl FileCheck {
    /// Of a file whose scheduler's file before ended like this.
    #[must_use]
    pub fn new(before: Option<StreamEnd>) -> Self {
        let report = FileReport {
            records: 0,
            executed: 0,
            with_graph: 0,
            resumed: 0,
            dropped: 0,
            queue_high_watermark: None,
            wall_ns: None,
            findings: Vec::new(),
            failed: 0,
            ending: Ending::NoFooter,
            continues: false,
            stream: StreamEnd::default(),
        };
        Self { before, report, part: false }
    }

    /// Takes a whole line in, its number counted from 1.
    pub fn line(&mut self, number: u64, line: &[u8]) {
        match step_line(line) {
            Ok(StepLine::Record(record)) => self.record(number, &record),
            Ok(StepLine::Footer(footer)) => {
                self.report.ending = Ending::Footer;
                if self.report.records == 0 {
                    // The file before was full just when the server ended.
                    self.begin(|before| before.engine_id == footer.engine_id);
                }
                let mut stream = std::mem::take(&mut self.report.stream);
                let (records, dropped) = (self.report.records, self.report.dropped);
                stream.footer(&footer, records, dropped, &mut |f, found, expected| {
                    self.found(number, f, found, expected);
                });
                self.report.stream = stream;
                self.report.dropped = self.report.dropped.max(footer.dropped);
                self.report.queue_high_watermark = Some(footer.queue_high_watermark);
            }
            Err(error) => self.found(number, &error.field, error.found, error.expected),
        }
    }

    /// Takes a record in that stands at this line.
    pub fn record(&mut self, number: u64, record: &StepRecord<'_>) {
        if self.report.records == 0 {
            self.begin(|before| before.goes_on_with(record));
        }
        let mut stream = std::mem::take(&mut self.report.stream);
        if self.part {
            stream.may_begin_at(record);
        }
        let mut found = |f: &'static str, found, expected| self.found(number, f, found, expected);
        stream.record(record, &mut found);
        rules::record(record, &mut found);
        let report = &mut self.report;
        report.stream = stream;
        report.records += 1;
        report.executed += u64::from(record.model_executed);
        report.with_graph += u64::from(record.model_executed && record.cudagraph.is_some());
        report.resumed += u64::from(record.resumed_tokens.is_some_and(|tokens| tokens > 0));
        report.dropped = report.dropped.saturating_add(record.dropped_records_before);
        let wall = record.submit_wall_ns;
        report.wall_ns = Some((report.wall_ns.map_or(wall, |(first, _)| first), wall));
    }

    /// The report, when the input ended: in the middle of a line of so many bytes, or after one.
    #[must_use]
    pub fn end(mut self, torn: Option<u64>) -> FileReport {
        if let Some(bytes) = torn {
            self.report.ending = Ending::Torn(bytes);
        }
        self.report
    }

    fn begin(&mut self, goes_on: impl FnOnce(&StreamEnd) -> bool) {
        let before = self.before.take().filter(goes_on);
        self.report.continues = before.is_some();
        self.report.stream = before.map(StreamEnd::in_the_next_file).unwrap_or_default();
    }

    fn found(&mut self, line: u64, field: &str, found: String, expected: String) {
        self.report.failed += 1;
        if self.report.findings.len() < FINDINGS_MAX {
            let field = field.to_owned();
            self.report.findings.push(Finding { line, field, found, expected });
        }
    }
}
