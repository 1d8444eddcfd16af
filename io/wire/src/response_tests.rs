//! Facts about answers, each checked for the whole and for every split of its bytes.

use proptest::prelude::*;

use super::*;
use crate::head::ContentType;
use crate::testing::split;

/// What came out of an answer, body joined.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    heads: Vec<(u16, ContentType)>,
    body: Vec<u8>,
    ended: bool,
    left_over: usize,
    error: Option<FramingError>,
    reusable: bool,
}

/// Feeds the slices in turn and then, if asked, the end of the connection.
fn run<'a>(slices: impl IntoIterator<Item = &'a [u8]>, eof: bool, setup: Setup) -> Seen {
    run_with(ResponseParser::new(setup.limits), slices, eof, setup)
}

fn run_with<'a>(
    mut parser: ResponseParser,
    slices: impl IntoIterator<Item = &'a [u8]>,
    eof: bool,
    setup: Setup,
) -> Seen {
    parser.reset(setup.no_body);
    let mut seen = Seen::default();
    for slice in slices {
        if seen.error.is_some() {
            break;
        }
        match parser.feed(slice, &mut |part| note(&mut seen, &part)) {
            Ok(used) => seen.left_over += slice.len() - used,
            Err(error) => seen.error = Some(error),
        }
    }
    if eof && seen.error.is_none() {
        seen.error = parser.eof(&mut |part| note(&mut seen, &part)).err();
    }
    seen.reusable = parser.is_reusable();
    seen
}

fn note(seen: &mut Seen, part: &Part<'_>) {
    assert!(!seen.ended, "nothing comes after the end");
    match part {
        Part::Head(head) => seen.heads.push((head.status, head.content_type)),
        Part::Body(bytes) => {
            assert!(!bytes.is_empty());
            seen.body.extend_from_slice(bytes);
        }
        Part::End => seen.ended = true,
    }
}

#[derive(Clone, Copy, Default)]
struct Setup {
    limits: Limits,
    no_body: bool,
}

/// The answer whole; byte by byte it must be the same.
fn check(wire: &[u8], eof: bool) -> Seen {
    check_with(wire, eof, Setup::default())
}

fn check_with(wire: &[u8], eof: bool, setup: Setup) -> Seen {
    let seen = run([wire], eof, setup);
    assert_eq!(run(wire.chunks(1), eof, setup), seen, "byte by byte");
    seen
}

#[test]
fn answer_with_a_length_in_one_read() {
    let seen = check(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false);
    assert_eq!(seen.heads, [(200, ContentType::Absent)]);
    assert_eq!((seen.body.as_slice(), seen.ended, seen.reusable), (&b"hello"[..], true, true));
}

#[test]
fn f15_informational_answers_and_trailers_are_skipped() {
    let seen = check(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
          HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n",
        false,
    );
    assert_eq!(seen.heads, [(200, ContentType::Absent)]);
    assert_eq!((seen.body.as_slice(), seen.ended, seen.reusable), (&b"abc"[..], true, true));
}

#[test]
fn f14_close_delimited_answer_ends_well_and_is_not_reusable() {
    let wire = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}";
    let open = check(wire, false);
    assert!(!open.ended);
    let seen = check(wire, true);
    assert_eq!((seen.body.as_slice(), seen.ended, seen.error), (&b"{}"[..], true, None));
    assert!(!seen.reusable);
}

#[test]
fn answers_without_body_end_with_the_head() {
    for status in ["204 x", "304 x\r\nContent-Length: 9", "200 x\r\nContent-Length: 0"] {
        let wire = format!("HTTP/1.1 {status}\r\n\r\n");
        let seen = check(wire.as_bytes(), false);
        assert!(seen.ended && seen.reusable && seen.body.is_empty(), "{status}");
    }
    let head = Setup { no_body: true, ..Setup::default() };
    let seen = check_with(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false, head);
    assert!(seen.ended && seen.reusable);
}

