//! `takt selftest`.

use super::OutputArgs;

/// `takt selftest`
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct SelftestArgs {
    /// Fewer and shorter runs: under 15 s instead of under two minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print figures of disturbed runs, too, marked as such
    #[arg(long)]
    pub(crate) anyway: bool,
    /// The core that the reactor is pinned to; the built-in server gets another [default: the first]
    #[arg(long, value_name = "N")]
    pub(crate) core: Option<usize>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const AFTER: &str = "\
What it measures, each by runs of `takt run` against the built-in server on another core of this machine:
  how late sends are, by rate and wait mode
  the greatest rate and the most streams whose verdict is still valid
  how far reported times are from what the server did, request by request
  what a clock outside the reactor changes

A run during which other programs or the hypervisor took the cores is repeated; when that does not help its
row is left out and says why. It loads nothing but this machine, and leaves nothing behind.

Examples:
  takt selftest --quick
  takt selftest --format json > selftest.json

Exit codes: 0 done, 3 fewer than two cores, 6 no row could be had, 130 interrupted.";
