//! The flags of `takt opprof`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use takt_time::Span;

use super::{Format, WindowArgs};

/// `takt opprof`
#[derive(Debug, Subcommand)]
pub(crate) enum OpprofCommand {
    /// Check step records: every field against every other, exact to file, line and field
    Check(CheckArgs),
    /// Take profiler windows of a running server, and prove that they were written
    Window(Box<WindowArgs>),
    /// Attribute the kernels of profiler traces to steps and families, per rank
    Attribute(TraceArgs),
    /// Fit kernel time to the composition of steps, and judge the fit on windows held out
    Calibrate(TraceArgs),
    /// Count how evenly tokens are spread over experts, from answers that return routes
    Experts(ExpertsArgs),
    /// Put a run's latencies beside what the server did, over time and for the slowest requests
    Join(JoinArgs),
    /// Judge whether what is switched on costs more than is allowed, from off/on pairs of runs
    Gate(GateArgs),
    /// See all of it on the built-in server: load, records, windows, attribution, calibration, join, gate
    Demo(DemoArgs),
}

/// `takt opprof demo`
#[derive(Debug, Args)]
#[command(after_long_help = DEMO)]
pub(crate) struct DemoArgs {
    /// Where everything goes; must not be there yet
    #[arg(long, value_name = "DIR", default_value = "opprof-demo")]
    pub(crate) out: PathBuf,
    /// Pairs of runs for the gate, an even number, six at least
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub(crate) pairs: usize,
    /// In some seconds: six windows of a short load, and pairs so short that the gate cannot decide
    #[arg(long)]
    pub(crate) small: bool,
}

/// `takt opprof check`
#[derive(Debug, Args)]
#[command(after_long_help = CHECK)]
pub(crate) struct CheckArgs {
    /// Folders of records, or single files: .jsonl or .jsonl.gz
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// They are a part of what was written, such as the records that a run collected: they may begin at any step
    #[arg(long)]
    pub(crate) part: bool,
}

/// `takt opprof attribute`, `takt opprof calibrate`
#[derive(Debug, Args)]
#[command(after_long_help = TRACES)]
pub(crate) struct TraceArgs {
    /// Folders of traces, or single files: .json or .json.gz; every rank of a window, one window or more
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Step records of the same server: a folder or file; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) records: Vec<PathBuf>,
    /// The scheduler, such as dp0-pid1234, when the records are of several
    #[arg(long, value_name = "ID", requires = "records")]
    pub(crate) engine: Option<String>,
    /// TOML file of more kernel families, tried before the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) families: Option<PathBuf>,
    /// Tell the router's GEMM and the experts' reduction by their place; counted as inferred
    #[arg(long)]
    pub(crate) inferred: bool,
    /// How far the clocks of GPU, trace and records may be apart
    #[arg(long, value_name = "TIME", default_value = "50us")]
    pub(crate) clock_error: Span,
    /// What to print on stdout
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// `takt opprof experts`
#[derive(Debug, Args)]
#[command(after_long_help = EXPERTS)]
pub(crate) struct ExpertsArgs {
    /// Answers with routed_experts, a JSON object a line, or .npy files of routes; or folders of them
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Experts that a layer of the model has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) experts: u16,
    /// JSON file of the rank that owns each expert: a list a layer, or one list for all layers
    #[arg(long, value_name = "FILE")]
    pub(crate) placement: Option<PathBuf>,
}

/// `takt opprof join`
#[derive(Debug, Args)]
#[command(after_long_help = JOIN)]
pub(crate) struct JoinArgs {
    /// The run folder, with its journal
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Step records of the server during the run [default: opprof in the run folder]
    #[arg(long, value_name = "PATH")]
    pub(crate) records: Vec<PathBuf>,
    /// The scheduler, such as dp0-pid1234, when the records are of several
    #[arg(long, value_name = "ID")]
    pub(crate) engine: Option<String>,
    /// Length of a slice of time
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) slice: Span,
    /// How many of the slowest requests to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) slowest: usize,
}

/// How the pairs of a gate are run.
#[derive(Debug, Args)]
pub(crate) struct PairArgs {
    /// Run the pairs: a configuration of `takt run`, for a server that is started for each run
    #[arg(long, value_name = "CONFIG.yaml", requires_all = ["off_server", "on_server", "out"])]
    run: Option<PathBuf>,
    /// Command that starts the server without what is tested
    #[arg(long, value_name = "COMMAND", requires = "run")]
    off_server: Option<String>,
    /// Command that starts it with it; records go to the folder that TAKT_RECORDS names
    #[arg(long, value_name = "COMMAND", requires = "run")]
    on_server: Option<String>,
    /// Where the run folders go
    #[arg(long, value_name = "DIR", requires = "run")]
    out: Option<PathBuf>,
    /// How many pairs to run, an even number
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub(crate) pairs: usize,
    /// How long a server may take to be there
    #[arg(long, value_name = "TIME", default_value = "300s")]
    pub(crate) ready_within: Span,
}

