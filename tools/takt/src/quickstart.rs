//! `takt quickstart`: a whole run in a few seconds, against a server of its own on this machine.

use std::net::SocketAddr;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use takt_engine::{Remote, Target};
use takt_mock::{Mode, Server, ServerConfig, ServerMsg, TimedConfig};
use takt_net::WaitMode;

use crate::cli::QuickstartArgs;
use crate::config::{Config, Node, Origin, put};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::run::{Options, measure};

/// Starts the server, measures it, stops it.
pub(crate) fn quickstart(args: &QuickstartArgs, console: &Console) -> Result<Exit, Failure> {
    let server = Built::start().or_exit(Exit::Setup)?;
    console.info(format!(
        "built-in server on {}: first token after 10 to 40 ms, then one every 5 ms",
        server.address
    ));
    let config = config(server.address).or_exit(Exit::Internal)?;
    let (out, format) = (args.out.as_deref(), args.output.format);
    let options = Options { out, format, strict: false, turn_records: None };
    let measured = measure(&config, options, console);
    server.stop();
    measured
}

fn config(address: SocketAddr) -> anyhow::Result<Config> {
    let mut tree = Node::from_yaml(CONFIG, "quickstart")?;
    let url = Node::text(format!("http://{address}"), Origin::Implied);
    put(&mut tree, &["endpoint", "url"], url)?;
    Ok(Config::read(&tree, "quickstart")?)
}

/// The built-in server on a thread of its own.
struct Built {
    address: SocketAddr,
    stop: Remote<ServerMsg>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Built {
    fn start() -> anyhow::Result<Self> {
        let (tell, told) = mpsc::channel();
        let (give, given) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("takt-mock".to_owned())
            .spawn(move || serve(tell, &give))?;
        match (given.recv(), told.recv()) {
            (Ok(stop), Ok(address)) => Ok(Self { address, stop, thread }),
            // It ended before it listened.
            _ => match thread.join() {
                Ok(Err(error)) => Err(error),
                _ => anyhow::bail!("the built-in server did not start"),
            },
        }
    }

    fn stop(self) {
        // A server that does not stop has stopped already; its thread ends with the process.
        if self.stop.send(ServerMsg::Stop).is_ok() {
            drop(self.thread.join());
        }
    }
}

fn serve(tell: Sender<SocketAddr>, give: &Sender<Remote<ServerMsg>>) -> anyhow::Result<()> {
    let timed = TimedConfig {
        seed: 1,
        ttft: "uniform:10ms..40ms".parse()?,
        tpot: "5ms".parse()?,
        tokens: "uniform:8..24".parse()?,
        ..TimedConfig::default()
    };
    let listen = Target::tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut config = ServerConfig::new(listen, Mode::Timed(timed));
    config.anchor = takt_net::anchor();
    // Whoever asked for the server waits for this.
    let listening = move |address: Option<SocketAddr>| _ = address.map(|at| tell.send(at));
    crate::mock::serve(Server::new(config)?, None, WaitMode::default(), listening, |stop| {
        drop(give.send(stop));
        Ok(())
    })
}

const CONFIG: &str = "\
name: quickstart
endpoint: {api: openai-chat, model: mock, stream: true}
phases:
  - {name: warmup, type: warmup, load: {pattern: concurrency, target_concurrency: 4}, requests: 32}
  - {name: poisson_40, load: {pattern: poisson, rate: 40}, duration: 5s}
  - {name: concurrency_8, load: {pattern: concurrency, target_concurrency: 8}, duration: 5s}
";
