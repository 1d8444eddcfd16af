//! Facts about requests as a server reads them.

use proptest::prelude::*;

use super::*;
use crate::testing::split;

/// Method, target, id, body and whether the connection is kept, of each request.
type Seen = Vec<(String, String, Option<Vec<u8>>, Vec<u8>, bool)>;

/// Feeds the slices in turn; what came out, how often `100 Continue` was due, and the error.
fn run<'a>(slices: impl IntoIterator<Item = &'a [u8]>) -> (Seen, usize, Option<FramingError>) {
    let limits = Limits { head: 400, body: 100, event: 100 };
    let mut parser = RequestParser::new(limits);
    let (mut seen, mut continues) = (Vec::new(), 0);
    for slice in slices {
        let mut rest = slice;
        loop {
            match parser.next(rest) {
                Ok(Step::Request { used, request: r }) => {
                    let id = r.id.map(<[u8]>::to_vec);
                    let (method, target) = (r.method.to_owned(), r.target.to_owned());
                    seen.push((method, target, id, r.body.to_vec(), r.keep_alive));
                    rest = &rest[used..];
                }
                Ok(Step::Continue { used }) => {
                    continues += 1;
                    rest = &rest[used..];
                }
                Ok(Step::More) => break,
                Err(error) => return (seen, continues, Some(error)),
            }
        }
    }
    (seen, continues, None)
}

/// The requests in `wire`; byte by byte they must be the same.
fn check(wire: &[u8]) -> (Seen, Option<FramingError>) {
    let (seen, _, error) = run([wire]);
    let (bytewise, _, bytewise_error) = run(wire.chunks(1));
    assert_eq!((&bytewise, bytewise_error), (&seen, error), "byte by byte");
    (seen, error)
}

fn post(body: &str) -> String {
    format!(
        "POST /v1/x?q HTTP/1.1\r\nX-Request-Id: 7\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn pipelined_requests_come_one_by_one() {
    let wire = format!("{}\r\nGET /health HTTP/1.0\r\n\r\n{}", post("{}"), post("abc"));
    let (seen, error) = check(wire.as_bytes());
    assert_eq!(error, None);
    let id = Some(b"7".to_vec());
    assert_eq!(
        seen,
        [
            ("POST".into(), "/v1/x?q".into(), id.clone(), b"{}".to_vec(), true),
            ("GET".into(), "/health".into(), None, Vec::new(), false),
            ("POST".into(), "/v1/x?q".into(), id, b"abc".to_vec(), true),
        ]
    );
}

#[test]
fn chunked_request_is_gathered() {
    let wire = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    let (seen, error) = check(wire.as_bytes());
    assert_eq!(error, None);
    assert_eq!(seen, [("POST".into(), "/".into(), None, b"abc".to_vec(), false)]);
}

#[test]
fn waiting_client_is_told_to_continue() {
    let head: &[u8] = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    for (slices, expect) in [
        (vec![head, b"ok"], 1),
        (vec![&head[..9], &head[9..], b"ok"], 1),
        (vec![[head, b"ok"].concat().leak() as &[u8]], 0),
    ] {
        let (seen, continues, error) = run(slices);
        assert_eq!((seen.len(), continues, error), (1, expect, None));
    }
}

#[test]
fn empty_lines_in_front_are_skipped_wherever_they_are_cut() {
    let wire = format!("\r\n\n{}\r\n\r\n{}", post("a"), post("b"));
    assert_eq!(check(wire.as_bytes()).0.len(), 2);
    assert!(check(format!("\r{}", post("a")).as_bytes()).1.is_some());
    let mut parser = RequestParser::new(Limits::default());
    for (byte, idle) in [(b"\r", false), (b"\n", true)] {
        assert_eq!(parser.next(byte), Ok(Step::More));
        assert_eq!(parser.is_idle(), idle);
    }
}

#[test]
fn limits_hold() {
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(400));
    assert_eq!(check(long.as_bytes()).1, Some(FramingError::HeadTooLarge { limit: 400 }));
    let wire = "POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n";
    assert_eq!(check(wire.as_bytes()).1, Some(FramingError::BodyTooLarge { limit: 100 }));
    // Whole in one read, too, where nothing has to be gathered.
    assert_eq!(check(post(&"z".repeat(100)).as_bytes()).1, None);
    let too_large = Some(FramingError::BodyTooLarge { limit: 100 });
    assert_eq!(check(post(&"z".repeat(101)).as_bytes()).1, too_large);
    let wire = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n".to_owned();
    let wire = wire + &"z".repeat(101);
    assert_eq!(check(wire.as_bytes()).1, Some(FramingError::BodyTooLarge { limit: 100 }));
}

