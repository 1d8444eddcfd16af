//! The flags of `takt init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `takt init`
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct InitArgs {
    /// What the file is to do
    #[arg(value_enum, default_value_t = Template::Online)]
    pub(crate) template: Template,
    /// Where to write it [default: stdout]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, requires = "file")]
    pub(crate) force: bool,
}

/// The templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// Open loop: what users feel at a rate, with an objective
    Online,
    /// Closed loop: how much is carried at so many at once
    Concurrency,
    /// Several concurrencies and a rate, each behind a warm-up
    Sweep,
    /// As fast as the client can: one pass over a dataset
    Offline,
    /// Whether answers are right: a dataset with truths, asked three times and scored
    Accuracy,
    /// Conversations with tools, eight at a time, each turn after the answer before it
    Agentic,
    /// Any HTTP service, without a model
    Raw,
}

const AFTER: &str = "\
Every line says what it does; `takt validate --keys` lists all keys there are.

Examples:
  takt init
  takt init sweep sweep.yaml
  takt validate sweep.yaml && takt run sweep.yaml";
