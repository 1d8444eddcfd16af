//! Message heads: split and tokenized by httparse, of which only the few headers that matter are looked at.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Status};
use takt_time::Span;

use crate::framing::FramingError;

/// The head of a final answer (1xx heads are skipped).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// Status code.
    pub status: u16,
    /// What the body claims to be.
    pub content_type: ContentType,
    /// How the body's end is known.
    pub framing: Framing,
    /// Whether the connection may carry another request after this answer.
    pub keep_alive: bool,
    /// `Keep-Alive: timeout=…`: how long the server keeps an idle connection.
    pub idle_timeout: Option<Span>,
    /// `Keep-Alive: max=…`: how many more requests the server takes on this connection.
    pub requests_left: Option<u64>,
    /// Whether the body has a content or transfer coding that is not undone here (nobody asked for one).
    pub encoded: bool,
    /// `Location`, for the error text of a redirect.
    pub location: Option<&'a [u8]>,
    /// `Retry-After`, for the error text of a refusal.
    pub retry_after: Option<&'a [u8]>,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// The connection is closed behind it.
    UntilClose,
}

/// What `Content-Type` says, parameters left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// No such header.
    Absent,
    /// `text/event-stream`
    EventStream,
    /// `application/json` and whatever ends in `+json`
    Json,
    /// `text/html`
    Html,
    /// Anything else.
    Other,
}

/// The head of a request, with the headers that a server of ours needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) id: Option<&'a [u8]>,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) expects_continue: bool,
}

/// A parsed head and its length in bytes.
pub(crate) type Parsed<H> = Option<(usize, H)>;

/// Reads an answer's head from the start of `bytes`; `None` when it is not all there.
///
/// `no_body` says that the answer has none whatever the head says (it answers a HEAD request).
pub(crate) fn response(
    bytes: &[u8],
    no_body: bool,
) -> Result<Parsed<ResponseHead<'_>>, FramingError> {
    let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut []);
    let config = ParserConfig::default();
    let len = match config.parse_response_with_uninit_headers(&mut head, bytes, &mut room) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) => return Ok(None),
        // The first byte decides, so that no split makes a difference.
        Err(_) if bytes.first().is_some_and(|first| TLS_RECORDS.contains(first)) => {
            return Err(FramingError::BadHead("what came is TLS; is this an https:// address?"));
        }
        Err(error) => return Err(bad(error)),
    };
    let status = head.code.ok_or(FramingError::BadHead("no status"))?;
    let mut common = Common::new(head.version == Some(1));
    let mut out = ResponseHead {
        status,
        content_type: ContentType::Absent,
        framing: Framing::None,
        keep_alive: false,
        idle_timeout: None,
        requests_left: None,
        encoded: false,
        location: None,
        retry_after: None,
    };
    for header in head.headers.iter() {
        match header.name.len() {
            8 if is(header, b"location") => out.location = Some(header.value),
            10 if is(header, b"keep-alive") => keep_alive(header.value, &mut out),
            11 if is(header, b"retry-after") => out.retry_after = Some(header.value),
            12 if is(header, b"content-type") => out.content_type = content_type(header.value),
            16 if is(header, b"content-encoding") => {
                out.encoded |= !header.value.trim_ascii().eq_ignore_ascii_case(b"identity");
            }
            _ => common.look(header)?,
        }
    }
    out.encoded |= common.coded;
    out.framing = match (status, common.transfer, common.length) {
        _ if no_body => Framing::None,
        (100..200 | 204 | 304, _, _) => Framing::None,
        (_, Transfer::Chunked, _) => Framing::Chunked,
        (_, Transfer::Other, _) | (_, Transfer::None, None) => Framing::UntilClose,
        (_, Transfer::None, Some(length)) => Framing::Length(length),
    };
    // Length and chunked at once, or chunked before it existed: chunked holds, but such a sender is not to be
    // trusted further (RFC 9112, sections 6.1 and 6.3).
    let ambiguous =
        common.transfer != Transfer::None && (common.length.is_some() || !common.http11);
    out.keep_alive = common.keep_alive()
        && out.framing != Framing::UntilClose
        && out.requests_left != Some(0)
        && !ambiguous;
    Ok(Some((len, out)))
}

