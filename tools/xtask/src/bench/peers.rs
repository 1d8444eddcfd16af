//! takt beside the field's own clients, in turn against one server: CPU time of a streamed chat request.
//!
//! The clients in Python take many seconds to start, so a run's CPU time over its requests says little of either. Each
//! client therefore runs twice, for a quarter of the requests and for all. The difference in CPU time over the
//! difference in requests is what one more request costs, the honest figure; what is left of the short run
//! is the start. Requests are those that the server answered with 200, by its own count; a probe before the run is in
//! both runs and drops out of the difference.

use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::own::{Mock, Scratch, build};
use super::peer::{Peer, PeerKind, Places, Work};
use super::rounds::median;
use super::said::Counted;
use super::table::{Report, Table};
use super::{BOUND, flags, pinned, spent, two_cores};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench peers [flags] [-- further flags of `takt run`]

  --clients LIST    of takt, oha, vllm, aiperf, guidellm; in this order in each round (all)
  --rounds N        rounds, in each of which every client runs twice (3)
  --requests N      requests of the long run; the short one has a quarter (4000)
  --concurrency N   requests in flight (16)
  --tokens N        events of each answer (16)
  --no-build        measure what is there
where the programs are; a client that is not there is left out, and said so:
  --oha FILE        or TAKT_BENCH_OHA (oha on the path)
  --vllm VENV       or TAKT_BENCH_VLLM: a virtual environment of Python with vllm
  --aiperf VENV     or TAKT_BENCH_AIPERF
  --guidellm VENV   or TAKT_BENCH_GUIDELLM
  --tokenizer DIR   or TAKT_BENCH_TOKENIZER: a folder with tokenizer.json and tokenizer_config.json, which
                    those in Python load";

/// What to run.
#[derive(Debug, Clone)]
pub(super) struct Options {
    clients: Vec<PeerKind>,
    rounds: u32,
    requests: u64,
    concurrency: u32,
    tokens: u32,
    places: Places,
    build: bool,
    takt_flags: Vec<String>,
}

impl Options {
    /// Reads the words after `bench peers`; `variable` looks up the environment.
    pub(super) fn read(
        words: &[String],
        variable: impl Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut options = Self {
            clients: PeerKind::ALL.to_vec(),
            rounds: 3,
            requests: 4_000,
            concurrency: 16,
            tokens: 16,
            places: Places::from_environment(variable),
            build: true,
            takt_flags: Vec::new(),
        };
        let rest = flags::read(words, |name, value| options.set(name, value))?;
        (options.build, options.takt_flags) = (rest.build, rest.takt);
        // With fewer the short run would never have as many in flight.
        let least = u64::from(options.concurrency) * SHORT;
        ensure!(
            options.requests >= least,
            "--requests {}: the short run has a quarter of them, and {} in flight: at least {least}",
            options.requests,
            options.concurrency
        );
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--clients" => {
                self.clients = value.split(',').map(PeerKind::named).collect::<Result<_, _>>()?;
            }
            "--rounds" => self.rounds = flags::positive(value)?,
            "--requests" => self.requests = value.parse()?,
            "--concurrency" => self.concurrency = flags::positive(value)?,
            "--tokens" => self.tokens = flags::positive(value)?,
            _ if self.places.set(name, value) => {}
            _ => bail!("no such flag\n\n{USAGE}"),
        }
        Ok(())
    }
}

