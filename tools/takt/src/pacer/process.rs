//! The clock as a process of its own: `takt pacer`, and the run's hold on it.
//!
//! The run binds a PULL socket and starts the process, which reads the configuration, without its secrets, and
//! the times of recordings from its standard input, says `ready` over PUSH, and then takes commands from the same input:
//! `begin PHASE NANOSECONDS` and `end`. It ends when that input does.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write as _};
use std::process::ChildStdin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use takt_actors::SessionMsg;
use takt_engine::{Addr, Remote, System};
use takt_net::MioHost;
use takt_record::PhaseId;
use takt_time::{Nanos, Span};
use zmq::{Context, DONTWAIT, POLLIN, Socket, SocketType};

use super::inbox::{Inbox, encode};
use super::{Beat, Command};
use crate::cli::PacerArgs;
use crate::config::Config;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::plan::Times;
use crate::service::Service;

/// A running `takt pacer` that has said that it is ready.
pub(crate) struct Process {
    // In this order: the process is stopped before its socket goes.
    service: Service,
    socket: Option<Socket>,
}

impl Process {
    /// Starts the process and waits for it. It ends with the last hold on the other end of `commands`.
    pub(crate) fn start(
        context: &Context,
        config: &Config,
        times: &Times,
        address: &str,
        commands: Receiver<Command>,
    ) -> Result<Self, Failure> {
        let socket = context.socket(SocketType::PULL).or_exit(Exit::Setup)?;
        // What waits is bounded here and at the other end: a reactor that is far behind holds the clock
        // up, which loses nothing.
        socket.set_rcvhwm(MESSAGES_MAX).or_exit(Exit::Setup)?;
        socket.bind(address).map_err(|error| {
            Failure::says(Exit::Setup, format!("the pacer's socket {address}: {error}"))
        })?;
        let core = config.pacer_core.map(|core| core.to_string());
        let mut args: Vec<&OsStr> = ["pacer", "--push", address].map(OsStr::new).to_vec();
        if let Some(core) = &core {
            args.extend([OsStr::new("--core"), OsStr::new(core)]);
        }
        let (service, mut stdin) = Service::start("the pacer", &args)?;
        writeln!(stdin, "{}\n{}", config.for_pacer(), write_times(times)).or_exit(Exit::Setup)?;
        let until = Instant::now() + Duration::from_nanos(config.service_ready_timeout.as_nanos());
        while socket.poll(POLLIN, LOOK_MS).or_exit(Exit::Setup)? == 0 {
            if let Some(how) = service.ended() {
                return Err(Failure::says(Exit::Setup, format!("the pacer has ended: {how}")));
            }
            if Instant::now() >= until {
                let says = format!("the pacer is not ready after {}", config.service_ready_timeout);
                return Err(Failure::says(Exit::Setup, says));
            }
        }
        tell(stdin, commands).or_exit(Exit::Setup)?;
        Ok(Self { service, socket: Some(socket) })
    }

    /// The strategies have let go of the line, so the process ends.
    pub(crate) fn stop(&self) {
        self.service.stop();
    }

    /// Has the reactor take the arrivals in. Call it once.
    pub(crate) fn connect(
        &mut self,
        system: &mut System<MioHost>,
        session: &Addr<SessionMsg>,
        remote: Remote<SessionMsg>,
    ) -> io::Result<()> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        let descriptor = socket.get_fd().map_err(io::Error::from)?;
        let inbox = system.spawn(Inbox::new(socket, session.clone()), INBOX);
        system.host().register_foreign(descriptor, TOKEN)?;
        system.own_foreign(TOKEN, &inbox);
        self.service.watch(move |says| {
            // A queue that is full holds reasons enough to stop.
            drop(remote.send(SessionMsg::PacerFailed(says.into())));
        })
    }
}

/// Times of recordings on one line: nanoseconds from the first, phase by phase.
fn write_times(times: &Times) -> String {
    let times: Vec<Option<Vec<u64>>> = times
        .iter()
        .map(|times| Some(times.as_ref()?.iter().map(|at| at.as_nanos()).collect()))
        .collect();
    // Numbers can always be written.
    serde_json::to_string(&times).unwrap_or_default()
}

