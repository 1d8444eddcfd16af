//! Where an endpoint is: [`Endpoint`] is a server address, taken apart once and checked.
//!
//! Three forms are read: `http://host[:port][/base][?query]`, the same with `https`, and
//! `unix:/path/of/socket[:/base][?query]`. An IPv6 host stands in brackets. A user name or password
//! in the address is refused, since an address ends up in reports; no error prints one.
//!
//! [`Endpoint::target`] joins an API route to the base, so that `http://h`, `http://h/`,
//! `http://h/v1` and `http://h/v1/` all name the same service.

use std::fmt;
use std::net::Ipv6Addr;

use crate::secret::{REDACTED, is_secret_name};

/// A server address: how to reach it and what to write into the request head.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    host: String,
    port: u16,
    host_header: String,
    base: String,
    query: Option<String>,
}

/// How an endpoint is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// TCP, plain.
    Http,
    /// TCP with TLS.
    Https,
    /// A unix socket, plain.
    Unix,
}

/// The part of a request target that the API decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// Below the version prefix, such as `chat/completions`: `/v1` is added unless the base has it.
    Versioned(&'a str),
    /// Beside the version prefix, such as `generate` or `health`: a `/v1` at the end of the base goes.
    Native(&'a str),
    /// Taken as it is, below the base; may have a query of its own.
    Exact(&'a str),
}

/// An address that cannot be used, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("endpoint address `{shown}`: {reason}")]
pub struct UrlError {
    /// The address without user name, password and query.
    pub shown: String,
    /// What is wrong with it.
    pub reason: UrlReason,
}

/// Why an address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlReason {
    /// Nothing was given.
    #[error("is empty; write one such as http://127.0.0.1:8000")]
    Empty,
    /// No `scheme://` in front.
    #[error("has no scheme; write http://, https:// or unix: in front")]
    NoScheme,
    /// A scheme other than the three.
    #[error("has a scheme that is not known; use http, https or unix")]
    UnknownScheme,
    /// User name or password in the address.
    #[error(
        "holds a user name or password; leave it out and give it as a header or as the API key"
    )]
    UserInfo,
    /// A `#…` part, which is never sent to a server.
    #[error("has a `#` part, which no server ever sees; leave it out")]
    Fragment,
    /// No host between scheme and path.
    #[error("has no host")]
    NoHost,
    /// A host with characters that a name or IPv4 address does not have.
    #[error("has a host that is neither a name nor an address (write names in ASCII)")]
    BadHost,
    /// Something in brackets that is not an IPv6 address, or one without brackets.
    #[error("has a bad IPv6 host; write it in brackets, such as http://[::1]:8000")]
    BadIpv6,
    /// Not a number from 1 to 65535.
    #[error("has a bad port; it is a number from 1 to 65535")]
    BadPort,
    /// A space, a control character or one beyond ASCII in path or query.
    #[error("has a character at byte {0} that must be percent-encoded")]
    BadCharacter(usize),
    /// A socket path that does not start with a slash.
    #[error("has no absolute socket path; write unix:/run/server.sock")]
    BadSocketPath,
}

impl Endpoint {
    /// Takes an address apart.
    ///
    /// # Errors
    /// [`UrlError`] names the address (without its secrets), what is wrong and how to mend it.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        parse(text).map_err(|reason| UrlError { shown: shown(text), reason })
    }

    /// How to reach it.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Host name or address without brackets; for a unix socket the path of the socket.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port; 0 for a unix socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `Host` header: the port is left out where it is the scheme's own.
    #[must_use]
    pub fn host_header(&self) -> &str {
        &self.host_header
    }

    /// The path that all routes start with: empty, or `/…` without a slash at its end.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The query of the address, without its `?`.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// The request target (path and query) of a route at this endpoint.
    #[must_use]
    pub fn target(&self, route: Route<'_>) -> String {
        let mut target = self.base.clone();
        match route {
            Route::Versioned(rest) => {
                let rest = rest.trim_start_matches('/');
                // People paste the whole address of the route, too.
                if !ends_with_segments(&target, rest) {
                    if !ends_with_version(&target) {
                        target.push_str("/v1");
                    }
                    target.push('/');
                    target.push_str(rest);
                }
            }
            Route::Native(rest) => {
                let rest = rest.trim_start_matches('/');
                if let Some(shorter) = target.strip_suffix("/v1") {
                    target.truncate(shorter.len());
                }
                if !ends_with_segments(&target, rest) {
                    target.push('/');
                    target.push_str(rest);
                }
            }
            Route::Exact(path) => {
                if !path.is_empty() && !path.starts_with(['/', '?']) {
                    target.push('/');
                }
                target.push_str(path);
            }
        }
        if !target.starts_with('/') {
            target.insert(0, '/');
        }
        if let Some(query) = &self.query {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(query);
        }
        target
    }
}

