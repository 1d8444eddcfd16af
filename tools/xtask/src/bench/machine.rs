//! What the machine was doing meanwhile, from `/proc`.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

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
    // The command's name, in brackets, may hold blanks. Behind it, utime and stime are the 12th and
    // 13th fields (proc(5)).
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(2).filter_map(|t| t.parse().ok()).collect();
    match ticks[..] {
        [user, system] => Ok((user + system) / TICKS_PER_S),
        _ => bail!("{path} is not as proc(5) has it"),
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
    fn own_cpu_time_can_be_read() {
        assert!(cpu_s_of(std::process::id()).unwrap() >= 0.0);
    }
}
