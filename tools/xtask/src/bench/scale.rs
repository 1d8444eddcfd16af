//! How takt's cost and punctuality move with the load: over rates, over connections, over the events of a stream.
//!
//! takt on core 0, its own server on core 1, every request recorded. CPU time is the kernel's account of the whole
//! process less that of a run of one request (of a stream, of one event), so that the start is left out. Where the floor runs too, it
//! runs in turn with takt, and the ratio is formed within a round.

use std::path::Path;

use anyhow::{bail, ensure};
use serde_json::Value;

use super::client::{Client, ClientKind, Outcome};
use super::options;
use super::own::{Mock, TaktRun, build};
use super::rounds::median;
use super::server::{Server, ServerKind};
use super::table::{Report, Table};
use super::{flags, pinned, two_cores};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench scale [flags] [-- further flags of `takt run`]

  --rates LIST        open loop, requests a second (100,1000,10000,50000,100000)
  --waits LIST        wait modes of the open loop (guard,spin)
  --connections LIST  closed loop (1,4,16,64,256,1024)
  --tokens LIST       events of each stream, 64 streams in flight (1,16,64,256,1024)
  --seconds S         length of a run (2)
  --rounds N          runs of each row, whose medians are printed (3)
  --port PORT         where the server of the closed loop listens (18800)
  --no-build          measure what is there
an empty LIST leaves its table out";

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    rates: Vec<u64>,
    waits: Vec<String>,
    connections: Vec<u32>,
    tokens: Vec<u32>,
    seconds: u32,
    rounds: usize,
    port: u16,
    build: bool,
    takt_flags: Vec<String>,
}

impl Options {
    /// Reads the words after `bench scale`.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            rates: vec![100, 1_000, 10_000, 50_000, 100_000],
            waits: vec!["guard".into(), "spin".into()],
            connections: vec![1, 4, 16, 64, 256, 1_024],
            tokens: vec![1, 16, 64, 256, 1_024],
            seconds: 2,
            rounds: 3,
            port: 18_800,
            build: true,
            takt_flags: Vec::new(),
        };
        let rest = flags::read(words, |name, value| options.set(name, value))?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--rates" => self.rates = flags::list(value)?,
            "--waits" => self.waits = flags::list(value)?,
            "--connections" => self.connections = flags::list(value)?,
            "--tokens" => self.tokens = flags::list(value)?,
            "--seconds" => self.seconds = flags::positive(value)?,
            "--rounds" => self.rounds = flags::positive(value)?,
            "--port" => self.port = value.parse()?,
            _ => bail!("no such flag\n\n{USAGE}"),
        }
        Ok(())
    }
}

/// Runs all rows and says what each took.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    two_cores()?;
    if options.build {
        build(root, "release")?;
    }
    let bench = Scale { root, takt: root.join("target/release/takt"), options };
    let mut report = Report::default();
    if !options.rates.is_empty() && !options.waits.is_empty() {
        report.tables.push(bench.rates()?);
    }
    if !options.connections.is_empty() {
        report.tables.push(bench.connections()?);
    }
    if !options.tokens.is_empty() {
        report.tables.push(bench.events()?);
    }
    ensure!(!report.tables.is_empty(), "every list is empty");
    Ok(report)
}

struct Scale<'a> {
    root: &'a Path,
    takt: std::path::PathBuf,
    options: &'a Options,
}

/// What one row's runs came to.
#[derive(Debug, Default)]
struct Runs {
    requests: Vec<f64>,
    per_s: Vec<f64>,
    cpu_us: Vec<f64>,
    late_p50_us: Vec<f64>,
    late_p99_us: Vec<f64>,
    others: Vec<f64>,
    verdicts: Vec<String>,
}

impl Runs {
    /// One more, whose start took `start_s`.
    fn push(&mut self, run: &TaktRun, start_s: f64) {
        let requests = run.succeeded();
        self.requests.push(requests);
        self.per_s.push(run.phase("successful_per_s").as_f64().unwrap_or(0.0));
        self.cpu_us.push((run.spent.cpu.all_s() - start_s) * 1e6 / requests);
        let late = |p: &str| run.phase("lateness_us")["p"].get(p).and_then(Value::as_f64);
        self.late_p50_us.extend(late("50"));
        self.late_p99_us.extend(late("99"));
        self.others.push(run.spent.others);
        self.verdicts.push(run.verdict().to_owned());
    }

