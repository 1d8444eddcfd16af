//! The flags of `takt run`. Each one stands for a key of the configuration; what has no flag is reached
//! with `--set`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use super::{EndpointArgs, OutputArgs};

/// `takt run`
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
#[command(group = ArgGroup::new("load").args(["rate", "concurrency", "max_throughput", "replay"]))]
pub(crate) struct RunArgs {
    /// A configuration file; flags override what it says
    #[arg(value_name = "CONFIG.yaml")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Ask for streamed answers (the default where the API streams)
    #[arg(long, overrides_with = "no_stream", help_heading = "Endpoint")]
    pub(crate) stream: bool,
    /// Ask for whole answers
    #[arg(long, help_heading = "Endpoint")]
    pub(crate) no_stream: bool,
    /// The most connections to each address [default: as many as are needed and open files allow]
    #[arg(long, value_name = "N", help_heading = "Endpoint")]
    pub(crate) max_connections: Option<u32>,
    /// The longest that a request may take, such as 120s [default: no limit]
    #[arg(long, value_name = "TIME", help_heading = "Endpoint")]
    pub(crate) request_timeout: Option<String>,

    /// File of prompts: .jsonl, .json, .csv or .txt [default: up to 16384 different made-up prompts]
    #[arg(long, value_name = "FILE", help_heading = "Dataset")]
    pub(crate) dataset: Option<PathBuf>,
    /// How FILE is written: jsonl, json, csv, text, a recording (azure, mooncake) or conversations (agentic,
    /// messages, sharegpt, mt-bench) [default: by its suffix]
    #[arg(long, value_name = "FORMAT", requires = "dataset", help_heading = "Dataset")]
    pub(crate) dataset_format: Option<String>,
    /// Column that holds the prompt [default: found by its name]
    #[arg(long, value_name = "COLUMN", help_heading = "Dataset")]
    pub(crate) prompt_column: Option<String>,
    /// without_replacement (the default), with_replacement, sequential or single:INDEX
    #[arg(long, value_name = "ORDER", help_heading = "Dataset")]
    pub(crate) order: Option<String>,
    /// Seed of arrivals, sample order and made-up prompts [default: 42]
    #[arg(long, value_name = "N", help_heading = "Dataset")]
    pub(crate) seed: Option<u64>,

    /// xoshiro (the default), or mt19937 for the orders and gaps of the reference implementation
    #[arg(long, value_name = "NAME", help_heading = "Dataset")]
    pub(crate) rng: Option<String>,

