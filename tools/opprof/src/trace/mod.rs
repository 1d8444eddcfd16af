//! A profiler's trace, reduced to what attribution needs: steps, launches and what ran on the GPU.
//!
//! ```text
//! bytes --scan--> values --event--> annotations, launches by correlation, kernels
//! ```
//!
//! The input is streamed; what is kept is some forty bytes a kernel and each distinct name once, so a
//! trace of a gigabyte takes a few hundred megabytes at the most. Categories are those of PyTorch's
//! profiler on CUDA and on ROCm, and the capitalised ones of its old versions.

mod annotation;
mod event;
mod scan;
#[cfg(test)]
mod tests;
mod time;

pub use annotation::Composition;

use std::collections::HashMap;
use std::io::{self, BufRead};

use event::Event;
use scan::{Piece, ScanEnd, Scanner};

/// A mark that a step of the model began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMark {
    /// When, by the trace's clock.
    pub start_ns: u64,
    /// How long its annotation lasted on the CPU.
    pub dur_ns: u64,
    /// What it was made of; `None` for a bare `ProfilerStep`.
    pub composition: Option<Composition>,
}

/// Something that ran on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// When it began, by the trace's clock.
    pub start_ns: u64,
    /// How long it ran.
    pub dur_ns: u64,
    /// Its name's place in [`Trace::names`].
    pub name: u32,
    /// What sort of work.
    pub work: Work,
    /// What launched it.
    pub correlation: Option<u64>,
}

/// Sorts of work on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A kernel.
    Kernel,
    /// A copy.
    Memcpy,
    /// A fill.
    Memset,
}

/// How a trace was found to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEnd {
    /// With its last bracket.
    Whole,
    /// Before it: cut off, and read up to there.
    Cut,
    /// Its compressed data is damaged, and was read up to there.
    Damaged,
}

/// One rank's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The rank that wrote it, by its own word.
    pub rank: Option<u64>,
    /// Wall clock at the trace's zero, nanoseconds since the Unix epoch; `None` in files of 2023, whose
    /// time stamps are absolute.
    pub base_wall_ns: Option<u64>,
    /// Steps in order of time.
    pub steps: Vec<StepMark>,
    /// What ran on the GPU, in order of time.
    pub kernels: Vec<Kernel>,
    /// Names of kernels, each once.
    pub names: Vec<String>,
    /// When each launch was made, by its correlation.
    pub launches: HashMap<u64, u64>,
    /// Events that were read.
    pub events: u64,
    /// Events that could not be read.
    pub unreadable: u64,
    /// How it ends.
    pub end: TraceEnd,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Other content.
    #[error("is no Chrome trace: neither an object with traceEvents nor a list of events")]
    Foreign,
    /// The input's.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Trace {
    /// Reads a trace to its end, or as far as it is whole.
    ///
    /// # Errors
    /// Something else than a trace, or the input's error.
    pub fn read(input: impl BufRead) -> Result<Self, TraceError> {
        let mut scanner = Scanner::new(input);
        let mut reading = Reading::default();
        let end = loop {
            match scanner.next_piece()? {
                Piece::Event(bytes) => reading.event(bytes),
                Piece::Key(key, value) => reading.key(key, value),
                Piece::TooLong => reading.unreadable += 1,
                Piece::End(ScanEnd::Whole) => break TraceEnd::Whole,
                Piece::End(ScanEnd::Cut) => break TraceEnd::Cut,
                Piece::End(ScanEnd::Damaged) => break TraceEnd::Damaged,
                Piece::End(ScanEnd::Foreign) => return Err(TraceError::Foreign),
            }
        };
        Ok(reading.into_trace(end))
    }

    /// Wall clock of an instant of the trace; `None` without a base, unless the stamps are absolute.
    #[must_use]
    pub fn wall_ns(&self, at_ns: u64) -> Option<u64> {
        match self.base_wall_ns {
            Some(base) => base.checked_add(at_ns),
            None => (at_ns > ABSOLUTE_FROM_NS).then_some(at_ns),
        }
    }

    /// The name of a kernel.
    #[must_use]
    pub fn name(&self, kernel: &Kernel) -> &str {
        self.names.get(kernel.name as usize).map_or("", String::as_str)
    }
}

