//! `takt`, the command: configuration, wiring, progress, report.
//!
//! What it measures with is in the libraries; here they are put together on a real machine. The report
//! goes to stdout, everything else to stderr, and the exit code says how it went.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the command is where files, threads and the environment are met"
)]

mod accuracy;
#[cfg(feature = "zmq")]
mod aggregate;
mod built_in;
mod cli;
mod compare;
mod config;
mod console;
mod control;
mod conversations;
mod disk;
mod events;
mod exit;
mod flags;
mod folder;
mod forecast;
mod identity;
mod init;
mod journals;
mod mock;
mod news;
mod opprof;
mod outcome;
#[cfg(feature = "zmq")]
mod outlets;
#[cfg(not(feature = "zmq"))]
#[path = "no_outlets.rs"]
mod outlets;
#[cfg(feature = "zmq")]
mod own_socket;
mod pacer;
mod plan;
mod preflight;
mod probe;
mod progress;
mod quickstart;
mod reactor;
mod reactors;
mod replay;
mod report;
mod run;
mod said;
mod samples;
mod scrub;
mod selftest;
#[cfg(feature = "zmq")]
mod service;
mod shares;
mod socket_file;
mod stops;
mod tokens;
mod turns;
mod validate;
mod watched;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command, Format, LogLevel, OutputArgs};
use console::Console;
use exit::{Exit, Failure};

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    let cli =
        Cli::try_parse_from(&args).unwrap_or_else(|error| cli::explained(error, &args).exit());
    let plain = OutputArgs { format: Format::Text, quiet: false, log_level: LogLevel::Info };
    let console = Console::new(match &cli.command {
        Command::Run(args) => args.output,
        Command::Quickstart(args) => args.output,
        Command::Selftest(args) => args.output,
        Command::Compare(_)
        | Command::Events(_)
        | Command::Init(_)
        | Command::Mock(_)
        | Command::Opprof(_)
        | Command::Probe(_)
        | Command::Report(_)
        | Command::Stop(_)
        | Command::Validate(_) => plain,
        #[cfg(feature = "zmq")]
        Command::Aggregate(_) | Command::Pacer(_) => plain,
    });
    // A panic has printed its words already; it must not choose the exit code as well.
    let done = catch_unwind(AssertUnwindSafe(|| dispatch(&cli.command, &console)));
    console.show(None);
    let exit = match done {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            console.error(format!("{:#}", failure.error));
            failure.exit
        }
        Err(_) => Exit::Internal,
    };
    ExitCode::from(exit as u8)
}

fn dispatch(command: &Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::Quickstart(args) => quickstart::quickstart(args, console),
        Command::Run(args) => run::run(args, console),
        Command::Probe(args) => probe::probe(args, console),
        Command::Init(args) => init::init(args, console),
        Command::Validate(args) => validate::validate(args, console),
        Command::Mock(args) => mock::mock(args),
        Command::Report(args) => report::report(args, console),
        Command::Selftest(args) => selftest::selftest(args, console),
        Command::Events(args) => events::events(args, console),
        Command::Compare(args) => compare::compare(args, console),
        Command::Opprof(command) => opprof::opprof(command, console),
        Command::Stop(args) => control::stop(args),
        #[cfg(feature = "zmq")]
        Command::Aggregate(args) => aggregate::aggregate(args, console),
        #[cfg(feature = "zmq")]
        Command::Pacer(args) => pacer::pacer(args),
    }
}

// Exit codes are bytes.
const _: () = assert!(Exit::Interrupted as i32 <= u8::MAX as i32);