    /// Open loop: send so many requests a second, whatever the server does
    #[arg(long, value_name = "PER_SECOND", help_heading = "Load")]
    pub(crate) rate: Option<f64>,
    /// How the sends of --rate are spaced [default: poisson]
    #[arg(long, value_enum, help_heading = "Load")]
    pub(crate) arrivals: Option<Arrivals>,
    /// Of gamma arrivals: their coefficient of variation is 1/sqrt of this; 1 is as poisson, less is bursts
    #[arg(long, value_name = "NUMBER", help_heading = "Load")]
    pub(crate) burstiness: Option<f64>,
    /// Go from --rate to this rate in a straight line over --duration
    #[arg(long, value_name = "PER_SECOND", help_heading = "Load")]
    pub(crate) ramp_to: Option<f64>,
    /// Open loop: send each row of a recorded dataset at its time, SPEED times as fast [default: 1]
    #[arg(long, value_name = "SPEED", num_args = 0..=1, require_equals = true,
        default_missing_value = "1", help_heading = "Load")]
    pub(crate) replay: Option<f64>,
    /// Closed loop: keep so many requests in flight
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) concurrency: Option<u32>,
    /// Conversations: --concurrency keeps so many active, --rate has them arrive; the assistant's part of the
    /// history is as recorded, or what the model answers [default: by --dataset-format]
    #[arg(long, value_enum, help_heading = "Load")]
    pub(crate) history: Option<History>,
    /// Send as fast as the client can, with at most 4096 in flight (load.max_in_flight of a phase)
    #[arg(long, help_heading = "Load")]
    pub(crate) max_throughput: bool,
    /// Stop after so many requests
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) requests: Option<u64>,
    /// Stop issuing after this time, such as 60s or 500ms
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub(crate) duration: Option<String>,
    /// Send so many requests first, as a warm-up that is not measured
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub(crate) warmup_requests: Option<u64>,

    /// How the reactor waits: park, guard (the default), guard:500us or spin
    #[arg(long, value_name = "MODE", help_heading = "Machine")]
    pub(crate) wait: Option<String>,
    /// Core to pin the reactor to [default: not pinned]
    #[arg(long, value_name = "N", help_heading = "Machine")]
    pub(crate) core: Option<u32>,

    /// Beside latencies show what the server was doing: DIR is where it writes its step records, on this machine
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) opprof: Option<PathBuf>,
    /// Take profiler windows in performance phases, of which no latency counts: DIR is where the server's profiler
    /// writes, on this machine
    #[arg(long, value_name = "DIR", help_heading = "Server")]
    pub(crate) opprof_traces: Option<PathBuf>,
    /// Windows of each performance phase [default: 1]
    #[arg(long, value_name = "N", help_heading = "Server")]
    pub(crate) opprof_windows: Option<u32>,

    /// Name of the run, part of its folder's name
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub(crate) name: Option<String>,
    /// The run folder, new or empty [default: runs/TIME-NAME]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// What a request and a phase must keep: ttft_ms=500 (each request) or ttft_ms.p99=500 (the phase); also
    /// tpot_ms and latency_ms; may be repeated
    #[arg(long, value_name = "METRIC=MS", help_heading = "Output")]
    pub(crate) slo: Vec<String>,
    /// Write a step record of each turn of takt's own reactor into this folder, an absolute path; takes some
    /// microseconds of each turn
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) turn_records: Option<PathBuf>,
    /// Exit with 5 when the verdict is not `valid`, or a percentile of --slo is missed
    #[arg(long, help_heading = "Output")]
    pub(crate) strict: bool,
    /// Set any key of the configuration, such as limits.connect_timeout=5s; may be repeated
    #[arg(long, value_name = "KEY.PATH=VALUE", help_heading = "Output")]
    pub(crate) set: Vec<String>,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: OutputArgs,
}

/// How an open loop's sends are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arrivals {
    /// Independently: exponential gaps, as from many users
    Poisson,
    /// Evenly
    Constant,
    /// In bursts, or more evenly than independent ones, by --burstiness
    Gamma,
}

/// What the assistant said before in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum History {
    /// What the dataset has
    Recorded,
    /// What the model answered
    Live,
}

impl History {
    /// Its name in the configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Live => "live",
        }
    }
}

impl Arrivals {
    /// Their name in the configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Constant => "constant",
            Self::Gamma => "gamma",
        }
    }
}

const AFTER: &str = "\
Examples:
  Open loop, streamed, TTFT and latency from the moment each request was due:
    takt run --url http://127.0.0.1:8000 --model tiny --dataset gsm8k.jsonl --rate 50 --requests 500

  Closed loop with a warm-up, an API key from the environment, bounded answers:
    takt run --url http://10.0.0.5:8000/v1 --model m --api-key-env OPENAI_API_KEY \\
      --concurrency 32 --duration 2m --warmup-requests 64 --extra-body '{\"max_tokens\": 128}'

  A recording of a service, ten times as fast: lengths, shared prefixes and times as recorded:
    takt run --url http://127.0.0.1:8000 --model m --dataset mooncake.jsonl --dataset-format mooncake --replay=10

  Conversations, eight at a time, each turn after the answer before it:
    takt run --url http://127.0.0.1:8000 --model m --dataset mt_bench.jsonl --dataset-format mt-bench --concurrency 8

  Any HTTP service; without a dataset one small JSON body is posted over and over:
    takt run --url http://127.0.0.1:8080/echo --api raw --max-throughput --requests 100000

  A file with several phases (a sweep), one key changed:
    takt run sweep.yaml --set phases.perf_c16.duration=30s

A configuration file:
  endpoint: {url: http://127.0.0.1:8000, api: openai-chat, model: tiny, api_key: '${KEY:-}'}
  dataset: {path: gsm8k.jsonl, prompt: question}
  phases:
    - {name: warm, type: warmup, load: {pattern: concurrency, target_concurrency: 8}, requests: 32}
    - {name: perf_c8, load: {pattern: concurrency, target_concurrency: 8}, duration: 60s}
    - {name: perf_q50, load: {pattern: poisson, rate: 50}, duration: 60s}";
