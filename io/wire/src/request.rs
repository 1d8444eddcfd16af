//! Requests as bytes: [`RequestBuilder`] holds what is the same for all requests of an endpoint,
//! [`PreparedRequest`] is one request ready to be written.
//!
//! Head and body lie in one contiguous buffer (a vectored write costs more), with a hole of 32 bytes for
//! the value of `X-Request-Id`: what is sent a million times is built once and patched, without
//! an allocation.
//!
//! ```text
//! POST /v1/chat/completions HTTP/1.1\r\n
//! Host: …\r\nUser-Agent: takt/…\r\nAccept: …\r\nContent-Type: …\r\nAuthorization: …\r\n…
//! X-Request-Id: ________________________________\r\n      <- id_at
//! Content-Length: 110\r\n\r\n{"model":…}
//! ```

use std::fmt;

use crate::header::{Header, HeaderError, line};
use crate::method::Method;
use crate::url::Endpoint;

/// What is the same for all requests of one kind: target and headers, checked when they are given.
#[derive(Clone)]
pub struct RequestBuilder {
    method: Method,
    target: String,
    host: String,
    streaming: bool,
    with_id: bool,
    headers: Vec<Header>,
}

/// One request, whole, ready to be written and to be written again with another id.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PreparedRequest {
    bytes: Vec<u8>,
    id_at: Option<usize>,
    body_at: usize,
}

/// A request that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A header that cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A target with a space, a control character or one beyond ASCII.
    #[error("the path has a character at byte {0} that must be percent-encoded")]
    Target(usize),
}

/// Length of a request id in bytes: 128 bits in hexadecimal.
pub const ID_LEN: usize = 32;

impl RequestBuilder {
    /// Requests of `method` for `target` (path and query, from [`Endpoint::target`]) at `endpoint`.
    ///
    /// # Errors
    /// [`RequestError::Target`] when the target would break the request line.
    pub fn new(method: Method, endpoint: &Endpoint, target: &str) -> Result<Self, RequestError> {
        if let Some(bad) = target.bytes().position(|b| !b.is_ascii_graphic()) {
            return Err(RequestError::Target(bad));
        }
        Ok(Self {
            method,
            target: if target.is_empty() { "/".to_owned() } else { target.to_owned() },
            host: endpoint.host_header().to_owned(),
            streaming: false,
            with_id: true,
            headers: Vec::new(),
        })
    }

    /// Asks for an event stream (`Accept: text/event-stream`) rather than for JSON.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Whether an `X-Request-Id` is sent (it is, unless turned off or given as a header).
    #[must_use]
    pub fn with_id(mut self, with_id: bool) -> Self {
        self.with_id = with_id;
        self
    }

    /// Adds a header. One that takt sets itself (`Host`, `Accept`, …) is replaced; others may repeat,
    /// in the order given.
    ///
    /// # Errors
    /// [`HeaderError`], which never shows the value.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, RequestError> {
        let header = Header::new(name, value)?;
        if header.stands_once() && self.headers.iter().any(|h| h.is(&header.name)) {
            return Err(HeaderError::Twice(header.name).into());
        }
        self.headers.push(header);
        Ok(self)
    }

    /// Adds `Authorization: Bearer KEY`.
    ///
    /// # Errors
    /// [`HeaderError`], which never shows the key.
    pub fn bearer(self, key: &str) -> Result<Self, RequestError> {
        self.header("Authorization", &format!("Bearer {}", key.trim()))
    }

    /// The request with this body; an empty body means none.
    #[must_use]
    pub fn build(&self, body: &[u8]) -> PreparedRequest {
        let bytes = Vec::with_capacity(256 + self.target.len() + body.len());
        let mut request = PreparedRequest { bytes, ..PreparedRequest::default() };
        self.build_into(&mut request, [], &[body]);
        request
    }

    /// The same in the place of `request`, whose memory is used again: the body is put together from
    /// `pieces`, and `more` headers of its own, names and values that [`header`](Self::header) would take,
    /// stand behind those of all requests.
    pub fn build_into<'h>(
        &self,
        request: &mut PreparedRequest,
        more: impl IntoIterator<Item = (&'h str, &'h str)>,
        pieces: &[&[u8]],
    ) {
        let body: usize = pieces.iter().map(|piece| piece.len()).sum();
        let out = &mut request.bytes;
        out.clear();
        out.extend_from_slice(self.method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.target.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        self.own_header(out, "Host", &self.host);
        self.own_header(out, "User-Agent", concat!("takt/", env!("CARGO_PKG_VERSION")));
        let accept = if self.streaming { "text/event-stream" } else { "application/json" };
        self.own_header(out, "Accept", accept);
        if body > 0 {
            self.own_header(out, "Content-Type", "application/json");
        }
        for header in &self.headers {
            line(out, &header.name, &header.value);
        }
        for (name, value) in more {
            line(out, name, value);
        }
        let mut id_at = None;
        if self.with_id && !self.given("X-Request-Id") {
            out.extend_from_slice(b"X-Request-Id: ");
            id_at = Some(out.len());
            out.extend_from_slice(&[b'0'; ID_LEN]);
            out.extend_from_slice(b"\r\n");
        }
        if body > 0 || self.method.expects_body() {
            line(out, "Content-Length", itoa::Buffer::new().format(body));
        }
        out.extend_from_slice(b"\r\n");
        request.body_at = out.len();
        request.id_at = id_at;
        pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    }

    fn own_header(&self, out: &mut Vec<u8>, name: &str, value: &str) {
        if !self.given(name) {
            line(out, name, value);
        }
    }

    fn given(&self, name: &str) -> bool {
        self.headers.iter().any(|h| h.is(name))
    }
}

