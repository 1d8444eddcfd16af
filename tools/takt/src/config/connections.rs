//! The section `connections`: how many, from where, how they are secured, and which endpoint is next.

use std::net::IpAddr;

use serde_json::{Value as Json, json};
use takt_actors::Balance;
use takt_net::tls::ClientOptions;
use takt_wire::Scheme;

use super::endpoint::EndpointConfig;
use super::error::ConfigError;
use super::keys;
use super::reader::{Table, word_of};
use super::resolved::absolute;

/// How connections are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionsConfig {
    /// The most to each endpoint, if not as many as open files allow.
    pub(crate) max: Option<usize>,
    /// How many to open before the first phase, if not as many as it seems to need.
    pub(crate) warm: Option<usize>,
    pub(crate) retry_stale: bool,
    pub(crate) balance: Balance,
    /// Addresses of this machine to connect from, in turn; any without.
    pub(crate) source_addresses: Vec<IpAddr>,
    pub(crate) tls: ClientOptions,
}

impl Default for ConnectionsConfig {
    fn default() -> Self {
        Self {
            max: None,
            warm: None,
            retry_stale: true,
            balance: Balance::RoundRobin,
            source_addresses: Vec::new(),
            tls: ClientOptions::default(),
        }
    }
}

impl ConnectionsConfig {
    pub(super) fn read(root: &Table<'_>, endpoint: &EndpointConfig) -> Result<Self, ConfigError> {
        let Some(field) = root.get("connections") else { return Ok(Self::default()) };
        let table = field.table(&keys::CONNECTIONS)?;
        let count = |key| table.get(key).map(|f| f.count(1, u64::from(u32::MAX))).transpose();
        let max = count("max")?.map(|max| max as usize);
        let warm = table.get("warm").map(|f| f.count(0, WARM_MOST)).transpose()?;
        let retry_stale = table.get("retry_stale").map_or(Ok(true), |f| f.flag())?;
        let balance = match table.get("balance") {
            Some(field) => {
                if endpoint.urls.len() < 2 {
                    return Err(field.error("has no effect: there is one endpoint"));
                }
                field.choice(&BALANCES, &[])?
            }
            None => Balance::RoundRobin,
        };
        Ok(Self {
            max,
            warm: warm.map(|warm| warm as usize),
            retry_stale,
            balance,
            source_addresses: sources(&table, endpoint)?,
            tls: tls(&table, endpoint)?,
        })
    }

    /// As JSON; reading it again gives the same.
    pub(super) fn to_json(&self, endpoints: usize, tls: bool) -> Json {
        let file = |path: &Option<std::path::PathBuf>| path.as_deref().map(absolute);
        let addresses: Vec<_> = self.source_addresses.iter().map(ToString::to_string).collect();
        json!({
            "max": self.max,
            "warm": self.warm,
            "retry_stale": self.retry_stale,
            "balance": (endpoints > 1).then(|| word_of(&BALANCES, self.balance)),
            "source_addresses": (!addresses.is_empty()).then_some(addresses),
            "tls": tls.then(|| json!({
                "ca": file(&self.tls.ca),
                "cert": file(&self.tls.cert),
                "key": file(&self.tls.key),
                "insecure": self.tls.insecure,
            })),
        })
    }
}

fn sources(table: &Table<'_>, endpoint: &EndpointConfig) -> Result<Vec<IpAddr>, ConfigError> {
    let Some(field) = table.get("source_addresses") else { return Ok(Vec::new()) };
    if !endpoint.urls.iter().any(|url| url.scheme() != Scheme::Unix) {
        return Err(field.error("has no effect: unix sockets have no addresses"));
    }
    let mut addresses: Vec<IpAddr> = Vec::new();
    for item in field.items() {
        let address = item.text()?.parse().map_err(|_| {
            item.error("is no address of this machine; write one such as 127.0.0.2")
        })?;
        if addresses.contains(&address) {
            return Err(item.error("stands there twice"));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn tls(table: &Table<'_>, endpoint: &EndpointConfig) -> Result<ClientOptions, ConfigError> {
    let Some(field) = table.get("tls") else { return Ok(ClientOptions::default()) };
    let table = field.table(&keys::TLS)?;
    if !endpoint.urls.iter().any(|url| url.scheme() == Scheme::Https) {
        return Err(field.error("has no effect: no address begins with https://"));
    }
    let path = |key| table.get(key).map(|f| f.path()).transpose();
    let options = ClientOptions {
        ca: path("ca")?,
        cert: path("cert")?,
        key: path("key")?,
        insecure: table.get("insecure").map_or(Ok(false), |f| f.flag())?,
    };
    match (&options.cert, &options.key, &options.ca) {
        (Some(_), None, _) => Err(table.error("`cert` needs the key that belongs to it: `key`")),
        (None, Some(_), _) => {
            Err(table.error("`key` needs the certificate that it is for: `cert`"))
        }
        (_, _, Some(_)) if options.insecure => {
            Err(table.error("`insecure` trusts anybody, so `ca` would have no effect"))
        }
        _ => Ok(options),
    }
}

const BALANCES: [(&str, Balance); 2] =
    [("round_robin", Balance::RoundRobin), ("least_in_flight", Balance::LeastInFlight)];
/// More would take minutes to open.
const WARM_MOST: u64 = 1_000_000;
