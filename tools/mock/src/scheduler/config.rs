//! What a simulated scheduler is told to be.

use std::num::NonZeroU32;

use takt_time::Span;

use crate::config::{ConfigError, TimedConfig};

/// The `scheduler` mode.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// What answers say, how long they are, and which requests are refused; its times are not used.
    pub answers: TimedConfig,
    /// The scheduler's id in its records.
    pub engine_id: String,
    /// What a step may hold.
    pub batch: BatchLimits,
    /// The key-value cache.
    pub cache: CacheConfig,
    /// Tokens of prompt and answer together; a longer prompt is refused, a longer answer cut.
    pub context_max: NonZeroU32,
    /// Guessed tokens.
    pub speculative: SpeculativeConfig,
    /// Which steps run as captured graphs.
    pub graphs: GraphPolicy,
    /// How long a request with a `response_format` other than text waits for its grammar. Meanwhile it is
    /// deferred: others pass it.
    pub grammar: Span,
    /// How long steps take.
    pub cost: CostModel,
    /// The profiler behind `/start_profile`; without one the route is a 404, as on a real server.
    pub profiler: Option<ProfilerConfig>,
}

/// What a step may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Tokens of one step.
    pub tokens: NonZeroU32,
    /// Requests in the batch.
    pub requests: NonZeroU32,
}

/// The key-value cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Blocks.
    pub blocks: NonZeroU32,
    /// Tokens of a block.
    pub block_tokens: NonZeroU32,
    /// Whether blocks of prompts are found again.
    pub prefixes: bool,
}

/// Guessed tokens: each step of a request that generates computes so many more, and keeps those up to the
/// first wrong one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeculativeConfig {
    /// Tokens guessed a step; 0 for none.
    pub tokens: u32,
    /// Chance of each that it is right, 0 to 1.
    pub accepted: f64,
}

/// Which steps run as captured graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphPolicy {
    /// Whole graphs for batches of plain decodes, pieces of one for others.
    Full,
    /// Pieces of a graph for all batches.
    Piecewise,
    /// None: every kernel is launched by itself.
    Eager,
}

/// How long steps take: each part of the composition has a price, shared out over families of kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Layers of the model.
    pub layers: NonZeroU32,
    /// Tensor-parallel ranks. More than one adds collectives, and does not make steps shorter.
    pub ranks: NonZeroU32,
    /// A step that has anything to do.
    pub step: Span,
    /// A token of a prompt, one computed again included.
    pub prompt_token: Span,
    /// A token of a request that generates.
    pub decode_token: Span,
    /// A token that only fills the graph's bucket.
    pub padding_token: Span,
    /// A request in the step.
    pub request: Span,
    /// A thousand tokens of context of the requests in the step.
    pub context_1k: Span,
    /// Work of the CPU before the first launch.
    pub prepare: Span,
    /// Work of the CPU after the last kernel.
    pub finish: Span,
    /// How much a rank's kernels are longer or shorter by chance, as a share: 0.01 is up to 1 % either way.
    pub noise: f64,
}

/// The profiler of a server. What it does wrong is what vLLM 0.24 does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfilerConfig {
    /// The step after the start with which tracing begins; 0 for at once.
    pub delay: u32,
    /// Steps that are traced; 0 for all until the stop. The window is written at the step after the last.
    pub steps_max: u32,
    /// Steps that a window warms up for, one of which is lost. Above 0 the second and all later windows of
    /// a server write nothing.
    pub warmup: u32,
}

impl Default for SchedulerConfig {
    /// A server of moderate size: 2,048 tokens a step, 131,072 tokens of cache, two ranks.
    fn default() -> Self {
        let at_least_one = |n: u32| NonZeroU32::MIN.saturating_add(n - 1);
        Self {
            answers: TimedConfig::default(),
            engine_id: "dp0-pid1".to_owned(),
            batch: BatchLimits { tokens: at_least_one(2048), requests: at_least_one(256) },
            cache: CacheConfig {
                blocks: at_least_one(8192),
                block_tokens: at_least_one(16),
                prefixes: true,
            },
            context_max: at_least_one(32_768),
            speculative: SpeculativeConfig { tokens: 0, accepted: 0.7 },
            graphs: GraphPolicy::Full,
            grammar: Span::from_millis(20),
            cost: CostModel::default(),
            profiler: None,
        }
    }
}

impl Default for CostModel {
    /// Of the order of a model with 3 billion active parameters on a large GPU.
    fn default() -> Self {
        let (layers, ranks) =
            (NonZeroU32::MIN.saturating_add(7), NonZeroU32::MIN.saturating_add(1));
        Self {
            layers,
            ranks,
            step: Span::from_millis(3),
            prompt_token: Span::from_micros(8),
            decode_token: Span::from_micros(12),
            padding_token: Span::from_micros(3),
            request: Span::from_micros(6),
            context_1k: Span::from_micros(15),
            prepare: Span::from_micros(80),
            finish: Span::from_micros(60),
            noise: 0.01,
        }
    }
}

impl SchedulerConfig {
    /// Appends what `/server_info` tells of it. `model` is escaped.
    pub(crate) fn describe(&self, model: &[u8], out: &mut Vec<u8>) {
        let Self { batch, cache, cost, speculative, .. } = self;
        out.extend_from_slice(b"{\"model\":\"");
        out.extend_from_slice(model);
        let rest = serde_json::json!({
            "dtype": "bfloat16",
            "quantization": null,
            "seed": self.answers.seed,
            "max_model_len": self.context_max,
            "tensor_parallel_size": cost.ranks,
            "max_num_batched_tokens": batch.tokens,
            "max_num_seqs": batch.requests,
            "block_size": cache.block_tokens,
            "num_gpu_blocks": cache.blocks,
            "enable_prefix_caching": cache.prefixes,
            "num_speculative_tokens": speculative.tokens,
            "cudagraph_mode": match self.graphs {
                GraphPolicy::Full => "FULL_AND_PIECEWISE",
                GraphPolicy::Piecewise => "PIECEWISE",
                GraphPolicy::Eager => "NONE",
            },
            "profiler": self.profiler.map(|profiler| serde_json::json!({
                "delay_iterations": profiler.delay,
                "max_iterations": profiler.steps_max,
                "warmup_iterations": profiler.warmup,
            })),
        });
        out.extend_from_slice(b"\",\"config\":");
        out.extend_from_slice(rest.to_string().as_bytes());
        out.push(b'}');
    }

    /// Whether it can be served.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.answers.check()?;
        let tokens = u64::from(self.cache.blocks.get()) * u64::from(self.cache.block_tokens.get());
        // One request alone must be able to end: there is nobody else to throw out.
        let most = u64::from(self.context_max.get()) + u64::from(self.speculative.tokens);
        if most > tokens {
            return Err(ConfigError::Cache { tokens, context: most });
        }
        if self.batch.tokens.get() <= self.speculative.tokens {
            return Err(ConfigError::Speculative(self.batch.tokens.get()));
        }
        Ok(())
    }
}
