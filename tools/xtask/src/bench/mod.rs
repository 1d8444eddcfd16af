//! takt beside wrk and beside the bare floor, on one machine, in turn.
//!
//! Absolute rates move with the machine and with the hour. What holds is the ratio between two
//! programs that ran one after the other while nothing else did. So each round runs every client once,
//! the floor at its beginning and at its end; a round in which others used the processors, or between
//! whose floors the machine changed its speed, is shown but does not count.
//!
//! Every client is pinned to core 0, the server to core 1. Rates are what a client says of itself;
//! CPU time is what the kernel says of the client (`wait4`), all its threads, from start to end.

mod client;
mod counts;
mod flags;
mod machine;
mod memory;
mod options;
mod own;
mod rounds;
mod server;
mod streams;
mod threads;
mod tls;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use client::{Client, ClientKind};
use machine::Quiet;
use options::Options;
use rounds::{Round, Summary};
use server::{Server, ServerKind};

/// Rounds that do not count are repeated, up to this many for each that was asked for.
const TRIES: usize = 3;

/// Runs `bench wrk`, `bench server`, `bench memory`, `bench streams`, `bench tls` or `bench counts`.
///
/// # Errors
/// A program is missing or fails, or the flags cannot be followed.
pub fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let Some((which, rest)) = words.split_first() else {
        let usages = [options::USAGE, memory::USAGE, streams::USAGE, tls::USAGE, counts::USAGE];
        bail!("bench what? wrk, server, memory, streams, tls or counts\n\n{}", usages.join("\n\n"));
    };
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        let usage = match which.as_str() {
            "memory" => memory::USAGE,
            "streams" => streams::USAGE,
            "tls" => tls::USAGE,
            "counts" => counts::USAGE,
            _ => options::USAGE,
        };
        println!("{usage}");
        return Ok(());
    }
    match which.as_str() {
        "memory" => return memory::run(root, &memory::Options::read(rest)?),
        "streams" => return streams::run(root, &streams::Options::read(rest)?),
        "tls" => return tls::run(root, &tls::Options::read(rest)?),
        "counts" => return counts::run(root, &counts::Options::read(rest)?),
        _ => {}
    }
    let options = Options::read(rest)?;
    match which.as_str() {
        "wrk" => against_wrk(root, &options),
        "server" => servers(root, &options),
        other => bail!("no benchmark is called `{other}`\n\n{}", options::USAGE),
    }
}

/// Clients in turn against one server.
fn against_wrk(root: &Path, options: &Options) -> anyhow::Result<()> {
    if options.clients.contains(&ClientKind::Wrk) {
        needs("wrk", "wrk")?;
    }
    prepare(root, options)?;
    let clients: Vec<Client> = options
        .clients
        .iter()
        .map(|kind| Client::prepare(*kind, root, options))
        .collect::<anyhow::Result<_>>()?;
    let floor = Client::prepare(ClientKind::Floor, root, options)?;
    println!("{}", Quiet::wait(options.patience)?);
    let server = Server::start(options.server, root, options.port)?;
    println!(
        "server: {} on core 1; clients on core 0: {} connections, {} s each\n\n{}",
        server.says(),
        options.connections,
        options.seconds,
        Round::HEADER
    );
    let mut rounds: Vec<Round> = Vec::new();
    let mut counting = 0;
    while counting < options.rounds && rounds.len() < options.rounds * TRIES {
        Quiet::wait(options.patience)?;
        let mut round = Round::new(rounds.len() + 1);
        round.floor(&floor, &server)?;
        for client in &clients {
            round.run(client, &server)?;
        }
        round.floor(&floor, &server)?;
        println!("{}", round.says());
        counting += usize::from(round.counts());
        rounds.push(round);
    }
    println!("\n{}", Summary::of(&rounds));
    Ok(())
}

/// The floor's client against each server in turn.
fn servers(root: &Path, options: &Options) -> anyhow::Result<()> {
    prepare(root, options)?;
    let floor = Client::prepare(ClientKind::Floor, root, options)?;
    println!("{}", Quiet::wait(options.patience)?);
    println!(
        "client: the floor's on core 0, {} connections, {} s each; servers on core 1\n\n{}",
        options.connections,
        options.seconds,
        Round::HEADER
    );
    let mut shares = Vec::new();
    let mut cpu_shares = Vec::new();
    for number in 1..=options.rounds {
        Quiet::wait(options.patience)?;
        let mut outcomes = Vec::new();
        for kind in [ServerKind::Floor, ServerKind::Mock, ServerKind::Floor] {
            let server = Server::start(kind, root, options.port)?;
            let outcome = floor.run(&server)?;
            println!("{number:>5}  {:<6}  {outcome}", kind.name());
            outcomes.push(outcome);
        }
        let [before, mock, after] = &outcomes[..] else { unreachable!("three were run") };
        shares.push(mock.per_s / f64::midpoint(before.per_s, after.per_s));
        cpu_shares.push(mock.server_us / f64::midpoint(before.server_us, after.server_us));
    }
    println!(
        "\nmock/floor, medians of {}: {:.3} of its rate, {:.3} of its CPU per request",
        shares.len(),
        rounds::median(&mut shares),
        rounds::median(&mut cpu_shares)
    );
    Ok(())
}

/// Builds what is ours and looks for what is not.
fn prepare(root: &Path, options: &Options) -> anyhow::Result<()> {
    ensure!(
        std::thread::available_parallelism()?.get() >= 2,
        "two cores are needed, one for the client and one for the server"
    );
    needs("taskset", "util-linux")?;
    needs("setpriv", "util-linux")?;
    if options.build {
        let mut packages = vec!["-p", "takt-bench"];
        if options.uses_takt() {
            packages.extend(["-p", "takt"]);
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .current_dir(root)
            .args(["build", "--quiet", "--release"])
            .args(&packages)
            .status()
            .context("starting cargo")?;
        ensure!(status.success(), "cargo build {} failed", packages.join(" "));
    }
    Ok(())
}

/// `program` on one core; it ends when this process does, whatever ends it.
fn pinned(core: usize, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "taskset", "-c", &core.to_string()]).arg(program);
    command
}

fn needs(program: &str, package: &str) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    ensure!(found, "`{program}` is not installed; on Debian: apt-get install {package}");
    Ok(())
}
