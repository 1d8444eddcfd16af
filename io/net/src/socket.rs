//! Opening sockets: what a [`Target`] becomes. Everything is non-blocking and closed on exec.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};
use takt_engine::Target;

use crate::slots::{Family, Listener};
use crate::sys;

/// An attempt to connect.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) fd: OwnedFd,
    pub(crate) family: Family,
    pub(crate) outcome: Outcome,
}

/// What is known about an attempt when `connect` has returned.
#[derive(Debug)]
pub(crate) enum Outcome {
    UnderWay,
    Connected,
    Failed(ErrorKind),
}

/// The file of a listening unix socket. Dropping it removes the file, if it is still the same one.
#[derive(Debug)]
pub(crate) struct UnixSocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Begins a connection. A peer that refuses is an outcome; an error means that no attempt was made.
pub(crate) fn connect(target: &Target) -> io::Result<Attempt> {
    let (family, address) = address_of(target)?;
    let socket = open(&address, family)?;
    if let Target::Tcp { to, from } | Target::Tls { to, from, .. } = target {
        socket.set_tcp_nodelay(true)?;
        if let Some(from) = from {
            bind_source(&socket, *to, *from)?;
        }
    }
    let outcome = match socket.connect(&address) {
        Ok(()) => Outcome::Connected,
        Err(e) if is_no_attempt(&e, family) => return Err(e),
        Err(e) if Errno::from_io_error(&e) == Some(Errno::INPROGRESS) => Outcome::UnderWay,
        Err(e) => Outcome::Failed(e.kind()),
    };
    Ok(Attempt { fd: socket.into(), family, outcome })
}

/// Opens a listening socket. A unix socket file that nobody listens on any more is replaced.
pub(crate) fn listen(at: &Target) -> io::Result<Listener> {
    if let Target::Tcp { from: Some(_), .. } | Target::Tls { from: Some(_), .. } = at {
        let why = "a listener has no source address: leave `from` empty";
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let (family, address) = address_of(at)?;
    let socket = open(&address, family)?;
    let file = match at {
        Target::Tcp { .. } | Target::Tls { .. } => {
            // Otherwise a port stays taken for a minute after a server that closed its connections.
            socket.set_reuse_address(true)?;
            socket.bind(&address)?;
            None
        }
        Target::Unix(path) => {
            bind_path(&socket, &address, path)?;
            Some(UnixSocketFile::at(path)?)
        }
    };
    socket.listen(BACKLOG)?;
    let tls = match at {
        Target::Tls { layer, .. } => Some(layer.config),
        Target::Tcp { .. } | Target::Unix(_) => None,
    };
    Ok(Listener { fd: socket.into(), family, tls, _file: file })
}

impl UnixSocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        let (device, inode) = identity(path)?;
        Ok(Self { path: path.to_owned(), device, inode })
    }
}

impl Drop for UnixSocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|id| id == (self.device, self.inode)) {
            // A file that cannot be removed does no harm: the next listener replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

fn address_of(target: &Target) -> io::Result<(Family, SockAddr)> {
    Ok(match target {
        Target::Tcp { to, .. } | Target::Tls { to, .. } => (Family::Tcp, (*to).into()),
        Target::Unix(path) => (Family::Unix, SockAddr::unix(path)?),
    })
}

fn open(address: &SockAddr, family: Family) -> io::Result<Socket> {
    let domain = match family {
        Family::Tcp => address.domain(),
        Family::Unix => Domain::UNIX,
    };
    Socket::new(domain, Type::STREAM.nonblocking(), None)
}

fn bind_source(socket: &Socket, to: SocketAddr, from: IpAddr) -> io::Result<()> {
    if to.is_ipv4() != from.is_ipv4() {
        let why = format!("source address {from} and destination {to} are of different families");
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    sys::bind_address_no_port(socket.as_fd())?;
    socket.bind(&SocketAddr::new(from, 0).into())
}

fn bind_path(socket: &Socket, address: &SockAddr, path: &Path) -> io::Result<()> {
    let error = match socket.bind(address) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    if error.kind() != ErrorKind::AddrInUse || !is_socket {
        return Err(error);
    }
    let probe = open(address, Family::Unix)?.connect(address);
    if probe.is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused) {
        std::fs::remove_file(path)?;
        return socket.bind(address);
    }
    Err(error)
}

/// Whether `connect` failed on this side, for want of something, before a peer was asked.
fn is_no_attempt(error: &io::Error, family: Family) -> bool {
    match Errno::from_io_error(error) {
        // A TCP socket without a free port; on a unix socket the listener's queue is full.
        Some(Errno::AGAIN) => family == Family::Tcp,
        Some(
            Errno::ADDRNOTAVAIL
            | Errno::AFNOSUPPORT
            | Errno::INVAL
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOBUFS
            | Errno::NOMEM,
        ) => true,
        _ => false,
    }
}

/// The kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 4_096;
