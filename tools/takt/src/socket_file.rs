//! The file of a unix socket: taken only where nothing else is, and gone with its owner.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

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
        if let Ok(meta) = path.symlink_metadata() {
            let stale = meta.file_type().is_socket() && UnixStream::connect(path).is_err();
            if !stale {
                // In the system's own words.
                return Err(rustix::io::Errno::ADDRINUSE.into());
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
