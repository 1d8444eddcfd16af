//! The command line: what can be said, and nothing of what it does.

mod endpoint;
mod init;
mod mistake;
mod mock;
mod opprof;
mod probe;
mod run;
mod scheduler;
mod selftest;
mod service;
mod validate;
mod window;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use endpoint::EndpointArgs;
pub(crate) use init::{InitArgs, Template};
pub(crate) use mistake::explained;
pub(crate) use mock::{Door, MockArgs, MockMode};
pub(crate) use opprof::{
    CheckArgs, DemoArgs, ExpertsArgs, GateArgs, JoinArgs, OpprofCommand, PairArgs, RunConfig,
    TraceArgs,
};
pub(crate) use probe::ProbeArgs;
pub(crate) use run::{Arrivals, RunArgs};
pub(crate) use scheduler::{GraphsArg, SchedulerArgs};
pub(crate) use selftest::SelftestArgs;
pub(crate) use service::StopArgs;
#[cfg(feature = "zmq")]
pub(crate) use service::{AggregateArgs, PacerArgs};
pub(crate) use validate::ValidateArgs;
pub(crate) use window::WindowArgs;

/// A measuring instrument for inference endpoints.
#[derive(Debug, Parser)]
#[command(name = "takt", version, propagate_version = true, max_term_width = 100)]
#[command(after_long_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See a whole run in a few seconds: a built-in server, a warm-up, two measured phases, a report
    Quickstart(QuickstartArgs),
    /// Drive an endpoint, record every request, print a report
    Run(Box<RunArgs>),
    /// Is the endpoint there, and does it answer as the API says? A few requests, no measurement
    Probe(ProbeArgs),
    /// Begin a configuration file from a template
    Init(InitArgs),
    /// Check a configuration and its datasets, and say what a run would do; nothing is sent
    Validate(ValidateArgs),
    /// Serve answers whose timing is known, to measure or to try things against
    Mock(Box<MockArgs>),
    /// What takt can do on this machine: lateness, greatest valid load, error of reported times
    Selftest(SelftestArgs),
    /// Make the report of a run again from its folder, also of one that was killed
    Report(ReportArgs),
    /// Print the journal of a run as JSON, a line for each event
    Events(EventsArgs),
    /// Compare two runs, or pairs of runs, metric by metric with intervals
    Compare(CompareArgs),
    /// What the server was doing: step records and profiler traces, checked, judged, joined
    #[command(subcommand, after_long_help = opprof::AFTER)]
    Opprof(OpprofCommand),
    /// Stop a run over its control socket, as one Ctrl-C does, or ask how it stands
    Stop(StopArgs),
    /// Fold the records of a run in a process of its own
    #[cfg(feature = "zmq")]
    Aggregate(AggregateArgs),
    /// The clock of a run as a process of its own; started by the run
    #[cfg(feature = "zmq")]
    #[command(hide = true)]
    Pacer(PacerArgs),
}

/// `takt quickstart`
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  takt quickstart\n  takt quickstart --out runs/first")]
pub(crate) struct QuickstartArgs {
    /// The run folder [default: runs/TIME-quickstart]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `takt report`
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  takt report runs/monday\n  takt report runs/monday --format json"
)]
pub(crate) struct ReportArgs {
    /// The run folder
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// What to print on stdout
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Count percentiles from every value in the journal, not from histograms; takes 8 bytes for each
    #[arg(long)]
    pub(crate) exact: bool,
    /// Run the programs that score its answers; without it their marks are read from responses.jsonl
    #[arg(long)]
    pub(crate) run_programs: bool,
}

/// `takt events`
#[derive(Debug, clap::Args)]
#[command(after_long_help = EVENTS_AFTER)]
pub(crate) struct EventsArgs {
    /// The run folder
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Fill in the prompts, read again from the data sets that the run's configuration names
    #[arg(long)]
    pub(crate) with_prompts: bool,
    /// Only events of this phase; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) phase: Vec<String>,
    /// Only events of this type, such as sample.complete, or of a family, such as sample; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Vec<String>,
}

/// `takt compare`
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  takt compare runs/monday runs/tuesday\n  takt compare a1 b1 a2 b2 a3 b3"
)]
pub(crate) struct CompareArgs {
    /// Run folders: A and B, and more pairs of the same two in turn (A B A B …)
    #[arg(value_name = "DIR", num_args = 2.., required = true)]
    pub(crate) runs: Vec<PathBuf>,
}

/// How much is said, and how.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// What to print on stdout at the end
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// No progress on stderr; warnings and errors are still said
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The least that is logged on stderr
    #[arg(long, value_enum, default_value_t = LogLevel::Info, value_name = "LEVEL")]
    pub(crate) log_level: LogLevel,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: of a run, the document that result.json holds.
    Json,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    /// What ended the program.
    Error,
    /// What may spoil a measurement, too.
    Warn,
    /// Phases, kinds of errors and stops, too.
    Info,
    /// Everything.
    Debug,
}

const EVENTS_AFTER: &str = "\
Each line has event_type, timestamp_ns (monotonic), sample_uuid, conversation_id, turn and data; completions have
finish_reason and worker_id, too. `phase` is the phase's name, `takt` an object with the rest of the record.

Types: session.started, session.start_performance_tracking, session.stop_performance_tracking,
session.interrupted, session.ended, sample.issued, sample.recv_first, sample.recv_non_first,
sample.complete, error.generic, error.session, phase.started, phase.issuing_ended, phase.ended,
sample.text, instrument.clock, instrument.health.

Examples:
  takt events runs/monday --phase perf_c16 --type sample.complete | jq .takt.times_ns
  takt events runs/monday --type error
  takt events runs/monday --type sample.issued --with-prompts | head";

const AFTER: &str = "\
Examples:
  takt quickstart
  takt run --url http://127.0.0.1:8000 --model m --dataset q.jsonl --rate 50 --requests 500
  takt run --url http://127.0.0.1:8000 --model m --concurrency 16 --duration 60s
  takt run sweep.yaml --out runs/monday --strict
  takt probe --url http://127.0.0.1:8000
  takt init sweep sweep.yaml
  takt validate sweep.yaml
  takt mock --listen 127.0.0.1:8000 --mode timed --ttft 200ms --tpot 20ms
  takt selftest --quick
  takt report runs/monday --format json
  takt events runs/monday --type sample.complete

Exit codes: 0 done, 1 internal error, 2 wrong input, 3 endpoint unreachable or set-up failed,
4 the run failed, 5 not valid (with --strict) or FAIL, 6 INCONCLUSIVE, 130 interrupted.";
