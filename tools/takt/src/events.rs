//! `takt events`: the journal of a run as lines of JSON, in the words of the field.
//!
//! One block is in memory at a time, and the text of answers that have not ended. A journal that is cut or
//! damaged is printed as far as it is whole; whoever closes the pipe wants no more, and that is no error.

mod prompts;
mod wanted;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use anyhow::anyhow;
use takt_record::{EventData, EventWriter, Fold, Record, RequestKey, Text, TextKind};

use crate::cli::EventsArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::journals::{self, Journal, Journals};
use crate::report::written;

use prompts::Prompts;
use wanted::Wanted;

/// Prints the events of a folder.
pub(crate) fn events(args: &EventsArgs, console: &Console) -> Result<Exit, Failure> {
    let shown = args.folder.display();
    if !args.folder.is_dir() {
        return Err(Failure::says(Exit::Input, format!("{shown}: is no folder")));
    }
    let wrote = written(&args.folder).ok().flatten();
    let journals = Journals::open(&args.folder, wrote.as_ref()).or_exit(Exit::Input)?;
    if journals.is_empty() {
        let says = format!("{shown}: holds no journal (a run with `journal: off` keeps none)");
        return Err(Failure::says(Exit::Input, says));
    }
    if journals.files.is_empty() {
        return Err(journals.refused(&args.folder)).or_exit(Exit::Input);
    }
    journals::warn(&args.folder, &journals.left_out, console);
    journals::warn(&args.folder, &journals.foreign, console);
    let mut out = BufWriter::with_capacity(OUT_BYTES, io::stdout().lock());
    for journal in journals.files {
        match print(journal, args, &mut out, console)? {
            Printed::All => {}
            Printed::NoReader => return Ok(Exit::Done),
        }
    }
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritable(&error)),
        _ => Ok(Exit::Done),
    }
}

/// How far the printing came.
enum Printed {
    All,
    /// Whoever read the output has closed it.
    NoReader,
}

fn print(
    Journal { file, mut reader }: Journal,
    args: &EventsArgs,
    out: &mut impl Write,
    console: &Console,
) -> Result<Printed, Failure> {
    let shown = format!("{}/{file}", args.folder.display());
    let plan = reader.plan().clone();
    let mut printer = Printer {
        wanted: Wanted::read(&args.phase, &args.kind, &plan).or_exit(Exit::Input)?,
        prompts: match args.with_prompts {
            true => Prompts::of(&plan).or_exit(Exit::Input)?,
            false => Prompts::default(),
        },
        texts: BTreeMap::new(),
        lines: Lines { writer: EventWriter::new(&plan), line: Vec::new(), out, error: None },
    };
    while printer.lines.error.is_none()
        && reader
            .fold_next(&mut printer)
            .map_err(|e| anyhow!("{shown}: {e}"))
            .or_exit(Exit::Input)?
    {}
    printer.rest();
    match printer.lines.error {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Printed::NoReader),
        Some(error) => return Err(unwritable(&error)),
        None => {}
    }
    let summary = reader.summary();
    journals::warn(&args.folder, journals::torn(&file, summary.end).as_slice(), console);
    if summary.thinned() {
        console.warn(format!("{shown}: requests were left out on purpose: these are not all"));
    }
    Ok(Printed::All)
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::says(Exit::Internal, format!("stdout cannot be written to: {error}"))
}

/// Writes a line for each record that is wanted.
struct Printer<W> {
    wanted: Wanted,
    prompts: Prompts,
    /// Pieces of text of requests that have not ended.
    texts: BTreeMap<RequestKey, Said>,
    lines: Lines<W>,
}

/// Writes lines until that fails.
struct Lines<W> {
    writer: EventWriter,
    /// Room for one.
    line: Vec<u8>,
    out: W,
    error: Option<io::Error>,
}

/// What was kept of an answer.
#[derive(Default)]
struct Said {
    output: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<String>,
}

impl<W: Write> Fold for Printer<W> {
    fn fold(&mut self, record: &Record<'_>) {
        if self.lines.error.is_some() {
            return;
        }
        // The last record of a request has its turn itself.
        self.lines.writer.see(record);
        if let Record::Text(text) = record {
            self.texts.entry(text.key).or_default().add(text);
            return;
        }
        let said = match record {
            Record::Completed(done) => self.texts.remove(&done.key),
            _ => None,
        };
        // Most lines of a filtered journal are not wanted: what is not is not made.
        if !self.wanted.record(record) {
            return;
        }
        let data = match (said, record) {
            (Some(said), _) => said.data(),
            (None, Record::Issued(issued)) => {
                self.prompts.of_request(issued).unwrap_or_else(|| EventData::of(record))
            }
            _ => EventData::of(record),
        };
        self.lines.print(record, &data);
    }
}

impl<W: Write> Printer<W> {
    /// Text of answers whose end is not in the journal.
    fn rest(&mut self) {
        for (key, said) in std::mem::take(&mut self.texts) {
            let text = Text { at: self.wanted.last_at(), key, kind: TextKind::Content, text: "" };
            let record = Record::Text(text);
            if self.lines.error.is_none() && self.wanted.record(&record) {
                self.lines.print(&record, &said.data());
            }
        }
    }
}

impl<W: Write> Lines<W> {
    fn print(&mut self, record: &Record<'_>, data: &EventData<'_>) {
        self.line.clear();
        self.writer.write_with(record, data, &mut self.line);
        self.line.push(b'\n');
        self.error = self.out.write_all(&self.line).err();
    }
}

impl Said {
    fn add(&mut self, text: &Text<'_>) {
        let place = match text.kind {
            TextKind::Content => &mut self.output,
            TextKind::Reasoning => &mut self.reasoning,
            TextKind::ToolCalls => &mut self.tool_calls,
        };
        place.get_or_insert_default().push_str(text.text);
    }

    fn data(self) -> EventData<'static> {
        let [output, reasoning, tool_calls] =
            [self.output, self.reasoning, self.tool_calls].map(|text| text.map(Cow::Owned));
        EventData::Output { output, reasoning, tool_calls }
    }
}

const OUT_BYTES: usize = 256 << 10;
