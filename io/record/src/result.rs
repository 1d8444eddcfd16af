//! The shapes of `result.json`, schema `takt-result-1`.
//!
//! Shapes only: `takt-report` fills them from records and prints them, and `docs/RESULT.md` says where
//! each figure comes from. Absent is `None`, which is `null` in the file, never 0: a rate without a
//! window, a percentile of nothing. Units stand at the end of a key.
//!
//! A change that takes a key away or gives it another meaning needs a new [`RESULT_SCHEMA`]; a new key
//! does not.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::instrument::Instrument;
use crate::kinds::{
    EndedBy, ErrorKind, FailedBy, FinishReason, PhaseKind, PhaseState, TokenSource,
};
use crate::plan::RampRates;
use crate::score::Score;
use crate::server::ServerSide;

/// The name of this schema, the first key of every result.
pub const RESULT_SCHEMA: &str = "takt-result-1";

/// The result of a session: what `result.json` holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultDoc {
    /// [`RESULT_SCHEMA`].
    pub schema: String,
    /// Version of takt.
    pub takt: String,
    /// 32 hex characters.
    pub session_id: String,
    /// Wall clock at the start, RFC 3339 in UTC.
    pub started_at: String,
    /// First record of the session, nanoseconds of the run's monotonic clock.
    pub start_time_ns: Option<u64>,
    /// Last record of the session, the same clock.
    pub end_time_ns: Option<u64>,
    /// How the session ended.
    pub state: RunState,
    /// `state` is `complete`.
    pub complete: bool,
    /// Why the session could not go on, when it failed.
    #[serde(default)]
    pub failed_by: Option<FailedBy>,
    /// What the instrument thinks of its own figures.
    pub verdict: Verdict,
    /// What is known of the machine.
    pub host: Value,
    /// The resolved configuration, secrets redacted.
    pub config: Value,
    /// What the percentiles of distributions were counted from.
    #[serde(default)]
    pub counted: Counted,
    /// What the journal holds of the run; `None` without one.
    #[serde(default)]
    pub journal: Option<JournalNote>,
    /// Every planned phase in order.
    pub phases: Vec<PhaseResult>,
    /// What the server was doing, where a run collects that.
    #[serde(default)]
    pub opprof: Option<ServerSide>,
}

/// What percentiles were counted from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Histograms of three significant digits.
    #[default]
    Histograms,
    /// Every value.
    Values,
}

/// What a journal holds of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalNote {
    /// Bytes that are whole.
    pub bytes: u64,
    /// Records in them.
    pub records: u64,
    /// Of the requests a sample was kept.
    pub sampled: bool,
    /// The size cap was reached: later requests are missing.
    pub capped: bool,
    /// Why it stops before the run's end, when it does.
    pub stopped: Option<String>,
    /// What of its files could not be read.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Files beside them that the run did not write; none of the figures is of them, and none lacks anything for them.
    #[serde(default)]
    pub foreign: Vec<LeftOut>,
}

/// What could not be read of one file of a journal: all from the first damage on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The file, below the run folder.
    pub file: String,
    /// Offset of the first byte that was not read.
    pub at: u64,
    /// Bytes from there to the end of the file; `None` of what is not a file, or not there.
    pub bytes: Option<u64>,
    /// Why.
    pub why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, at, bytes, why } = self;
        write!(f, "{file}: {why}")?;
        match bytes {
            Some(bytes) => write!(f, ", at byte {at}; {bytes} bytes are left out"),
            None => Ok(()),
        }
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// All phases ran to their ends.
    Complete,
    /// A stop was asked for.
    Interrupted,
    /// The session could not go on.
    Failed,
    /// The records end without the session's end: the process was killed, or still runs.
    Killed,
}

/// The judgement of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The worst that any reason says.
    pub status: VerdictStatus,
    /// Why, in order of phases.
    pub reasons: Vec<Reason>,
}

/// May the figures be used?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictStatus {
    /// Nothing speaks against it.
    Valid,
    /// With care.
    Suspect,
    /// No.
    Invalid,
}

