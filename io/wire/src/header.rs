//! Headers that a user gives: checked once, before anything is sent, so that no value can break the
//! framing of a request. Errors name the header and never its value.

use std::fmt;

/// A checked header of a request. Its value never shows in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A header that cannot be sent. The value is not part of the error: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name is empty or has a character that header names do not have.
    #[error("header name {0:?} is not valid: letters, digits and - _ . ! # $ % & ' * + ^ ` | ~")]
    Name(String),
    /// The value holds a line break or another control character.
    #[error("the value of header {0} holds a line break or a control character")]
    Value(String),
    /// The header decides where a message ends, which is not the user's to say.
    #[error("header {0} is set by takt itself and cannot be given")]
    Reserved(String),
    /// The body would come compressed.
    #[error("header {0} asks for compression, which takt does not undo; only `identity` may stand")]
    Compression(String),
    /// The header may stand once only.
    #[error("header {0} is given twice (an API key is the header Authorization)")]
    Twice(String),
}

impl Header {
    pub(crate) fn new(name: &str, value: &str) -> Result<Self, HeaderError> {
        let name = name.trim();
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(HeaderError::Name(name.chars().take(64).collect()));
        }
        let value = value.trim_matches([' ', '\t']);
        if value.bytes().any(|b| (b < 0x20 && b != b'\t') || b == 0x7f) {
            return Err(HeaderError::Value(name.to_owned()));
        }
        if RESERVED.iter().any(|r| name.eq_ignore_ascii_case(r)) {
            return Err(HeaderError::Reserved(name.to_owned()));
        }
        if name.eq_ignore_ascii_case("accept-encoding") && !value.eq_ignore_ascii_case("identity") {
            return Err(HeaderError::Compression(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// Whether a second one of this name is refused.
    pub(crate) fn stands_once(&self) -> bool {
        ONCE.iter().any(|name| self.is(name))
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: …", self.name)
    }
}

/// Sees whether a header of this name may be added to requests: none that stands there already.
///
/// # Errors
/// [`HeaderError`] when it may not.
pub fn check_header_name(name: &str) -> Result<(), HeaderError> {
    let header = Header::new(name, "")?;
    if header.stands_once() {
        return Err(HeaderError::Reserved(header.name));
    }
    Ok(())
}

/// The characters of a token (RFC 9110, section 5.6.2).
pub(crate) fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

/// Appends a header of a message's head. Both texts are known to be fit for one.
pub(crate) fn line(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

const RESERVED: [&str; 7] =
    ["content-length", "transfer-encoding", "expect", "upgrade", "te", "trailer", "http2-settings"];
const ONCE: [&str; 6] =
    ["host", "authorization", "content-type", "accept", "user-agent", "x-request-id"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_break_a_head_are_refused_without_being_shown() {
        for value in ["a\r\nX: hunter2", "hunter2\n", "hunter2\0", "\u{7f}hunter2"] {
            let error = Header::new("X-Key", value).expect_err("control character");
            assert_eq!(error, HeaderError::Value("X-Key".into()));
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn names_are_tokens() {
        for name in ["", "a b", "a:b", "a\r\n", "ü"] {
            let refused = matches!(Header::new(name, "v"), Err(HeaderError::Name(_)));
            assert_eq!(refused, name.trim() != "a", "{name:?}");
        }
    }

    #[test]
    fn framing_headers_and_compression_are_takts_own() {
        assert!(matches!(Header::new("Content-Length", "3"), Err(HeaderError::Reserved(_))));
        assert!(matches!(Header::new("expect", "100-continue"), Err(HeaderError::Reserved(_))));
        assert!(matches!(Header::new("Accept-Encoding", "gzip"), Err(HeaderError::Compression(_))));
        assert!(Header::new("Accept-Encoding", "identity").is_ok());
    }
}
