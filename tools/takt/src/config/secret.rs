//! Text that may be a secret: it goes to the endpoint and is printed nowhere.

use std::fmt;

use serde_json::{Map, Value as Json};
use takt_wire::is_secret_name;

use super::EndpointConfig;

/// A value that no `Debug` shows. There is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the wire alone.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(takt_wire::REDACTED)
    }
}

/// Every secret that goes to the endpoint: wherever one may stand, a server may repeat it.
pub(crate) fn all_of(endpoint: &EndpointConfig) -> Vec<Secret> {
    let mut found: Vec<_> = endpoint.api_key.iter().cloned().collect();
    for (_, value) in endpoint.headers.iter().filter(|(name, _)| is_secret_name(name)) {
        found.push(value.clone());
        found.extend(crumbs(value.reveal()).map(Secret::new));
    }
    let queries = endpoint.urls.iter().filter_map(|url| url.query());
    for (name, value) in queries.flat_map(|query| query.split('&')).filter_map(pair) {
        if is_secret_name(name) {
            found.push(Secret::new(value));
            found.push(Secret::new(decoded(value)));
        }
    }
    in_body(&endpoint.body, &mut found);
    in_body(&endpoint.extra_body, &mut found);
    found
}

fn pair(text: &str) -> Option<(&str, &str)> {
    text.split_once('=')
}

/// The values of a list such as `a=1; b=2`, which a cookie is. Short ones are flags and languages.
fn crumbs(value: &str) -> impl Iterator<Item = &str> {
    let values = value.split(';').filter_map(pair).map(|(_, value)| value.trim());
    values.filter(|value| value.len() >= SHORTEST_CRUMB)
}

/// Without its percent-encoding: as the server sees it.
fn decoded(value: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), value.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = |place: usize| char::from(*after.get(place)?).to_digit(16);
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The text under names of secrets, at any depth.
fn in_body(map: &Map<String, Json>, found: &mut Vec<Secret>) {
    fn look(name: &str, value: &Json, found: &mut Vec<Secret>) {
        match value {
            Json::String(text) if is_secret_name(name) => found.push(Secret::new(text.as_str())),
            Json::Array(items) => items.iter().for_each(|item| look(name, item, found)),
            Json::Object(map) => in_body(map, found),
            _ => {}
        }
    }
    map.iter().for_each(|(name, value)| look(name, value, found));
}

const SHORTEST_CRUMB: usize = 8;
