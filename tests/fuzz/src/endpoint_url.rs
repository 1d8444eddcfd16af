//! Addresses of endpoints: one that is accepted prints as itself, joins to routes that can be sent, and is
//! what the crate `http` reads; one that is refused is never printed with its password.
//!
//! Input: the address. Where the two readers differ rightly: takt refuses user names, fragments, port 0, and hosts
//! that are neither names nor addresses; it takes `"<>\^`{|}` in paths, an empty port and IPv6 zones, which `http` refuses.

use std::net::Ipv6Addr;

use takt_wire::{Endpoint, Method, REDACTED, RequestBuilder, Route, Scheme};

/// The target.
pub fn endpoint_url(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Endpoint::parse(text) {
        Ok(endpoint) => accepted(&endpoint, text.trim()),
        Err(error) => {
            let printed = format!("{error} {error:?}");
            assert!(!holds_password(text) || !printed.contains(MARK), "{printed}");
            assert!(!good_elsewhere(text.trim()), "{error}");
        }
    }
}

fn accepted(endpoint: &Endpoint, text: &str) {
    let shown = endpoint.to_string();
    if !shown.contains(REDACTED) {
        assert_eq!(Endpoint::parse(&shown).as_ref(), Ok(endpoint), "{shown}");
    }
    assert!(!endpoint.base().ends_with('/'));
    assert!(endpoint.base().is_empty() || endpoint.base().starts_with('/'));
    assert_ne!(endpoint.query(), Some(""));
    for route in [
        Route::Versioned("chat/completions"),
        Route::Native("generate"),
        Route::Native("/health"),
        Route::Exact(""),
        Route::Exact("a?b=c"),
    ] {
        let target = endpoint.target(route);
        assert!(target.starts_with('/') && !target.contains('#'), "{target}");
        let builder = RequestBuilder::new(Method::Post, endpoint, &target).expect("a good target");
        let request = builder.build(b"{}");
        let line = format!("POST {target} HTTP/1.1\r\nHost: {}\r\n", endpoint.host_header());
        assert!(request.bytes().starts_with(line.as_bytes()), "{line}");
    }
    // A slash at the end of a base makes no difference.
    if endpoint.scheme() != Scheme::Unix
        && endpoint.query().is_none()
        && !text.ends_with(['?', '/', ':'])
    {
        assert_eq!(
            Endpoint::parse(&format!("{text}/")).ok().map(|e| e.base().to_owned()),
            Some(endpoint.base().to_owned()),
            "{text}"
        );
    }
    compare(endpoint, text);
}

fn compare(endpoint: &Endpoint, text: &str) {
    let default_port = match endpoint.scheme() {
        Scheme::Http => 80,
        Scheme::Https => 443,
        Scheme::Unix => return,
    };
    let Ok(uri) = text.parse::<http::Uri>() else {
        let lenient = text.contains(['"', '<', '>', '\\', '^', '`', '{', '|', '}', '%']);
        let empty_port = authority(text).ends_with(':');
        assert!(lenient || empty_port || text.len() > 65_534, "{text}");
        return;
    };
    let host = uri.host().unwrap_or_default();
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) if inner.contains('%') => {}
        Some(inner) => {
            let address: Ipv6Addr = inner.parse().expect("an IPv6 address");
            assert_eq!(endpoint.host(), address.to_string());
        }
        None => assert_eq!(endpoint.host(), host.to_ascii_lowercase()),
    }
    assert_eq!(endpoint.port(), uri.port_u16().unwrap_or(default_port), "{text}");
    assert_eq!(endpoint.base(), uri.path().trim_end_matches('/'), "{text}");
    assert_eq!(endpoint.query(), uri.query().filter(|query| !query.is_empty()), "{text}");
}

fn authority(text: &str) -> &str {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Whether `http` reads it and none of the differences can be the reason why takt does not.
fn good_elsewhere(text: &str) -> bool {
    let Ok(uri) = text.parse::<http::Uri>() else { return false };
    let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
    let name = |host: &str| {
        let usual = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        !host.is_empty() && host.bytes().all(usual)
    };
    scheme
        && text.is_ascii()
        && !text.contains(['@', '#'])
        // `http` looks for the last colon and leaves what stands before it alone.
        && !authority(text).contains(['[', ']'])
        && authority(text).matches(':').count() < 2
        && uri.host().is_some_and(name)
        && uri.port_u16() != Some(0)
        // `http` takes `+8` for a port, and what follows the colon for none when it is none.
        && match uri.port() {
            Some(port) => port.as_str().bytes().all(|b| b.is_ascii_digit()),
            None => !authority(text).contains(':'),
        }
}

/// Whether the mark stands where a password does and nowhere behind it but in the query.
fn holds_password(text: &str) -> bool {
    let Some((before, behind)) = text.rsplit_once('@') else { return false };
    let before = before.split_once("://").map_or(before, |(_, rest)| rest);
    let scheme = &text[..text.len() - before.len() - behind.len() - 1];
    let behind = behind.split('?').next().unwrap_or_default();
    before.contains(MARK) && !behind.contains(MARK) && !scheme.contains(MARK)
}

const MARK: &str = "hunter2";
