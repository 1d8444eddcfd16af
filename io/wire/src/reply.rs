//! Answers as bytes, for a server: heads, chunks and events are appended to a buffer, with no memory of their own.

use crate::head::Framing;
use crate::header::line;

/// Appends an answer's head.
///
/// `content_type` may be empty (then it is left out); `extra` headers are taken as they are. A head whose
/// body ends with the connection, or after which it is not kept, says `Connection: close`.
pub fn write_head(
    out: &mut Vec<u8>,
    status: u16,
    content_type: &str,
    framing: Framing,
    keep_alive: bool,
    extra: &[(&str, &str)],
) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
    if !content_type.is_empty() {
        line(out, "Content-Type", content_type);
    }
    match framing {
        Framing::None | Framing::UntilClose => {}
        Framing::Length(length) => {
            line(out, "Content-Length", itoa::Buffer::new().format(length));
        }
        Framing::Chunked => line(out, "Transfer-Encoding", "chunked"),
    }
    if !keep_alive || framing == Framing::UntilClose {
        line(out, "Connection", "close");
    }
    for (name, value) in extra {
        line(out, name, value);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a chunk of a chunked body. An empty one would end the body, so nothing is written for it.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    chunk_size(out, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Appends the end of a chunked body.
pub fn write_last_chunk(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// Appends a server-sent event whose data is one line.
pub fn write_event(out: &mut Vec<u8>, data: &[u8]) {
    debug_assert!(!data.iter().any(|b| matches!(b, b'\r' | b'\n')), "data of an event is one line");
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Appends a server-sent event as a chunk of its own.
pub fn write_event_chunk(out: &mut Vec<u8>, data: &[u8]) {
    chunk_size(out, data.len() + b"data: \n\n".len());
    write_event(out, data);
    out.extend_from_slice(b"\r\n");
}

/// Appends a server-sent event with a name as a chunk of its own.
pub fn write_named_event_chunk(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    chunk_size(out, name.len() + data.len() + b"event: \ndata: \n\n".len());
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    write_event(out, data);
    out.extend_from_slice(b"\r\n");
}

/// The usual words for a status code.
#[must_use]
pub fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        103 => "Early Hints",
        200 => "OK",
        204 => "No Content",
        302 => "Found",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

fn chunk_size(out: &mut Vec<u8>, len: usize) {
    let mut digits = [0u8; 16];
    let mut at = digits.len();
    let mut left = len;
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[left & 15];
        left >>= 4;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Limits;
    use crate::response::{Part, ResponseParser};

    /// Reads what was written with our own client side: status, body, whether it can be used again.
    fn read_back(wire: &[u8]) -> (u16, Vec<u8>, bool) {
        let (mut status, mut body) = (0, Vec::new());
        let mut parser = ResponseParser::new(Limits::default());
        let used = parser.feed(wire, &mut |part| match part {
            Part::Head(head) => status = head.status,
            Part::Body(bytes) => body.extend_from_slice(bytes),
            Part::End => {}
        });
        assert_eq!(used, Ok(wire.len()));
        (status, body, parser.is_reusable())
    }

    #[test]
    fn plain_answer_reads_back() {
        let mut out = Vec::new();
        write_head(&mut out, 200, "application/json", Framing::Length(2), true, &[("X-A", "1")]);
        assert_eq!(
            String::from_utf8_lossy(&out),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nX-A: 1\r\n\r\n"
        );
        out.extend_from_slice(b"{}");
        assert_eq!(read_back(&out), (200, b"{}".to_vec(), true));
        out.clear();
        write_head(&mut out, 204, "", Framing::None, false, &[]);
        assert_eq!(read_back(&out), (204, Vec::new(), false));
    }

    #[test]
    fn chunks_of_any_size_read_back() {
        let mut out = Vec::new();
        write_head(&mut out, 200, "text/event-stream", Framing::Chunked, true, &[]);
        let mut expect = Vec::new();
        for len in [1, 15, 16, 17, 255, 256, 70_000] {
            let data = vec![b'x'; len];
            write_chunk(&mut out, &data);
            write_chunk(&mut out, b"");
            write_event_chunk(&mut out, &data);
            expect.extend_from_slice(&data);
            write_event(&mut expect, &data);
            write_named_event_chunk(&mut out, "a.b", &data);
            expect.extend_from_slice(b"event: a.b\n");
            write_event(&mut expect, &data);
        }
        write_last_chunk(&mut out);
        assert_eq!(read_back(&out), (200, expect, true));
    }
}
