//! `takt quickstart`: a whole run in a few seconds, against a server of its own on this machine.

use takt_mock::{Mode, TimedConfig};

use crate::built_in::BuiltIn;
use crate::cli::QuickstartArgs;
use crate::config::{Config, Node, Origin, put};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::run::{Options, measure};

/// Starts the server, measures it, stops it.
pub(crate) fn quickstart(args: &QuickstartArgs, console: &Console) -> Result<Exit, Failure> {
    let server = mode().and_then(|mode| BuiltIn::start(mode, None, None)).or_exit(Exit::Setup)?;
    console.info(format!(
        "built-in server on {}: first token after 10 to 40 ms, then one every 5 ms",
        server.address
    ));
    let config = config(&server).or_exit(Exit::Internal)?;
    let (out, format) = (args.out.as_deref(), args.output.format);
    let options = Options { out, format, strict: false, turn_records: None };
    measure(&config, options, console)
}

fn config(server: &BuiltIn) -> anyhow::Result<Config> {
    let mut tree = Node::from_yaml(CONFIG, "quickstart")?;
    let url = Node::text(server.url(), Origin::Implied);
    put(&mut tree, &["endpoint", "url"], url)?;
    Ok(Config::read(&tree, "quickstart")?)
}

fn mode() -> anyhow::Result<Mode> {
    Ok(Mode::Timed(TimedConfig {
        seed: 1,
        ttft: "uniform:10ms..40ms".parse()?,
        tpot: "5ms".parse()?,
        tokens: "uniform:8..24".parse()?,
        ..TimedConfig::default()
    }))
}

const CONFIG: &str = "\
name: quickstart
endpoint: {api: openai-chat, model: mock, stream: true}
phases:
  - {name: warmup, type: warmup, load: {pattern: concurrency, target_concurrency: 4}, requests: 32}
  - {name: poisson_40, load: {pattern: poisson, rate: 40}, duration: 5s}
  - {name: concurrency_8, load: {pattern: concurrency, target_concurrency: 8}, duration: 5s}
";