/// Runs the rounds and says what each client cost.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    two_cores()?;
    if options.build {
        build(root, "release")?;
    }
    let takt = root.join("target/release/takt");
    let (mut peers, mut left_out) = (Vec::new(), Vec::new());
    for &kind in &options.clients {
        match Peer::find(kind, &options.places, &takt, &options.takt_flags) {
            Ok(peer) => peers.push((peer, Vec::<Cost>::new())),
            Err(why) => left_out.push(format!("{} is left out: {why:#}", kind.name())),
        }
    }
    if peers.is_empty() {
        let mut table = Table::new("Beside other clients: none is there", &["client"]);
        left_out.into_iter().for_each(|line| table.note(line));
        return Ok(table.into());
    }
    let tokens = options.tokens.to_string();
    let mode = ["--ttft", "10ms", "--tpot", "2ms", "--tokens", &tokens, "--core", "1"];
    let server = Mock::start(&takt, &mode)?;
    // Once for nothing, so that no run is the first to read a program from the disk.
    for round in 0..=options.rounds {
        let mut standing = Vec::new();
        for (peer, mut costs) in peers {
            let name = peer.kind.name();
            let measured = match round {
                0 => once(&peer, &server, options, warm_up(options.concurrency)).map(|_| None),
                _ => measure(&peer, &server, options).map(Some),
            };
            match measured {
                Ok(cost) => {
                    match cost {
                        Some(cost) => eprintln!("round {round}: {name}, {cost:?}"),
                        None => eprintln!("warm: {name} {}", peer.version),
                    }
                    costs.extend(cost);
                    standing.push((peer, costs));
                }
                // The others' figures are no worse for it.
                Err(why) => {
                    let why = format!("{why:#}");
                    eprintln!("round {round}: {name}: {why}");
                    let first = why.lines().next().unwrap_or_default();
                    left_out.push(format!("{name} is left out: in round {round}: {first}"));
                }
            }
        }
        peers = standing;
    }
    ensure!(!peers.is_empty(), "no client ran: {}", left_out.join("\n"));
    let mut table = table(&peers, options);
    left_out.into_iter().for_each(|line| table.note(line));
    Ok(table.into())
}

/// What a client cost in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    /// Requests a second of the long run, as the client says.
    per_s: f64,
    /// CPU time of the long run over its requests.
    whole_us: f64,
    /// CPU time of one request more.
    more_us: f64,
    /// CPU time of the start.
    start_s: f64,
    /// Share of the cores that others had meanwhile, of the two runs the greater.
    others: f64,
}

/// One run, as the kernel and the server saw it.
#[derive(Debug, Clone, Copy)]
struct Ran {
    cpu_s: f64,
    answered: u64,
    others: f64,
    counted: Counted,
}

impl Cost {
    /// Of a short and a long run; `None` when the long one did not have more requests.
    fn of(short: &Ran, long: &Ran) -> Option<Self> {
        let more = long.answered.checked_sub(short.answered).filter(|more| *more > 0)?;
        let more_s = (long.cpu_s - short.cpu_s) / more as f64;
        Some(Self {
            per_s: long.counted.per_s,
            whole_us: long.cpu_s / long.answered as f64 * 1e6,
            more_us: more_s * 1e6,
            start_s: short.cpu_s - more_s * short.answered as f64,
            others: short.others.max(long.others),
        })
    }
}

fn measure(peer: &Peer, server: &Mock, options: &Options) -> anyhow::Result<Cost> {
    let short = once(peer, server, options, options.requests / SHORT)?;
    let long = once(peer, server, options, options.requests)?;
    Cost::of(&short, &long).context("the server counted no more requests in the long run")
}

/// One run of one client.
fn once(peer: &Peer, server: &Mock, options: &Options, requests: u64) -> anyhow::Result<Ran> {
    let folder = Scratch::new()?;
    let work = Work {
        url: &server.url,
        requests,
        concurrency: options.concurrency,
        tokens: options.tokens,
        folder: folder.path(),
    };
    peer.prepare(&work)?;
    let before = server.answered()?;
    // It ends its own children as well when it takes too long. When it is killed itself, the client has to be bound to
    // it: it has a process group of its own, which no interrupt from the terminal reaches.
    let mut command = pinned(0, Path::new("timeout"));
    command.args(["--kill-after=10", PATIENCE_S]).args(BOUND).args(peer.command(&work));
    command.current_dir(folder.path()).envs(peer.environment());
    let (says, out) = (folder.path().join("says"), folder.path().join("out"));
    command.stderr(std::fs::File::create(&says)?);
    let spent = spent::run(&mut command, &out, || server.cpu_s())?;
    let tail = || {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let all = read(&says) + &read(&out);
        let lines: Vec<&str> = all.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    };
    ensure!(spent.status.success(), "it ended with {}:\n{}", spent.status, tail());
    let counted = peer.counted(folder.path());
    let counted = counted.with_context(|| format!("its figures cannot be read:\n{}", tail()))?;
    let all = requests as f64;
    ensure!(counted.requests == all, "it says {} of {requests} requests", counted.requests);
    // Less one: the page of counts itself is answered with 200.
    let answered = (server.answered()? - before).saturating_sub(1);
    Ok(Ran { cpu_s: spent.cpu.all_s(), answered, others: spent.others, counted })
}

