//! CPU time of this process, and what a stretch of work spent of it.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// User and system time of a process so far, as `getrusage(2)` accounts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in user space.
    pub user: Duration,
    /// Time in the kernel on the process's behalf.
    pub sys: Duration,
}

impl CpuTime {
    /// What this process has used since it started.
    ///
    /// # Errors
    /// The kernel refuses the question, which it does not for one's own process.
    pub fn of_this_process() -> std::io::Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)?;
        Ok(Self { user: duration(usage.user_time()), sys: duration(usage.system_time()) })
    }
}

/// A running measurement: from [`Spent::start`] to [`Spent::line`].
#[derive(Debug)]
pub struct Spent {
    began: Instant,
    cpu: CpuTime,
}

impl Spent {
    /// Starts the measurement now.
    ///
    /// # Errors
    /// As [`CpuTime::of_this_process`].
    pub fn start() -> std::io::Result<Self> {
        Ok(Self { began: Instant::now(), cpu: CpuTime::of_this_process()? })
    }

    /// When the measurement began.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// One line of JSON: what `program` did with `connections` in `requests` exchanges, in
    /// requests per second and in microseconds of CPU time per request.
    ///
    /// # Errors
    /// As [`CpuTime::of_this_process`].
    pub fn line(
        &self,
        program: &str,
        connections: usize,
        requests: u64,
    ) -> std::io::Result<String> {
        let elapsed = self.began.elapsed();
        let now = CpuTime::of_this_process()?;
        Ok(json(program, connections, requests, elapsed, self.cpu, now))
    }
}

fn json(
    program: &str,
    connections: usize,
    requests: u64,
    elapsed: Duration,
    before: CpuTime,
    after: CpuTime,
) -> String {
    let seconds = elapsed.as_secs_f64();
    let per_s = requests as f64 / seconds;
    let each_us = |spent: Duration| spent.as_secs_f64() * 1e6 / requests.max(1) as f64;
    let user_us = each_us(after.user.saturating_sub(before.user));
    let sys_us = each_us(after.sys.saturating_sub(before.sys));
    let cpu_us = user_us + sys_us;
    format!(
        "{{\"program\":\"{program}\",\"connections\":{connections},\"requests\":{requests},\
         \"seconds\":{seconds:.3},\"requests_per_s\":{per_s:.1},\
         \"cpu_us_per_request\":{cpu_us:.3},\"user_us_per_request\":{user_us:.3},\
         \"sys_us_per_request\":{sys_us:.3}}}"
    )
}

fn duration(at: TimeVal) -> Duration {
    let secs = u64::try_from(at.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(at.tv_usec()).unwrap_or(0);
    Duration::from_secs(secs) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_shared_out_over_the_requests() {
        let before = CpuTime { user: Duration::from_millis(5), sys: Duration::from_millis(10) };
        let after = CpuTime { user: Duration::from_millis(7), sys: Duration::from_millis(18) };
        let line = json("p", 64, 1000, Duration::from_secs(2), before, after);
        // 2 ms of user time and 8 ms of system time over 1,000 requests in 2 s.
        assert!(line.contains("\"requests_per_s\":500.0"), "{line}");
        assert!(line.contains("\"user_us_per_request\":2.000"), "{line}");
        assert!(line.contains("\"sys_us_per_request\":8.000"), "{line}");
        assert!(line.contains("\"cpu_us_per_request\":10.000"), "{line}");
    }

    #[test]
    fn nothing_done_is_no_division_by_zero() {
        let none = CpuTime::default();
        assert!(json("p", 1, 0, Duration::from_secs(1), none, none).contains("\"requests\":0"));
    }
}
