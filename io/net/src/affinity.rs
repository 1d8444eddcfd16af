//! Which cores a thread may run on, and how it stands against others.
//!
//! A thread inherits the mask of the one that starts it. So a thread that is started after its parent
//! was pinned calls [`unpinned`] first, or it competes for the one core it must keep away from.

use std::fmt::Write as _;
use std::io;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A thread could not be pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The process may not run there: a container's or a scheduler's limit, or no such core.
    #[error("core {cpu} is not available to this process: it may run on {}", ranges(.allowed))]
    NotAllowed {
        /// The core asked for.
        cpu: usize,
        /// The cores that may be asked for, in order.
        allowed: Vec<usize>,
    },
    /// The operating system says no.
    #[error("cannot pin to core {cpu}: {error}")]
    Refused {
        /// The core asked for.
        cpu: usize,
        /// Its answer.
        error: io::Error,
    },
}

/// The cores that this thread may run on now, in order.
///
/// # Errors
/// When the mask cannot be read.
pub fn allowed() -> io::Result<Vec<usize>> {
    Ok(cores(&sched_getaffinity(None)?))
}

/// Pins this thread to one core, which must be among those the process was started with.
///
/// # Errors
/// [`PinError`], which names the cores that would do.
pub fn pin(cpu: usize) -> Result<(), PinError> {
    let refused = |error: rustix::io::Errno| PinError::Refused { cpu, error: error.into() };
    let now = sched_getaffinity(None).map_err(refused)?;
    let before = BEFORE_PINNING.get_or_init(|| now);
    // The same bound as in the mask: `is_set` must not be asked beyond it.
    if cpu >= CpuSet::MAX_CPU || !before.is_set(cpu) {
        return Err(PinError::NotAllowed { cpu, allowed: cores(before) });
    }
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).map_err(refused)
}

/// Keeps this thread, and those that it starts from now on, off these cores, so that whoever is pinned there
/// has them alone. Where no other core is allowed nothing changes.
///
/// # Errors
/// When the mask cannot be read or set.
pub fn keep_off(cpus: impl IntoIterator<Item = usize>) -> io::Result<()> {
    let now = sched_getaffinity(None)?;
    let mut others = *BEFORE_PINNING.get_or_init(|| now);
    for cpu in cpus.into_iter().filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        others.unset(cpu);
    }
    if others.count() > 0 {
        sched_setaffinity(None, &others)?;
    }
    Ok(())
}

/// Gives this thread back the mask that the process had before anything was pinned.
///
/// # Errors
/// When the mask cannot be set.
pub fn unpinned() -> io::Result<()> {
    match BEFORE_PINNING.get() {
        Some(before) => Ok(sched_setaffinity(None, before)?),
        None => Ok(()),
    }
}

/// Asks for precedence over other threads (nice -20, or as near to it as is allowed), and returns what
/// this thread has now. Best effort: mostly only root may, and the run is as valid without.
#[must_use]
pub fn raise_priority() -> Option<i32> {
    // On Linux the priority of "process 0" is that of the calling thread.
    for nice in [-20, -10, -5] {
        if rustix::process::setpriority_process(None, nice).is_ok() {
            break;
        }
    }
    rustix::process::getpriority_process(None).ok()
}

fn cores(mask: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|cpu| mask.is_set(*cpu)).collect()
}

/// `0-3, 8`.
fn ranges(cpus: &[usize]) -> String {
    let mut text = String::new();
    for run in cpus.chunk_by(|a, b| a + 1 == *b) {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = match *run {
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            [only] => write!(text, "{comma}{only}"),
            [] => Ok(()),
        };
    }
    text
}

static BEFORE_PINNING: OnceLock<CpuSet> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    /// Each test changes only the thread that the test runner gave it.
    fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap())
    }

    #[test]
    fn a_pinned_thread_may_run_on_that_core_alone_and_its_children_too_until_unpinned() {
        on_a_thread(|| {
            let before = allowed().unwrap();
            let cpu = *before.last().unwrap();
            pin(cpu).unwrap();
            assert_eq!(allowed().unwrap(), [cpu]);
            let (inherited, given_back) = on_a_thread(|| {
                let inherited = allowed().unwrap();
                unpinned().unwrap();
                (inherited, allowed().unwrap())
            });
            assert_eq!((inherited, given_back), (vec![cpu], before));
        });
    }

    #[test]
    fn a_thread_kept_off_a_core_has_the_others_and_may_still_be_pinned_there() {
        on_a_thread(|| {
            let before = allowed().unwrap();
            let (kept, rest) = before.split_last().unwrap();
            keep_off([*kept]).unwrap();
            let others = if rest.is_empty() { &before[..] } else { rest };
            assert_eq!(allowed().unwrap(), others);
            pin(*kept).unwrap();
            assert_eq!(allowed().unwrap(), [*kept]);
        });
    }

    #[test]
    fn a_core_that_is_not_there_is_refused_with_those_that_are() {
        for cpu in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let error = on_a_thread(|| pin(cpu)).unwrap_err();
            let allowed = ranges(&allowed().unwrap());
            assert!(error.to_string().ends_with(&format!("it may run on {allowed}")), "{error}");
        }
    }

    #[test]
    fn cores_in_a_row_are_printed_as_a_range() {
        for (cpus, text) in
            [(&[][..], ""), (&[3], "3"), (&[0, 1], "0-1"), (&[0, 2, 3, 4, 9], "0, 2-4, 9")]
        {
            assert_eq!(ranges(cpus), text);
        }
    }
}
