//! The clients of the side-by-side runs: how each is started, and what a run of it came to.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::options::Options;
use super::said::{self, Counted};
use super::server::Server;
use super::spent;
use super::threads::ThreadShare;
use super::{needs, pinned};

/// Which client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// `floor_client`.
    Floor,
    /// wrk with one thread.
    Wrk,
    /// oha, which has as many threads as cores, here one.
    Oha,
    /// `takt run`, every request recorded.
    Takt,
}

impl ClientKind {
    pub(super) const ALL: [Self; 4] = [Self::Floor, Self::Wrk, Self::Oha, Self::Takt];

    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(Self::Floor) => bail!("the floor runs in every round anyway"),
            Some(kind) => Ok(kind),
            None => bail!("no client is called `{name}`: wrk, oha or takt"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Wrk => "wrk",
            Self::Oha => "oha",
            Self::Takt => "takt",
        }
    }

    /// Whether its program is there; if not, how to get it.
    pub(super) fn installed(self, options: &Options) -> anyhow::Result<()> {
        match self {
            Self::Wrk => needs("wrk", "on Debian: apt-get install wrk"),
            Self::Oha => match &options.oha {
                Some(path) => {
                    ensure!(Path::new(path).is_file(), "{path} is not there");
                    Ok(())
                }
                None => needs("oha", "cargo install --locked oha"),
            },
            // Built here.
            Self::Floor | Self::Takt => Ok(()),
        }
    }
}

/// A client ready to be run, with the files it needs.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) kind: ClientKind,
    program: PathBuf,
    options: Options,
    /// A folder of this run for the files below and for takt's own.
    folder: PathBuf,
}

/// The prompt, and with it the body of wrk's request: 30 bytes, so that a whole request has 110.
const PROMPT: &str = "xxxxxxxxxxxxxxxxx";

impl Client {
    /// Looks for the program and writes the files it reads.
    pub(super) fn prepare(
        kind: ClientKind,
        root: &Path,
        options: &Options,
    ) -> anyhow::Result<Self> {
        let folder = root.join("target/bench");
        std::fs::create_dir_all(&folder).context("making target/bench")?;
        let built = root.join("target/release");
        let program = match kind {
            ClientKind::Floor => built.join("floor_client"),
            ClientKind::Takt => built.join("takt"),
            ClientKind::Wrk => PathBuf::from(kind.name()),
            ClientKind::Oha => match &options.oha {
                Some(path) => std::path::absolute(path)?,
                None => PathBuf::from(kind.name()),
            },
        };
        if program.is_absolute() {
            ensure!(program.is_file(), "{} is not built", program.display());
        }
        let script = format!(
            "wrk.method = \"POST\"\nwrk.path = \"/v1/chat/completions\"\nwrk.body = '{}'\n",
            body()
        );
        std::fs::write(folder.join("post.lua"), script).context("writing wrk's script")?;
        std::fs::write(folder.join("prompts.txt"), format!("{PROMPT}\n"))
            .context("writing the prompts")?;
        Ok(Self { kind, program, options: options.clone(), folder })
    }

    /// Runs it on core 0 to its end.
    pub(super) fn run(&self, server: &Server) -> anyhow::Result<Outcome> {
        let run_folder = self.folder.join("run");
        // What takt leaves of its last run stays, to be looked at.
        if self.kind == ClientKind::Takt && run_folder.exists() {
            std::fs::remove_dir_all(&run_folder).context("removing the last run's folder")?;
        }
        let out = self.folder.join("out");
        let mut command = pinned(0, &self.program);
        command.args(self.words(server, &run_folder));
        let spent = spent::run(&mut command, &out, || server.cpu_s())?;
        ensure!(spent.status.success(), "{} ended with {}", self.kind.name(), spent.status);
        let said = std::fs::read_to_string(&out).context("reading what the client said")?;
        let counted = self.counted(&said).with_context(|| said.clone())?;
        let each_us = |s: f64| s * 1e6 / counted.requests;
        Ok(Outcome {
            per_s: counted.per_s,
            user_us: each_us(spent.cpu.user_s),
            sys_us: each_us(spent.cpu.sys_s),
            server_us: each_us(spent.server_s),
            others: spent.others,
            stolen: spent.stolen,
            threads: spent.threads.shares(each_us(spent.cpu.all_s())),
            verdict: match self.kind {
                ClientKind::Takt => said::verdict(&serde_json::from_str(&said)?).to_owned(),
                _ => String::new(),
            },
        })
    }

    fn words(&self, server: &Server, run_folder: &Path) -> Vec<String> {
        let Options { connections, seconds, api, wait, takt_flags, .. } = &self.options;
        let at = server.address();
        let file = |name: &str| self.folder.join(name).display().to_string();
        let line = match self.kind {
            ClientKind::Floor => {
                format!("--connect {at} --connections {connections} --seconds {seconds}")
            }
            ClientKind::Wrk => {
                format!("-t1 -c{connections} -d{seconds}s -s {} http://{at}", file("post.lua"))
            }
            ClientKind::Oha => format!(
                "-z {seconds}s -c {connections} --no-tui --output-format json -m POST -d {} \
                 http://{at}/v1/chat/completions",
                body()
            ),
            ClientKind::Takt => format!(
                "run --url http://{at} --api {api} {} --dataset {} \
                 --concurrency {connections} --duration {seconds}s --wait {wait} --format json \
                 --quiet --out {}",
                // `raw` sends rows as they are, and has no model and nothing to stream.
                if api == "raw" { "" } else { "--no-stream --model tiny" },
                file("prompts.txt"),
                run_folder.display()
            ),
        };
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if self.kind == ClientKind::Takt {
            words.extend(takt_flags.iter().cloned());
        }
        words
    }

    fn counted(&self, said: &str) -> anyhow::Result<Counted> {
        match self.kind {
            ClientKind::Floor => said::by_floor(said),
            ClientKind::Wrk => said::by_wrk(said),
            ClientKind::Oha => said::by_oha(said),
            ClientKind::Takt => said::by_takt(said),
        }
    }
}

/// The body that wrk and oha post; without a blank, as it is a word of a command line.
fn body() -> String {
    format!("{{\"prompt\":\"{PROMPT}\"}}")
}

/// One run of one client.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// Requests a second, as the client counts them.
    pub(super) per_s: f64,
    /// User time per request of the whole process, in microseconds.
    pub(super) user_us: f64,
    /// System time per request of the whole process, in microseconds.
    pub(super) sys_us: f64,
    /// CPU time per request of the server, in microseconds.
    pub(super) server_us: f64,
    /// Share of all cores' time that neither client nor server used.
    pub(super) others: f64,
    /// Share of all cores' time that the machine's host took away.
    pub(super) stolen: f64,
    /// The same CPU time by thread.
    pub(super) threads: Vec<ThreadShare>,
    /// What takt says of its own figures; empty for others.
    pub(super) verdict: String,
}

impl Outcome {
    /// User and system time per request, in microseconds.
    pub(super) fn cpu_us(&self) -> f64 {
        self.user_us + self.sys_us
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9.0}   {:>6.2} ({:>5.2} + {:>5.2})   {:>6.2}   {:>5.1}   {:>5.1}",
            self.per_s,
            self.cpu_us(),
            self.user_us,
            self.sys_us,
            self.server_us,
            self.others * 100.0,
            self.stolen * 100.0
        )
    }
}
