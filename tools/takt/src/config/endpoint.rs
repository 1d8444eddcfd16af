//! The endpoint set: where it is, how it is spoken to, what every request says.

use std::fmt;

use serde_json::{Map, Value as Json};
use takt_wire::{Api, Endpoint, REDACTED, Scheme};

use super::error::ConfigError;
use super::reader::{Field, Table};
use super::secret::Credential;

/// The endpoints and what is said to them.
#[derive(Clone)]
pub(crate) struct EndpointConfig {
    /// At least one.
    pub(crate) urls: Vec<Endpoint>,
    pub(crate) api: Api,
    /// Empty when requests name none.
    pub(crate) model: String,
    pub(crate) api_key: Option<Credential>,
    /// In order; a name may repeat.
    pub(crate) headers: Vec<(String, Credential)>,
    pub(crate) stream: bool,
    /// Parameters of every request; a row's own goes before them.
    pub(crate) body: Map<String, Json>,
    /// Parameters of every request that go before a row's own.
    pub(crate) extra_body: Map<String, Json>,
}

impl EndpointConfig {
    /// Whether any of them is spoken to over TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.urls.iter().any(|url| url.scheme() == Scheme::Https)
    }

    pub(super) fn read(table: &Table<'_>) -> Result<Self, ConfigError> {
        let api = match table.get("api") {
            Some(field) => field.choice(&Api::ALL.map(|api| (api.as_str(), api)), &[])?,
            None => Api::OpenaiChat,
        };
        let urls = table.need("url", "give an address such as http://127.0.0.1:8000")?;
        let urls = urls.items().iter().map(|at| url(at, api)).collect::<Result<Vec<_>, _>>()?;
        if urls.is_empty() {
            return Err(table.error("`url` is an empty list; give one address at least"));
        }
        if urls.len() > URLS_MAX {
            let given = urls.len();
            return Err(
                table.error(format!("`url` has {given} addresses; {URLS_MAX} are the most"))
            );
        }
        if api == Api::Raw {
            let why = "api `raw` sends what the dataset holds, byte for byte";
            table.refuse("model", why)?;
            table.refuse("extra_body", why)?;
            table.refuse("stream", "answers of api `raw` are counted, not read")?;
        } else if !api.streams() {
            let name = api.as_str();
            table.refuse("stream", &format!("answers of api `{name}` are never streamed"))?;
        }
        if !api.names_model() && api != Api::Raw {
            let name = api.as_str();
            table.refuse("model", &format!("requests of api `{name}` name no model"))?;
        }
        let stream = table.get("stream").map_or(Ok(api.streams()), |field| field.flag())?;
        Ok(Self {
            urls,
            api,
            model: table.get("model").map_or(Ok(""), |field| field.text())?.to_owned(),
            api_key: api_key(table)?,
            headers: headers(table)?,
            stream,
            body: object(table, "body")?,
            extra_body: object(table, "extra_body")?,
        })
    }
}

/// Records have two bytes for the number of an endpoint.
const URLS_MAX: usize = u16::MAX as usize;

/// Shows where requests go, and nothing of what they hold.
impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointConfig({:?}, {})", self.urls, self.api.as_str())
    }
}

fn url(field: &Field<'_>, api: Api) -> Result<Endpoint, ConfigError> {
    let url = Endpoint::parse(field.text()?).map_err(|e| field.error(e.to_string()))?;
    match Api::named_by(&url) {
        Some(other) if other != api && api != Api::Raw => Err(field.error(format!(
            "ends with the route of api `{}`, and the api is `{}`; give the address of the server, or the other api",
            other.as_str(),
            api.as_str()
        ))),
        _ => Ok(url),
    }
}

/// An empty key is none, so that `${KEY:-}` can leave it open.
fn api_key(table: &Table<'_>) -> Result<Option<Credential>, ConfigError> {
    use super::node::Value;
    let Some(field) = table.get("api_key") else { return Ok(None) };
    if let Value::Text(text) | Value::Filled(text) = &field.node.value
        && text.trim().is_empty()
    {
        return Ok(None);
    }
    Credential::read(&field).map(Some)
}

fn headers(table: &Table<'_>) -> Result<Vec<(String, Credential)>, ConfigError> {
    let Some(field) = table.get("headers") else { return Ok(Vec::new()) };
    let mut headers = Vec::new();
    for (name, values) in field.entries()? {
        for value in values.items() {
            headers.push((name.to_owned(), Credential::read(&value)?));
        }
    }
    Ok(headers)
}

fn object(table: &Table<'_>, key: &str) -> Result<Map<String, Json>, ConfigError> {
    match table.get(key) {
        None => Ok(Map::new()),
        Some(field) => match field.node.to_json() {
            json if json.to_string().contains(REDACTED) => Err(field.error(format!(
                "holds `{REDACTED}`: takt wrote this file without its secrets; write ${{VARIABLE}}"
            ))),
            Json::Object(map) => Ok(map),
            _ => Err(field.error("must be a map of parameters, such as {temperature: 0}")),
        },
    }
}
