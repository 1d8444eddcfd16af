//! Programs of ours that a benchmark starts, and what the kernel says of them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::spent::Spent;
use super::{bound, machine, said, spent};

/// Builds takt and the floor, always together: cargo unites the features of what it builds at once, and every
/// benchmark that runs takt has to measure the same program. What is built by itself ([`cargo`]) has the features
/// that it asks for alone.
pub(super) fn build(root: &Path, profile: &str) -> anyhow::Result<()> {
    cargo(root, profile, &["-p", "takt", "-p", "takt-bench"])
}

/// `cargo build` of `words`, with the versions that are locked.
pub(super) fn cargo(root: &Path, profile: &str, words: &[&str]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--locked"]).args(words).current_dir(root);
    if profile == "release" {
        command.arg("--release");
    }
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "cargo build {} failed", words.join(" "));
    Ok(())
}

/// `VmRSS` of a process; `None` when it is gone.
pub(super) fn resident_kib(pid: u32) -> Option<u64> {
    resident(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// A process that does not outlive its owner.
pub(super) struct Stopped(pub(super) Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `takt mock` on a port of its own.
pub(super) struct Mock {
    pub(super) url: String,
    process: Stopped,
}

impl Mock {
    pub(super) fn start(program: &Path, args: &[&str]) -> anyhow::Result<Self> {
        let mut command = bound(program);
        command.args(["mock", "--listen", "127.0.0.1:0"]).args(args);
        let mut process = Stopped(command.stdout(Stdio::piped()).spawn().context("starting takt")?);
        let stdout = process.0.stdout.take().context("the server has no output")?;
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line)?;
        let address =
            line.trim().strip_prefix("listening on ").context("the server says no address")?;
        let scheme = if args.contains(&"--tls-cert") { "https" } else { "http" };
        Ok(Self { url: format!("{scheme}://{address}"), process })
    }
}

impl Mock {
    /// Its resident memory.
    pub(super) fn resident_kib(&self) -> Option<u64> {
        resident_kib(self.process.0.id())
    }

    /// CPU time it has used so far, in seconds.
    pub(super) fn cpu_s(&self) -> anyhow::Result<f64> {
        machine::cpu_s_of(self.process.0.id())
    }

    /// Requests that it has answered with 200 so far, by its own count.
    pub(super) fn answered(&self) -> anyhow::Result<u64> {
        let at = self.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(at).context("asking the server for its counts")?;
        write!(socket, "GET /metrics HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n")?;
        let mut page = String::new();
        socket.read_to_string(&mut page)?;
        said::by_mock(&page)
    }
}

/// A run of takt, and its result.
pub(super) struct TaktRun {
    pub(super) spent: Spent,
    pub(super) result: Value,
}

impl TaktRun {
    /// `run ARGS` of the `command` that is takt, against `server`; `more` are further flags of the user's. A request that
    /// fails is an error.
    pub(super) fn of(
        mut command: Command,
        server: &Mock,
        args: &[&str],
        more: &[String],
    ) -> anyhow::Result<Self> {
        let folder = Scratch::new()?;
        let out = folder.path().join("said.json");
        command
            .args(["run", "--url", &server.url, "--out", "out", "--format", "json", "--quiet"])
            .args(args)
            .args(more)
            .current_dir(folder.path());
        let spent = spent::run(&mut command, &out, || server.cpu_s())?;
        let text = std::fs::read_to_string(&out)?;
        ensure!(spent.status.success(), "takt ended with {}: {text}", spent.status);
        said::by_takt(&text)?;
        Ok(Self { spent, result: serde_json::from_str(&text)? })
    }

    /// A key of its last phase.
    pub(super) fn phase(&self, key: &str) -> &Value {
        let phases = self.result["phases"].as_array();
        phases.and_then(|phases| phases.last()).map_or(&Value::Null, |phase| &phase[key])
    }

    /// Requests that succeeded.
    pub(super) fn succeeded(&self) -> f64 {
        self.phase("succeeded").as_f64().unwrap_or(0.0)
    }

    /// `valid`, `suspect` or `invalid`.
    pub(super) fn verdict(&self) -> &str {
        said::verdict(&self.result)
    }
}

/// A folder that is removed with its contents.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> anyhow::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("takt-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in the folder of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(resident("Name:\ttakt\nVmRSS:\t   12345 kB\nThreads:\t3\n"), Some(12_345));
        assert_eq!(resident("Name:\ttakt\n"), None);
        assert!(resident_kib(std::process::id()).is_some_and(|kib| kib > 100));
    }
}
