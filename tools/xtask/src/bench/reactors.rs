//! What it costs a request that several reactors share a run.
//!
//! Where there are fewer cores than busy threads, more threads cost more whatever they do: so two reactors of one run are
//! held against two runs of one reactor each, side by side, which share nothing. What the two reactors cost beyond those is the
//! price of sharing: numbers claimed, phases begun together, results merged. The starts are in it, of two runs two; of the
//! hundred thousands of requests that a run has they are a hundredth at the most.

use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::machine::Quiet;
use super::own::{Mock, Scratch, build};
use super::rounds::median;
use super::table::{Report, Table};
use super::{BOUND, bound, flags, said, spent, two_cores};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench reactors [flags] [-- further flags of `takt run`]

  --requests N      requests, an even number (400000)
  --connections N   connections, an even number (64)
  --rounds N        rounds, each all three in turn (5)
  --patience S      how long to wait for a quiet machine (30)
  --no-build        measure what is there";

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    requests: u64,
    connections: u64,
    rounds: usize,
    patience: u32,
    build: bool,
    takt_flags: Vec<String>,
}

impl Options {
    /// Reads the words after `bench reactors`.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            requests: 400_000,
            connections: 64,
            rounds: 5,
            patience: 30,
            build: true,
            takt_flags: Vec::new(),
        };
        let rest = flags::read(words, |name, value| {
            match name {
                "--requests" => options.requests = flags::positive(value)?,
                "--connections" => options.connections = flags::positive(value)?,
                "--rounds" => options.rounds = flags::positive(value)?,
                "--patience" => options.patience = value.parse()?,
                _ => bail!("no such flag\n\n{USAGE}"),
            }
            Ok(())
        })?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        let halves = |number: u64| number.is_multiple_of(2);
        ensure!(
            halves(options.requests) && halves(options.connections),
            "an odd number cannot be halved"
        );
        Ok(options)
    }
}

/// How a run is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Division {
    One,
    Reactors,
    Processes,
}

impl Division {
    const ALL: [Self; 3] = [Self::One, Self::Reactors, Self::Processes];

    fn name(self) -> &'static str {
        match self {
            Self::One => "one reactor",
            Self::Reactors => "two reactors of one run",
            Self::Processes => "two runs of one reactor",
        }
    }

    /// How many runs there are.
    fn runs(self) -> u64 {
        if self == Self::Processes { 2 } else { 1 }
    }

    fn reactors(self) -> &'static str {
        if self == Self::Reactors { "2" } else { "1" }
    }
}

/// What a request took, in microseconds of CPU time of the clients.
#[derive(Debug, Clone, Copy)]
struct Cost {
    all_us: f64,
    user_us: f64,
    per_s: f64,
    others: f64,
}

/// Runs the rounds.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    two_cores()?;
    if options.build {
        build(root, "release")?;
    }
    let takt = root.join("target/release/takt");
    let server = Mock::start(&takt, &["--mode", "instant", "--core", "1"])?;
    let mut rounds = Vec::new();
    for number in 1..=options.rounds {
        eprintln!("{}", Quiet::wait(options.patience)?);
        let mut costs = Vec::new();
        for division in Division::ALL {
            let cost = measure(&takt, options, division, &server)?;
            eprintln!("{number:>5}  {:<24} {:.2} us", division.name(), cost.all_us);
            costs.push(cost);
        }
        rounds.push(costs);
    }
    Ok(table(options, &rounds).into())
}

fn table(options: &Options, rounds: &[Vec<Cost>]) -> Table {
    let title = format!(
        "{} requests, {} connections, --api raw, nothing pinned but the server",
        options.requests, options.connections
    );
    let head = ["", "CPU us/request", "of it user", "times two runs", "requests/s", "others %"];
    let mut table = Table::new(title, &head);
    for (at, division) in Division::ALL.into_iter().enumerate() {
        let of = |what: fn(&Cost) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(|costs| what(&costs[at])).collect();
            median(&mut values)
        };
        let runs = Division::ALL.len() - 1;
        let mut ratios: Vec<f64> =
            rounds.iter().map(|costs| costs[at].all_us / costs[runs].all_us).collect();
        let others = rounds.iter().map(|costs| costs[at].others).fold(0.0, f64::max);
        table.row(vec![
            division.name().to_owned(),
            format!("{:.2}", of(|cost| cost.all_us)),
            format!("{:.2}", of(|cost| cost.user_us)),
            format!("{:.3}", median(&mut ratios)),
            format!("{:.0}", of(|cost| cost.per_s)),
            format!("{:.1}", others * 100.0),
        ]);
    }
    table.note(format!("Medians of {} rounds, ratios formed within each.", rounds.len()));
    table
}

