//! The flags of `takt mock`.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use takt_mock::{CountDistribution, ErrorShare, SpanDistribution};
use takt_net::WaitMode;
use takt_time::Span;

use super::SchedulerArgs;

/// `takt mock`
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct MockArgs {
    /// Where to listen: an address and port (0 takes any free one, which is printed), or unix:/path
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8000")]
    pub(crate) listen: Door,
    /// How to answer
    #[arg(long, value_enum, default_value_t = MockMode::Timed)]
    pub(crate) mode: MockMode,
    /// The model's name in answers
    #[arg(long, value_name = "NAME", default_value = "mock")]
    pub(crate) model: String,
    /// Output tokens of an answer [default: 1 in instant, 64 otherwise]
    #[arg(long, value_name = "COUNT")]
    pub(crate) tokens: Option<CountDistribution>,
    /// timed, scheduler: what every answer says, a token a word [default: common words]
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["echo", "tokens"])]
    pub(crate) answer: Option<String>,
    /// timed, scheduler: every answer says what the prompt's last message says, a token a word
    #[arg(long, conflicts_with = "tokens")]
    pub(crate) echo: bool,
    /// timed: from the start of service to the first token [default: 50ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) ttft: Option<SpanDistribution>,
    /// timed: from one token to the next [default: 10ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) tpot: Option<SpanDistribution>,
    /// timed: tokens that one streamed event carries [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) tokens_per_event: Option<NonZeroU32>,
    /// timed: requests in service at once, the others wait [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<NonZeroU32>,
    /// timed, scheduler: answer a share of the requests with an error, such as 429:0.01; may be repeated
    #[arg(long, value_name = "STATUS:SHARE")]
    pub(crate) errors: Vec<ErrorShare>,
    /// timed, scheduler: seed of all drawn times and lengths [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// hostile: what goes wrong, such as stall or cut-after-tokens=3; may be repeated, `list` prints all
    #[arg(long, value_name = "NAME")]
    pub(crate) fault: Vec<String>,
    /// hostile: share of the requests that meet a fault, drawn from the seed [default: 1]
    #[arg(long, value_name = "SHARE")]
    pub(crate) fault_share: Option<f64>,
    /// Write the planned and the real times of each request to this file, a JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<PathBuf>,
    /// With --truth: the times of each streamed event, too
    #[arg(long, requires = "truth")]
    pub(crate) truth_events: bool,
    /// Close each connection so long after its first answer, without a word
    #[arg(long, value_name = "TIME")]
    pub(crate) close_after: Option<Span>,
    /// Serve TLS: PEM file of the certificate, its chain behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Ask each client for a certificate that one of this PEM file has issued
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// How the server waits: park, guard, guard:500us or spin
    #[arg(long, value_name = "MODE", default_value = "guard")]
    pub(crate) wait: WaitMode,
    /// Core to pin the server to
    #[arg(long, value_name = "N")]
    pub(crate) core: Option<usize>,
    #[command(flatten)]
    pub(crate) scheduler: SchedulerArgs,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for Door {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(_) => Err("a socket's path begins with a slash: unix:/run/server.sock".to_owned()),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                "write an address and port such as 127.0.0.1:8000, or unix:/run/server.sock"
                    .to_owned()
            }),
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// How the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MockMode {
    /// At once, with prepared bytes: what limits a run against it is the client
    Instant,
    /// Token by token, at planned times
    Timed,
    /// Token by token, as a simulated scheduler batches requests: queue, cache, preemption
    Scheduler,
    /// As timed, with the faults that --fault names
    Hostile,
}

const AFTER: &str = "\
Prints `listening on ADDR` on stdout once it does, and runs until SIGINT or SIGTERM.

Times and counts are fixed (20ms), or drawn: uniform:10ms..30ms, exp:20ms, lognormal:20ms,0.5.

Examples:
  takt mock --listen 127.0.0.1:8000 --mode instant --core 1
  takt mock --ttft lognormal:200ms,0.4 --tpot 20ms --tokens uniform:32..256 --slots 16
  takt mock --listen 127.0.0.1:0 --truth truth.jsonl --errors 429:0.01
  takt mock --mode scheduler --kv-blocks 1024 --opprof-dir $PWD/opprof --profile-dir $PWD/kineto
  takt mock --fault list
  takt mock --mode hostile --fault stall=500ms --fault error-in-stream --fault-share 0.1";
