//! What the scheduler counted, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

use takt_record::StepRecord;

use crate::json;

/// Totals and levels, as of the step that was completed last.
#[derive(Debug, Default)]
pub(crate) struct StepCounts {
    steps: AtomicU64,
    prompt_tokens: AtomicU64,
    generation_tokens: AtomicU64,
    preemptions: AtomicU64,
    prefix_queries: AtomicU64,
    prefix_hits: AtomicU64,
    running: AtomicU64,
    waiting: AtomicU64,
    deferred: AtomicU64,
    blocks_used: AtomicU64,
    blocks: AtomicU64,
}

impl StepCounts {
    pub(super) fn completed(&self, record: &StepRecord<'_>, tokens: u64) {
        let local = &record.prefix.local;
        for (counter, more) in [
            (&self.steps, 1),
            (&self.prompt_tokens, record.prefill_tokens),
            (&self.generation_tokens, tokens),
            (&self.preemptions, record.preemptions),
            (&self.prefix_queries, local.queries + local.preempted_queries),
            (&self.prefix_hits, local.hits + local.preempted_hits),
        ] {
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
        for (gauge, level) in [
            (&self.running, record.queues.running),
            (&self.waiting, record.queues.waiting),
            (&self.deferred, record.queues.deferred),
            (&self.blocks_used, record.kv.used_blocks),
            (&self.blocks, record.kv.total_blocks),
        ] {
            gauge.store(level, Ordering::Relaxed);
        }
    }

    /// In the text format of Prometheus.
    pub(crate) fn expose(&self, out: &mut Vec<u8>) {
        for (name, kind, value) in [
            ("steps_total", "counter", &self.steps),
            ("prompt_tokens_total", "counter", &self.prompt_tokens),
            ("generation_tokens_total", "counter", &self.generation_tokens),
            ("preemptions_total", "counter", &self.preemptions),
            ("prefix_query_tokens_total", "counter", &self.prefix_queries),
            ("prefix_hit_tokens_total", "counter", &self.prefix_hits),
            ("requests_running", "gauge", &self.running),
            ("requests_waiting", "gauge", &self.waiting),
            ("requests_deferred", "gauge", &self.deferred),
            ("kv_blocks_used", "gauge", &self.blocks_used),
            ("kv_blocks", "gauge", &self.blocks),
        ] {
            let prefix = "takt_mock_scheduler_";
            for part in ["# TYPE ", prefix, name, " ", kind, "\n", prefix, name, " "] {
                out.extend_from_slice(part.as_bytes());
            }
            json::number(out, value.load(Ordering::Relaxed));
            out.push(b'\n');
        }
    }
}