/// One reason of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The phase that it is about; `None` for the session.
    pub phase: Option<String>,
    /// A stable name, such as `lateness_p99_us`.
    pub name: String,
    /// What this reason alone makes of the run; `valid` for a remark.
    pub status: VerdictStatus,
    /// The figure.
    pub value: f64,
    /// The limit that it met.
    pub limit: f64,
    /// One sentence.
    pub says: String,
}

/// The result of one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Unique in the session.
    pub name: String,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: PhaseKind,
    /// How it ended; `None` when it did not, or never began.
    pub state: Option<PhaseState>,
    /// What ended its issuing.
    pub ended_by: Option<EndedBy>,
    /// When its strategy started, monotonic.
    pub start_time_ns: Option<u64>,
    /// When it was over, monotonic.
    pub end_time_ns: Option<u64>,
    /// What was asked of it.
    pub load: Load,
    /// Requests handed to the transport.
    pub issued: u64,
    /// `succeeded + failed`.
    pub completed: u64,
    /// Answered in full before the phase was over.
    pub succeeded: u64,
    /// Failed before the phase was over.
    pub failed: u64,
    /// Cancelled when the drain ran out or the session stopped.
    pub unanswered: u64,
    /// Turns left out because an earlier turn of their conversation failed.
    pub skipped: u64,
    /// Ended after the phase was over: in none of the counts before, in no distribution, no series.
    pub late: u64,
    /// Requests of earlier phases in flight at the start.
    pub inherited: u64,
    /// Requests that needed a second attempt because a reused connection was stale.
    pub retried: u64,
    /// Requests that overlapped a profiler window.
    pub profiled: u64,
    /// Length of the tracking window.
    pub duration_s: Option<f64>,
    /// First send to last send.
    pub issue_window_s: Option<f64>,
    /// The steady state.
    pub steady: Option<Steady>,
    /// `issued / issue_window_s`.
    pub requests_per_s: Option<f64>,
    /// `succeeded / duration_s`.
    pub successful_per_s: Option<f64>,
    /// Output tokens of successes over `duration_s`.
    pub output_tokens_per_s: Option<f64>,
    /// Requests within the service level objective.
    pub goodput: Option<Goodput>,
    /// How the requests were spread, where there are several endpoints; in their order.
    #[serde(default)]
    pub endpoints: Option<Vec<EndpointCounts>>,
    /// Failures by kind; kinds without one are left out.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The first few distinct failures.
    pub error_samples: Vec<ErrorSample>,
    /// Why the server stopped generating, over successes.
    pub finish_reasons: BTreeMap<FinishReason, u64>,
    /// End-to-end latency to the last byte.
    pub latency_ms: TwoViews,
    /// Time to first token.
    pub ttft_ms: TwoViews,
    /// Latency to the last token.
    pub last_token_ms: TwoViews,
    /// Send to first byte of the response.
    pub first_byte_ms: Option<Distribution>,
    /// Send to first event of a stream, token or not.
    pub first_event_ms: Option<Distribution>,
    /// Send to first event with answer text.
    pub first_content_ms: Option<Distribution>,
    /// Time per output token, one value a request.
    pub tpot_ms: Option<Distribution>,
    /// Inter-token latency, by token counts.
    pub itl_ms: Option<Distribution>,
    /// Measured gaps between token events.
    pub event_gap_ms: Option<Distribution>,
    /// Actual minus scheduled send.
    pub lateness_us: Option<Distribution>,
    /// Waiting in the client for a connection.
    pub queue_ms: Option<Distribution>,
    /// Making a TCP connection.
    pub connect_ms: Option<Distribution>,
    /// TLS handshakes.
    pub tls_ms: Option<Distribution>,
    /// First write to last byte accepted by the system.
    pub write_ms: Option<Distribution>,
    /// How long the bytes of the first token lay in the socket, by the kernel's stamps.
    #[serde(default)]
    pub socket_wait_ms: Option<Distribution>,
    /// Requests in flight while issuing, weighted by time.
    pub in_flight: Option<Distribution>,
    /// Token counts.
    pub tokens: Option<Tokens>,
    /// Requests of conversations by turn number; `None` for a phase without conversations.
    pub turns: Option<Vec<TurnResult>>,
    /// What conversations came to; `None` for a phase without them.
    #[serde(default)]
    pub conversations: Option<ConversationsResult>,
    /// The phase over time.
    pub series: Option<OverTime>,
    /// What its answers are worth; `None` for a phase that is not scored.
    pub score: Option<Score>,
    /// What the instrument saw of itself during the phase.
    pub instrument: Option<Instrument>,
}

