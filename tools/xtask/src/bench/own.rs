//! Programs of ours that a benchmark starts, and what the kernel says of them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

/// Builds takt.
pub(super) fn build(root: &Path, profile: &str) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "takt"]).current_dir(root);
    if profile == "release" {
        command.arg("--release");
    }
    ensure!(command.status()?.success(), "takt does not build");
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
        let mut command = Command::new(program);
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
}

/// A folder that is removed with its contents.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("takt-bench-{}", std::process::id()));
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
