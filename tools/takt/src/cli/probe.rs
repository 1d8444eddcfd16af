//! The flags of `takt probe`.

use clap::Args;
use takt_time::Span;

use super::{EndpointArgs, Format};

/// `takt probe`
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct ProbeArgs {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Requests with a streamed answer, after one with a whole answer
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) requests: u32,
    /// What is asked
    #[arg(long, value_name = "TEXT", default_value = "Say hello in five words.")]
    pub(crate) prompt: String,
    /// The longest that a connection or an answer may take
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: Span,
    /// What to print on stdout
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

const AFTER: &str = "\
Is it there, does it answer, and does it answer as the API says? Every address is resolved and connected
to, the models are listed, then a few requests go over one connection, one after another: one that asks
for a whole answer, the others for streamed ones. Printed is what came: status, first token, tokens,
finish reason, and whether the connection could be kept. Nothing is written; this is no measurement.

Exit codes: 0 every request succeeded, 2 wrong input (or no model is known), 3 the endpoint cannot be
reached, 4 a request failed.

Examples:
  takt probe --url http://127.0.0.1:8000
  takt probe --url http://10.0.0.5:8000/v1 --model m --api-key-env OPENAI_API_KEY
  takt probe --url http://127.0.0.1:8000 --model m --requests 10 --prompt 'What is 6 x 7?' --format json";