/// The address as it may be printed: values of secret query parameters are redacted.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut authority = self.host_header.clone();
        if let Some(zone) = self.host.find('%')
            && let Some(bracket) = authority.find(']')
            && self.scheme != Scheme::Unix
        {
            // Not sent, but needed to reach the same host again.
            authority.insert_str(bracket, &format!("%25{}", &self.host[zone + 1..]));
        }
        match self.scheme {
            Scheme::Http => write!(f, "http://{authority}{}", self.base)?,
            Scheme::Https => write!(f, "https://{authority}{}", self.base)?,
            Scheme::Unix => {
                write!(f, "unix:{}", self.host)?;
                // A space at the end would be lost without a base behind it.
                let spaced = self.host.trim_end() != self.host;
                match self.base.as_str() {
                    "" if spaced => f.write_str(":/")?,
                    "" => {}
                    base => write!(f, ":{base}")?,
                }
            }
        }
        let Some(query) = &self.query else { return Ok(()) };
        for (i, pair) in query.split('&').enumerate() {
            f.write_str(if i == 0 { "?" } else { "&" })?;
            match pair.split_once('=') {
                Some((name, _)) if is_secret_name(name) => write!(f, "{name}={REDACTED}")?,
                _ => f.write_str(pair)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

fn parse(text: &str) -> Result<Endpoint, UrlReason> {
    if text.is_empty() {
        return Err(UrlReason::Empty);
    }
    if let Some(rest) = strip_prefix_ignore_case(text, "unix:") {
        return parse_unix(rest, text.len() - rest.len());
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        // Without a scheme, too, what stands before an `@` is not to be printed or used.
        return Err(if text.contains('@') { UrlReason::UserInfo } else { UrlReason::NoScheme });
    };
    let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
        "http" => (Scheme::Http, 80),
        "https" => (Scheme::Https, 443),
        _ => return Err(UrlReason::UnknownScheme),
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(UrlReason::UserInfo);
    }
    let (host, port) = parse_authority(authority)?;
    let port = port.unwrap_or(default_port);
    let (base, query) = parse_tail(tail, text.len() - tail.len())?;
    // A zone (`%eth0`) is of this machine alone and never sent.
    let name = host.split('%').next().unwrap_or_default();
    let mut host_header = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    if port != default_port {
        host_header.push_str(&format!(":{port}"));
    }
    Ok(Endpoint { scheme, host, port, host_header, base, query })
}

fn parse_unix(rest: &str, offset: usize) -> Result<Endpoint, UrlReason> {
    // Both `unix:/run/x` and `unix:///run/x` are in use; slashes in front are one slash.
    let slashes = rest.bytes().take_while(|&b| b == b'/').count();
    let path = &rest[slashes.saturating_sub(1)..];
    let offset = offset + (rest.len() - path.len());
    // A query may hold `:/`, so what comes first decides.
    let (before_query, _) = path.split_once('?').unwrap_or((path, ""));
    let (socket, tail) = match before_query.find(":/") {
        Some(colon) => (&path[..colon], &path[colon + 1..]),
        None => path.split_at(before_query.len()),
    };
    if !socket.starts_with('/') || socket.len() < 2 || socket.contains('\0') {
        return Err(UrlReason::BadSocketPath);
    }
    let (base, query) = parse_tail(tail, offset + path.len() - tail.len())?;
    Ok(Endpoint {
        scheme: Scheme::Unix,
        host: socket.to_owned(),
        port: 0,
        host_header: "localhost".to_owned(),
        base,
        query,
    })
}

fn parse_authority(authority: &str) -> Result<(String, Option<u16>), UrlReason> {
    let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
        let (inner, rest) = inner.split_once(']').ok_or(UrlReason::BadIpv6)?;
        let (address, zone) = match inner.split_once('%') {
            Some((address, zone)) => (address, Some(zone.strip_prefix("25").unwrap_or(zone))),
            None => (inner, None),
        };
        let address: Ipv6Addr = address.parse().map_err(|_| UrlReason::BadIpv6)?;
        let host = match zone {
            None => address.to_string(),
            Some(z) if !z.is_empty() && z.bytes().all(is_name_byte) => format!("{address}%{z}"),
            Some(_) => return Err(UrlReason::BadIpv6),
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => port,
            None if rest.is_empty() => "",
            None => return Err(UrlReason::BadPort),
        };
        (host, port)
    } else {
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        if port.contains(':') {
            return Err(UrlReason::BadIpv6);
        }
        if host.is_empty() {
            return Err(UrlReason::NoHost);
        }
        if !host.bytes().all(is_name_byte) {
            return Err(UrlReason::BadHost);
        }
        (host.to_ascii_lowercase(), port)
    };
    if port.is_empty() {
        return Ok((host, None));
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(UrlReason::BadPort);
    }
    match port.parse() {
        Ok(port) if port > 0 => Ok((host, Some(port))),
        _ => Err(UrlReason::BadPort),
    }
}

