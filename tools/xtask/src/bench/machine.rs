//! What the machine was doing meanwhile, from `/proc`.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Of both cores together; more than this and a number means nothing.
pub(super) const OTHERS_MAX: f64 = 0.03;

/// Clock ticks a second in `/proc`: fixed by the kernel's interface.
const TICKS_PER_S: f64 = 100.0;

/// Time of all cores since the start of the machine, in seconds, as `/proc/stat` has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CpuTotals {
    /// Running something: user, nice, system, interrupts.
    pub(super) busy_s: f64,
    /// Taken away by the host of this virtual machine.
    pub(super) stolen_s: f64,
    /// All of it: busy, stolen, idle.
    pub(super) all_s: f64,
}

impl CpuTotals {
    pub(super) fn now() -> anyhow::Result<Self> {
        let text = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        Self::parse(&text).context("/proc/stat has no line of totals")
    }

    /// The first line: `cpu user nice system idle iowait irq softirq steal guest guest_nice`
    /// (proc(5)); guest time is within user time already.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = line.split_whitespace().filter_map(|t| t.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        Some(Self {
            busy_s: busy / TICKS_PER_S,
            stolen_s: steal / TICKS_PER_S,
            all_s: (busy + steal + idle + iowait) / TICKS_PER_S,
        })
    }

    /// From `earlier` to this reading.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            busy_s: self.busy_s - earlier.busy_s,
            stolen_s: self.stolen_s - earlier.stolen_s,
            all_s: self.all_s - earlier.all_s,
        }
    }
}

/// User and system time of process `pid` so far, in seconds.
pub(super) fn cpu_s_of(pid: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let stat =
        TaskStat::parse(&text).with_context(|| format!("{path} is not as proc(5) has it"))?;
    Ok(stat.user_s + stat.sys_s)
}

/// What `/proc` says of one process or thread.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TaskStat {
    pub(super) name: String,
    pub(super) user_s: f64,
    pub(super) sys_s: f64,
}

impl TaskStat {
    /// Reads `pid (name) state …`. The name may hold blanks and brackets; behind it, `utime` and `stime`
    /// are the 12th and 13th fields (proc(5)).
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (before, fields) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
        let user_s = ticks.next()?.ok()? / TICKS_PER_S;
        let sys_s = ticks.next()?.ok()? / TICKS_PER_S;
        Some(Self { name: name.to_owned(), user_s, sys_s })
    }
}

/// How quiet the machine was just before a benchmark.
#[derive(Debug)]
pub(super) struct Quiet {
    load: String,
    busy: f64,
}

impl Quiet {
    /// Samples second by second until the machine is quiet, or for `patience_s` seconds at most.
    pub(super) fn wait(patience_s: u32) -> anyhow::Result<Self> {
        let began = Instant::now();
        loop {
            let before = CpuTotals::now()?;
            std::thread::sleep(Duration::from_secs(1));
            let passed = CpuTotals::now()?.since(before);
            let load = std::fs::read_to_string("/proc/loadavg").context("reading /proc/loadavg")?;
            let quiet = Self {
                load: load.split(' ').next().unwrap_or_default().to_owned(),
                busy: passed.busy_s / passed.all_s,
            };
            if quiet.is_quiet() || began.elapsed().as_secs() >= u64::from(patience_s) {
                return Ok(quiet);
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.busy <= OTHERS_MAX
    }
}

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict =
            if self.is_quiet() { "quiet" } else { "NOT QUIET: do not believe what follows" };
        let Self { load, busy } = self;
        write!(f, "machine: load {load}, {:.1} % busy before the start: {verdict}", busy * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_the_sums_of_their_columns() {
        let totals = CpuTotals::parse("cpu  100 10 200 1000 50 5 15 20 7 0\ncpu0 1 2\n").unwrap();
        assert_eq!(totals.busy_s, 3.3);
        assert_eq!(totals.stolen_s, 0.2);
        assert_eq!(totals.all_s, 14.0);
        assert_eq!(CpuTotals::parse("intr 5\n"), None);
    }

    #[test]
    fn a_task_is_read_behind_its_name() {
        let stat = TaskStat::parse("7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 150 250 0 0 20").unwrap();
        assert_eq!(stat, TaskStat { name: "a (b) c".into(), user_s: 1.5, sys_s: 2.5 });
        assert_eq!(TaskStat::parse("7 (a) S 1"), None);
    }

    #[test]
    fn own_cpu_time_can_be_read() {
        assert!(cpu_s_of(std::process::id()).unwrap() >= 0.0);
    }
}
