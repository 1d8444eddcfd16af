//! What the kernel and the hypervisor took from a thread: time it was ready to run and did not, switches
//! forced on it, time stolen from the machine. A run that reports lateness must be able to say which part
//! of it was not its own.
//!
//! Sources: `/proc/thread-self/schedstat` (`Documentation/scheduler/sched-stats.rst` of Linux),
//! `/proc/thread-self/status` and the `steal` field of `/proc/stat` (`proc(5)`). The files are opened once
//! and read again in place: a few microseconds each.

use std::fs::File;
use std::os::unix::fs::FileExt;

use takt_time::Span;

/// Reads the accounts of the thread that opened it, from whichever thread.
#[derive(Debug)]
pub struct Accounts {
    schedstat: Option<File>,
    status: Option<File>,
    stat: Option<File>,
}

/// Time of one thread, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// On a core.
    pub run: Span,
    /// Ready to run, but not on a core.
    pub wait: Span,
}

/// Context switches of one thread, since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// It slept.
    pub voluntary: u64,
    /// Something else was given its core.
    pub involuntary: u64,
}

impl Accounts {
    /// For the calling thread. What the system does not offer reads as `None` later.
    #[must_use]
    pub fn of_this_thread() -> Self {
        Self {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            status: File::open("/proc/thread-self/status").ok(),
            stat: File::open("/proc/stat").ok(),
        }
    }

    /// Time on a core and time waiting for one.
    #[must_use]
    pub fn cpu_time(&self) -> Option<CpuTime> {
        read(self.schedstat.as_ref()?, cpu_time)
    }

    /// Context switches.
    #[must_use]
    pub fn switches(&self) -> Option<Switches> {
        read(self.status.as_ref()?, switches)
    }

    /// Time that the hypervisor gave to others while cores of this machine were ready to run, summed over
    /// all cores, in steps of 10 ms. Dearer than the others: the kernel makes up the whole file.
    #[must_use]
    pub fn steal(&self) -> Option<Span> {
        read(self.stat.as_ref()?, |text| steal(text, rustix::param::clock_ticks_per_second()))
    }
}

impl CpuTime {
    /// What was added since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let less = |a: Span, b: Span| Span::from_nanos(a.as_nanos().saturating_sub(b.as_nanos()));
        Self { run: less(self.run, earlier.run), wait: less(self.wait, earlier.wait) }
    }
}

impl Switches {
    /// What was added since an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

/// All that is wanted stands within the first 4 KiB of each file.
fn read<T>(file: &File, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let mut buf = [0; 4_096];
    let bytes = file.read_at(&mut buf, 0).ok()?;
    // A cut within a character cannot happen: these files are ASCII.
    parse(std::str::from_utf8(&buf[..bytes]).ok()?)
}

/// `run wait slices`, the first two in nanoseconds.
fn cpu_time(text: &str) -> Option<CpuTime> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let run = Span::from_nanos(fields.next()?.ok()?);
    let wait = Span::from_nanos(fields.next()?.ok()?);
    Some(CpuTime { run, wait })
}

fn switches(text: &str) -> Option<Switches> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(Switches {
        voluntary: field("voluntary_ctxt_switches:")?,
        involuntary: field("nonvoluntary_ctxt_switches:")?,
    })
}

/// `cpu user nice system idle iowait irq softirq steal ...` in clock ticks.
fn steal(text: &str, ticks_per_second: u64) -> Option<Span> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: u64 = line.split_ascii_whitespace().nth(7)?.parse().ok()?;
    let tick = Span::from_secs(1).as_nanos().checked_div(ticks_per_second)?;
    Some(Span::from_nanos(ticks.saturating_mul(tick)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_formats_are_understood() {
        let run_wait = cpu_time("672288 4000 1\n").unwrap();
        assert_eq!((run_wait.run.as_nanos(), run_wait.wait.as_nanos()), (672_288, 4_000));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t15\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(switches(status), Some(Switches { voluntary: 15, involuntary: 2 }));
        let stat = "cpu  49294 0 13182 205122 663 0 3205 28 0 0\ncpu0 1 2 3\n";
        assert_eq!(steal(stat, 100), Some(Span::from_millis(280)));
    }

    #[test]
    fn what_is_not_there_reads_as_none() {
        assert_eq!(cpu_time(""), None);
        assert_eq!(switches("voluntary_ctxt_switches:\tmany"), None);
        assert_eq!(steal("cpu  1 2 3\n", 100), None);
    }

    #[test]
    fn differences_never_go_below_zero() {
        let (few, many) =
            (Switches { voluntary: 1, involuntary: 5 }, Switches { voluntary: 4, involuntary: 5 });
        assert_eq!(many.since(few), Switches { voluntary: 3, involuntary: 0 });
        assert_eq!(few.since(many), Switches::default());
    }

    #[test]
    fn a_thread_that_works_gathers_time() {
        let accounts = Accounts::of_this_thread();
        let Some(before) = accounts.cpu_time() else { return };
        while accounts.cpu_time().unwrap().since(before).run == Span::ZERO {}
    }
}
