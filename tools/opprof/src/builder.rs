//! Making step records: a server's scheduler says what it scheduled, and the sums follow.
//!
//! ```text
//! begin --scheduled…--> draft --queues, cache, prefixes--> draft --complete--> record
//! ```
//!
//! Everything but `complete` is called while the step is scheduled, before any state moves on. A record
//! that was made here passes every check of `takt opprof check`.

use std::borrow::Cow;

use takt_record::{
    CHUNK_BINS, CONTEXT_BINS, ChunkedPrefill, GraphUse, KvBlocks, PrefixCaches, PrefixCounts,
    Queues, STEP_SCHEMA, StepRecord, chunk_bin, context_bin,
};
use takt_time::{Anchor, Nanos};

/// Numbers the steps of one scheduler.
#[derive(Clone, Debug)]
pub struct StepCounter {
    engine_id: String,
    next_index: u64,
}

/// A request in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Tokens that the step computes for it.
    pub tokens: u64,
    /// Its length after the step.
    pub context_after: u64,
    /// What they are.
    pub part: Part,
}

/// What a step computes for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// New tokens, speculative ones included.
    Decode,
    /// Tokens that a preemption threw away; servers count them as decodes.
    Resumed,
    /// The prompt's beginning, and not its end.
    First,
    /// A middle piece of the prompt.
    Middle,
    /// The prompt's end, and not its beginning.
    Last,
    /// The whole prompt, but for what a cache had.
    Unsplit,
}

/// A step that is scheduled and not complete.
#[derive(Clone, Debug)]
pub struct StepDraft {
    record: StepRecord<'static>,
}

impl StepCounter {
    /// Of a scheduler by its id, such as `dp0-pid1234`.
    #[must_use]
    pub fn new(engine_id: impl Into<String>) -> Self {
        Self { engine_id: engine_id.into(), next_index: 0 }
    }

    /// Begins the next step, scheduled at `now`.
    pub fn begin(&mut self, now: Anchor) -> StepDraft {
        let step_index = self.next_index;
        self.next_index += 1;
        let nothing =
            ChunkedPrefill { chunk_size_hist: [0; CHUNK_BINS], ..ChunkedPrefill::default() };
        StepDraft {
            record: StepRecord {
                schema: STEP_SCHEMA,
                engine_id: Cow::Owned(self.engine_id.clone()),
                step_index,
                submit_wall_ns: now.wall_ns,
                submit_mono_ns: now.mono.as_nanos(),
                complete_mono_ns: now.mono.as_nanos(),
                model_executed: false,
                scheduled_requests: 0,
                decode_batch_size: 0,
                prefill_requests: 0,
                prefill_tokens: 0,
                decode_tokens: 0,
                chunked_prefill: nothing,
                context_length_hist: [0; CONTEXT_BINS],
                preemptions: 0,
                queues: Queues::default(),
                kv: KvBlocks::default(),
                prefix: PrefixCaches::default(),
                cudagraph: None,
                moe_expert_load: (),
                dropped_records_before: 0,
                scheduled_tokens: Some(0),
                resumed_requests: Some(0),
                resumed_tokens: Some(0),
            },
        }
    }
}

impl StepDraft {
    /// A request is in the step.
    pub fn schedule(&mut self, request: Scheduled) {
        let r = &mut self.record;
        let Scheduled { tokens, context_after, part } = request;
        r.scheduled_requests += 1;
        r.context_length_hist[context_bin(context_after)] += 1;
        r.scheduled_tokens = r.scheduled_tokens.map(|all| all + tokens);
        let chunked = &mut r.chunked_prefill;
        match part {
            Part::Decode | Part::Resumed => {
                r.decode_batch_size += 1;
                r.decode_tokens += tokens;
                if part == Part::Resumed {
                    r.resumed_requests = r.resumed_requests.map(|all| all + 1);
                    r.resumed_tokens = r.resumed_tokens.map(|all| all + tokens);
                }
                return;
            }
            Part::First => chunked.first += 1,
            Part::Middle => chunked.middle += 1,
            Part::Last => chunked.last += 1,
            Part::Unsplit => chunked.unsplit += 1,
        }
        chunked.tokens += tokens;
        chunked.chunk_size_hist[chunk_bin(tokens)] += 1;
        r.prefill_requests += 1;
        r.prefill_tokens += tokens;
    }

