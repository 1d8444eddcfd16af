//! `takt mock`: the reference server on this thread, its truth written by another.

mod scheduler;

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use takt_engine::{Remote, System, Target, TlsLayer};
use takt_mock::{
    Fault, FaultError, HostileConfig, InstantConfig, Mode, Saying, Server, ServerConfig, ServerMsg,
    TimedConfig, Truth, TruthSink,
};
use takt_net::tls::{ServerOptions, ServerTls};
use takt_net::{MioHost, WaitMode, affinity, limits, signals};

use crate::cli::{Door, MockArgs, MockMode};
use crate::config::nearest;
use crate::exit::{Exit, Failure, OrExit as _};
use scheduler::SchedulerFiles;

/// Serves until a signal comes.
pub(crate) fn mock(args: &MockArgs) -> Result<Exit, Failure> {
    if args.fault.iter().any(|name| name == "list") {
        print_faults();
        return Ok(Exit::Done);
    }
    limits::raise_open_files().or_exit(Exit::Setup)?;
    signals::file_limit_is_an_error().or_exit(Exit::Setup)?;
    let mut server =
        config(args).and_then(|config| Ok(Server::new(config)?)).or_exit(Exit::Input)?;
    let truth = args.truth.as_deref().map(|path| TruthFile::create(path, args.truth_events));
    let (sink, writer) = truth.transpose().or_exit(Exit::Setup)?.unzip();
    if let Some(sink) = sink {
        server = server.with_truth(sink);
    }
    let files = SchedulerFiles::open(&args.scheduler).or_exit(Exit::Setup)?;
    let (files, recorded) = files.unzip();
    if let Some(files) = files {
        server = server.with_scheduler_sink(files);
    }
    crate::run::pin(args.core)?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => {
            let client_ca = args.tls_client_ca.clone();
            let options = ServerOptions { cert: cert.clone(), key: key.clone(), client_ca };
            Some(ServerTls::new(&options).or_exit(Exit::Input)?)
        }
        _ => None,
    };
    let door = args.listen.clone();
    let listening = move |address: Option<SocketAddr>| say(&address.map_or(door, Door::Tcp));
    let served = serve(server, tls, args.wait, listening, |stop| {
        signals::on_stop(move |_, _| drop(stop.send(ServerMsg::Stop)))
    });
    served.with_context(|| format!("--listen {}", args.listen)).or_exit(Exit::Setup)?;
    if let Some(recorded) = recorded {
        recorded.wait().or_exit(Exit::Internal)?;
    }
    match writer
        .map(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    {
        Some(Err(error)) => Err(Failure::says(Exit::Internal, format!("--truth: {error}"))),
        _ => Ok(Exit::Done),
    }
}

/// Runs a server on this thread until it is told to stop. `listening` hears its address, if it has one;
/// `stop` is given the way to stop it, before it listens.
pub(crate) fn serve(
    server: Server,
    tls: Option<ServerTls>,
    wait: WaitMode,
    listening: impl FnOnce(Option<SocketAddr>) + Send + 'static,
    stop: impl FnOnce(Remote<ServerMsg>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let (tell, failed) = channel();
    let server = server.on_listening(move |bound| match bound {
        Ok(address) => {
            listening(address);
        }
        // Read below, once the system has stopped.
        Err(error) => drop(tell.send(error)),
    });
    let mut host = MioHost::new(wait)?;
    if let Some(tls) = tls {
        let number = host.add_server_tls(tls);
        debug_assert_eq!(number, TLS);
    }
    let mut system = System::new(host);
    let capacity = server.mailbox_capacity();
    let server = system.spawn(server, capacity);
    stop(system.remote(&server, STOPS))?;
    system.run()?;
    match failed.try_recv() {
        Err(_) => Ok(()),
        Ok(error) => Err(error).context("cannot be listened at"),
    }
}

fn say(door: &Door) {
    let mut out = io::stdout().lock();
    // A server whose stdout is closed serves all the same.
    drop(writeln!(out, "listening on {door}").and_then(|()| out.flush()));
}

fn config(args: &MockArgs) -> anyhow::Result<ServerConfig> {
    if args.mode != MockMode::Scheduler
        && let Some(flag) = args.scheduler.given()
    {
        anyhow::bail!("{flag}: has an effect with --mode scheduler only");
    }
    let mode = match args.mode {
        MockMode::Instant => Mode::Instant(instant(args)?),
        MockMode::Timed => Mode::Timed(timed(args)),
        MockMode::Scheduler => Mode::Scheduler(Box::new(scheduler::config(args)?)),
        MockMode::Hostile => Mode::Hostile(Box::new(hostile(args)?)),
    };
    if args.mode != MockMode::Hostile {
        let given =
            [("--fault", !args.fault.is_empty()), ("--fault-share", args.fault_share.is_some())];
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
            anyhow::bail!("{flag}: has no effect without --mode hostile");
        }
    }
    let at = match (&args.listen, &args.tls_cert) {
        (Door::Tcp(to), Some(_)) => {
            let layer = TlsLayer { config: TLS, name: "".into() };
            Target::Tls { to: *to, from: None, layer }
        }
        (Door::Tcp(to), None) => Target::tcp(*to),
        (Door::Unix(path), None) => Target::Unix(path.clone()),
        (Door::Unix(_), Some(_)) => anyhow::bail!("--tls-cert: has no effect on a unix socket"),
    };
    let mut config = ServerConfig::new(at, mode);
    config.model.clone_from(&args.model);
    config.close_after = args.close_after;
    config.anchor = takt_net::anchor();
    Ok(config)
}