/// The requests of one turn number, those that ended in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnResult {
    /// The number, or the first of a range.
    pub turn: u32,
    /// The last of a range.
    pub last_turn: Option<u32>,
    /// Requests issued.
    pub issued: u64,
    /// Answered.
    pub succeeded: u64,
    /// Failed.
    pub failed: u64,
    /// Time to first token, from the send.
    pub ttft_ms: Option<Distribution>,
    /// Latency, from the send.
    pub latency_ms: Option<Distribution>,
    /// Prompt tokens in the mean.
    pub input_tokens: Option<f64>,
    /// Generated tokens in the mean.
    pub output_tokens: Option<f64>,
    /// Prompt tokens from the server's cache in the mean.
    pub cached_tokens: Option<f64>,
}

/// What the conversations of a phase came to. Distributions are over those that were completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationsResult {
    /// Conversations that began.
    pub begun: u64,
    /// All turns answered.
    pub completed: u64,
    /// A turn failed.
    pub failed: u64,
    /// The phase was over before they were.
    pub stopped: u64,
    /// Turns of those that began.
    pub turns_expected: u64,
    /// Turns that were not sent because the phase was over.
    pub turns_unsent: u64,
    /// Turns of a conversation.
    pub turns: Option<Distribution>,
    /// From its slot to its last answer.
    pub duration_ms: Option<Distribution>,
    /// Time in which it waited for the model.
    pub waited_ms: Option<Distribution>,
    /// Time of its delays: tools, and users who think.
    pub paused_ms: Option<Distribution>,
    /// Prompt tokens of its turns together.
    pub input_tokens: Option<Distribution>,
    /// Generated tokens of its turns together.
    pub output_tokens: Option<Distribution>,
    /// Prompt tokens from the server's cache, together.
    pub cached_tokens: Option<Distribution>,
}

/// What was asked of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The load pattern.
    pub pattern: String,
    /// Mean arrivals a second of an open loop.
    pub rate: Option<f64>,
    /// The rates that a ramp goes between.
    #[serde(default)]
    pub ramp: Option<RampRates>,
    /// Requests to be kept in flight by a closed loop; of an agentic phase, conversations.
    pub target_concurrency: Option<u32>,
    /// Conversations that arrive a second.
    #[serde(default)]
    pub conversations_per_s: Option<f64>,
    /// Requests asked for.
    pub requests: Option<u64>,
    /// Answers were streamed.
    pub stream: bool,
}

/// The steady state of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Seconds from the start of the phase to its begin.
    pub start_s: f64,
    /// Seconds from the start of the phase to its end.
    pub end_s: f64,
    /// Successes that ended in it, a second.
    pub requests_per_s: Option<f64>,
    /// Their output tokens, a second.
    pub output_tokens_per_s: Option<f64>,
}

/// What became of the requests that went to one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointCounts {
    /// Its address, as the configuration has it.
    pub url: String,
    /// Those that ended, in whatever way.
    pub ended: u64,
    /// Answered in full before the phase was over.
    pub succeeded: u64,
    /// Failed before the phase was over.
    pub failed: u64,
}

/// Requests within a service level objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// The objective as it was given.
    pub slo: Value,
    /// Requests within it over `duration_s`.
    pub requests_per_s: Option<f64>,
    /// Requests within it among those that ended.
    pub share: Option<f64>,
    /// Its percentiles, each held against the phase.
    #[serde(default)]
    pub gates: Vec<SloGate>,
}

/// A percentile of an objective, held against a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloGate {
    /// `ttft_ms`, `tpot_ms` or `latency_ms`.
    pub metric: String,
    /// As its distribution has it: "99".
    pub percentile: String,
    /// The most that it may be, in milliseconds.
    pub limit: f64,
    /// What it was; absent when no request had one.
    pub value: Option<f64>,
    /// Whether it was kept. What is absent was not.
    pub met: bool,
}

