//! What the server was doing: the shape of `opprof` in a result, from step records and profiler windows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The server's side of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSide {
    /// What could not be had, and why. None of it takes anything from the run's own figures.
    pub problems: Vec<String>,
    /// Profiler windows, in order.
    pub windows: Vec<ProfilerWindow>,
    /// What the server says of itself, by route; null where it did not.
    pub server: Value,
    /// Client latency beside the composition of steps; `None` without records.
    pub joined: Option<Joined>,
}

/// A profiler window of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfilerWindow {
    /// The phase that it was begun in.
    pub phase: String,
    /// From here on requests are profiled, nanoseconds of the run's monotonic clock.
    pub opened_ns: Option<u64>,
    /// Up to here; `None` when the profiler could not be stopped, or the run was over by then.
    pub closed_ns: Option<u64>,
    /// Steps in its traces, on the rank that has the fewest.
    pub steps: Option<u64>,
    /// The least and the most requests that generate in them.
    pub decode: Option<(u64, u64)>,
    /// Steps with prompts.
    pub prompt_steps: Option<u64>,
    /// Traces, by their names in the profiler's folder.
    pub files: Vec<String>,
    /// Why it does not count; empty for one that does.
    pub problems: Vec<String>,
    /// What could be better.
    pub remarks: Vec<String>,
}

/// Latency beside composition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// How the clocks were joined.
    pub clocks: JoinClocks,
    /// Steps within the time of the run.
    pub steps: u64,
    /// Steps that there were records of.
    pub recorded: u64,
    /// Length of a slice of time, seconds.
    pub slice_s: f64,
    /// In order of time; the first and the last have requests.
    pub slices: Vec<JoinedSlice>,
    /// The slowest to their first token, slowest first, profiled ones left out.
    pub slowest_ttft: Vec<JoinedRequest>,
    /// The slowest per token.
    pub slowest_tpot: Vec<JoinedRequest>,
}

/// How the clocks of both sides were joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinClocks {
    /// One machine: the same monotonic clock.
    #[default]
    Same,
    /// By wall clocks.
    Wall,
}

/// A slice of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JoinedSlice {
    /// Seconds from the beginning of the first slice.
    pub start_s: f64,
    /// Answers that ended well in it.
    pub answers: u64,
    /// Median of the first tokens that came in it, milliseconds from the send.
    pub ttft_p50_ms: Option<f64>,
    /// 95th percentile of the same.
    pub ttft_p95_ms: Option<f64>,
    /// Median of the answers whose last token came in it, milliseconds a token.
    pub tpot_p50_ms: Option<f64>,
    /// Share of it in profiler windows.
    pub profiled: f64,
    /// What the server did.
    pub server: ServerSlice,
}

/// A slow request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JoinedRequest {
    /// The place of its phase.
    pub phase: u16,
    /// Its number in the phase.
    pub ordinal: u64,
    /// Seconds from the beginning of the first slice to its send.
    pub sent_s: f64,
    /// The figure by which it is slow.
    pub value_ms: f64,
    /// What the server did from its send to its first token, or from its first token to its last.
    pub during: ServerSlice,
}

/// What the steps between two moments were made of. Means are weighted by how long each step lasted in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSlice {
    /// Steps that ran in it, in part or whole.
    pub steps: u64,
    /// Share of the time in which a step ran.
    pub busy: f64,
    /// Mean requests that generate.
    pub decode_batch: f64,
    /// Mean requests that read their prompt.
    pub prefill_requests: f64,
    /// Prompt tokens of the steps that ended in it.
    pub prefill_tokens: u64,
    /// Tokens of the requests that generate, of the same steps.
    pub decode_tokens: u64,
    /// Share of the busy time in steps with prompt tokens.
    pub prefill_share: f64,
    /// The most that waited.
    pub waiting_max: u64,
    /// The greatest share of the cache in use.
    pub kv_usage_max: f64,
    /// Requests thrown out.
    pub preemptions: u64,
    /// The longest step, nanoseconds.
    pub longest_step_ns: u64,
    /// Mean length of a step, nanoseconds.
    pub mean_step_ns: f64,
    /// Share of prompt look-ups that the prefix cache had; `None` without look-ups.
    pub prefix_hits: Option<f64>,
}