/// Reads a request's head from the start of `bytes`; `None` when it is not all there.
pub(crate) fn request(bytes: &[u8]) -> Result<Parsed<RequestHead<'_>>, FramingError> {
    let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut []);
    let len = match head.parse_with_uninit_headers(bytes, &mut room) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(bad(error)),
    };
    let mut common = Common::new(head.version == Some(1));
    let (mut id, mut expects_continue) = (None, false);
    for header in head.headers.iter() {
        match header.name.len() {
            6 if is(header, b"expect") => {
                expects_continue = header.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
            }
            12 if is(header, b"x-request-id") => id = Some(header.value),
            _ => common.look(header)?,
        }
    }
    let framing = match (common.transfer, common.length) {
        (Transfer::Chunked, _) => Framing::Chunked,
        (Transfer::Other, _) => return Err(FramingError::BadHead("unknown transfer coding")),
        (Transfer::None, Some(length)) if length > 0 => Framing::Length(length),
        (Transfer::None, _) => Framing::None,
    };
    Ok(Some((
        len,
        RequestHead {
            method: head.method.unwrap_or_default(),
            target: head.path.unwrap_or_default(),
            id,
            framing,
            keep_alive: common.keep_alive(),
            expects_continue,
        },
    )))
}

/// Adds the bytes of a split head to `held`; whether it is time to try and parse it.
///
/// A head is parsed again only when a line of it has ended, so that one which comes byte by byte costs its lines
/// times its length and no more.
pub(crate) fn hold(held: &mut Vec<u8>, input: &[u8]) -> bool {
    held.extend_from_slice(input);
    input.contains(&b'\n')
}

