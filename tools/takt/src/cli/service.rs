//! The flags of the commands that belong to a run: `takt aggregate`, `takt pacer`, `takt stop`.

#[cfg(feature = "zmq")]
use std::path::PathBuf;

use clap::Args;

/// `takt aggregate`
#[cfg(feature = "zmq")]
#[derive(Debug, Args)]
#[command(after_long_help = AGGREGATE)]
pub(crate) struct AggregateArgs {
    /// The run's `publish.aggregator` address; it need not be there yet
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) events: String,
    /// Where metrics/final_snapshot.json goes
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// End with standard input: the run that started this process holds its other end
    #[arg(long, hide = true)]
    pub(crate) with_run: bool,
}

/// `takt pacer`
#[cfg(feature = "zmq")]
#[derive(Debug, Args)]
#[command(after_long_help = PACER)]
pub(crate) struct PacerArgs {
    /// Where the run takes arrivals in
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) push: String,
    /// Core to pin the process to
    #[arg(long, value_name = "N")]
    pub(crate) core: Option<usize>,
}

/// `takt stop`
#[derive(Debug, Args)]
#[command(after_long_help = STOP)]
pub(crate) struct StopArgs {
    /// The run's `control` socket
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: String,
    /// Stop nothing: print how the run stands, as JSON
    #[arg(long)]
    pub(crate) status: bool,
}

#[cfg(feature = "zmq")]
fn address(text: &str) -> Result<String, String> {
    crate::config::check_address(text).map(|()| text.to_owned())
}

#[cfg(feature = "zmq")]
const AGGREGATE: &str = "\
Folds the records of a run in another process, or on another machine, and writes the same
metrics/final_snapshot.json that the run would. The run begins only when it is ready.

Examples:
  In two terminals, the first wherever it may be:
  takt aggregate --events ipc:///tmp/feed --out aggregated
  takt run sweep.yaml --set publish.aggregator=ipc:///tmp/feed

`publish.aggregator: true` has the run start and stop one by itself.";

#[cfg(feature = "zmq")]
const PACER: &str = "\
A run with `engine.pacer: process` starts and stops this by itself; it is of no use alone.

Examples:
  takt run --url http://127.0.0.1:8000 --model m --rate 1000 --set engine.pacer=process";

const STOP: &str = "\
Examples:
  In two terminals:
  takt run sweep.yaml --set control=/tmp/takt.sock
  takt stop /tmp/takt.sock

The same without takt: echo stop | nc -NU /tmp/takt.sock";
