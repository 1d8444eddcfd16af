//! Text that may be a secret: it goes to the endpoint and is printed nowhere.

use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value as Json};
use takt_wire::{REDACTED, is_secret_name};

use super::EndpointConfig;
use super::error::ConfigError;
use super::keys;
use super::node::Value;
use super::reader::Field;

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

    /// Its beginning, by which one that is cut off is known.
    pub(crate) fn head(&self) -> &str {
        &self.0[..self.0.floor_char_boundary(HEAD)]
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Text for a header, and where it was read if that was a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) value: Secret,
    /// A run can be repeated with the file; what it holds is a secret, whatever the header is called.
    pub(crate) file: Option<PathBuf>,
}

impl Credential {
    /// Text, or `{file: PATH}` for what that file holds, white space around it left out.
    pub(super) fn read(field: &Field<'_>) -> Result<Self, ConfigError> {
        if !matches!(field.node.value, Value::Map(_)) {
            let text = field.text()?;
            if text.contains(REDACTED) {
                return Err(field.error(format!(
                    "is `{REDACTED}`: takt wrote this file without its secrets; write \
                     ${{VARIABLE}} here, or {{file: PATH}}"
                )));
            }
            return Ok(Self { value: Secret::new(text), file: None });
        }
        let table = field.table(&keys::FROM_FILE)?;
        let file = table.need("file", "name the file that holds the value")?;
        let path = file.path()?;
        let shown = path.display();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| file.error(format!("{shown}: cannot be read: {error}")))?;
        let text = text.trim();
        if text.is_empty() || text.contains(['\r', '\n']) {
            return Err(file.error(format!("{shown}: must hold one line of text")));
        }
        Ok(Self { value: Secret::new(text), file: Some(path) })
    }
}

/// Every secret that goes to the endpoint: wherever one may stand, a server may repeat it.
pub(crate) fn all_of(endpoint: &EndpointConfig) -> Vec<Secret> {
    let mut found: Vec<_> = endpoint.api_key.iter().map(|key| key.value.clone()).collect();
    for (name, given) in &endpoint.headers {
        if given.file.is_some() || is_secret_name(name) {
            found.push(given.value.clone());
            found.extend(crumbs(given.value.reveal()).map(Secret::new));
        }
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

/// Fit to be looked for: without those that are too short to be told from other text, the longest first,
/// since one may be part of another.
pub(super) fn sorted(secrets: &[Secret]) -> Vec<Secret> {
    let parts = secrets.iter().flat_map(|secret| {
        let whole = secret.0.trim();
        // Of `Bearer KEY` a server may repeat the key alone.
        [Some(whole), whole.split_once(' ').map(|(_, after)| after.trim())]
    });
    let parts = parts.flatten().filter(|part| part.len() >= SHORTEST);
    let mut secrets: Vec<_> = parts.map(Secret::new).collect();
    secrets.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.0.cmp(&b.0)));
    secrets.dedup();
    secrets
}

/// Takes secrets out of a text, one that is cut off at its end included.
pub(crate) fn clear(text: &mut String, secrets: &[Secret]) {
    for (secret, head) in secrets.iter().map(|secret| (secret.reveal(), secret.head())) {
        if text.contains(secret) {
            *text = text.replace(secret, REDACTED);
        }
        let cut = (head.len()..secret.len())
            .rev()
            .find(|&at| secret.is_char_boundary(at) && text.ends_with(&secret[..at]));
        if let Some(cut) = cut {
            text.truncate(text.len() - cut);
            text.push_str(REDACTED);
        }
    }
}

/// Takes secrets out of every text of a document; names of keys stay.
pub(super) fn hide(json: &mut Json, secrets: &[Secret]) {
    match json {
        Json::String(text) => clear(text, secrets),
        Json::Array(items) => items.iter_mut().for_each(|item| hide(item, secrets)),
        Json::Object(map) => map.values_mut().for_each(|value| hide(value, secrets)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// A shorter text would be found where it means something else.
const SHORTEST: usize = 4;
/// Of a secret that is cut off, less than this may be seen.
const HEAD: usize = 8;
const SHORTEST_CRUMB: usize = 8;