/// What `instant` looks at, and a refusal of what it does not.
fn instant(args: &MockArgs) -> anyhow::Result<InstantConfig> {
    let others = [
        ("--answer", args.answer.is_some()),
        ("--echo", args.echo),
        ("--ttft", args.ttft.is_some()),
        ("--tpot", args.tpot.is_some()),
        ("--tokens-per-event", args.tokens_per_event.is_some()),
        ("--slots", args.slots.is_some()),
        ("--errors", !args.errors.is_empty()),
        ("--seed", args.seed.is_some()),
    ];
    if let Some((flag, _)) = others.iter().find(|(_, given)| *given) {
        anyhow::bail!("{flag}: has no effect with --mode instant; use --mode timed");
    }
    let tokens = match args.tokens.map(|tokens| tokens.to_string()) {
        None => return Ok(InstantConfig::default()),
        Some(text) => text.parse::<NonZeroU32>().map_err(|_| {
            anyhow::anyhow!("--tokens: --mode instant has answers of one length; write a number")
        })?,
    };
    Ok(InstantConfig { tokens })
}

fn hostile(args: &MockArgs) -> anyhow::Result<HostileConfig> {
    if args.fault.is_empty() {
        anyhow::bail!("--mode hostile: needs --fault NAME; --fault list prints the names");
    }
    let faults = args.fault.iter().map(|text| fault(text)).collect::<anyhow::Result<_>>()?;
    Ok(HostileConfig { answers: timed(args), faults, share: args.fault_share.unwrap_or(1.0) })
}

fn fault(text: &str) -> anyhow::Result<Fault> {
    text.parse().map_err(|error| match error {
        FaultError::Unknown(name) => {
            let names = Fault::all().map(|row| row.name);
            match nearest(&name, names) {
                Some(near) => anyhow::anyhow!("--fault: there is no fault {name:?}; is it {near}?"),
                None => anyhow::anyhow!(
                    "--fault: there is no fault {name:?}; --fault list prints the names"
                ),
            }
        }
        error => anyhow::anyhow!("--fault: {error}"),
    })
}

fn print_faults() {
    let mut out = io::stdout().lock();
    for row in Fault::all() {
        let name = match &row.default {
            Some(default) => format!("{}={default}", row.name),
            None => row.name.to_owned(),
        };
        // A reader that has gone does not want the rest.
        let lacks = match &row.lacks[..] {
            [] => String::new(),
            routes => format!(" (not on {})", routes.join(", ")),
        };
        if writeln!(out, "{name:<26} {:<6} {}{lacks}", row.cases, row.says).is_err() {
            return;
        }
    }
}

fn timed(args: &MockArgs) -> TimedConfig {
    let default = TimedConfig::default();
    TimedConfig {
        seed: args.seed.unwrap_or(default.seed),
        ttft: args.ttft.unwrap_or(default.ttft),
        tpot: args.tpot.unwrap_or(default.tpot),
        tokens: args.tokens.unwrap_or(default.tokens),
        saying: match &args.answer {
            Some(text) => Saying::Text(text.as_str().into()),
            None if args.echo => Saying::Echo,
            None => Saying::Words,
        },
        tokens_per_event: args.tokens_per_event.unwrap_or(default.tokens_per_event),
        slots: args.slots,
        errors: args.errors.clone(),
        ..default
    }
}

/// Sends lines to the thread that writes them. When that is far behind, the server waits: a truth with
/// holes would be none.
#[derive(Debug)]
pub(crate) struct TruthFile {
    lines: SyncSender<Vec<u8>>,
    with_events: bool,
}

impl TruthFile {
    fn create(
        path: &Path,
        with_events: bool,
    ) -> anyhow::Result<(Self, JoinHandle<io::Result<()>>)> {
        let file = File::create(path)
            .map_err(|error| anyhow::anyhow!("--truth {}: {error}", path.display()))?;
        let (lines, source) = sync_channel(LINES);
        let write = move || write(file, &source);
        let writer = thread::Builder::new().name("takt-truth".to_owned()).spawn(write)?;
        Ok((Self { lines, with_events }, writer))
    }
}

impl TruthSink for TruthFile {
    fn truth(&mut self, line: &Truth<'_>) {
        let mut text = Vec::with_capacity(512);
        line.to_json_line(&mut text, self.with_events);
        // A writer that is gone has an error to tell at the end.
        drop(self.lines.send(text));
    }
}

/// Writes until all senders are gone; what has come is in the file within a moment.
fn write(file: File, lines: &Receiver<Vec<u8>>) -> io::Result<()> {
    drop(affinity::unpinned());
    let mut out = BufWriter::with_capacity(256 << 10, file);
    loop {
        match lines.recv_timeout(FLUSH_AFTER) {
            Ok(line) => out.write_all(&line)?,
            Err(RecvTimeoutError::Timeout) => {
                out.flush()?;
                // Nothing to do: sleep until something comes.
                match lines.recv() {
                    Ok(line) => out.write_all(&line)?,
                    Err(_) => break,
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// The number of the server's TLS, the only one of its host.
const TLS: u32 = 0;
const FLUSH_AFTER: Duration = Duration::from_millis(100);
/// Lines that wait for the writer, some 30 MB.
const LINES: usize = 65_536;
/// Stops that wait; one does.
const STOPS: usize = 4;
