//! Step records in memory, reduced to what the analysis needs.

use std::io::{self, BufRead};

use takt_record::{CONTEXT_BINS, PrefixCounts, StepLine, StepRecord, step_line};

use crate::lines::{Line, Lines};
use crate::trace::Composition;

/// How a step's model ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GraphMode {
    /// Without a graph.
    None,
    /// Parts of the model as graphs.
    Piecewise,
    /// The whole model as one graph.
    Full,
    /// By a mode with a name of its own, or the record does not tell.
    Unknown,
}

impl GraphMode {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no graph",
            Self::Piecewise => "piecewise graph",
            Self::Full => "full graph",
            Self::Unknown => "graph unknown",
        }
    }
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepFacts {
    /// Its index.
    pub index: u64,
    /// Wall clock when it was scheduled.
    pub submit_wall_ns: u64,
    /// Monotonic clock when it was scheduled.
    pub submit_mono_ns: u64,
    /// The same when it was complete.
    pub complete_mono_ns: u64,
    /// The model ran.
    pub executed: bool,
    /// Requests and tokens.
    pub composition: Composition,
    /// Tokens that compute again what a preemption threw away.
    pub resumed_tokens: u64,
    /// Requests by their length after the step.
    pub context_hist: [u64; CONTEXT_BINS],
    /// Requests thrown out.
    pub preemptions: u64,
    /// Requests waiting, deferred ones included.
    pub waiting: u64,
    /// Tokens looked up in the prefix caches.
    pub prefix_queries: u64,
    /// Those of them that were found.
    pub prefix_hits: u64,
    /// Share of the cache in use.
    pub kv_usage: f64,
    /// How the model ran.
    pub mode: GraphMode,
    /// Tokens of the graph that held the batch.
    pub bucket_tokens: Option<u64>,
}

impl StepFacts {
    /// From a record.
    #[must_use]
    pub fn of(record: &StepRecord<'_>) -> Self {
        let mode = match record.cudagraph.as_ref().map(|graph| &*graph.runtime_mode) {
            Some("NONE") => GraphMode::None,
            Some("PIECEWISE") => GraphMode::Piecewise,
            Some("FULL") => GraphMode::Full,
            Some(_) | None => GraphMode::Unknown,
        };
        let prefix = |of: fn(&PrefixCounts) -> u64| {
            let external = record.prefix.external.as_ref().map_or(0, of);
            of(&record.prefix.local).saturating_add(external)
        };
        Self {
            index: record.step_index,
            submit_wall_ns: record.submit_wall_ns,
            submit_mono_ns: record.submit_mono_ns,
            complete_mono_ns: record.complete_mono_ns,
            executed: record.model_executed,
            composition: Composition {
                context_requests: record.prefill_requests,
                context_tokens: record.prefill_tokens,
                generation_requests: record.decode_batch_size,
                generation_tokens: record.decode_tokens,
            },
            resumed_tokens: record.resumed_tokens.unwrap_or(0),
            context_hist: record.context_length_hist,
            preemptions: record.preemptions,
            waiting: record.queues.waiting.saturating_add(record.queues.deferred),
            prefix_queries: prefix(|counts| counts.queries),
            prefix_hits: prefix(|counts| counts.hits),
            kv_usage: record.kv.usage,
            mode,
            bucket_tokens: record.cudagraph.as_ref().map(|graph| graph.bucket_tokens),
        }
    }

    /// From submit to complete.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.complete_mono_ns.saturating_sub(self.submit_mono_ns)
    }

    /// Wall clock when it was complete.
    #[must_use]
    pub fn complete_wall_ns(&self) -> u64 {
        self.submit_wall_ns.saturating_add(self.span_ns())
    }
}

/// Appends the steps of a file; those that cannot be read are counted, and `takt opprof check` names them.
///
/// # Errors
/// The input's. That it ends too early is none.
pub fn read_steps(input: impl BufRead, steps: &mut Vec<StepFacts>) -> io::Result<u64> {
    let mut lines = Lines::new(input);
    let mut unreadable = 0;
    loop {
        match lines.next_line()? {
            Line::Whole(line) => match step_line(line) {
                Ok(StepLine::Record(record)) => steps.push(StepFacts::of(&record)),
                Ok(StepLine::Footer(_)) => {}
                Err(_) => unreadable += 1,
            },
            Line::Torn(_) | Line::End => return Ok(unreadable),
        }
    }
}