fn measure(
    takt: &Path,
    options: &Options,
    division: Division,
    server: &Mock,
) -> anyhow::Result<Cost> {
    let folder = Scratch::new()?;
    let runs = division.runs();
    let (connections, requests) =
        ((options.connections / runs).to_string(), (options.requests / runs).to_string());
    let reactors = format!("engine.reactors={}", division.reactors());
    let mut command = bound(Path::new("sh"));
    command
        .args(["-c", SIDE_BY_SIDE, "sh", &runs.to_string()])
        .args(BOUND)
        .arg(takt)
        .args(["run", "--url", &server.url, "--api", "raw", "--format", "json", "--quiet"])
        .args(["--concurrency", &connections, "--requests", &requests, "--set", &reactors])
        .args(&options.takt_flags)
        .current_dir(folder.path());
    let spent = spent::run(&mut command, &folder.path().join("out"), || server.cpu_s())?;
    ensure!(spent.status.success(), "{} ended with {}", division.name(), spent.status);
    let (mut count, mut per_s) = (0.0, 0.0);
    for number in 1..=runs {
        let said = std::fs::read_to_string(folder.path().join(format!("said{number}")))?;
        let counted = said::by_takt(&said).with_context(|| format!("run {number}: {said}"))?;
        count += counted.requests;
        per_s += counted.per_s;
    }
    Ok(Cost {
        all_us: spent.cpu.all_s() * 1e6 / count,
        user_us: spent.cpu.user_s * 1e6 / count,
        per_s,
        others: spent.others,
    })
}

/// Runs a command so often side by side, each with a folder of its own; fails when one does.
const SIDE_BY_SIDE: &str = r#"
runs=$1; shift; pids=
while [ "$runs" -gt 0 ]; do
    "$@" --out "run$runs" > "said$runs" & pids="$pids $!"; runs=$((runs - 1))
done
for pid in $pids; do wait "$pid" || exit 1; done
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_held_against_two_runs_within_each_round() {
        let options = Options::read(&[]).unwrap();
        let cost = |all_us| Cost { all_us, user_us: 1.0, per_s: 9.0, others: 0.0 };
        let rounds =
            [vec![cost(4.0), cost(6.0), cost(5.0)], vec![cost(8.0), cost(10.0), cost(10.0)]];
        let text = table(&options, &rounds).text();
        let line = |name: &str| text.lines().find(|line| line.trim().starts_with(name)).unwrap();
        assert!(line("one reactor").contains("6.00"), "{text}");
        assert!(line("one reactor").contains("0.800"), "{text}");
        assert!(line("two reactors").contains("1.100"), "{text}");
        assert!(line("two runs").contains("1.000"), "{text}");
    }

    #[test]
    fn what_cannot_be_halved_is_refused() {
        for flag in ["--connections", "--requests"] {
            assert!(Options::read(&[flag.to_owned(), "65".to_owned()]).is_err(), "{flag}");
        }
    }

    #[test]
    fn runs_side_by_side_get_their_words_whole_and_a_failure_is_one() {
        let folder = Scratch::new().unwrap();
        let run = |words: &[&str]| {
            let mut command = bound(Path::new("sh"));
            command.args(["-c", SIDE_BY_SIDE, "sh", "2"]).args(words).current_dir(folder.path());
            command.status().unwrap().success()
        };
        assert!(run(&["echo", "a b;c"]));
        for number in ["1", "2"] {
            let said =
                std::fs::read_to_string(folder.path().join(format!("said{number}"))).unwrap();
            assert_eq!(said, format!("a b;c --out run{number}\n"));
        }
        assert!(!run(&["sh", "-c", "test $2 = run1", "sh"]));
    }
}