    /// The verdict, or how often each was given.
    fn verdict(&self) -> String {
        let mut kinds: Vec<&String> = self.verdicts.iter().collect();
        kinds.sort();
        kinds.dedup();
        if let [only] = kinds[..] {
            return only.clone();
        }
        let times = |kind: &String| self.verdicts.iter().filter(|one| *one == kind).count();
        kinds.iter().map(|kind| format!("{} {kind}", times(kind))).collect::<Vec<_>>().join(", ")
    }
}

/// The greatest share of the cores that others had in one of the runs, in per cent.
fn most(others: impl IntoIterator<Item = f64>) -> String {
    format!("{:.1}", others.into_iter().fold(0.0, f64::max) * 100.0)
}

/// The median with so many digits; nothing when there is no value.
fn middle(values: &[f64], digits: usize) -> String {
    let mut values = values.to_vec();
    if values.is_empty() { String::new() } else { format!("{:.digits$}", median(&mut values)) }
}

impl Scale<'_> {
    fn rates(&self) -> anyhow::Result<Table> {
        let server = Mock::start(&self.takt, &["--mode", "instant", "--core", "1"])?;
        let head = [
            "wait",
            "rate",
            "requests",
            "CPU us/request",
            "late p50 us",
            "late p99 us",
            "verdict",
            "others %",
        ];
        let title = format!("Open loop over rates, Poisson, --api raw, {}", self.runs());
        let mut table = Table::new(title, &head);
        for wait in &self.options.waits {
            let start_s = self.start_s(&server, &["--api", "raw", "--wait", wait])?;
            for rate in self.options.rates.iter().map(u64::to_string) {
                eprintln!("{rate} a second, --wait {wait}");
                let flags = ["--api", "raw", "--wait", wait, "--rate", &rate];
                let runs = self.repeat(&server, &flags, start_s)?;
                table.row(vec![
                    wait.clone(),
                    rate.clone(),
                    middle(&runs.requests, 0),
                    middle(&runs.cpu_us, 2),
                    middle(&runs.late_p50_us, 2),
                    middle(&runs.late_p99_us, 1),
                    runs.verdict(),
                    most(runs.others),
                ]);
            }
        }
        table.note("The time for which the reactor looks at the clock while it waits is in it: at low rates most.");
        Ok(table)
    }

    fn connections(&self) -> anyhow::Result<Table> {
        let title = format!(
            "Closed loop over connections, --api raw, takt and the floor in turn, {}",
            self.runs()
        );
        let head = [
            "connections",
            "requests/s",
            "CPU us/request",
            "floor: CPU us/request",
            "CPU/floor",
            "rate/floor",
            "verdict",
            "others %",
        ];
        let mut table = Table::new(title, &head);
        for &connections in &self.options.connections {
            eprintln!("{connections} connections");
            let mut side = options::Options {
                connections,
                seconds: self.options.seconds,
                api: "raw".into(),
                ..options::Options::default()
            };
            side.takt_flags.clone_from(&self.options.takt_flags);
            let server = Server::start(ServerKind::Mock, self.root, self.options.port)?;
            let floor = Client::prepare(ClientKind::Floor, self.root, &side)?;
            let takt = Client::prepare(ClientKind::Takt, self.root, &side)?;
            let (mut floors, mut takts) = (Vec::new(), Vec::new());
            for _ in 0..self.options.rounds {
                floors.push(floor.run(&server)?);
                takts.push(takt.run(&server)?);
            }
            let of = |outcomes: &[Outcome], what: fn(&Outcome) -> f64| -> Vec<f64> {
                outcomes.iter().map(what).collect()
            };
            let ratio = |what: fn(&Outcome) -> f64| -> Vec<f64> {
                takts.iter().zip(&floors).map(|(takt, floor)| what(takt) / what(floor)).collect()
            };
            table.row(vec![
                connections.to_string(),
                middle(&of(&takts, |o| o.per_s), 0),
                middle(&of(&takts, Outcome::cpu_us), 2),
                middle(&of(&floors, Outcome::cpu_us), 2),
                middle(&ratio(Outcome::cpu_us), 3),
                middle(&ratio(|o| o.per_s), 3),
                takts.last().map_or_else(String::new, |outcome| outcome.verdict.clone()),
                most(takts.iter().chain(&floors).map(|outcome| outcome.others)),
            ]);
        }
        table.note("Start-up included on both sides. The verdict is that of the last run.");
        Ok(table)
    }

    fn events(&self) -> anyhow::Result<Table> {
        let title = format!(
            "Over the events of a stream, 64 streams in flight, an event a millisecond each, {}",
            self.runs()
        );
        let head = [
            "tokens",
            "streams",
            "CPU us/stream",
            "CPU us/token",
            "tokens/s",
            "verdict",
            "others %",
        ];
        let mut table = Table::new(title, &head);
        let mock = |tokens: &str| {
            let timed = ["--ttft", "5ms", "--tpot", "1ms", "--tokens", tokens, "--core", "1"];
            Mock::start(&self.takt, &timed)
        };
        // Of one event: waiting through a stream of a thousand is no part of the start.
        let start_s = self.start_s(&mock("1")?, &["--model", "m", "--stream"])?;
        for &tokens in &self.options.tokens {
            eprintln!("{tokens} tokens");
            let text = tokens.to_string();
            let server = mock(&text)?;
            let flags = ["--model", "m", "--stream", "--concurrency", "64"];
            let runs = self.repeat(&server, &flags, start_s)?;
            let each: Vec<f64> = runs.cpu_us.iter().map(|us| us / f64::from(tokens)).collect();
            let per_s: Vec<f64> = runs.per_s.iter().map(|n| n * f64::from(tokens)).collect();
            table.row(vec![
                text,
                middle(&runs.requests, 0),
                middle(&runs.cpu_us, 1),
                middle(&each, 2),
                middle(&per_s, 0),
                runs.verdict(),
                most(runs.others),
            ]);
        }
        table.note("Taken off is the CPU time of a run of one stream of one event.");
        Ok(table)
    }

    fn runs(&self) -> String {
        format!("{} runs of {} s a row", self.options.rounds, self.options.seconds)
    }

    /// CPU time of a run of one request.
    fn start_s(&self, server: &Mock, flags: &[&str]) -> anyhow::Result<f64> {
        let one = ["--concurrency", "1", "--requests", "1"];
        let mut all = Vec::new();
        for _ in 0..self.options.rounds {
            let run = TaktRun::of(
                pinned(0, &self.takt),
                server,
                &[flags, &one].concat(),
                &self.options.takt_flags,
            )?;
            all.push(run.spent.cpu.all_s());
        }
        Ok(median(&mut all))
    }

    fn repeat(&self, server: &Mock, flags: &[&str], start_s: f64) -> anyhow::Result<Runs> {
        let duration = format!("{}s", self.options.seconds);
        let mut runs = Runs::default();
        for _ in 0..self.options.rounds {
            let flags = [flags, &["--duration", &duration]].concat();
            runs.push(
                &TaktRun::of(pinned(0, &self.takt), server, &flags, &self.options.takt_flags)?,
                start_s,
            );
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_an_empty_one_leaves_its_table_out() {
        let words = ["--rates", "", "--connections", "1,8", "--no-build", "--rounds", "2"];
        let options = Options::read(&words.map(str::to_owned)).unwrap();
        assert!(options.rates.is_empty() && !options.build);
        assert_eq!((options.connections, options.rounds), (vec![1, 8], 2));
        assert!(Options::read(&["--rounds".to_owned(), "0".to_owned()]).is_err());
        assert!(Options::read(&["--tokens".to_owned(), "few".to_owned()]).is_err());
    }

    #[test]
    fn verdicts_that_differ_are_counted() {
        let runs = |verdicts: &[&str]| Runs {
            verdicts: verdicts.iter().map(|&verdict| verdict.to_owned()).collect(),
            ..Runs::default()
        };
        assert_eq!(runs(&["valid", "valid"]).verdict(), "valid");
        assert_eq!(runs(&["valid", "suspect", "valid"]).verdict(), "1 suspect, 2 valid");
    }

    #[test]
    fn of_what_others_had_the_worst_run_is_shown() {
        assert_eq!((most([0.01, 0.25, 0.1]), most([])), ("25.0".into(), "0.0".into()));
    }

    #[test]
    fn the_middle_of_nothing_is_an_empty_cell() {
        assert_eq!((middle(&[], 1), middle(&[3.0, 1.0, 2.0], 1)), (String::new(), "2.0".into()));
    }
}
