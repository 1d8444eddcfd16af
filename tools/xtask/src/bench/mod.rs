//! `cargo xtask bench NAME`: what takt costs, beside other programs and by itself.
//!
//! Each benchmark hands back a [`table::Report`]; what it says while it runs goes to stderr. The tables are
//! printed here as text, and by [`all`] onto a page as Markdown.

mod about;
mod all;
mod client;
mod counts;
mod flags;
mod machine;
mod memory;
mod open;
mod options;
mod own;
mod peer;
mod peers;
mod plan;
mod program;
mod reactors;
mod rounds;
mod said;
mod scale;
mod server;
mod side;
mod spent;
mod streams;
mod table;
mod threads;
mod tls;

use std::path::Path;
use std::process::Command;

use anyhow::{bail, ensure};

use options::Options;
use table::Report;

/// A benchmark whose words are read: it wants the root and runs.
type Ready = Box<dyn FnOnce(&Path) -> anyhow::Result<Report>>;

/// A benchmark.
struct Bench {
    name: &'static str,
    /// What it says of itself in the list.
    what: &'static str,
    usage: &'static str,
    /// Reads its words.
    ready: fn(&[String]) -> anyhow::Result<Ready>,
}

/// `run` with the `options` it wants.
fn ready<O: 'static>(options: O, run: fn(&Path, &O) -> anyhow::Result<Report>) -> Ready {
    Box::new(move |root| run(root, &options))
}

/// A variable of the environment.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "wrk",
        what: "takt, wrk, oha and the bare floor in turn against one server",
        usage: options::USAGE,
        ready: |words| Ok(ready(Options::read(words, variable)?, side::clients)),
    },
    Bench {
        name: "server",
        what: "the built-in instant server beside the floor's server",
        usage: options::USAGE,
        ready: |words| Ok(ready(Options::read(words, variable)?, side::servers)),
    },
    Bench {
        name: "peers",
        what: "takt beside oha, vllm bench serve, aiperf and guidellm: CPU time of a streamed chat",
        usage: peers::USAGE,
        ready: |words| Ok(ready(peers::Options::read(words, variable)?, peers::run)),
    },
    Bench {
        name: "scale",
        what: "cost and lateness over rates, connections and events of a stream",
        usage: scale::USAGE,
        ready: |words| Ok(ready(scale::Options::read(words)?, scale::run)),
    },
    Bench {
        name: "open",
        what: "a schedule kept at 100,000 a second, beside a bare loop that does nothing else",
        usage: open::USAGE,
        ready: |words| Ok(ready(open::Options::read(words)?, open::run)),
    },
    Bench {
        name: "reactors",
        what: "a request by one reactor, by two, and by two processes of one each",
        usage: reactors::USAGE,
        ready: |words| Ok(ready(reactors::Options::read(words)?, reactors::run)),
    },
    Bench {
        name: "memory",
        what: "ten million requests: resident memory must not grow with them",
        usage: memory::USAGE,
        ready: |words| Ok(ready(memory::Options::read(words)?, memory::run)),
    },
    Bench {
        name: "streams",
        what: "thousands of streams open at once, and what each takes",
        usage: streams::USAGE,
        ready: |words| Ok(ready(streams::Options::read(words)?, streams::run)),
    },
    Bench {
        name: "tls",
        what: "plain and over TLS in turn",
        usage: tls::USAGE,
        ready: |words| Ok(ready(tls::Options::read(words)?, tls::run)),
    },
    Bench {
        name: "counts",
        what: "instructions of the hot path, held against bench/counts.txt (needs valgrind)",
        usage: counts::USAGE,
        ready: |words| Ok(ready(counts::Options::read(words)?, counts::run)),
    },
];

/// Runs the benchmark that the first word names, or all.
///
/// # Errors
/// A program is missing or fails, the flags cannot be followed, or a benchmark finds less than it promises.
pub fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let Some((which, rest)) = words.split_first() else { bail!("bench what?\n\n{}", list()) };
    let help = rest.iter().take_while(|word| *word != "--").any(|w| w == "--help" || w == "-h");
    if which == "all" {
        if help {
            println!("{}\n\n{}", all::USAGE, all::names());
            return Ok(());
        }
        return all::run(root, &all::Options::read(root, rest)?);
    }
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == which) else {
        bail!("no benchmark is called `{which}`\n\n{}", list());
    };
    if help {
        println!("{}", bench.usage);
        return Ok(());
    }
    let report = (bench.ready)(rest)?(root)?;
    println!("\n{}\n\n{}", line(bench.name, &rest.join(" ")), report.text());
    match report.failed {
        Some(why) => bail!(why),
        None => Ok(()),
    }
}

fn list() -> String {
    let mut text = "usage: cargo xtask bench NAME [flags], with --help for its flags\n".to_owned();
    for Bench { name, what, .. } in BENCHES {
        text.push_str(&format!("\n  {name:<10}{what}"));
    }
    text + "\n  all       all of them and more, onto one page of tables"
}

/// A benchmark's command, as it is given.
fn line(name: &str, args: &str) -> String {
    format!("cargo xtask bench {name} {args}").trim_end().to_owned()
}

/// `program` on one core; it is killed when this process ends, whatever ends it. What it starts itself is not,
/// unless that begins with [`BOUND`] too.
fn pinned(core: usize, program: &Path) -> Command {
    let mut command = bound(Path::new("taskset"));
    command.args(["-c", &core.to_string()]).arg(program);
    command
}

/// `program` on any core; else as [`pinned`].
fn bound(program: &Path) -> Command {
    let [setpriv, words @ ..] = BOUND;
    let mut command = Command::new(setpriv);
    command.args(words).arg(program);
    command
}

/// Before a command: the kernel kills it when the process that started it ends.
const BOUND: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];

/// What it takes to give client and server a core each.
fn two_cores() -> anyhow::Result<()> {
    ensure!(
        std::thread::available_parallelism()?.get() >= 2,
        "two cores are needed, one for the client and one for the server"
    );
    needs("taskset", "on Debian: apt-get install util-linux")?;
    needs("setpriv", "on Debian: apt-get install util-linux")
}

/// Whether `program` is on the path; if not, how to get it.
fn needs(program: &str, get: &str) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    ensure!(found, "`{program}` is not installed ({get})");
    Ok(())
}
