//! The file of a unix socket: taken only where nothing else is, and gone with its owner.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// The place of a socket that this process is about to bind. The file is removed on drop.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    /// Makes room at `path`: a socket that a killed run has left there is removed. One that somebody serves,
    /// and files, are left alone.
    ///
    /// # Errors
    /// `AddrInUse` when `path` is taken.
    pub(crate) fn claim(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            if !is_left_over(path) {
                // In the system's own words.
                return Err(Errno::ADDRINUSE.into());
            }
            std::fs::remove_file(path)?;
        }
        Ok(Self(path.to_owned()))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A socket that nobody serves: its process has gone without removing it.
pub(crate) fn is_left_over(path: &Path) -> bool {
    let is_socket = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    is_socket && knock(path) == Err(Errno::CONNREFUSED)
}

/// Whether somebody would answer. Does not wait, as one would for a process that is stopped.
fn knock(path: &Path) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_a_socket_that_nobody_serves_is_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let served = UnixListener::bind(at("served")).unwrap();
        // Dropped, it leaves its file, as a process that was killed does.
        drop(UnixListener::bind(at("left")).unwrap());
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink(at("left"), at("link")).unwrap();
        for (name, left) in
            [("served", false), ("left", true), ("file", false), ("link", false), ("none", false)]
        {
            assert_eq!(is_left_over(&at(name)), left, "{name}");
        }
        for name in ["served", "file", "link"] {
            let error = SocketFile::claim(&at(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{name}");
        }
        SocketFile::claim(&at("left")).unwrap();
        assert!(!at("left").exists());
        drop(served);
    }
}