/// A trace while it is read.
#[derive(Default)]
struct Reading {
    rank: Option<u64>,
    base_wall_ns: Option<u64>,
    steps: Vec<StepMark>,
    profiler_steps: Vec<StepMark>,
    kernels: Vec<Kernel>,
    names: Vec<String>,
    places: HashMap<String, u32>,
    launches: HashMap<u64, u64>,
    events: u64,
    unreadable: u64,
}

impl Reading {
    fn key(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"\"baseTimeNanoseconds\"" => {
                self.base_wall_ns = std::str::from_utf8(value).ok().and_then(|t| t.parse().ok());
            }
            b"\"distributedInfo\"" => {
                let info: Option<serde_json::Value> = serde_json::from_slice(value).ok();
                self.rank = info.and_then(|info| info.get("rank")?.as_u64());
            }
            _ => {}
        }
    }

    fn event(&mut self, bytes: &[u8]) {
        self.events += 1;
        let Some(event) = Event::parse(bytes) else {
            self.unreadable += 1;
            return;
        };
        if event.phase != "X" {
            return;
        }
        let Some(start_ns) = event.ts_ns else {
            self.unreadable += 1;
            return;
        };
        match kind(&event.category) {
            Some(Kind::Annotation) => self.annotation(&event, start_ns),
            Some(Kind::Launch) => {
                if let Some(correlation) = event.correlation {
                    // A driver's call within a runtime's has the same number: the outer one came first.
                    let launch = self.launches.entry(correlation).or_insert(start_ns);
                    *launch = start_ns.min(*launch);
                }
            }
            Some(Kind::Gpu(work)) => {
                let name = self.place_of(&event.name);
                let dur_ns = event.dur_ns.unwrap_or(0);
                let correlation = event.correlation;
                self.kernels.push(Kernel { start_ns, dur_ns, name, work, correlation });
            }
            None => {}
        }
    }

    fn annotation(&mut self, event: &Event<'_>, start_ns: u64) {
        let composition = Composition::parse(&event.name);
        let mark = StepMark { start_ns, dur_ns: event.dur_ns.unwrap_or(0), composition };
        if composition.is_some() {
            self.steps.push(mark);
        } else if event.name.starts_with("ProfilerStep#") {
            self.profiler_steps.push(mark);
        }
    }

    fn place_of(&mut self, name: &str) -> u32 {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let place = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    fn into_trace(mut self, end: TraceEnd) -> Trace {
        // The profiler's own steps frame more than the model; they serve where nothing else does.
        let mut steps = if self.steps.is_empty() { self.profiler_steps } else { self.steps };
        steps.sort_by_key(|step| step.start_ns);
        self.kernels.sort_by_key(|kernel| (kernel.start_ns, kernel.dur_ns));
        Trace {
            rank: self.rank,
            base_wall_ns: self.base_wall_ns,
            steps,
            kernels: self.kernels,
            names: self.names,
            launches: self.launches,
            events: self.events,
            unreadable: self.unreadable,
            end,
        }
    }
}

enum Kind {
    Annotation,
    Launch,
    Gpu(Work),
}

/// Categories by what they are to attribution. Those of a GPU's annotations are none: they are made from
/// kernels, and leave out what was launched after the step's own code.
fn kind(category: &str) -> Option<Kind> {
    Some(match category {
        "user_annotation" => Kind::Annotation,
        "cuda_runtime" | "cuda_driver" | "hip_runtime" | "hip_driver" | "Runtime" | "Driver" => {
            Kind::Launch
        }
        "kernel" | "Kernel" => Kind::Gpu(Work::Kernel),
        "gpu_memcpy" | "Memcpy" => Kind::Gpu(Work::Memcpy),
        "gpu_memset" | "Memset" => Kind::Gpu(Work::Memset),
        _ => return None,
    })
}

/// Later than this a time stamp without a base is wall time: 2001, in nanoseconds.
const ABSOLUTE_FROM_NS: u64 = 1_000_000_000_000_000_000;