#[test]
fn empty_lines_in_front_are_skipped_wherever_they_are_cut() {
    for front in ["\r\n", "\n", "\r\n\n\r\n"] {
        let wire = format!("{front}HTTP/1.1 103 x\r\n\r\n{front}HTTP/1.1 204 x\r\n\r\n");
        assert!(check(wire.as_bytes(), false).ended, "{front:?}");
    }
    for front in ["\r", "\n\r"] {
        let wire = format!("{front}HTTP/1.1 204 x\r\n\r\n");
        let seen = check(wire.as_bytes(), true);
        assert_eq!(seen.error, Some(FramingError::BadHead("a line does not end in CRLF")));
    }
    let limits = Limits { head: 64, body: 4, event: 4 };
    let endless = check_with(&b"\r\n".repeat(40), true, Setup { limits, no_body: false });
    assert_eq!(endless.error, Some(FramingError::HeadTooLarge { limit: 64 }));
}

#[test]
fn bytes_after_the_end_are_left_over() {
    let seen = check(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1", false);
    assert_eq!((seen.body.as_slice(), seen.ended, seen.left_over), (&b"ok"[..], true, 8));
}

#[test]
fn f9_each_cut_is_told_apart() {
    for (wire, expect) in [
        (&b""[..], FramingError::ClosedBeforeHead),
        (b"HTTP/1.1 200 OK\r\nConte", FramingError::ClosedInHead),
        (b"HTTP/1.1 103 x\r\n\r\n", FramingError::ClosedInHead),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", FramingError::ClosedInBody),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc",
            FramingError::ClosedInBody,
        ),
    ] {
        let seen = check(wire, true);
        assert_eq!(seen.error, Some(expect), "{}", String::from_utf8_lossy(wire));
        assert!(!seen.ended && !seen.reusable);
    }
}

#[test]
fn what_is_not_http_is_a_bad_head() {
    for wire in [&b"SSH-2.0-OpenSSH\r\n"[..], b"HTTP/2 200\r\n\r\n", b"<html>\n"] {
        let seen = run(wire.chunks(1), true, Setup::default());
        assert!(matches!(seen.error, Some(FramingError::BadHead(_))), "{seen:?}");
    }
    let upgrade = check(b"HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n", false);
    assert!(matches!(upgrade.error, Some(FramingError::BadHead(_))));
}

#[test]
fn an_answer_with_two_lengths_has_them_equal() {
    for (second, ends) in [("5", true), ("4", false)] {
        let head = format!("Content-Length: 5\r\nContent-Length: {second}");
        let seen = check(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\nhello").as_bytes(), false);
        let expect = (!ends).then_some(FramingError::BadLength);
        assert_eq!(seen.error, expect, "{head}");
    }
}

#[test]
fn limits_hold_for_every_split() {
    let limits = Limits { head: 64, body: 4, event: 4 };
    let small = Setup { limits, no_body: false };
    let long_head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(64));
    for (wire, expect) in [
        (long_head.as_str(), FramingError::HeadTooLarge { limit: 64 }),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", FramingError::BodyTooLarge { limit: 4 }),
        ("HTTP/1.1 200 OK\r\n\r\nhello", FramingError::BodyTooLarge { limit: 4 }),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            FramingError::BodyTooLarge { limit: 4 },
        ),
    ] {
        assert_eq!(check_with(wire.as_bytes(), false, small).error, Some(expect), "{wire}");
    }
    let endless = "HTTP/1.1 102 x\r\n\r\n".repeat(9);
    let seen = check_with(endless.as_bytes(), false, small);
    assert_eq!(seen.error, Some(FramingError::HeadTooLarge { limit: 64 }));
}

#[test]
fn reset_starts_the_next_answer_without_new_memory() {
    let mut parser = ResponseParser::new(Limits::default());
    let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let mut room = None;
    for _ in 0..3 {
        let mut seen = Seen::default();
        for byte in wire.chunks(1) {
            parser.feed(byte, &mut |part| note(&mut seen, &part)).expect("answer");
        }
        assert!(seen.ended && parser.is_reusable());
        assert_eq!(*room.get_or_insert(parser.held.capacity()), parser.held.capacity());
        parser.reset(false);
        assert!(!parser.is_touched());
    }
}

#[test]
fn reset_forgets_half_a_head() {
    let mut parser = ResponseParser::new(Limits::default());
    parser.feed(b"HTTP/1.1 500 x\r\nX", &mut |_| {}).expect("half a head");
    parser.reset(false);
    let mut seen = Seen::default();
    let wire = b"HTTP/1.1 204 x\r\n\r\n";
    parser.feed(wire, &mut |part| note(&mut seen, &part)).expect("answer");
    assert_eq!(seen.heads, [(204, ContentType::Absent)]);
}

