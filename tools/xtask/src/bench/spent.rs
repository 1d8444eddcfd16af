//! One run of a client, and what the kernel says it took.
//!
//! CPU time is the kernel's account of children that were waited for, so a client's own children count as far as it
//! waited for them itself; what it did not wait for shows among the others.

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::machine::CpuTotals;
use super::threads::Threads;

/// What a run took.
#[derive(Debug)]
pub(super) struct Spent {
    pub(super) status: ExitStatus,
    /// CPU time of the client and of the children it waited for.
    pub(super) cpu: Cpu,
    /// CPU time of the server meanwhile, in seconds.
    pub(super) server_s: f64,
    /// Share of all cores' time that neither client nor server used.
    pub(super) others: f64,
    /// Share of all cores' time that the machine's host took away.
    pub(super) stolen: f64,
    /// The last look at its threads.
    pub(super) threads: Threads,
}

/// User and system time, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cpu {
    pub(super) user_s: f64,
    pub(super) sys_s: f64,
}

impl Cpu {
    /// Of all children that were waited for so far.
    pub(super) fn of_children() -> anyhow::Result<Self> {
        Self::of(UsageWho::RUSAGE_CHILDREN)
    }

    /// Of this process so far, without its children.
    pub(super) fn of_self() -> anyhow::Result<Self> {
        Self::of(UsageWho::RUSAGE_SELF)
    }

    fn of(who: UsageWho) -> anyhow::Result<Self> {
        let usage = getrusage(who)?;
        let s = |micros: i64| micros as f64 / 1e6;
        Ok(Self {
            user_s: s(usage.user_time().num_microseconds()),
            sys_s: s(usage.system_time().num_microseconds()),
        })
    }

    /// From `earlier` to this.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self { user_s: self.user_s - earlier.user_s, sys_s: self.sys_s - earlier.sys_s }
    }

    /// Both together.
    pub(super) fn all_s(self) -> f64 {
        self.user_s + self.sys_s
    }
}

/// Runs `command` to its end; what it prints goes to `out`. `server_s` is the server's CPU time so far.
pub(super) fn run(
    command: &mut Command,
    out: &Path,
    server_s: impl Fn() -> anyhow::Result<f64>,
) -> anyhow::Result<Spent> {
    let (machine, server_before) = (CpuTotals::now()?, server_s()?);
    let before = Cpu::of_children()?;
    let file = File::create(out).with_context(|| format!("making {}", out.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .spawn()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    let mut threads = Threads::default();
    let mut sampled = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if sampled.elapsed() >= SAMPLE_EVERY {
            threads.sample(child.id());
            sampled = Instant::now();
        }
        std::thread::sleep(LOOK_EVERY);
    };
    // The server is a child too, but one that is not waited for until it is stopped.
    let cpu = Cpu::of_children()?.since(before);
    let server_s = server_s()? - server_before;
    let machine = CpuTotals::now()?.since(machine);
    let others_s = machine.busy_s - server_s - cpu.all_s();
    Ok(Spent {
        status,
        cpu,
        server_s,
        others: (others_s / machine.all_s).max(0.0),
        stolen: machine.stolen_s / machine.all_s,
        threads,
    })
}

/// How often the threads of a running client are looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// How often a running client is asked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU time of a shell whose child runs `script`.
    fn of_a_childs_child(script: &str) -> f64 {
        let out = std::env::temp_dir().join(format!("takt-spent-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", &format!("sh -c '{script}'; echo done")]);
        let spent = run(&mut command, &out, || Ok(0.0)).unwrap();
        let said = std::fs::read_to_string(&out).unwrap();
        std::fs::remove_file(&out).unwrap();
        assert!(spent.status.success());
        assert_eq!(said, "200000\ndone\n");
        spent.cpu.all_s()
    }

    #[test]
    fn the_time_of_a_childs_child_counts() {
        // The account is one of all children, so the children of other tests must not be there.
        if std::env::var_os(ALONE).is_none() {
            let name = "bench::spent::tests::the_time_of_a_childs_child_counts";
            let mut command = Command::new(std::env::current_exe().unwrap());
            let out = command.args(["--exact", name]).env(ALONE, "yes").output().unwrap();
            let said = String::from_utf8_lossy(&out.stdout);
            assert!(out.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let little = of_a_childs_child("echo 200000");
        let loop_ = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i";
        let much = of_a_childs_child(loop_);
        assert!(much > little * 3.0, "{much} s beside {little} s");
    }

    /// Set where a test runs in a process of its own.
    const ALONE: &str = "TAKT_XTASK_TEST_ALONE";
}
