//! The flags of `takt opprof window`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use takt_opprof::{Prompts, Regime};
use takt_time::Span;

use super::EndpointArgs;
use crate::config::{Windows, numbers};

/// `takt opprof window`
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// The folder that the server's profiler writes to, on this machine
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: PathBuf,
    /// The folder that the server writes step records to; they are watched while it runs
    #[arg(long, value_name = "DIR")]
    pub(crate) records: Option<PathBuf>,
    /// The scheduler, such as dp0-pid1234, when the records are of several
    #[arg(long, value_name = "ID", requires = "records")]
    pub(crate) engine: Option<String>,
    /// Begin when so many requests generate, such as 30..40
    #[arg(long, value_name = "N..M", requires = "records", value_parser = numbers)]
    pub(crate) decode: Option<(u64, u64)>,
    /// Begin when steps have no prompts, some, or whatever they have
    #[arg(long, value_enum, default_value_t = PromptsArg::Any)]
    pub(crate) prompts: PromptsArg,
    /// For so many steps in a row
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steady: u32,
    /// Steps of the window: the max_iterations of the server's profiler
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,
    /// How many windows, one after another
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) windows: u32,
    /// From the end of a window to the next
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) apart: Span,
    /// How long to wait for such steps
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) within: Span,
    /// How long the steps may take; without --records, how long a window is
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) steps_within: Span,
    /// How long the server may take to write its traces
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) written_within: Span,
    /// Ranks, each of which must write a trace [default: as the server tells, or as the first window had]
    #[arg(long, value_name = "N")]
    pub(crate) ranks: Option<usize>,
    /// The server was started without graphs, to learn the names of kernels: times of this window are none
    #[arg(long)]
    pub(crate) taxonomy: bool,
    /// The server's log, whose lines about its back ends are kept
    #[arg(long, value_name = "FILE")]
    pub(crate) server_log: Option<PathBuf>,
    /// Where the manifest goes [default: windows.json in the folder of the traces]
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
}

/// Whether steps have prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PromptsArg {
    /// Or not
    Any,
    /// Decodes alone
    None,
    /// At least one
    Some,
}

impl WindowArgs {
    /// What is to be done.
    pub(crate) fn windows(&self) -> Windows {
        let prompts = match self.prompts {
            PromptsArg::Any => Prompts::Any,
            PromptsArg::None => Prompts::None,
            PromptsArg::Some => Prompts::Some,
        };
        Windows {
            count: self.windows,
            apart: self.apart,
            regime: Regime { decode: self.decode, prompts },
            steady: self.steady,
            steps: self.steps,
            within: self.within,
            steps_within: self.steps_within,
            written_within: self.written_within,
            ranks: self.ranks,
            taxonomy: self.taxonomy,
            server_log: self.server_log.clone(),
            ..Windows::of(self.traces.clone())
        }
    }
}

const AFTER: &str = "\
POSTs /start_profile when the steps are as they were asked for, waits for them, and always POSTs
/stop_profile, also after an error and after Ctrl-C. What counts is a new trace with steps in it, one a
rank: servers answer 200 to both whether they write anything or not. Requests of that time are slower than
others and are no result.

Exit codes: 0 every window counts, 2 wrong input, 3 the server cannot be reached, 4 a window does not
count, or its steps did not come, 130 interrupted.

Examples:
  takt opprof window --url http://127.0.0.1:8000 --traces kineto/
  takt opprof window --url http://127.0.0.1:8000 --traces kineto/ --records opprof/ \\
    --decode 30..40 --prompts none --steady 20 --windows 3";