/// Shows names only: values may be secrets.
impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.target.split('?').next().unwrap_or_default();
        write!(f, "RequestBuilder({} {path}, {:?})", self.method, self.headers)
    }
}

impl PreparedRequest {
    /// Head and body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Method and path, without a query: that may hold anything.
    #[must_use]
    pub fn asked(&self) -> &str {
        let line = self.bytes.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let line = std::str::from_utf8(line).unwrap_or_default();
        let asked = line.strip_suffix(" HTTP/1.1").unwrap_or(line);
        asked.split('?').next().unwrap_or_default()
    }

    /// The body alone.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.body_at..]
    }

    /// Writes the id into its place; does nothing when the request has none.
    pub fn patch_id(&mut self, id: &[u8; ID_LEN]) {
        if let Some(at) = self.id_at {
            self.bytes[at..at + ID_LEN].copy_from_slice(id);
        }
    }

    /// Writes `bytes` over those of the body from `at` on.
    ///
    /// # Panics
    /// When the body ends before.
    pub fn patch_body(&mut self, at: usize, bytes: &[u8]) {
        let at = self.body_at + at;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// Shows lengths only: the head holds secrets.
impl fmt::Debug for PreparedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.bytes.len() - self.body_at;
        write!(f, "PreparedRequest(head {} bytes, body {body} bytes)", self.body_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder(method: Method) -> RequestBuilder {
        let endpoint = Endpoint::parse("http://h:8000").expect("address");
        RequestBuilder::new(method, &endpoint, "/v1/x").expect("target")
    }

    fn text(request: &PreparedRequest) -> String {
        String::from_utf8(request.bytes().to_vec()).expect("ascii")
    }

    #[test]
    fn whole_request_byte_for_byte() {
        let request = builder(Method::Post)
            .streaming(true)
            .bearer("k")
            .and_then(|b| b.header("X-Team", "a"))
            .and_then(|b| b.header("X-Team", "b"))
            .expect("headers")
            .build(b"{}");
        let expect = format!(
            "POST /v1/x HTTP/1.1\r\nHost: h:8000\r\nUser-Agent: takt/{}\r\n\
             Accept: text/event-stream\r\nContent-Type: application/json\r\n\
             Authorization: Bearer k\r\nX-Team: a\r\nX-Team: b\r\n\
             X-Request-Id: 00000000000000000000000000000000\r\nContent-Length: 2\r\n\r\n{{}}",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(text(&request), expect);
        assert_eq!(request.body(), b"{}");
    }

    #[test]
    fn id_is_patched_in_place() {
        let mut request = builder(Method::Post).build(b"{}");
        let (before, room) = (text(&request), request.bytes.capacity());
        let id = b"0123456789abcdef0123456789abcdef";
        request.patch_id(id);
        let zeros = "0".repeat(ID_LEN);
        assert_eq!(text(&request), before.replace(&zeros, "0123456789abcdef0123456789abcdef"));
        assert_eq!(request.bytes.capacity(), room);
    }

    #[test]
    fn a_request_in_another_ones_place_is_the_same_as_a_new_one() {
        let b = builder(Method::Post).header("X-Team", "a").expect("header");
        let mut request = b.build(&[b'x'; 999]);
        let room = request.bytes.capacity();
        b.build_into(&mut request, [], &[b"{\"a\":", b"", b"1}"]);
        assert_eq!(request, b.build(b"{\"a\":1}"));
        assert_eq!(request.bytes.capacity(), room);
        b.build_into(&mut request, [("X-Session-ID", "c1")], &[b"{}"]);
        assert!(text(&request).contains("X-Team: a\r\nX-Session-ID: c1\r\nX-Request-Id: 0"));
        request.patch_body(1, b"!");
        assert_eq!(request.body(), b"{!");
    }

    #[test]
    fn given_headers_replace_takts_own() {
        let request = builder(Method::Post)
            .header("user-agent", "mine")
            .and_then(|b| b.header("X-REQUEST-ID", "fixed"))
            .and_then(|b| b.header("Host", "other"))
            .expect("headers")
            .build(b"x");
        let text = text(&request);
        assert!(!text.contains("takt/") && !text.contains("h:8000"), "{text}");
        assert_eq!(text.to_ascii_lowercase().matches("x-request-id").count(), 1);
        assert_eq!(request.id_at, None);
    }

    #[test]
    fn get_has_no_length_and_an_empty_post_says_zero() {
        assert!(!text(&builder(Method::Get).build(b"")).contains("Content-"));
        assert!(text(&builder(Method::Post).build(b"")).contains("Content-Length: 0\r\n\r\n"));
    }

    #[test]
    fn k3_no_debug_output_shows_a_secret() {
        let b = builder(Method::Post).bearer("hunter2").expect("key");
        assert!(!format!("{b:?} {:?}", b.build(b"hunter2")).contains("hunter2"));
        let twice = b.header("Authorization", "hunter2").expect_err("twice");
        assert!(!format!("{twice} {twice:?}").contains("hunter2"));
    }

    #[test]
    fn target_that_breaks_the_request_line_is_refused() {
        let endpoint = Endpoint::parse("http://h").expect("address");
        let error = RequestBuilder::new(Method::Get, &endpoint, "/a b").expect_err("space");
        assert_eq!(error, RequestError::Target(2));
    }

    #[test]
    fn nothing_asks_for_compression() {
        assert!(!text(&builder(Method::Post).build(b"x")).to_lowercase().contains("encoding"));
    }
}
