//! The flags of `takt mock --mode scheduler`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use takt_mock::CostModel;
use takt_time::Span;

/// What only the scheduler has.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --mode scheduler")]
pub(crate) struct SchedulerArgs {
    /// Tokens of one step [default: 2048]
    #[arg(long, value_name = "N")]
    pub(crate) batch_tokens: Option<NonZeroU32>,
    /// Requests in the batch [default: 256]
    #[arg(long, value_name = "N")]
    pub(crate) batch_requests: Option<NonZeroU32>,
    /// Blocks of the key-value cache [default: 8192]
    #[arg(long, value_name = "N")]
    pub(crate) kv_blocks: Option<NonZeroU32>,
    /// Tokens of a block [default: 16]
    #[arg(long, value_name = "N")]
    pub(crate) block_tokens: Option<NonZeroU32>,
    /// Find no blocks of earlier prompts
    #[arg(long)]
    pub(crate) no_prefix_cache: bool,
    /// Tokens of prompt and answer together [default: 32768, less if the cache is smaller]
    #[arg(long, value_name = "N")]
    pub(crate) context_max: Option<NonZeroU32>,
    /// Tokens guessed beside each one [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) guess: Option<u32>,
    /// Chance of each guess to be right [default: 0.7]
    #[arg(long, value_name = "SHARE", requires = "guess", value_parser = share)]
    pub(crate) guess_right: Option<f64>,
    /// Which steps run as captured graphs [default: full]
    #[arg(long, value_enum)]
    pub(crate) graphs: Option<GraphsArg>,
    /// How long a request with a response_format waits for its grammar while others pass [default: 20ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) grammar: Option<Span>,
    /// Tensor-parallel ranks [default: 2]
    #[arg(long, value_name = "N")]
    pub(crate) ranks: Option<NonZeroU32>,
    /// Layers of the model, which make its traces long [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) layers: Option<NonZeroU32>,
    /// A part of a step's time, such as step=3ms; may be repeated. Parts: step, prompt-token, decode-token,
    /// padding-token, request, context-1k, prepare, finish; noise=0.01 is a share
    #[arg(long, value_name = "PART=TIME")]
    pub(crate) cost: Vec<CostArg>,
    /// Write a record of each step into this folder, an absolute path; made when it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) opprof_dir: Option<PathBuf>,
    /// Have a profiler, whose traces go into this folder; made when it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) profile_dir: Option<PathBuf>,
    /// Steps of a profiler window; 0 for all until it is stopped [default: 8]
    #[arg(long, value_name = "N", requires = "profile_dir")]
    pub(crate) profile_steps: Option<u32>,
    /// The step after its start with which a window begins; 0 for at once [default: 0]
    #[arg(long, value_name = "N", requires = "profile_dir")]
    pub(crate) profile_delay: Option<u32>,
    /// Warm-up of a window; above 0 later windows write nothing, as on vLLM 0.24 [default: 0]
    #[arg(long, value_name = "N", requires = "profile_dir")]
    pub(crate) profile_warmup: Option<u32>,
}

/// Which steps run as captured graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphsArg {
    /// Whole graphs for plain decodes, pieces for other batches
    Full,
    /// Pieces of a graph for all
    Piecewise,
    /// None, as a server started eager
    Eager,
}

/// One part of a step's time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CostArg {
    Time(fn(&mut CostModel) -> &mut Span, Span),
    Noise(f64),
}

impl SchedulerArgs {
    /// The first flag that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--batch-tokens", self.batch_tokens.is_some()),
            ("--batch-requests", self.batch_requests.is_some()),
            ("--kv-blocks", self.kv_blocks.is_some()),
            ("--block-tokens", self.block_tokens.is_some()),
            ("--no-prefix-cache", self.no_prefix_cache),
            ("--context-max", self.context_max.is_some()),
            ("--guess", self.guess.is_some()),
            ("--graphs", self.graphs.is_some()),
            ("--grammar", self.grammar.is_some()),
            ("--ranks", self.ranks.is_some()),
            ("--layers", self.layers.is_some()),
            ("--cost", !self.cost.is_empty()),
            ("--opprof-dir", self.opprof_dir.is_some()),
            ("--profile-dir", self.profile_dir.is_some()),
        ];
        flags.iter().find(|(_, given)| *given).map(|(flag, _)| *flag)
    }
}

impl CostArg {
    pub(crate) fn set(&self, cost: &mut CostModel) {
        match self {
            Self::Time(part, time) => *part(cost) = *time,
            Self::Noise(share) => cost.noise = *share,
        }
    }
}

impl FromStr for CostArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (part, value) = text.split_once('=').ok_or("write PART=TIME, such as step=3ms")?;
        if part == "noise" {
            return share(value).map(Self::Noise);
        }
        let place: fn(&mut CostModel) -> &mut Span = match part {
            "step" => |cost| &mut cost.step,
            "prompt-token" => |cost| &mut cost.prompt_token,
            "decode-token" => |cost| &mut cost.decode_token,
            "padding-token" => |cost| &mut cost.padding_token,
            "request" => |cost| &mut cost.request,
            "context-1k" => |cost| &mut cost.context_1k,
            "prepare" => |cost| &mut cost.prepare,
            "finish" => |cost| &mut cost.finish,
            other => {
                return Err(format!(
                    "there is no part `{other}`; there are step, prompt-token, decode-token, \
                     padding-token, request, context-1k, prepare, finish and noise"
                ));
            }
        };
        let time: Span = value.parse().map_err(|error| format!("{part}: {error}"))?;
        if time > TIME_MAX {
            return Err(format!("{part}: no part takes longer than {TIME_MAX}"));
        }
        Ok(Self::Time(place, time))
    }
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number, such as 0.7".to_owned())?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("expected 0 to 1".into()) }
}

/// Longer is no step.
const TIME_MAX: Span = Span::from_secs(60);