/// Takes the line ends in front of a head, which are to be ignored (RFC 9112, section 2.2); gives their length in
/// `input`. Of one that is cut in two, CR is in `held`.
pub(crate) fn skip_blank_lines(held: &mut Vec<u8>, input: &[u8]) -> usize {
    let mut at = 0;
    if held == b"\r" && input.starts_with(b"\n") {
        held.clear();
        at = 1;
    }
    while held.is_empty() {
        match &input[at..] {
            [b'\n', ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            _ => break,
        }
    }
    at
}

/// The headers that decide where a message ends and whether the connection lives on.
struct Common {
    http11: bool,
    close: bool,
    stay: bool,
    length: Option<u64>,
    transfer: Transfer,
    coded: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transfer {
    None,
    Chunked,
    Other,
}

impl Common {
    fn new(http11: bool) -> Self {
        Self {
            http11,
            close: false,
            stay: false,
            length: None,
            transfer: Transfer::None,
            coded: false,
        }
    }

    fn look(&mut self, header: &Header<'_>) -> Result<(), FramingError> {
        match header.name.len() {
            10 if is(header, b"connection") => {
                for token in tokens(header.value) {
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.stay |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if is(header, b"content-length") => {
                // Nearly always one number of digits alone.
                if self.length.is_none()
                    && let Some(length) = number(header.value)
                {
                    self.length = Some(length);
                    return Ok(());
                }
                // A list of equal numbers is one number (RFC 9112, section 6.3).
                for token in header.value.split(|&b| b == b',') {
                    let length = number(token.trim_ascii()).ok_or(FramingError::BadLength)?;
                    if self.length.is_some_and(|known| known != length) {
                        return Err(FramingError::BadLength);
                    }
                    self.length = Some(length);
                }
            }
            17 if is(header, b"transfer-encoding") => {
                for token in tokens(header.value) {
                    if token.eq_ignore_ascii_case(b"chunked") {
                        self.transfer = Transfer::Chunked;
                    } else if !token.eq_ignore_ascii_case(b"identity") {
                        self.transfer = Transfer::Other;
                        self.coded = true;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep_alive(&self) -> bool {
        !self.close && (self.http11 || self.stay)
    }
}

/// Whether a header is called `name`, which is of small letters and hyphens. Without a branch for each byte: all that
/// differ from `name` in that bit alone are capitals, or no byte of a name.
fn is<const N: usize>(header: &Header<'_>, name: &[u8; N]) -> bool {
    let given = <&[u8; N]>::try_from(header.name.as_bytes());
    given.is_ok_and(|given| given.iter().zip(name).fold(0, |d, (g, n)| d | ((g | 0x20) ^ n)) == 0)
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

/// A number of digits alone: no sign, no blank, no overflow.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

fn keep_alive(value: &[u8], head: &mut ResponseHead<'_>) {
    for token in tokens(value) {
        let Some(eq) = token.iter().position(|&b| b == b'=') else { continue };
        let (name, value) = (token[..eq].trim_ascii(), number(token[eq + 1..].trim_ascii()));
        if name.eq_ignore_ascii_case(b"timeout") {
            head.idle_timeout = value.map(Span::from_secs);
        } else if name.eq_ignore_ascii_case(b"max") {
            head.requests_left = value;
        }
    }
}

fn content_type(value: &[u8]) -> ContentType {
    let end = value.iter().position(|&b| b == b';').unwrap_or(value.len());
    let kind = value[..end].trim_ascii();
    let ends_in_json = || kind.len() > 5 && kind[kind.len() - 5..].eq_ignore_ascii_case(b"+json");
    if kind.eq_ignore_ascii_case(b"application/json") || ends_in_json() {
        ContentType::Json
    } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
        ContentType::EventStream
    } else if kind.eq_ignore_ascii_case(b"text/html") {
        ContentType::Html
    } else {
        ContentType::Other
    }
}

fn bad(error: httparse::Error) -> FramingError {
    FramingError::BadHead(match error {
        httparse::Error::HeaderName => "a header name has a forbidden character",
        httparse::Error::HeaderValue => "a header value has a forbidden character",
        httparse::Error::NewLine => "a line does not end in CRLF",
        httparse::Error::Status => "the status line is broken",
        httparse::Error::Token => "the request line is broken",
        httparse::Error::TooManyHeaders => "more than 128 headers",
        httparse::Error::Version => "the version is not HTTP/1.0 or HTTP/1.1",
    })
}

const MAX_HEADERS: usize = 128;
/// How a record of TLS begins (RFC 8446, 5.1); no HTTP does.
const TLS_RECORDS: std::ops::RangeInclusive<u8> = 0x14..=0x17;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ResponseHead<'_>, FramingError> {
        let head = format!("{text}\r\n\r\n");
        // Leaked: a test's few bytes, so that the head can be returned.
        let head: &'static str = Box::leak(head.into_boxed_str());
        response(head.as_bytes(), false).map(|parsed| {
            let (len, parsed) = parsed.expect("whole head");
            assert_eq!(len, head.len());
            parsed
        })
    }

    #[test]
    fn headers_are_found_in_any_case() {
        let head = read(
            "HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh: 12\r\nCONTENT-TYPE: Text/Event-Stream; charset=x\r\n\
             keep-alive: timeout=5, max=100",
        )
        .expect("head");
        assert_eq!(head.framing, Framing::Length(12));
        assert_eq!(head.content_type, ContentType::EventStream);
        assert_eq!(head.idle_timeout, Some(Span::from_secs(5)));
        assert_eq!(head.requests_left, Some(100));
        assert!(head.keep_alive && !head.encoded);
    }

    #[test]
    fn keep_alive_follows_version_and_connection() {
        for (text, expect) in [
            ("HTTP/1.1 204 x", true),
            ("HTTP/1.1 204 x\r\nConnection: foo, Close", false),
            ("HTTP/1.0 204 x", false),
            ("HTTP/1.0 204 x\r\nConnection: Keep-Alive", true),
            ("HTTP/1.1 200 x", false), // its body ends with the connection
            ("HTTP/1.1 204 x\r\nKeep-Alive: max=0", false),
            ("HTTP/1.1 200 x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", false),
            ("HTTP/1.0 200 x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked", false),
        ] {
            assert_eq!(read(text).expect(text).keep_alive, expect, "{text}");
        }
    }

    #[test]
    fn framing_follows_rfc_9112() {
        for (text, expect) in [
            ("200 x\r\nTransfer-Encoding: chunked", Framing::Chunked),
            ("200 x\r\nTransfer-Encoding: identity\r\nContent-Length: 3", Framing::Length(3)),
            ("200 x\r\nTransfer-Encoding: gzip, chunked", Framing::Chunked),
            ("200 x\r\nTransfer-Encoding: gzip", Framing::UntilClose),
            ("200 x\r\nContent-Length: 7, 7", Framing::Length(7)),
            ("200 x", Framing::UntilClose),
            ("204 x\r\nContent-Length: 7", Framing::None),
            ("304 x\r\nContent-Length: 7", Framing::None),
        ] {
            let text = format!("HTTP/1.1 {text}");
            assert_eq!(read(&text).expect("head").framing, expect, "{text}");
        }
    }

    #[test]
    fn tls_in_the_place_of_a_head_is_called_so_from_its_first_byte_on() {
        let alert = [0x15, 3, 1, 0, 2, 2, 70];
        for len in 1..=alert.len() {
            let said = response(&alert[..len], false).map(|_| ()).unwrap_err().to_string();
            assert!(said.contains("is this an https:// address?"), "{len}: {said}");
        }
        let other = response(b"SSH-2.0-nobody\r\n", false).map(|_| ()).unwrap_err().to_string();
        assert!(!other.contains("TLS"), "{other}");
    }

    #[test]
    fn bad_lengths_are_refused() {
        for value in ["", "-1", "+1", "1 2", "0x1", "1,2", "99999999999999999999"] {
            let text = format!("HTTP/1.1 200 x\r\nContent-Length: {value}");
            assert_eq!(read(&text).map(|_| ()), Err(FramingError::BadLength), "{value}");
        }
    }

    #[test]
    fn coded_bodies_are_marked() {
        for (header, expect) in [
            ("Content-Encoding: gzip", true),
            ("Content-Encoding: identity", false),
            ("Transfer-Encoding: gzip, chunked", true),
        ] {
            let text = format!("HTTP/1.1 200 x\r\n{header}");
            assert_eq!(read(&text).expect("head").encoded, expect, "{header}");
        }
    }
}