/// A failure that happened, perhaps often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorSample {
    /// What.
    pub kind: ErrorKind,
    /// HTTP status.
    pub status: Option<u16>,
    /// The server's or the system's words, bounded.
    pub message: String,
    /// How often exactly this.
    pub count: u64,
}

/// One quantity from its two starting points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TwoViews {
    /// From when the schedule wanted the send; `None` for a closed loop.
    pub from_schedule: Option<Distribution>,
    /// From the send.
    pub from_send: Option<Distribution>,
}

/// A distribution; there is none of nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Values in it.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the values themselves (divisor `count`).
    pub stddev: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Percentiles by nearest rank, to three significant digits.
    pub p: Percentiles,
}

/// The percentiles that every distribution has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    #[serde(rename = "1")]
    pub p1: f64,
    #[serde(rename = "5")]
    pub p5: f64,
    #[serde(rename = "10")]
    pub p10: f64,
    #[serde(rename = "25")]
    pub p25: f64,
    #[serde(rename = "50")]
    pub p50: f64,
    #[serde(rename = "75")]
    pub p75: f64,
    #[serde(rename = "90")]
    pub p90: f64,
    #[serde(rename = "95")]
    pub p95: f64,
    #[serde(rename = "99")]
    pub p99: f64,
    #[serde(rename = "99.9")]
    pub p99_9: f64,
}

/// Token counts of the successes of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// Prompt tokens of a request.
    pub input: Option<Distribution>,
    /// Generated tokens of a request.
    pub output: Option<Distribution>,
    /// Prompt tokens that came from the server's cache, of a request.
    pub cached: Option<Distribution>,
    /// All prompt tokens.
    pub input_total: Option<u64>,
    /// All generated tokens.
    pub output_total: Option<u64>,
    /// All cached prompt tokens.
    pub cached_total: Option<u64>,
    /// Who counted the output of most requests.
    pub source: Option<TokenSource>,
    /// Requests by who counted their output.
    pub sources: BTreeMap<TokenSource, u64>,
    /// Token events received.
    pub events: u64,
    /// Token events that came in one read with the one before.
    pub coalesced: u64,
    /// `coalesced / events`.
    pub coalesced_share: Option<f64>,
    /// Requests whose counts contradict each other.
    pub disagreeing: u64,
    /// Requests whose streams held no text, though the server counts output.
    #[serde(default)]
    pub unseen: u64,
    /// Requests that were answered by a stream though a whole answer was asked for.
    #[serde(default)]
    pub unasked: u64,
    /// What a tokenizer of ours counted, where a run has one.
    pub tokenizer: Option<TokensCounted>,
}

/// Output tokens as a tokenizer of ours counted them, beside those that servers state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensCounted {
    /// Successes that were counted.
    pub requests: u64,
    /// Successes that could not be.
    pub uncounted: u64,
    /// All their tokens.
    pub output_total: u64,
    /// Requests among them whose server stated a count, too.
    pub compared: u64,
    /// The tokens of those as the server stated them.
    pub stated_total: u64,
    /// Requests whose two counts differ by more than one token and 2 %.
    pub disagreeing: u64,
}

/// A phase over time, in bins of equal length from its start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverTime {
    /// Length of a bin: 1, or a power of two when the phase was long.
    pub interval_s: f64,
    /// Issued in the bin.
    pub issued: Vec<u64>,
    /// Succeeded in the bin.
    pub succeeded: Vec<u64>,
    /// Failed in the bin.
    pub failed: Vec<u64>,
    /// Output tokens of the successes that ended in the bin.
    pub output_tokens: Vec<u64>,
    /// Mean in flight over the bin.
    pub in_flight: Vec<f64>,
    /// Median latency of the successes that ended in the bin, from schedule if there is one.
    pub latency_p50_ms: Vec<Option<f64>>,
    /// 99th percentile of the same.
    pub latency_p99_ms: Vec<Option<f64>>,
    /// 99th percentile of the lateness of the sends in the bin.
    pub lateness_p99_us: Vec<Option<f64>>,
}
