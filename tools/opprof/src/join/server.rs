//! The server's side: what its steps were made of between two moments.

use takt_record::{JoinClocks, ServerSlice};

use crate::steps::StepFacts;

/// A step on the client's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) facts: &'a StepFacts,
}

/// Puts steps onto the client's clock, whose wall clock is `client_offset` ahead of it.
pub(super) fn onto_client_clock(
    steps: &[StepFacts],
    client_offset: i128,
) -> (JoinClocks, Vec<Placed<'_>>) {
    let offset =
        |step: &StepFacts| i128::from(step.submit_wall_ns) - i128::from(step.submit_mono_ns);
    let mut offsets: Vec<i128> = steps.iter().map(offset).collect();
    offsets.sort_unstable();
    let middle = offsets.get(offsets.len() / 2).copied().unwrap_or(client_offset);
    let same = (middle - client_offset).unsigned_abs() <= u128::from(SAME_CLOCK_NS);
    let start = |step: &StepFacts| {
        if same {
            step.submit_mono_ns
        } else {
            u64::try_from(i128::from(step.submit_wall_ns) - client_offset).unwrap_or(0)
        }
    };
    let placed = steps.iter().map(|facts| {
        let start_ns = start(facts);
        Placed { start_ns, end_ns: start_ns.saturating_add(facts.span_ns()), facts }
    });
    (if same { JoinClocks::Same } else { JoinClocks::Wall }, placed.collect())
}

/// What steps in order did between two moments of the client's clock.
pub(super) fn slice(steps: &[&Placed<'_>], from_ns: u64, to_ns: u64) -> ServerSlice {
    let begin = steps.partition_point(|step| step.start_ns + LONGEST_LOOKED_FOR_NS < from_ns);
    let mut slice = ServerSlice::default();
    let (mut time, mut prefill_time) = (0.0, 0.0);
    let (mut queries, mut hits, mut lengths) = (0, 0, 0.0);
    let mut covered = from_ns;
    let mut busy_ns = 0;
    for step in &steps[begin..] {
        if step.start_ns >= to_ns {
            break;
        }
        if step.end_ns <= from_ns {
            continue;
        }
        let facts = step.facts;
        let part = step.end_ns.min(to_ns) - step.start_ns.max(from_ns);
        let start = step.start_ns.max(covered);
        busy_ns += step.end_ns.min(to_ns).saturating_sub(start);
        covered = covered.max(step.end_ns.min(to_ns));
        slice.steps += 1;
        let weight = part as f64;
        time += weight;
        slice.decode_batch += weight * facts.composition.generation_requests as f64;
        slice.prefill_requests += weight * facts.composition.context_requests as f64;
        if facts.composition.context_tokens > 0 {
            prefill_time += weight;
        }
        if step.end_ns <= to_ns {
            slice.prefill_tokens += facts.composition.context_tokens;
            slice.decode_tokens += facts.composition.generation_tokens;
        }
        slice.waiting_max = slice.waiting_max.max(facts.waiting);
        slice.kv_usage_max = slice.kv_usage_max.max(facts.kv_usage);
        if step.start_ns >= from_ns {
            slice.preemptions += facts.preemptions;
            queries += facts.prefix_queries;
            hits += facts.prefix_hits;
        }
        slice.longest_step_ns = slice.longest_step_ns.max(facts.span_ns());
        lengths += facts.span_ns() as f64;
    }
    if time > 0.0 {
        slice.decode_batch /= time;
        slice.prefill_requests /= time;
        slice.prefill_share = prefill_time / time;
        slice.mean_step_ns = lengths / slice.steps as f64;
    }
    slice.busy = busy_ns as f64 / (to_ns - from_ns).max(1) as f64;
    slice.prefix_hits = (queries > 0).then(|| hits as f64 / queries as f64);
    slice
}

/// Two wall clocks of one machine, read with its monotonic clock, agree within this; those of two machines
/// differ by the time between their starts.
const SAME_CLOCK_NS: u64 = 20_000_000;

/// Steps that begin earlier than this before a moment are not looked at: none lasts a minute.
const LONGEST_LOOKED_FOR_NS: u64 = 60_000_000_000;
