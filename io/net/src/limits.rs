//! What the operating system allows this process: open files, ports to connect from, room on a disk.

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit of open files of this process. `u64::MAX` stands for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// What counts.
    pub soft: u64,
    /// What the soft limit may be raised to.
    pub hard: u64,
}

/// Raises the soft limit of open files to the hard one, and returns what holds then.
///
/// # Errors
/// When the operating system refuses what it should allow.
pub fn raise_open_files() -> io::Result<OpenFiles> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    Ok(OpenFiles { soft: current.unwrap_or(u64::MAX), hard: maximum.unwrap_or(u64::MAX) })
}

/// Bytes that this process may still write to the disk of `path`; `None` when that cannot be told.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    // Some file systems have no size of their own and say zero to everything.
    (disk.f_blocks > 0).then(|| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The ports from which outgoing connections of one source address to one destination are made
/// (`net.ipv4.ip_local_port_range`); `None` when that cannot be read.
#[must_use]
pub fn ephemeral_ports() -> Option<RangeInclusive<u16>> {
    port_range(&std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

fn port_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut fields = text.split_ascii_whitespace();
    let first = fields.next()?.parse().ok()?;
    let last = fields.next()?.parse().ok()?;
    Some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_raised_to_the_hard_limit() {
        let limit = raise_open_files().unwrap();
        assert_eq!(limit.soft, limit.hard);
    }

    #[test]
    fn a_disk_has_room_and_what_is_not_there_has_none_to_tell() {
        assert!(free_bytes(Path::new("/")).is_some());
        assert_eq!(free_bytes(Path::new("/no such place")), None);
    }

    #[test]
    fn a_port_range_is_two_numbers() {
        assert_eq!(port_range("32768\t60999\n"), Some(32_768..=60_999));
        for wrong in ["", "1024", "a b", "1 70000"] {
            assert_eq!(port_range(wrong), None, "{wrong:?}");
        }
    }
}