    /// Requests thrown out in this step.
    pub fn preempted(&mut self, requests: u64) {
        self.record.preemptions += requests;
    }

    /// Where requests stand after scheduling.
    pub fn queues(&mut self, queues: Queues) {
        self.record.queues = queues;
    }

    /// The cache after scheduling; `free` is at most `total`.
    pub fn blocks(&mut self, total: u64, free: u64) {
        let used = total.saturating_sub(free);
        let usage = if total == 0 { 0.0 } else { used as f64 / total as f64 };
        self.record.kv =
            KvBlocks { total_blocks: total, free_blocks: total - used, used_blocks: used, usage };
    }

    /// Look-ups in the server's own prefix cache by this step.
    pub fn prefix(&mut self, counts: PrefixCounts) {
        self.record.prefix.local = counts;
    }

    /// All tokens of the step so far.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.record.prefill_tokens + self.record.decode_tokens
    }

    /// The step's output has been processed. A model that ran tells how; one that did not run has no
    /// graph.
    #[must_use]
    pub fn complete(mut self, at: Nanos, ran: Option<GraphRun>) -> StepRecord<'static> {
        let unpadded_tokens = self.tokens();
        self.record.complete_mono_ns = at.as_nanos().max(self.record.submit_mono_ns);
        self.record.model_executed = ran.is_some();
        self.record.cudagraph = ran.map(|ran| {
            let bucket_tokens = ran.bucket_tokens.max(unpadded_tokens);
            GraphUse {
                hit: ran.mode != GraphUse::MISS,
                runtime_mode: Cow::Borrowed(ran.mode),
                unpadded_tokens,
                bucket_tokens,
                padding_tokens: bucket_tokens - unpadded_tokens,
            }
        });
        self.record
    }
}

/// How a model ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphRun {
    /// `NONE`, `PIECEWISE` or `FULL`.
    pub mode: &'static str,
    /// Tokens of the graph that held the batch; without one, the batch itself.
    pub bucket_tokens: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::check::FileCheck;

    fn part(of: u8) -> Part {
        [Part::Decode, Part::Resumed, Part::First, Part::Middle, Part::Last, Part::Unsplit]
            [usize::from(of % 6)]
    }

    proptest! {
        #[test]
        fn whatever_is_scheduled_the_record_passes_every_check(
            steps in prop::collection::vec(
                (prop::collection::vec((1_u64..5_000, 1_u64..200_000, any::<u8>()), 0..20), 0_u64..100),
                1..20,
            )
        ) {
            let mut counter = StepCounter::new("dp0-pid1");
            let mut check = FileCheck::new(None);
            let mut lines = 0;
            for (at, (requests, free)) in (0_u64..).zip(steps) {
                let mono = Nanos::from_nanos(at * 10);
                let mut draft = counter.begin(Anchor { mono, wall_ns: 5 + at });
                for (tokens, context_after, of) in &requests {
                    draft.schedule(Scheduled { tokens: *tokens, context_after: *context_after, part: part(*of) });
                }
                draft.blocks(99, free);
                let bucket_tokens = draft.tokens().next_multiple_of(64);
                let ran = (!requests.is_empty()).then_some(GraphRun { mode: "FULL", bucket_tokens });
                let record = draft.complete(Nanos::from_nanos(at * 10 + 7), ran);
                lines += 1;
                check.record(lines, &record);
            }
            let report = check.end(None);
            prop_assert_eq!(report.findings, vec![]);
        }
    }
}
