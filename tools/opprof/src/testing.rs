//! What the tests of several modules work with.

use takt_record::CONTEXT_BINS;

use crate::steps::{GraphMode, StepFacts};
use crate::trace::Composition;

/// A step of these indices, times and tokens: a prefill request of so many tokens, and so many decodes.
pub(crate) fn facts(
    index: u64,
    submit: u64,
    complete: u64,
    prefill: u64,
    decode: u64,
) -> StepFacts {
    let mut context_hist = [0; CONTEXT_BINS];
    context_hist[0] = decode + u64::from(prefill > 0);
    StepFacts {
        index,
        submit_wall_ns: submit,
        submit_mono_ns: submit,
        complete_mono_ns: complete,
        executed: true,
        composition: Composition {
            context_requests: u64::from(prefill > 0),
            context_tokens: prefill,
            generation_requests: decode,
            generation_tokens: decode,
        },
        resumed_tokens: 0,
        context_hist,
        preemptions: 0,
        waiting: 0,
        prefix_queries: 0,
        prefix_hits: 0,
        kv_usage: 0.5,
        mode: GraphMode::Full,
        bucket_tokens: Some((prefill + decode).next_multiple_of(8)),
    }
}