#[test]
fn a_head_like_the_last_one_says_the_same_and_another_says_its_own() {
    let last = LastHead::default();
    let read = |wire: &[u8], no_body| {
        let mut parser = ResponseParser::sharing(Limits::default(), last.clone());
        parser.reset(no_body);
        let mut seen = Seen::default();
        let used = parser.feed(wire, &mut |part| note(&mut seen, &part)).expect("an answer");
        (seen.heads[0].0, seen.body, used, parser.is_reusable())
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let ok = format!("{head}okHTTP");
    for _ in 0..3 {
        let (none, longer) = (head.len(), ok.replace(": 2", ": 4"));
        assert_eq!(read(ok.as_bytes(), false), (200, b"ok".to_vec(), none + 2, true));
        assert_eq!(read(ok.as_bytes(), false), (200, b"ok".to_vec(), none + 2, true));
        assert_eq!(read(ok.as_bytes(), true), (200, Vec::new(), none, true));
        assert_eq!(read(longer.as_bytes(), false), (200, b"okHT".to_vec(), none + 4, true));
        let closing = ok.replace("Content-Length: 2", "Connection: close\r\nContent-Length: 2");
        assert!(!read(closing.as_bytes(), false).3);
        let moved = ok.replace("200 OK\r\n", "302 x\r\nLocation: /a\r\n");
        assert_eq!(read(moved.as_bytes(), false).0, 302);
    }
}

/// An answer of any framing, with 1xx heads, trailers and left-over bytes.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let body = proptest::collection::vec(any::<u8>(), 0..80);
    let sizes = proptest::collection::vec(1usize..20, 1..8);
    (0usize..3, body, sizes, 0usize..3, any::<bool>(), 0usize..4).prop_map(
        |(informational, body, sizes, framing, crlf, rest)| {
            let end = if crlf { "\r\n" } else { "\n" };
            let mut wire = format!("HTTP/1.1 103 x{end}{end}").repeat(informational).into_bytes();
            let kind = match framing {
                0 => format!("Content-Length: {}", body.len()),
                1 => "Transfer-Encoding: chunked".to_owned(),
                _ => "Connection: close".to_owned(),
            };
            wire.extend(format!("HTTP/1.1 200 OK{end}{kind}{end}{end}").bytes());
            if framing == 1 {
                let mut left = body.as_slice();
                for size in sizes.iter().cycle() {
                    let (chunk, after) = left.split_at((*size).min(left.len()));
                    if chunk.is_empty() {
                        break;
                    }
                    wire.extend(format!("{:x}{end}", chunk.len()).bytes());
                    wire.extend(chunk);
                    wire.extend(end.bytes());
                    left = after;
                }
                wire.extend(format!("0{end}T: 1{end}{end}").bytes());
            } else {
                wire.extend(&body);
            }
            wire.extend("rest".bytes().take(rest));
            wire
        },
    )
}

proptest! {
    #[test]
    fn sharing_the_last_head_changes_nothing(
        wires in proptest::collection::vec(answers(), 1..4),
        order in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let last = LastHead::default();
        for (which, no_body) in order {
            let wire = which.get(&wires);
            let cut = cut.index(wire.len());
            let setup = Setup { no_body, ..Setup::default() };
            for slices in [vec![&wire[..]], vec![&wire[..cut], &wire[cut..]]] {
                let alone = ResponseParser::new(setup.limits);
                let shared = ResponseParser::sharing(setup.limits, last.clone());
                let expect = run_with(alone, slices.clone(), true, setup);
                prop_assert_eq!(run_with(shared, slices, true, setup), expect);
            }
        }
    }

    #[test]
    fn every_split_gives_the_same_answer(
        wire in answers(),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        eof in any::<bool>(),
    ) {
        let whole = run([wire.as_slice()], eof, Setup::default());
        prop_assert_eq!(&run(split(&wire, &cuts), eof, Setup::default()), &whole);
        prop_assert_eq!(&run(wire.chunks(1), eof, Setup::default()), &whole);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        wire in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in proptest::collection::vec(any::<usize>(), 0..6),
    ) {
        let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        run(split(&wire, &cuts), true, Setup::default());
        answer.extend(wire);
        run(split(&answer, &cuts), true, Setup::default());
    }
}