/// What to run for a gate.
#[derive(Debug)]
pub(crate) struct RunConfig {
    pub(crate) config: PathBuf,
    pub(crate) off_server: String,
    pub(crate) on_server: String,
    pub(crate) out: PathBuf,
}

impl PairArgs {
    /// What to run, when runs were asked for.
    pub(crate) fn to_run(&self) -> Option<RunConfig> {
        Some(RunConfig {
            config: self.run.clone()?,
            off_server: self.off_server.clone()?,
            on_server: self.on_server.clone()?,
            out: self.out.clone()?,
        })
    }
}

/// `takt opprof gate`
#[derive(Debug, Args)]
#[command(after_long_help = GATE)]
pub(crate) struct GateArgs {
    /// A file of runs, one a line: pair, arm, thr, ttft50, ttft95, tpot50, tpot95
    #[arg(
        value_name = "RUNS.jsonl",
        required_unless_present_any = ["off", "run"],
        conflicts_with_all = ["off", "on", "run"]
    )]
    pub(crate) runs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pairs: PairArgs,
    /// A run folder without what is tested; repeat it, once a pair
    #[arg(long, value_name = "DIR", requires = "on")]
    pub(crate) off: Vec<PathBuf>,
    /// A run folder with it, the other half of the pair of the same place
    #[arg(long, value_name = "DIR", requires = "off")]
    pub(crate) on: Vec<PathBuf>,
    /// The performance phase to compare, when run folders have several
    #[arg(long, value_name = "NAME")]
    pub(crate) phase: Option<String>,
    /// The cost that is allowed, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, value_parser = percent)]
    pub(crate) limit: f64,
    /// Seed of the resamples that are drawn beyond six pairs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "expected a number, such as 3".to_owned())?;
    if value > 0.0 && value <= 100.0 {
        Ok(value)
    } else {
        Err("expected above 0, up to 100".into())
    }
}

const GATE: &str = "\
Needs an even number of pairs, six at least, half of them with off first. Each metric has a two-sided
95 % interval of its cost; PASS: all lie below the limit, FAIL: one lies above it.

Exit codes: 0 PASS, 2 no judgement can be had, 5 FAIL, 6 INCONCLUSIVE.

Examples:
  takt opprof gate runs.jsonl
  takt opprof gate --run load.yaml --out gate/ --off-server 'vllm serve m' \\
    --on-server 'VLLM_OPPROF_DIR=$TAKT_RECORDS vllm serve m --scheduler-cls takt_opprof.OpProfScheduler'
  takt opprof gate --off runs/off1 --on runs/on1 --off runs/off2 --on runs/on2 …";

const DEMO: &str = "\
Takes under a minute. Prints each command before what it prints, so that it can be given again in the folder.

Examples:
  takt opprof demo
  takt opprof demo --out /tmp/demo --pairs 8";

const TRACES: &str = "\
A kernel belongs to the step in which it was launched. The slowest rank is the critical path of a step;
with --records the rest of its span, from submit to complete, is the residual.

Exit codes: 0 done, 2 nothing to attribute, 5 a reconstruction contradicts itself.

Examples:
  takt opprof attribute kineto/ --records opprof/
  takt opprof calibrate kineto/ --records opprof/ --families mine.toml";

const EXPERTS: &str = "\
A server returns routes when it was started with --enable-return-routed-experts, and only in answers that
are not streamed. That costs it much: measure loads in a run of their own.

Examples:
  takt opprof experts responses.jsonl --experts 128 --placement ep8.json";

const CHECK: &str = "\
A file whose end is missing is truncated, not broken: it is read as far as it is whole. Files that one
scheduler wrote one after another are checked as one stream.

Exit codes: 0 every check holds, 2 a file cannot be read, 5 a record is broken.

Examples:
  takt opprof check opprof/
  takt opprof check opprof/opprof-v1-dp0-pid1234-1700000000000000000.jsonl.gz";

const JOIN: &str = "\
Both are read by the wall clock: the journal writes it beside its own once a second.

Examples:
  takt opprof join runs/monday --records opprof/
  takt opprof join runs/monday --records opprof/ --slice 250ms --slowest 20";

/// What `takt opprof --help` ends with.
pub(super) const AFTER: &str = "\
Examples:
  takt opprof check opprof/
  takt opprof join runs/monday --records opprof/
  takt opprof attribute kineto/ --records opprof/
  takt opprof gate runs.jsonl";
