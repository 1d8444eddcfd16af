//! The clients: how each is started, and what it says when it ends.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde_json::Value;

use super::machine::CpuTotals;
use super::options::Options;
use super::pinned;
use super::server::Server;
use super::threads::{ThreadShare, Threads};

/// Which client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// `floor_client`.
    Floor,
    /// wrk with one thread.
    Wrk,
    /// `takt run`, every request recorded.
    Takt,
}

impl ClientKind {
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        match name {
            "floor" => Ok(Self::Floor),
            "wrk" => Ok(Self::Wrk),
            "takt" => Ok(Self::Takt),
            other => bail!("no client is called `{other}`: floor, wrk or takt"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Wrk => "wrk",
            Self::Takt => "takt",
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

/// How often the threads of a running client are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

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
            ClientKind::Wrk => PathBuf::from("wrk"),
        };
        if kind != ClientKind::Wrk {
            ensure!(program.is_file(), "{} is not built", program.display());
        }
        let script = format!(
            "wrk.method = \"POST\"\nwrk.path = \"/v1/chat/completions\"\n\
             wrk.body = '{{\"prompt\":\"{PROMPT}\"}}'\n"
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
        let machine = CpuTotals::now()?;
        let server_s = server.cpu_s()?;
        let before = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let out = self.folder.join("out");
        let mut child = pinned(0, &self.program)
            .args(self.words(server, &run_folder))
            .stdin(Stdio::null())
            .stdout(File::create(&out).context("making a file for what the client says")?)
            .spawn()
            .with_context(|| format!("starting {}", self.program.display()))?;
        let mut threads = Threads::default();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            threads.sample(child.id());
            std::thread::sleep(SAMPLE_EVERY);
        };
        // The server is a child too, but one that is not waited for until it is stopped.
        let after = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let server_s = server.cpu_s()? - server_s;
        let machine = CpuTotals::now()?.since(machine);
        ensure!(status.success(), "{} ended with {status}", self.kind.name());
        let said = std::fs::read_to_string(&out).context("reading what the client said")?;
        let counted = self.counted(&said).with_context(|| said.clone())?;
        let user = spent(&before, &after, Usage::user_time);
        let sys = spent(&before, &after, Usage::system_time);
        let others_s = machine.busy_s - server_s - (user + sys).as_secs_f64();
        Ok(Outcome {
            per_s: counted.per_s,
            user_us: user.as_secs_f64() * 1e6 / counted.requests,
            sys_us: sys.as_secs_f64() * 1e6 / counted.requests,
            server_us: server_s * 1e6 / counted.requests,
            others: (others_s / machine.all_s).max(0.0),
            stolen: machine.stolen_s / machine.all_s,
            threads: threads.shares((user + sys).as_secs_f64() * 1e6 / counted.requests),
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
            ClientKind::Floor => counted_by_floor(said),
            ClientKind::Wrk => counted_by_wrk(said),
            ClientKind::Takt => counted_by_takt(said),
        }
    }
}

/// What a client counted.
#[derive(Debug, PartialEq)]
struct Counted {
    requests: f64,
    per_s: f64,
}

fn counted_by_floor(said: &str) -> anyhow::Result<Counted> {
    let line: Value = serde_json::from_str(said)?;
    Ok(Counted { requests: number(&line, "requests")?, per_s: number(&line, "requests_per_s")? })
}

/// wrk's closing lines: `  621394 requests in 5.00s, …` and `Requests/sec: 124275.41`.
fn counted_by_wrk(said: &str) -> anyhow::Result<Counted> {
    for trouble in ["Non-2xx", "Socket errors"] {
        ensure!(!said.contains(trouble), "wrk had trouble");
    }
    let requests = said
        .lines()
        .find_map(|line| line.trim().split_once(" requests in "))
        .and_then(|(n, _)| n.parse().ok())
        .context("no line `N requests in …`")?;
    let per_s = said
        .lines()
        .find_map(|line| line.strip_prefix("Requests/sec:"))
        .and_then(|n| n.trim().parse().ok())
        .context("no line `Requests/sec: …`")?;
    Ok(Counted { requests, per_s })
}

/// The last phase of takt's result; one failed request and the run is no measurement.
fn counted_by_takt(said: &str) -> anyhow::Result<Counted> {
    let result: Value = serde_json::from_str(said)?;
    let phase = result["phases"].as_array().and_then(|phases| phases.last()).context("no phase")?;
    for wrong in ["failed", "unanswered"] {
        ensure!(number(phase, wrong)? == 0.0, "takt had requests {wrong}");
    }
    Ok(Counted { requests: number(phase, "succeeded")?, per_s: number(phase, "successful_per_s")? })
}

fn number(object: &Value, key: &str) -> anyhow::Result<f64> {
    object[key].as_f64().with_context(|| format!("no number `{key}`"))
}

fn spent(before: &Usage, after: &Usage, of: fn(&Usage) -> TimeVal) -> Duration {
    let micros = of(after).num_microseconds() - of(before).num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_read_from_its_closing_lines() {
        let said = "Running 5s test\n  621394 requests in 5.00s, 118.52MB read\n\
                    Requests/sec: 124275.41\nTransfer/sec:     23.70MB\n";
        let counted = Counted { requests: 621_394.0, per_s: 124_275.41 };
        assert_eq!(counted_by_wrk(said).unwrap(), counted);
        assert!(counted_by_wrk(&format!("{said}  Non-2xx or 3xx responses: 1\n")).is_err());
    }

    #[test]
    fn takt_is_read_from_its_last_phase() {
        let phase = |failed: u32| {
            format!(
                "{{\"phases\":[{{}},{{\"succeeded\":10,\"failed\":{failed},\"unanswered\":0,\
                 \"successful_per_s\":5.0}}]}}"
            )
        };
        let counted = counted_by_takt(&phase(0)).unwrap();
        assert_eq!(counted, Counted { requests: 10.0, per_s: 5.0 });
        assert!(counted_by_takt(&phase(1)).is_err());
    }
}
