//! What must hold within one record.

use takt_record::{GraphUse, PrefixCounts, STEP_SCHEMA, StepRecord};

use super::Report;

/// Checks every rule of a single record.
pub(super) fn record(r: &StepRecord<'_>, report: &mut Report<'_>) {
    equal("schema", r.schema, STEP_SCHEMA, "the version this program reads", report);
    tokens(r, report);
    requests(r, report);
    blocks(r, report);
    graph(r, report);
    if r.complete_mono_ns < r.submit_mono_ns {
        let least = format!("at least submit_mono_ns = {}", r.submit_mono_ns);
        report("complete_mono_ns", r.complete_mono_ns.to_string(), least);
    }
    prefix(&r.prefix.local, &LOCAL, report);
    if let Some(external) = &r.prefix.external {
        prefix(external, &EXTERNAL, report);
    }
}

fn tokens(r: &StepRecord<'_>, report: &mut Report<'_>) {
    let split = r.prefill_tokens.saturating_add(r.decode_tokens);
    let why = || {
        format!("{split} = prefill_tokens {} + decode_tokens {}", r.prefill_tokens, r.decode_tokens)
    };
    match (r.scheduled_tokens, &r.cudagraph) {
        (Some(tokens), _) if tokens != split => {
            report("scheduled_tokens", tokens.to_string(), why());
        }
        (None, Some(graph)) if graph.unpadded_tokens != split => {
            report("cudagraph.unpadded_tokens", graph.unpadded_tokens.to_string(), why());
        }
        _ => {}
    }
    let chunked = r.chunked_prefill.tokens;
    equal("chunked_prefill.tokens", chunked, r.prefill_tokens, "prefill_tokens", report);
    if let Some(resumed) = r.resumed_tokens.filter(|&resumed| resumed > split) {
        report(
            "resumed_tokens",
            resumed.to_string(),
            format!("at most the step's tokens, {split}"),
        );
    }
}

fn requests(r: &StepRecord<'_>, report: &mut Report<'_>) {
    let chunked = &r.chunked_prefill;
    let scheduled = r.scheduled_requests;
    let both = r.decode_batch_size.saturating_add(r.prefill_requests);
    let why = "decode_batch_size + prefill_requests";
    equal("scheduled_requests", scheduled, both, why, report);
    let bins = sum(&r.context_length_hist);
    let bins_of = "sum of bins: scheduled_requests";
    equal("context_length_hist", bins, scheduled, bins_of, report);
    let bins = sum(&chunked.chunk_size_hist);
    let bins_of = "sum of bins: prefill_requests";
    equal("chunked_prefill.chunk_size_hist", bins, r.prefill_requests, bins_of, report);
    let kinds = sum(&[chunked.first, chunked.middle, chunked.last, chunked.unsplit]);
    let why = "first + middle + final + unsplit: prefill_requests";
    equal("chunked_prefill", kinds, r.prefill_requests, why, report);
    if let Some(resumed) = r.resumed_requests.filter(|&resumed| resumed > scheduled) {
        report("resumed_requests", resumed.to_string(), format!("at most {scheduled} requests"));
    }
}

fn blocks(r: &StepRecord<'_>, report: &mut Report<'_>) {
    let kv = &r.kv;
    match kv.total_blocks.checked_sub(kv.free_blocks) {
        Some(used) => {
            equal("kv.used_blocks", kv.used_blocks, used, "total_blocks - free_blocks", report);
        }
        None => {
            let most = format!("at most total_blocks = {}", kv.total_blocks);
            report("kv.free_blocks", kv.free_blocks.to_string(), most);
        }
    }
    if !(0.0..=1.0).contains(&kv.usage) {
        report("kv.usage", kv.usage.to_string(), "within 0 and 1".to_owned());
    }
}

fn graph(r: &StepRecord<'_>, report: &mut Report<'_>) {
    let Some(graph) = &r.cudagraph else { return };
    match graph.bucket_tokens.checked_sub(graph.unpadded_tokens) {
        Some(padding) => {
            let why = "bucket_tokens - unpadded_tokens";
            equal("cudagraph.padding_tokens", graph.padding_tokens, padding, why, report);
        }
        None => {
            let least = format!("at least unpadded_tokens = {}", graph.unpadded_tokens);
            report("cudagraph.bucket_tokens", graph.bucket_tokens.to_string(), least);
        }
    }
    let hit = graph.runtime_mode != GraphUse::MISS;
    if graph.hit != hit {
        let why = format!("{hit}, since runtime_mode is {}", graph.runtime_mode);
        report("cudagraph.hit", graph.hit.to_string(), why);
    }
}

fn prefix(counts: &PrefixCounts, fields: &[&'static str; 2], report: &mut Report<'_>) {
    let pairs = [
        (counts.hits, counts.queries, "queries"),
        (counts.preempted_hits, counts.preempted_queries, "preempted_queries"),
    ];
    for (field, (hits, queries, of)) in fields.iter().zip(pairs) {
        if hits > queries {
            report(field, hits.to_string(), format!("at most {of} = {queries}"));
        }
    }
}

const LOCAL: [&str; 2] = ["prefix.local.hits", "prefix.local.preempted_hits"];
const EXTERNAL: [&str; 2] = ["prefix.external.hits", "prefix.external.preempted_hits"];

fn sum(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, &value| sum.saturating_add(value))
}

/// Reports `found` when it is not `expected`.
pub(super) fn equal(
    field: &'static str,
    found: u64,
    expected: u64,
    why: &str,
    report: &mut Report<'_>,
) {
    if found != expected {
        report(field, found.to_string(), format!("{expected} ({why})"));
    }
}