/// Base path and query of what follows the authority; `offset` is where it starts in the address.
fn parse_tail(tail: &str, offset: usize) -> Result<(String, Option<String>), UrlReason> {
    if tail.contains('#') {
        return Err(UrlReason::Fragment);
    }
    if let Some(bad) = tail.bytes().position(|b| !b.is_ascii_graphic()) {
        return Err(UrlReason::BadCharacter(offset + bad));
    }
    let (path, query) = match tail.split_once('?') {
        Some((path, query)) => (path, (!query.is_empty()).then(|| query.to_owned())),
        None => (tail, None),
    };
    Ok((path.trim_end_matches('/').to_owned(), query))
}

/// The address for an error text: nothing before an `@`, nothing after a `?`.
fn shown(text: &str) -> String {
    let head = text.find('?').map_or(text, |mark| &text[..mark]);
    let query = if head.len() < text.len() { "?…" } else { "" };
    // The last `@` of the whole address: a password may hold `/`, `?` and `#`.
    if let Some(at) = text.rfind('@') {
        let scheme = text.find("://").filter(|&p| p < at).map_or(0, |p| p + 3);
        let rest = &text[at + 1..];
        let rest = rest.find('?').map_or(rest, |mark| &rest[..mark]);
        return format!("{}{REDACTED}@{rest}", &text[..scheme]);
    }
    format!("{head}{query}")
}

/// Whether `path` ends with whole `segments`.
pub(crate) fn ends_with_segments(path: &str, segments: &str) -> bool {
    path.strip_suffix(segments).is_some_and(|front| front.ends_with('/'))
}

/// Whether the last segment is a version such as `v1`, `v4` or `v1beta`.
fn ends_with_version(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default().as_bytes();
    last.len() >= 2
        && last[0] == b'v'
        && last[1].is_ascii_digit()
        && last.iter().all(u8::is_ascii_alphanumeric)
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')
}

fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Endpoint {
        Endpoint::parse(text).unwrap_or_else(|e| panic!("{e}"))
    }

    fn reason(text: &str) -> UrlReason {
        Endpoint::parse(text).expect_err(text).reason
    }

    #[test]
    fn k2_base_with_and_without_version_and_slash_is_one_service() {
        let route = Route::Versioned("chat/completions");
        for base in ["http://h:8000", "http://h:8000/", "http://h:8000/v1", "http://h:8000/v1/"] {
            assert_eq!(ok(base).target(route), "/v1/chat/completions", "{base}");
            assert_eq!(ok(base).target(Route::Native("generate")), "/generate", "{base}");
        }
        let whole = ok("http://h/v1/chat/completions");
        assert_eq!(whole.target(route), "/v1/chat/completions");
        assert_eq!(ok("http://h/openai").target(route), "/openai/v1/chat/completions");
        assert_eq!(ok("http://h/paas/v4/").target(route), "/paas/v4/chat/completions");
        assert_eq!(ok("http://h/video").target(route), "/video/v1/chat/completions");
    }

    #[test]
    fn k2_query_is_kept_behind_the_route() {
        let e = ok("https://h/v1/?api-version=2&x=1");
        assert_eq!(e.target(Route::Versioned("embeddings")), "/v1/embeddings?api-version=2&x=1");
        assert_eq!(e.target(Route::Exact("/a?b=c")), "/v1/a?b=c&api-version=2&x=1");
    }

    #[test]
    fn exact_route_is_taken_below_the_base() {
        assert_eq!(ok("http://h").target(Route::Exact("")), "/");
        assert_eq!(ok("http://h/").target(Route::Exact("x/")), "/x/");
        assert_eq!(ok("http://h/b").target(Route::Exact("?q")), "/b?q");
        assert_eq!(ok("http://h").target(Route::Exact("?q")), "/?q");
    }

    #[test]
    fn parts_of_an_address() {
        let e = ok("HTTP://LocalHost:8000/v1/?q=1");
        assert_eq!((e.scheme(), e.host(), e.port()), (Scheme::Http, "localhost", 8000));
        assert_eq!((e.host_header(), e.base(), e.query()), ("localhost:8000", "/v1", Some("q=1")));
        let e = ok("https://api.example.com");
        assert_eq!((e.port(), e.host_header(), e.base()), (443, "api.example.com", ""));
        assert_eq!(ok("http://h:80").host_header(), "h");
        assert_eq!(ok("http://h:443").host_header(), "h:443");
    }

    #[test]
    fn k2_ipv6_literal() {
        let e = ok("http://[::1]:8000/");
        assert_eq!((e.host(), e.port(), e.host_header()), ("::1", 8000, "[::1]:8000"));
        let e = ok("http://[fe80::1%25eth0]");
        assert_eq!((e.host(), e.host_header()), ("fe80::1%eth0", "[fe80::1]"));
        for text in ["http://[fe80::1%eth0]", "https://[fe80::1%25eth0]:8000/v1?x"] {
            assert_eq!(ok(&ok(text).to_string()), ok(text), "a zone is printed");
        }
        for bad in ["http://[::1", "http://::1:80", "http://[zz]", "http://[::1%]/"] {
            assert_eq!(reason(bad), UrlReason::BadIpv6, "{bad}");
        }
    }

    #[test]
    fn k2_unix_socket() {
        for text in ["unix:/run/x.sock", "unix:///run/x.sock", "UNIX:/run/x.sock"] {
            let e = ok(text);
            assert_eq!((e.scheme(), e.host(), e.port()), (Scheme::Unix, "/run/x.sock", 0));
            assert_eq!(e.host_header(), "localhost");
            assert_eq!(e.to_string(), "unix:/run/x.sock");
        }
        let e = ok("unix:/run/x.sock:/v1?a=1");
        assert_eq!(e.target(Route::Versioned("completions")), "/v1/completions?a=1");
        assert_eq!(ok("unix:/run/x.sock?a=1").query(), Some("a=1"));
        let callback = ok("unix:/run/x.sock?to=http://h/");
        assert_eq!((callback.host(), callback.query()), ("/run/x.sock", Some("to=http://h/")));
        for odd in ["unix:/a:/?b=c:/?d", "unix:/a :/", "unix:////a", "unix:/a::/v1", "unix:/a:?q"] {
            assert_eq!(ok(&ok(odd).to_string()), ok(odd), "what is printed is read again");
        }
        assert_eq!(reason("unix:x.sock"), UrlReason::BadSocketPath);
        assert_eq!(reason("unix:/"), UrlReason::BadSocketPath);
    }

    #[test]
    fn k3_password_in_an_address_is_refused_and_never_printed() {
        for text in ["http://me:hunter2@h/", "https://me:hun/ter2@h?x=hunter2", "me:hunter2@h"] {
            let error = Endpoint::parse(text).expect_err(text);
            let printed = format!("{error} {error:?}");
            assert!(!printed.contains("ter2"), "{printed}");
            assert!(printed.contains(REDACTED), "{printed}");
        }
    }

    #[test]
    fn k3_secret_query_values_are_not_displayed() {
        let e = ok("http://h/v1?api_key=hunter2&v=1");
        assert_eq!(e.to_string(), "http://h/v1?api_key=<redacted>&v=1");
        assert!(!format!("{e:?}").contains("hunter2"));
        assert!(e.target(Route::Exact("/x")).contains("api_key=hunter2"));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_its_reason() {
        for (text, expect) in [
            ("", UrlReason::Empty),
            ("127.0.0.1:8000", UrlReason::NoScheme),
            ("ftp://h", UrlReason::UnknownScheme),
            ("http://", UrlReason::NoHost),
            ("http:///v1", UrlReason::NoHost),
            ("http://:80", UrlReason::NoHost),
            ("http://h:0", UrlReason::BadPort),
            ("http://h:65536", UrlReason::BadPort),
            ("http://h:+80", UrlReason::BadPort),
            ("http://h ost/", UrlReason::BadHost),
            ("http://bücher.example", UrlReason::BadHost),
            ("http://h/#x", UrlReason::Fragment),
            ("http://h/a b", UrlReason::BadCharacter(10)),
            ("http://h/?ü", UrlReason::BadCharacter(10)),
        ] {
            assert_eq!(reason(text), expect, "{text}");
        }
    }
}
