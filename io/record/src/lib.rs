//! What takt records.
//!
//! Records are the truth of a run: everything that anyone reads (live view, snapshot, result, report) is
//! a pure [`Fold`] over them and can be made again from the run folder. The reactor writes them packed,
//! a block at a time; the same bytes go over the ring, into the journal and to subscribers.
//!
//! [`Completed`] carries every time of its request, so that a fold needs no join for the latencies of a
//! request; only the intervals inside a stream need the [`Token`] records between.
#![forbid(unsafe_code)]

mod block;
mod codec;
mod decode;
mod encode;
mod event;
mod id;
mod instrument;
mod journal;
mod kinds;
mod plan;
mod publisher;
mod records;
mod result;
#[cfg(test)]
mod samples;
mod score;
mod server;
mod sink;
mod snapshot;
mod step;
mod varint;
mod work;

pub use block::{Block, BlockReader, BlockWriter, NotPushed};
pub use codec::{CODEC_VERSION, CodecError, CodecErrorKind, MAX_TEXT_BYTES};
pub use event::{EventData, EventWriter};
pub use id::RequestId;
pub use instrument::{BusyBy, Instrument, Unread, WakeCounts, WakeUp};
pub use journal::{
    JOURNAL_VERSION, JournalEnd, JournalError, JournalReader, JournalStats, JournalSummary,
    JournalWriter, Stretch, TornReason, fold_journal,
};
pub use kinds::{
    Blame, ConversationState, EndedBy, ErrorKind, EventType, FailedBy, FinishReason, PhaseKind,
    PhaseState, Stage, TokenSource,
};
pub use plan::{ConversationsPlan, PhasePlan, RampRates, SessionPlan};
pub use publisher::{
    MAX_MESSAGE_BYTES, Publisher, PublisherConfig, PublisherCounters, SharedPublisher,
};
pub use records::{
    Completed, ConversationEnd, ConversationEvent, ConversationRecord, Failure, Fold, Health,
    Issued, Outcome, PhaseEvent, PhaseId, PhaseRecord, Record, RequestKey, SessionEvent,
    SessionRecord, Text, TextKind, Times, Token, TokenCounts, TurnOf, WindowEvent, WindowRecord,
};
pub use result::{
    ConversationsResult, Counted, Distribution, EndpointCounts, ErrorSample, Goodput, JournalNote,
    LeftOut, Load, OverTime, Percentiles, PhaseResult, RESULT_SCHEMA, Reason, ResultDoc, RunState,
    SloGate, Steady, Tokens, TokensCounted, TurnResult, TwoViews, Verdict, VerdictStatus,
};
pub use score::{RepeatScore, Score, Spread};
pub use server::{
    JoinClocks, Joined, JoinedRequest, JoinedSlice, ProfilerWindow, ServerSide, ServerSlice,
};
pub use sink::{BlockSink, Discard, InlineSink, fold_block};
pub use snapshot::{
    Metric, MetricsSnapshot, PhaseSnapshot, SNAPSHOT_SCHEMA, SeriesSnapshot, SnapshotState,
};
pub use step::{
    CHUNK_BINS, CHUNK_EDGES, CONTEXT_BINS, CONTEXT_EDGES, ChunkedPrefill, GraphUse, KvBlocks,
    PrefixCaches, PrefixCounts, Queues, STEP_SCHEMA, StepError, StepFooter, StepLine, StepRecord,
    chunk_bin, context_bin, step_line,
};
pub use work::{Wakes, Work};
