//! The one request and the one answer of the floor, and the length of a message seen for the
//! first time.
//!
//! Both are of fixed size: 110 bytes out, 200 bytes back. A program that knows the size of what it
//! waits for has only to count, which is the point of a floor.

/// Bytes of the prebuilt request, head and body.
pub const REQUEST_LEN: usize = 110;

/// Bytes of the prebuilt answer, head and body.
pub const ANSWER_LEN: usize = 200;

/// A POST of exactly [`REQUEST_LEN`] bytes for `host`, such as `127.0.0.1:8000`.
///
/// # Panics
/// When `host` is so long (over 40 bytes) that no body fits.
#[must_use]
pub fn request(host: &str) -> Vec<u8> {
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: ");
    filled(&head, REQUEST_LEN)
}

/// A `200 OK` of exactly [`ANSWER_LEN`] bytes.
#[must_use]
pub fn answer() -> Vec<u8> {
    filled("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ", ANSWER_LEN)
}

/// The whole length of the message whose head `seen` begins with: head, blank line and body.
///
/// `None` while the head is incomplete, and for a message without a `Content-Length`.
#[must_use]
pub fn message_len(seen: &[u8]) -> Option<usize> {
    let head_len = seen.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&seen[..head_len]).ok()?;
    let body_len = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if !name.eq_ignore_ascii_case("content-length") {
            return None;
        }
        value.trim().parse::<usize>().ok()
    })?;
    Some(head_len + body_len)
}

/// `head`, a content length, a blank line and a JSON body, `len` bytes in all.
fn filled(head: &str, len: usize) -> Vec<u8> {
    const FRAME: &str = r#"{"prompt":""}"#;
    let digits = if len - head.len() - 4 > 100 { 3 } else { 2 };
    let body_len = len - head.len() - digits - 4;
    assert!(body_len >= FRAME.len(), "the head leaves {body_len} bytes for a body");
    let padding = "x".repeat(body_len - FRAME.len());
    format!("{head}{body_len}\r\n\r\n{{\"prompt\":\"{padding}\"}}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_and_answer_have_the_sizes_they_promise() {
        for host in ["127.0.0.1:1", "127.0.0.1:8000", "127.0.0.1:65535"] {
            let bytes = request(host);
            assert_eq!(bytes.len(), REQUEST_LEN);
            assert_eq!(message_len(&bytes), Some(REQUEST_LEN));
        }
        assert_eq!(answer().len(), ANSWER_LEN);
        assert_eq!(message_len(&answer()), Some(ANSWER_LEN));
    }

    #[test]
    fn length_is_unknown_until_the_head_is_whole() {
        let bytes = request("127.0.0.1:8000");
        let head_len = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
        for cut in 0..head_len {
            assert_eq!(message_len(&bytes[..cut]), None, "cut at {cut}");
        }
        assert_eq!(message_len(&bytes[..head_len]), Some(REQUEST_LEN));
        assert_eq!(message_len(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    }
}