fn read_times(json: &str) -> serde_json::Result<Box<Times>> {
    let times: Vec<Option<Vec<u64>>> = serde_json::from_str(json)?;
    let spans = |times: Vec<u64>| times.into_iter().map(Span::from_nanos).collect();
    Ok(times.into_iter().map(|times| times.map(spans)).collect())
}

/// Passes commands on from a thread of its own, since a pipe may be full.
fn tell(mut stdin: ChildStdin, commands: Receiver<Command>) -> io::Result<()> {
    thread::Builder::new().name("takt-pacer-line".to_owned()).spawn(move || {
        for command in commands {
            let line = match command {
                Command::Begin { phase, start, end } => {
                    let end =
                        end.map_or_else(|| "never".to_owned(), |end| end.as_nanos().to_string());
                    format!("begin {} {} {end}\n", phase.0, start.as_nanos())
                }
                Command::End => "end\n".to_owned(),
            };
            // When it has gone, whoever watches it says so.
            if stdin.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// `takt pacer`
pub(crate) fn pacer(args: &PacerArgs) -> Result<Exit, Failure> {
    crate::run::pin(args.core)?;
    let mut input = BufReader::new(io::stdin());
    let (mut json, mut times) = (String::new(), String::new());
    input.read_line(&mut json).or_exit(Exit::Input)?;
    input.read_line(&mut times).or_exit(Exit::Input)?;
    let config = Config::from_run(&json).or_exit(Exit::Input)?;
    let beat =
        Beat::new(&config, &read_times(&times).or_exit(Exit::Input)?).or_exit(Exit::Input)?;

    let context = Context::new();
    let socket = context.socket(SocketType::PUSH).or_exit(Exit::Setup)?;
    socket.set_sndhwm(MESSAGES_MAX).or_exit(Exit::Setup)?;
    socket.set_linger(0).or_exit(Exit::Setup)?;
    socket.connect(&args.push).or_exit(Exit::Setup)?;
    socket.send(READY, 0).or_exit(Exit::Setup)?;

    let (sender, commands) = mpsc::channel();
    thread::Builder::new()
        .name("takt-pacer-line".to_owned())
        .spawn(move || listen(input, &sender))
        .or_exit(Exit::Setup)?;
    let mut bytes = Vec::new();
    beat.run(&commands, |due| {
        encode(due, &mut bytes);
        loop {
            match socket.send(&bytes, DONTWAIT) {
                Ok(()) => return true,
                // The reactor is behind; unless the run has gone it gets this in time.
                Err(zmq::Error::EAGAIN) => thread::yield_now(),
                Err(_) => return false,
            }
        }
    });
    Ok(Exit::Done)
}

/// Reads commands until there are no more: then the run is over, and this process with it, whatever
/// the clock is at.
fn listen(input: impl BufRead, commands: &Sender<Command>) {
    for line in input.lines().map_while(Result::ok) {
        match parse(&line) {
            // The clock ends only when this thread does.
            Some(command) => drop(commands.send(command)),
            None => break,
        }
    }
    std::process::exit(Exit::Done as i32);
}

fn parse(line: &str) -> Option<Command> {
    if line == "end" {
        return Some(Command::End);
    }
    let words: Vec<&str> = line.strip_prefix("begin ")?.split(' ').collect();
    let &[phase, start, end] = words.as_slice() else { return None };
    let at = |word: &str| word.parse().ok().map(Nanos::from_nanos);
    let end = if end == "never" { None } else { Some(at(end)?) };
    Some(Command::Begin { phase: PhaseId(phase.parse().ok()?), start: at(start)?, end })
}

/// What the process says first.
pub(crate) const READY: &[u8] = b"ready";

/// The name of the socket's descriptor in the reactor.
const TOKEN: u64 = 1;
/// What the inbox tells itself.
const INBOX: usize = 4;
/// Messages that wait at each end.
const MESSAGES_MAX: i32 = 65_536;
/// Between two looks at a process that is not ready.
const LOOK_MS: i64 = 20;