#[test]
fn a_header_of_the_same_length_is_another_header() {
    let near = "Accept-Charset: 7\r\nUser-Agent: close\r\nExpert: 100-continue\r\nY-Request-Id: 9\r\n\
                Transfer-Encodinh: chunked\r\nContent\u{2e}Length: 9\r\n";
    let wire = format!("POST / HTTP/1.1\r\n{near}CONTENT-length: 2\r\n\r\nok");
    let (seen, error) = check(wire.as_bytes());
    assert_eq!(error, None);
    assert_eq!(seen, [("POST".into(), "/".into(), None, b"ok".to_vec(), true)]);
}

#[test]
fn lengths_that_differ_are_an_error_wherever_they_stand() {
    let bad = Some(FramingError::BadLength);
    for (lengths, expect) in [
        ("Content-Length: 2\r\nContent-Length: 2", None),
        ("Content-Length: 2, 2", None),
        ("Content-Length: 2\r\nContent-Length: 2,2", None),
        ("Content-Length: 2\r\nContent-Length: 3", bad),
        ("Content-Length: 2,3", bad),
        ("Content-Length: 3\r\nContent-Length: 2,3", bad),
        ("Content-Length: +2", bad),
        ("Content-Length: ", bad),
        ("Content-Length: 18446744073709551616", bad),
    ] {
        let wire = format!("POST / HTTP/1.1\r\n{lengths}\r\n\r\nok");
        assert_eq!(check(wire.as_bytes()).1, expect, "{lengths}");
    }
}

#[test]
fn what_is_no_request_is_an_error() {
    for wire in
        ["hello\r\n\r\n", "GET / HTTP/2\r\n\r\n", "P / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
    {
        assert!(run([wire.as_bytes()]).2.is_some(), "{wire}");
    }
}

#[test]
fn any_header_can_be_found() {
    let mut parser = RequestParser::new(Limits::default());
    let wire = b"GET /a?b=c HTTP/1.1\r\nHost: h\r\nX-Team:  perf \r\n\r\n";
    let Ok(Step::Request { request, used }) = parser.next(wire) else { panic!("request") };
    assert_eq!(used, wire.len());
    assert_eq!(request.header("x-team"), Some(&b"perf"[..]));
    assert_eq!(request.header("x-other"), None);
    assert_eq!(request.path(), "/a");
}

proptest! {
    #[test]
    fn every_split_gives_the_same_requests(
        bodies in proptest::collection::vec("[a-z\r\n]{0,20}", 1..4),
        chunked in any::<bool>(),
        cuts in proptest::collection::vec(any::<usize>(), 0..10),
    ) {
        let mut wire = String::new();
        for body in &bodies {
            if chunked && !body.is_empty() {
                wire += "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
                wire += &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
            } else {
                wire += &post(body);
            }
        }
        let (seen, _, error) = run([wire.as_bytes()]);
        prop_assert_eq!(error, None);
        prop_assert_eq!(seen.len(), bodies.len());
        for (request, body) in seen.iter().zip(&bodies) {
            prop_assert_eq!(&request.3, body.as_bytes());
        }
        let slices = split(wire.as_bytes(), &cuts);
        let (again, _, error) = run(slices);
        prop_assert_eq!((again, error), (seen, None));
    }

    #[test]
    fn arbitrary_bytes_never_panic(wire in proptest::collection::vec(any::<u8>(), 0..200)) {
        run([wire.as_slice()]);
        run(wire.chunks(3));
    }
}
