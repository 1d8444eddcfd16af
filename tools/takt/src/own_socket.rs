//! The sockets between a run and the processes that belong to it: where they are, and what becomes of those
//! that a killed run could not remove.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::socket_file::is_left_over;

/// What such a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Blocks to the aggregator.
    Feed,
    /// Arrivals from the pacer.
    Pacer,
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Pacer => "pacer",
        }
    }
}

/// The address for the run with this session id: nobody else has it.
pub(crate) fn address(session_id: &str, purpose: Purpose) -> String {
    let path = std::env::temp_dir().join(format!("{PREFIX}{session_id}.{}", purpose.word()));
    format!("ipc://{}", path.display())
}

/// Removes what killed runs have left.
pub(crate) fn sweep() {
    sweep_in(&std::env::temp_dir(), SystemTime::now());
}

/// Removes from `folder` the sockets of takt's own kind that nobody serves. Whatever cannot be looked at or
/// removed stays: it is somebody else's.
fn sweep_in(folder: &Path, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let entries = entries.take(ENTRIES_MAX).filter_map(Result::ok);
    let ours = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    for path in ours.map(|entry| entry.path()).filter(|path| is_old(path, now)) {
        if is_left_over(&path) {
            // Another run may sweep at the same time.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A name that [`address`] gives.
fn is_ours(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(id, word)| {
        let id = id.len() == 32 && id.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        id && [Purpose::Feed, Purpose::Pacer].iter().any(|purpose| purpose.word() == word)
    })
}

/// Between bind and listen a socket looks as one that nobody serves.
fn is_old(path: &PathBuf, now: SystemTime) -> bool {
    let made = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
    made.is_ok_and(|made| now.duration_since(made).is_ok_and(|age| age >= YOUNG))
}

const PREFIX: &str = "takt-";
/// A socket is bound and listens within much less.
const YOUNG: Duration = Duration::from_secs(10);
/// Entries of a folder that are looked at.
const ENTRIES_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_is_swept_is_of_its_own_kind_old_and_served_by_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let id = "0123456789abcdef0123456789abcdef";
        let name = |purpose| {
            let address = address(id, purpose);
            address.rsplit('/').next().unwrap().to_owned()
        };
        let ours = [name(Purpose::Feed), name(Purpose::Pacer)];
        let others = [
            format!("takt-{id}.events"),
            format!("takt-{id}.feed.txt"),
            format!("takt-{}.feed", &id[1..]),
            format!("takt-{}.feed", id.to_uppercase()),
            format!("other-{id}.feed"),
        ];
        for name in ours.iter().chain(&others) {
            drop(UnixListener::bind(at(name)).unwrap());
        }
        let served = format!("takt-{}.feed", id.replace('0', "1"));
        let listener = UnixListener::bind(at(&served)).unwrap();
        let file = format!("takt-{}.feed", id.replace('0', "2"));
        std::fs::write(at(&file), "").unwrap();
        let there = |names: &[String]| names.iter().filter(|name| at(name).exists()).count();

        sweep_in(folder.path(), SystemTime::now());
        assert_eq!(there(&ours), 2, "young ones stay");
        sweep_in(folder.path(), SystemTime::now() + YOUNG);
        assert_eq!(there(&ours), 0);
        assert_eq!(there(&others), others.len());
        assert_eq!(there(&[served, file]), 2);
        drop(listener);
    }
}
