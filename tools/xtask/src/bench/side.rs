//! takt beside other clients and beside the bare floor, on one machine, in turn; and the floor's client against
//! each server.
//!
//! Absolute rates move with the machine and with the hour. What holds is the ratio between two
//! programs that ran one after the other while nothing else did. So each round runs every client once,
//! the floor at its beginning and at its end; a round in which others used the processors, or between
//! whose floors the machine changed its speed, is shown but does not count.
//!
//! Every client is pinned to core 0, the server to core 1. Rates are what a client says of itself;
//! CPU time is what the kernel says of the client (`wait4`), all its threads, from start to end.

use std::path::Path;

use super::client::{Client, ClientKind};
use super::machine::Quiet;
use super::options::Options;
use super::own::build;
use super::rounds::{Round, median, summary};
use super::server::{Server, ServerKind};
use super::table::{Report, Table};
use super::two_cores;

/// Rounds that do not count are repeated, up to this many for each that was asked for.
const TRIES: usize = 3;

/// Clients in turn against one server.
pub(super) fn clients(root: &Path, options: &Options) -> anyhow::Result<Report> {
    let (kinds, left_out) = there(options);
    left_out.iter().for_each(|line| eprintln!("{line}"));
    if kinds.is_empty() {
        let mut table = Table::new("Closed loop: no client is there", &["client"]);
        left_out.into_iter().for_each(|line| table.note(line));
        return Ok(table.into());
    }
    prepare(root, options)?;
    let clients: Vec<Client> = kinds
        .iter()
        .map(|kind| Client::prepare(*kind, root, options))
        .collect::<anyhow::Result<_>>()?;
    let floor = Client::prepare(ClientKind::Floor, root, options)?;
    eprintln!("{}", Quiet::wait(options.patience)?);
    let server = Server::start(options.server, root, options.port)?;
    let title = format!(
        "Closed loop against `{}`, {} connections, {} s a run{}",
        server.says(),
        options.connections,
        options.seconds,
        if kinds.contains(&ClientKind::Takt) {
            format!(", takt with --api {} --wait {}", options.api, options.wait)
        } else {
            String::new()
        }
    );
    eprintln!("{title}; server on core 1, clients on core 0\n\n{}", Round::HEADER);
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
        eprintln!("{}", round.says());
        counting += usize::from(round.counts());
        rounds.push(round);
    }
    let mut table = summary(title, &rounds);
    left_out.into_iter().for_each(|line| table.note(line));
    Ok(table.into())
}

/// The floor's client against each server in turn.
pub(super) fn servers(root: &Path, options: &Options) -> anyhow::Result<Report> {
    prepare(root, options)?;
    let floor = Client::prepare(ClientKind::Floor, root, options)?;
    eprintln!("{}\n\n{}", Quiet::wait(options.patience)?, Round::HEADER);
    let mut shares = Vec::new();
    let mut cpu_shares = Vec::new();
    for number in 1..=options.rounds {
        Quiet::wait(options.patience)?;
        let mut outcomes = Vec::new();
        for kind in [ServerKind::Floor, ServerKind::Mock, ServerKind::Floor] {
            let server = Server::start(kind, root, options.port)?;
            let outcome = floor.run(&server)?;
            eprintln!("{number:>5}  {:<6}  {outcome}", kind.name());
            outcomes.push(outcome);
        }
        let [before, mock, after] = &outcomes[..] else { unreachable!("three were run") };
        shares.push(mock.per_s / f64::midpoint(before.per_s, after.per_s));
        cpu_shares.push(mock.server_us / f64::midpoint(before.server_us, after.server_us));
    }
    let title = format!(
        "The floor's client, {} connections, {} s a run",
        options.connections, options.seconds
    );
    let mut table = Table::new(title, &["server", "rate/floor", "CPU per request/floor"]);
    table.row(vec![
        "takt mock --mode instant".to_owned(),
        format!("{:.3}", median(&mut shares)),
        format!("{:.3}", median(&mut cpu_shares)),
    ]);
    table.note(format!("Medians of {} rounds, none left out.", shares.len()));
    Ok(table.into())
}

/// The clients that are there, and a line for each that is not.
fn there(options: &Options) -> (Vec<ClientKind>, Vec<String>) {
    let (mut kinds, mut left_out) = (Vec::new(), Vec::new());
    for &kind in &options.clients {
        match kind.installed(options) {
            Ok(()) => kinds.push(kind),
            Err(why) => left_out.push(format!("{} is left out: {why}", kind.name())),
        }
    }
    (kinds, left_out)
}

/// Builds what is ours and looks for what is not.
fn prepare(root: &Path, options: &Options) -> anyhow::Result<()> {
    two_cores()?;
    if options.build {
        build(root, "release")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_no_client_there_the_table_has_its_notes_alone() {
        let options = Options {
            clients: vec![ClientKind::Oha],
            oha: Some("/nowhere/oha".into()),
            ..Options::default()
        };
        let report = clients(Path::new("/nowhere"), &options).unwrap();
        assert!(report.failed.is_none());
        let page = report.markdown();
        assert!(page.contains("oha is left out: /nowhere/oha is not there"), "{page}");
    }

    #[test]
    fn what_is_built_here_is_there_beside_what_is_not() {
        let clients = vec![ClientKind::Oha, ClientKind::Takt];
        let options = Options { clients, oha: Some("/nowhere/oha".into()), ..Options::default() };
        let (kinds, left_out) = there(&options);
        assert_eq!((kinds, left_out.len()), (vec![ClientKind::Takt], 1));
    }
}
