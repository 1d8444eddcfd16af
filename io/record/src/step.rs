//! The layer-1 record of OpProf: what one scheduler step of an inference server was made of.
//!
//! Version 1, JSON Lines: a record a step, and a [`StepFooter`] when the server had the time to end in
//! order. A record holds counts and histograms only: no request id and no list of lengths is in it.
//! Names and nulls are a promise to other programs (the recorder for vLLM is written in Python), so they
//! stand here once. What must hold between the fields is checked by `takt-opprof`, not here.
//!
//! Text is borrowed from the line where it has no escapes, so that a gigabyte of records can be read in
//! seconds.

mod codec;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

pub use codec::{StepError, StepLine, step_line};

/// The version of the records.
pub const STEP_SCHEMA: u64 = 1;

/// Upper edges of the context-length histogram, each within its bin; one more bin holds what is above.
pub const CONTEXT_EDGES: [u64; 11] =
    [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];

/// Upper edges of the chunk-size histogram, in tokens, each within its bin; one more bin is above.
pub const CHUNK_EDGES: [u64; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];

/// Bins of the context-length histogram.
pub const CONTEXT_BINS: usize = CONTEXT_EDGES.len() + 1;

/// Bins of the chunk-size histogram.
pub const CHUNK_BINS: usize = CHUNK_EDGES.len() + 1;

/// The bin of a sequence that is so many tokens long after the step.
#[must_use]
pub fn context_bin(tokens: u64) -> usize {
    CONTEXT_EDGES.partition_point(|&edge| edge < tokens)
}

/// The bin of a piece of a prompt of so many tokens.
#[must_use]
pub fn chunk_bin(tokens: u64) -> usize {
    CHUNK_EDGES.partition_point(|&edge| edge < tokens)
}

/// One scheduler step.
///
/// A snapshot taken when the step was scheduled, before any state moved on; only `complete_mono_ns`,
/// `model_executed` and `cudagraph` are known when it is complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRecord<'a> {
    /// [`STEP_SCHEMA`].
    pub schema: u64,
    /// The scheduler that wrote it, such as `dp0-pid1234`.
    #[serde(borrow)]
    pub engine_id: Cow<'a, str>,
    /// Counted from 0 by the scheduler; a step without tokens counts, too.
    pub step_index: u64,
    /// Wall clock when it was scheduled, for joining with other logs.
    pub submit_wall_ns: u64,
    /// Monotonic clock of the process when it was scheduled.
    pub submit_mono_ns: u64,
    /// The same clock when its output had been processed.
    pub complete_mono_ns: u64,
    /// The model ran: a step may have nothing to do.
    pub model_executed: bool,
    /// Requests in the step.
    pub scheduled_requests: u64,
    /// Those of them that generate.
    pub decode_batch_size: u64,
    /// Those of them that still read their prompt.
    pub prefill_requests: u64,
    /// Prompt tokens of the step.
    pub prefill_tokens: u64,
    /// Tokens of the requests that generate, speculative ones included.
    pub decode_tokens: u64,
    /// How prompts were split.
    pub chunked_prefill: ChunkedPrefill,
    /// Every scheduled request by its length after the step, over [`CONTEXT_EDGES`].
    pub context_length_hist: [u64; CONTEXT_BINS],
    /// Requests thrown out in this step, to be computed again.
    pub preemptions: u64,
    /// Requests by where they stand, after scheduling.
    pub queues: Queues,
    /// The key-value cache, after scheduling.
    pub kv: KvBlocks,
    /// Look-ups in the prefix caches by this step.
    pub prefix: PrefixCaches,
    /// How the model ran; `None` when it did not run or its runner does not tell.
    #[serde(deserialize_with = "nullable")]
    pub cudagraph: Option<GraphUse<'a>>,
    /// Always null: exact loads are sampled in runs of their own.
    #[serde(deserialize_with = "null")]
    pub moe_expert_load: (),
    /// Records lost just before this one because the queue was full.
    pub dropped_records_before: u64,
    /// All tokens of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_tokens: Option<u64>,
    /// Of the requests that generate: those that compute again what a preemption threw away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_requests: Option<u64>,
    /// Their tokens. The cost of decoding must not be fitted on steps that have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_tokens: Option<u64>,
}

/// How the prompts of a step were split; each prefill request is one of the four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkedPrefill {
    /// Begun, and not finished in this step.
    pub first: u64,
    /// Begun before, and not finished in this step.
    pub middle: u64,
    /// Begun before, and finished.
    #[serde(rename = "final")]
    pub last: u64,
    /// Begun and finished in this step.
    pub unsplit: u64,
    /// Prompt tokens of all four.
    pub tokens: u64,
    /// The pieces by their tokens, over [`CHUNK_EDGES`].
    pub chunk_size_hist: [u64; CHUNK_BINS],
}

/// Requests by where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queues {
    /// In the batch.
    pub running: u64,
    /// Waiting for their turn.
    pub waiting: u64,
    /// Waiting, and passed over for a reason of their own.
    pub deferred: u64,
}

/// Blocks of the key-value cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KvBlocks {
    /// All that can be used.
    pub total_blocks: u64,
    /// Not in use.
    pub free_blocks: u64,
    /// In use.
    pub used_blocks: u64,
    /// The share in use.
    pub usage: f64,
}

/// Look-ups in the prefix caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixCaches {
    /// The server's own cache.
    pub local: PrefixCounts,
    /// A cache elsewhere; `None` when there is none.
    #[serde(deserialize_with = "nullable")]
    pub external: Option<PrefixCounts>,
}

/// Look-ups in one prefix cache, differences over one step. A look-up counts even when the request is
/// not admitted after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixCounts {
    /// Requests that were looked up.
    pub requests: u64,
    /// Their tokens.
    pub queries: u64,
    /// Tokens found.
    pub hits: u64,
    /// The same for requests that had been preempted.
    pub preempted_requests: u64,
    /// Their tokens.
    pub preempted_queries: u64,
    /// Tokens found.
    pub preempted_hits: u64,
}

/// How a step's batch met the captured graphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphUse<'a> {
    /// A graph was used: the mode is not [`GraphUse::MISS`].
    pub hit: bool,
    /// `NONE`, `PIECEWISE` (parts of the model) or `FULL`.
    #[serde(borrow)]
    pub runtime_mode: Cow<'a, str>,
    /// Tokens of the batch.
    pub unpadded_tokens: u64,
    /// Tokens of the graph that holds it.
    pub bucket_tokens: u64,
    /// The difference.
    pub padding_tokens: u64,
}

impl GraphUse<'_> {
    /// The one mode that is a miss.
    pub const MISS: &'static str = "NONE";
}

/// The last line of a file that was closed in order; it speaks of that file alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFooter<'a> {
    /// [`STEP_SCHEMA`].
    pub schema: u64,
    /// Always true: tells it from a record.
    pub footer: bool,
    /// As in the records.
    #[serde(borrow)]
    pub engine_id: Cow<'a, str>,
    /// Records made: written and dropped ones.
    pub encoded: u64,
    /// Records in the file.
    pub written: u64,
    /// Records lost because the queue was full.
    pub dropped: u64,
    /// The most records that waited at once.
    pub queue_high_watermark: u64,
    /// Steps that were scheduled and never completed.
    pub unfinalized: u64,
}

/// A field that may be null and may not be missing.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(d)
}

/// A field that is null.
fn null<'de, D: Deserializer<'de>>(d: D) -> Result<(), D::Error> {
    <()>::deserialize(d)
}

#[cfg(test)]
mod tests;
