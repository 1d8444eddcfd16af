//! What a step's kernel time is explained by.
//!
//! Linear in what there is to do: tokens for the matrix products, tokens times context for attention,
//! requests for sampling. The weights of the histogram's bins are their middles, so context enters as the
//! sum of lengths, known to half a bin.

use takt_record::{CONTEXT_BINS, CONTEXT_EDGES};

use crate::steps::StepFacts;

/// Names of the features, in order.
pub const FEATURES: [&str; FEATURE_COUNT] = [
    "one step",
    "prompt token",
    "decode token",
    "request",
    "prompt with tokens",
    "1k tokens of context",
    "padding token",
];

/// How many there are.
pub const FEATURE_COUNT: usize = 7;

/// The features of a step.
#[must_use]
pub fn features(step: &StepFacts) -> [f64; FEATURE_COUNT] {
    let c = step.composition;
    let tokens = c.context_tokens + c.generation_tokens;
    let padding = step.bucket_tokens.map_or(0, |bucket| bucket.saturating_sub(tokens));
    let context: f64 =
        step.context_hist.iter().zip(MIDDLES).map(|(n, middle)| *n as f64 * middle).sum();
    [
        1.0,
        c.context_tokens as f64,
        c.generation_tokens as f64,
        (c.context_requests + c.generation_requests) as f64,
        c.context_requests as f64,
        context / 1000.0,
        padding as f64,
    ]
}

/// Middles of the bins of context length; the open one counts as its lower edge.
const MIDDLES: [f64; CONTEXT_BINS] = {
    let mut middles = [0.0; CONTEXT_BINS];
    let mut at = 0;
    let mut below = 0;
    while at < CONTEXT_EDGES.len() {
        middles[at] = (below + CONTEXT_EDGES[at]) as f64 / 2.0;
        below = CONTEXT_EDGES[at];
        at += 1;
    }
    middles[at] = below as f64;
    middles
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::facts;

    #[test]
    fn a_step_is_described_by_what_there_is_to_do() {
        let mut step = facts(0, 0, 1, 100, 4);
        step.context_hist = [0; CONTEXT_BINS];
        step.context_hist[0] = 4;
        step.context_hist[1] = 1;
        // 4 of 0 to 128, one of 128 to 256: 4 * 64 + 192 = 448 tokens. 104 tokens fill a bucket of 104.
        assert_eq!(features(&step), [1.0, 100.0, 4.0, 5.0, 1.0, 0.448, 0.0]);
        step.bucket_tokens = Some(128);
        assert_eq!(features(&step)[6], 24.0);
        assert_eq!(MIDDLES[11], 131_072.0);
    }
}
