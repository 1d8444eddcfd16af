//! The flags of `takt validate`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// `takt validate`
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct ValidateArgs {
    /// The configuration file
    #[arg(value_name = "CONFIG.yaml", required_unless_present = "keys")]
    pub(crate) config: Option<PathBuf>,
    /// Set any key of the configuration first, as in `takt run`; may be repeated
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// What to print on stdout
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Print the reference of all keys of a configuration instead, as Markdown
    #[arg(long, conflicts_with_all = ["config", "set", "format"])]
    pub(crate) keys: bool,
}

const AFTER: &str = "\
Checks all that can be checked without sending anything: keys, values, variables, the rows of every
dataset. Prints what each phase would do and about how long it would take. Exit code 0, or 2 with the
file, line and key of what is wrong.

Examples:
  takt validate sweep.yaml
  takt validate sweep.yaml --set phases.perf_c16.duration=30s
  takt validate sweep.yaml --format json
  takt validate --keys";
