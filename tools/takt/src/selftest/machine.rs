//! What else the machine was doing, from `/proc` (`proc(5)`).
//!
//! Time in interrupts is left out: on loopback it is that of the run itself, charged to nobody.

use std::time::Instant;

use serde::Serialize;
use takt_report::Limits;

/// A reading of the machine's accounts, in seconds of one core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accounts {
    at: Instant,
    busy: f64,
    stolen: f64,
    own: f64,
}

/// What others had of the machine between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Others {
    /// Of one core, by programs that do not belong to the test.
    pub(super) cores: f64,
    /// Of one core, by the hypervisor for other guests.
    pub(super) stolen: f64,
}

impl Accounts {
    /// Now; `None` where the system does not tell.
    pub(super) fn now() -> Option<Self> {
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let (busy, stolen) = totals(&std::fs::read_to_string("/proc/stat").ok()?)?;
        let own = own(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
        let at = Instant::now();
        Some(Self { at, busy: busy / ticks, stolen: stolen / ticks, own: own / ticks })
    }

    /// What others had since `self`.
    pub(super) fn since(self) -> Option<Others> {
        let now = Self::now()?;
        let wall = now.at.duration_since(self.at).as_secs_f64().max(0.01);
        let others = (now.busy - self.busy) - (now.own - self.own);
        Some(Others {
            cores: (others / wall).max(0.0),
            stolen: ((now.stolen - self.stolen) / wall).max(0.0),
        })
    }
}

impl Others {
    /// Why nothing measured meanwhile is to be believed.
    pub(super) fn disturb(&self) -> Option<String> {
        if self.cores > OTHERS_MAX {
            return Some(format!("other programs had {:.0} % of a core", self.cores * 100.0));
        }
        (self.stolen > Limits::default().stolen)
            .then(|| format!("the hypervisor took {:.0} % of a core", self.stolen * 100.0))
    }
}

/// `cpu user nice system …  steal` in ticks: what programs had, and what was stolen.
fn totals(stat: &str) -> Option<(f64, f64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_ascii_whitespace().map_while(|t| t.parse().ok()).collect();
    Some((ticks.get(..3)?.iter().sum(), *ticks.get(7)?))
}

/// Ticks of this process and of its children that were waited for: the fields `utime` to `cstime`.
fn own(stat: &str) -> Option<f64> {
    // The name may hold blanks and brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> =
        fields.split_ascii_whitespace().skip(11).take(4).map_while(|t| t.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum())
}

/// More of one core than this, and a tail of latenesses is theirs.
const OTHERS_MAX: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_formats_are_understood() {
        let stat = "cpu  100 20 30 9999 7 1 50 8 0 0\ncpu0 1 2 3\n";
        assert_eq!(totals(stat), Some((150.0, 8.0)));
        let own_stat = "7 (a (b) c) S 1 1 1 0 -1 4194560 1 2 3 4 10 20 3 4 20 0 1 0";
        assert_eq!(own(own_stat), Some(37.0));
        assert_eq!((totals("cpu  1 2"), own("7 (x) S 1")), (None, None));
    }

    #[test]
    fn others_disturb_above_their_limits() {
        let others = |cores, stolen| Others { cores, stolen }.disturb();
        assert_eq!(others(0.05, 0.005), None);
        assert_eq!(others(0.5, 0.0).as_deref(), Some("other programs had 50 % of a core"));
        assert_eq!(others(0.0, 0.02).as_deref(), Some("the hypervisor took 2 % of a core"));
    }
}
