//! From a name to an address that answers. Blocking: for before a run starts, never within it.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use takt_time::Span;

/// An address that took a connection.
#[derive(Debug)]
pub struct Reachable {
    /// The first of the given addresses that did.
    pub addr: SocketAddr,
    /// Those before it, and why not they: worth a line in the report, since `localhost` is mostly `::1`
    /// first and many servers listen on 127.0.0.1 only.
    pub notes: Vec<String>,
}

/// None of the addresses took a connection.
#[derive(Debug)]
pub struct Unreachable {
    /// Each address tried, in order, and its answer.
    pub tried: Vec<(SocketAddr, io::Error)>,
}

/// The addresses of `host`, in the order of preference that the system's resolver gives them, without
/// repetitions; never empty. `host` may be a literal address, an IPv6 one with or without brackets.
///
/// # Errors
/// When the name has no address, or cannot be looked up.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    let mut addrs: Vec<SocketAddr> = Vec::new();
    for addr in (bare, port).to_socket_addrs()? {
        if !addrs.contains(&addr) {
            addrs.push(addr);
        }
    }
    if addrs.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")));
    }
    Ok(addrs)
}

/// Connects to each address in turn, for at most `timeout` each, until one answers; the connection is
/// closed at once.
///
/// # Errors
/// [`Unreachable`], which says what each of them answered.
pub fn probe(addrs: &[SocketAddr], timeout: Span) -> Result<Reachable, Unreachable> {
    // The standard library refuses a time-out of zero.
    let timeout = Duration::from_nanos(timeout.as_nanos().max(1));
    let mut tried = Vec::new();
    for &addr in addrs {
        match TcpStream::connect_timeout(&addr, timeout) {
            Ok(_) => {
                let notes =
                    tried.iter().map(|(other, why)| format!("{other}: {why}; using {addr}"));
                return Ok(Reachable { addr, notes: notes.collect() });
            }
            Err(error) => tried.push((addr, error)),
        }
    }
    Err(Unreachable { tried })
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no address takes a connection")?;
        for (place, (addr, error)) in self.tried.iter().enumerate() {
            write!(f, "{} {addr}: {error}", if place == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Unreachable {}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn open_and_shut() -> (TcpListener, SocketAddr) {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let shut = TcpListener::bind("127.78.0.1:0").unwrap().local_addr().unwrap();
        (open, shut)
    }

    #[test]
    fn an_address_that_refuses_is_passed_over_and_named() {
        let (open, shut) = open_and_shut();
        let addr = open.local_addr().unwrap();
        let found = probe(&[shut, addr], Span::from_secs(5)).unwrap();
        assert_eq!(found.addr, addr);
        let [note] = &found.notes[..] else { panic!("{:?}", found.notes) };
        assert!(note.starts_with(&shut.to_string()) && note.ends_with(&addr.to_string()), "{note}");
    }

    #[test]
    fn when_none_answers_each_is_named() {
        let (_, shut) = open_and_shut();
        let error = probe(&[shut, shut], Span::from_secs(5)).unwrap_err();
        assert_eq!(error.to_string().matches(&shut.to_string()).count(), 2, "{error}");
        assert!(probe(&[], Span::from_secs(5)).is_err());
    }

    #[test]
    fn literal_addresses_resolve_to_themselves() {
        for (host, addr) in
            [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("[::1]", "[::1]:80")]
        {
            assert_eq!(resolve(host, 80).unwrap(), [addr.parse().unwrap()]);
        }
    }
}