fn table(peers: &[(Peer, Vec<Cost>)], options: &Options) -> Table {
    let title = format!(
        "Beside other clients: streamed chat, {} tokens an answer, {} in flight",
        options.tokens, options.concurrency
    );
    let head = [
        "client",
        "requests/s it reports",
        "CPU us of one request more",
        "times takt's",
        "CPU s of the start",
        "CPU us a request, start included",
        "others %",
    ];
    let mut table = Table::new(title, &head);
    let takt = peers.iter().find(|(peer, _)| peer.kind == PeerKind::Takt);
    for (peer, costs) in peers {
        let middle =
            |what: fn(&Cost) -> f64| median(&mut costs.iter().map(what).collect::<Vec<_>>());
        let times = takt.map_or_else(String::new, |(_, of_takt)| {
            let pairs = costs.iter().zip(of_takt);
            let mut ratios: Vec<f64> =
                pairs.map(|(its, takt)| its.more_us / takt.more_us).collect();
            format!("{:.1}", median(&mut ratios))
        });
        let others = costs.iter().map(|cost| cost.others).fold(0.0, f64::max);
        table.row(vec![
            format!("{} {}", peer.kind.name(), peer.version),
            format!("{:.0}", middle(|cost| cost.per_s)),
            format!("{:.0}", middle(|cost| cost.more_us)),
            times,
            format!("{:.2}", middle(|cost| cost.start_s)),
            format!("{:.0}", middle(|cost| cost.whole_us)),
            format!("{:.1}", others * 100.0),
        ]);
    }
    table.note(format!(
        "Medians of {} rounds. Each client on core 0 with all its children, the server (`takt mock`: first token after \
         10 ms, one each 2 ms) on core 1. One request more: the difference of runs of {} and {} requests, over the \
         difference of what the server counted.",
        options.rounds,
        options.requests / SHORT,
        options.requests
    ));
    table
}

/// The longest that one run of a client may take, in seconds.
const PATIENCE_S: &str = "600";

/// Requests of a run that is not measured: as many as are in flight, or a few.
fn warm_up(concurrency: u32) -> u64 {
    u64::from(concurrency).max(32)
}

/// The long run has so many times the requests of the short one.
const SHORT: u64 = 4;

/// Lines that are shown of what a client said that failed.
const LINES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(cpu_s: f64, answered: u64) -> Ran {
        let counted = Counted { requests: answered as f64, per_s: 100.0 };
        Ran { cpu_s, answered, others: 0.0, counted }
    }

    #[test]
    fn the_start_is_told_apart_from_the_requests() {
        // Ten seconds to start, 2 ms a request.
        let cost = Cost::of(&ran(11.0, 500), &ran(14.0, 2_000)).unwrap();
        let micros = (cost.more_us.round(), cost.whole_us.round(), cost.start_s.round());
        assert_eq!(micros, (2_000.0, 7_000.0, 10.0));
        assert_eq!(Cost::of(&ran(11.0, 500), &ran(14.0, 500)), None);
    }

    #[test]
    fn every_run_has_as_many_requests_as_are_in_flight() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::read(&words, |_| None)
        };
        // Whichever flag comes first.
        assert!(read("--concurrency 64 --requests 256").is_ok());
        assert!(read("--requests 255 --concurrency 64").is_err());
        assert_eq!((warm_up(64), warm_up(1)), (64, 32));
    }

    #[test]
    fn flags_go_before_the_environment() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::read(&words, |name| (name == "TAKT_BENCH_VLLM").then(|| "/env".to_owned()))
        };
        let options = read("--clients takt,vllm --requests 80 --no-build -- --wait park").unwrap();
        assert_eq!(options.clients, [PeerKind::Takt, PeerKind::Vllm]);
        assert_eq!(options.places.of("vllm"), Some("/env"));
        assert_eq!((options.requests, options.build), (80, false));
        assert_eq!(options.takt_flags, ["--wait", "park"]);
        let options = read("--vllm /flag --tokenizer /t").unwrap();
        assert_eq!(options.places.of("vllm"), Some("/flag"));
        assert_eq!(options.places.of("aiperf"), None);
        assert!(read("--clients curl").is_err() && read("--rounds 0").is_err());
        assert!(read("--sglang /x").is_err());
    }
}
