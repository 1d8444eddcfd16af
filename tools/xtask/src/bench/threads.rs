//! CPU time of a running program by thread.
//!
//! The kernel's closing account (`wait4`) knows a process as a whole. Its threads are looked at while it
//! runs; the last look gives the shares into which the account is split.

use std::collections::BTreeMap;
use std::fmt;

use super::machine::TaskStat;

/// The last look at each thread, by thread id.
#[derive(Debug, Default)]
pub(super) struct Threads {
    seen: BTreeMap<u32, TaskStat>,
}

impl Threads {
    /// Looks at the threads of process `pid`; what has ended meanwhile keeps its last look.
    pub(super) fn sample(&mut self, pid: u32) {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
        for task in tasks.flatten() {
            let Some(id) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let text = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            if let Some(stat) = TaskStat::parse(&text) {
                self.seen.insert(id, stat);
            }
        }
    }

    /// `cpu_us` (a request's CPU time) split among the threads as their times were; threads with less
    /// than one per cent of it are left out.
    pub(super) fn shares(&self, cpu_us: f64) -> Vec<ThreadShare> {
        let all_s: f64 = self.seen.values().map(|stat| stat.user_s + stat.sys_s).sum();
        let share = |s: f64| cpu_us * s / all_s;
        self.seen
            .values()
            .filter(|stat| stat.user_s + stat.sys_s > all_s / 100.0)
            .map(|stat| ThreadShare {
                name: stat.name.clone(),
                user_us: share(stat.user_s),
                sys_us: share(stat.sys_s),
            })
            .collect()
    }
}

/// What one thread used of a request's CPU time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ThreadShare {
    name: String,
    user_us: f64,
    sys_us: f64,
}

impl fmt::Display for ThreadShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, user_us, sys_us } = self;
        write!(f, "{name} {:.2} ({user_us:.2} + {sys_us:.2})", user_us + sys_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_split_as_the_threads_times_were() {
        let stat = |name: &str, user_s, sys_s| TaskStat { name: name.into(), user_s, sys_s };
        let threads = Threads {
            seen: [(1, stat("reactor", 1.0, 2.0)), (2, stat("recorder", 1.0, 0.0))].into(),
        };
        let shares = threads.shares(8.0);
        assert_eq!(shares[0], ThreadShare { name: "reactor".into(), user_us: 2.0, sys_us: 4.0 });
        assert_eq!(shares[1], ThreadShare { name: "recorder".into(), user_us: 2.0, sys_us: 0.0 });
        assert!(Threads::default().shares(8.0).is_empty());
    }
}
