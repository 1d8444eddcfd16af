//! What a step is made of, as far as its time goes.

use takt_opprof::GraphRun;
use takt_record::GraphUse;

use super::config::GraphPolicy;

/// A step's composition, counted as vLLM counts it: a prompt that is computed again after a preemption
/// stands among the decodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The step's index.
    pub index: u64,
    /// Requests that read their prompt.
    pub prompts: u64,
    /// Their tokens.
    pub prompt_tokens: u64,
    /// Requests that generate.
    pub decodes: u64,
    /// Their tokens.
    pub decode_tokens: u64,
    /// Those of them that are computed again.
    pub resumed_tokens: u64,
    /// Lengths of all requests after the step.
    pub context_tokens: u64,
    /// How it runs.
    pub graph: Graph,
    /// Tokens of the graph that holds the batch; without one, the batch itself.
    pub bucket_tokens: u64,
}

/// How a step's kernels are launched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Graph {
    /// Each by itself.
    #[default]
    None,
    /// Attention by itself, what lies between as graphs.
    Piecewise,
    /// All of the model as one graph.
    Full,
}

impl Shape {
    /// All tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens + self.decode_tokens
    }

    /// All requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.prompts + self.decodes
    }

    /// Chooses how it runs. `uniform` batches hold decodes of one length and nothing else.
    pub(super) fn choose_graph(&mut self, policy: GraphPolicy, uniform: bool) {
        let tokens = self.tokens();
        let bucket = bucket(tokens).filter(|_| policy != GraphPolicy::Eager);
        self.bucket_tokens = bucket.unwrap_or(tokens);
        self.graph = match bucket {
            None => Graph::None,
            Some(_) if uniform && policy == GraphPolicy::Full => Graph::Full,
            Some(_) => Graph::Piecewise,
        };
    }

    /// As the record says it; `None` when nothing ran.
    pub(super) fn graph_run(&self) -> Option<GraphRun> {
        let mode = match self.graph {
            Graph::None => GraphUse::MISS,
            Graph::Piecewise => "PIECEWISE",
            Graph::Full => "FULL",
        };
        (self.tokens() > 0).then_some(GraphRun { mode, bucket_tokens: self.bucket_tokens })
    }
}

/// The smallest captured graph that holds so many tokens: 1, 2, 4, then every 8 up to 256, every 16 up to
/// 512, as vLLM captures them.
fn bucket(tokens: u64) -> Option<u64> {
    Some(match tokens {
        1 | 2 => tokens,
        3 | 4 => 4,
        5..=256 => tokens.next_multiple_of(8),
        257..=512 => tokens.next_multiple_of(16),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_runs_in_the_smallest_graph_that_holds_it() {
        let run = |prompt_tokens, decode_tokens, policy, uniform| {
            let mut shape = Shape { prompt_tokens, decode_tokens, ..Shape::default() };
            shape.choose_graph(policy, uniform);
            shape.graph_run().map(|run| (run.mode, run.bucket_tokens))
        };
        assert_eq!(run(0, 3, GraphPolicy::Full, true), Some(("FULL", 4)));
        assert_eq!(run(100, 3, GraphPolicy::Full, false), Some(("PIECEWISE", 104)));
        assert_eq!(run(0, 300, GraphPolicy::Piecewise, true), Some(("PIECEWISE", 304)));
        assert_eq!(run(600, 3, GraphPolicy::Full, false), Some(("NONE", 603)));
        assert_eq!(run(0, 3, GraphPolicy::Eager, true), Some(("NONE", 3)));
        assert_eq!(run(0, 0, GraphPolicy::Full, true), None);
    }
}
