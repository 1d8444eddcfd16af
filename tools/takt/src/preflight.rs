//! Is anybody there? Names looked up and one connection made to each endpoint before a run begins.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use takt_engine::{Target, TlsLayer};
use takt_net::resolve;
use takt_net::tls::{BlockingTls, ClientTls};
use takt_time::Span;
use takt_wire::{Endpoint, Scheme};

use crate::exit::{Exit, Failure};

/// An endpoint that took a connection.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) target: Target,
    /// What else was tried, and why that did not do.
    pub(crate) notes: Vec<String>,
    url: String,
    /// Version and cipher, of one that speaks TLS.
    pub(crate) tls: Option<String>,
}

impl Reached {
    /// For the `host` of a result: where requests really went.
    pub(crate) fn to_json(&self) -> Value {
        let address = match &self.target {
            Target::Tcp { to, .. } | Target::Tls { to, .. } => to.to_string(),
            Target::Unix(path) => path.display().to_string(),
        };
        json!({"url": self.url, "address": address, "tls": self.tls, "notes": self.notes})
    }
}

/// Reaches every endpoint, waiting for each address at most for `patience`. Given `tls`, those of https have a
/// handshake, so that what is wrong with a certificate is known before anything is measured.
pub(crate) fn reach(
    endpoints: &[Endpoint],
    patience: Span,
    tls: Option<&ClientTls>,
) -> Result<Vec<Reached>, Failure> {
    endpoints.iter().map(|endpoint| reach_one(endpoint, patience, tls)).collect()
}

/// Refuses addresses to connect from that this machine does not have, or that cannot lead to an endpoint.
pub(crate) fn sources_fit(reached: &[Reached], sources: &[IpAddr]) -> Result<(), Failure> {
    let wrong = |source: &IpAddr, why: String| {
        Failure::says(Exit::Input, format!("connections.source_addresses: {source} {why}"))
    };
    for source in sources {
        TcpListener::bind((*source, 0))
            .map_err(|error| wrong(source, format!("is no address of this machine: {error}")))?;
        let stranger = reached
            .iter()
            .filter_map(|reached| reached.target.addr())
            .find(|to| to.is_ipv4() != source.is_ipv4());
        if let Some(to) = stranger {
            let why = format!("cannot lead to {to}: one is IPv4, the other IPv6");
            return Err(wrong(source, why));
        }
    }
    Ok(())
}

fn reach_one(
    endpoint: &Endpoint,
    patience: Span,
    tls: Option<&ClientTls>,
) -> Result<Reached, Failure> {
    let url = endpoint.to_string();
    let unreachable = |why: &dyn std::fmt::Display| {
        Failure::says(Exit::Setup, format!("{url} cannot be reached: {why}; is the server up?"))
    };
    let host = endpoint.host();
    if endpoint.scheme() == Scheme::Unix {
        UnixStream::connect(host).map_err(|error| unreachable(&error))?;
        let target = Target::Unix(host.into());
        return Ok(Reached { target, notes: Vec::new(), url, tls: None });
    }
    let addresses = resolve::resolve(host, endpoint.port())
        .map_err(|error| unreachable(&format!("the name {host}: {error}")))?;
    let found = resolve::probe(&addresses, patience).map_err(|error| unreachable(&error))?;
    let (to, notes) = (found.addr, found.notes);
    let Some(tls) = tls.filter(|_| endpoint.scheme() == Scheme::Https) else {
        return Ok(Reached { target: Target::tcp(to), notes, url, tls: None });
    };
    let secured = secure(to, tls, host, patience).map_err(|error| {
        Failure::says(Exit::Setup, format!("{url} cannot be reached: TLS: {error}"))
    })?;
    let layer = TlsLayer { config: TLS, name: host.into() };
    let target = Target::Tls { to, from: None, layer };
    Ok(Reached { target, notes, url, tls: Some(secured.spoken()) })
}

/// A connection with TLS that blocks, for at most `patience` at each step.
pub(crate) fn secure(
    to: SocketAddr,
    tls: &ClientTls,
    name: &str,
    patience: Span,
) -> io::Result<BlockingTls> {
    let patience = Duration::from_nanos(patience.as_nanos()).max(Duration::from_millis(1));
    let tcp = TcpStream::connect_timeout(&to, patience)?;
    tcp.set_nodelay(true)?;
    BlockingTls::secure(tcp, tls, name, patience)
}

/// The number of a run's TLS, the only one of its host.
pub(crate) const TLS: u32 = 0;
