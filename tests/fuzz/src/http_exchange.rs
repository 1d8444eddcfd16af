//! One HTTP/1 answer, read by takt in three splits and by hyper's client.
//!
//! Input: options, split, then the bytes of the answer. Options: bit 0, it answers a HEAD; bit 1, the
//! connection stays open behind the bytes; bit 2, small limits (then takt is held to itself alone).
//!
//! Both use httparse for the lines of a head. What is compared is everything behind that: which head is the
//! final one, where the body ends, the chunked coding, and whether the connection may be used again.
//! Where the two differ rightly:
//!
//! * takt refuses `101`, hyper hands it over. hyper refuses a status below 100, takt lets the request fail by it.
//! * takt refuses a bad `Content-Length` even where it decides nothing (`204`, an answer to HEAD, 1xx, beside
//!   `Transfer-Encoding`).
//! * takt reads `Transfer-Encoding: identity` and empty list items as if they were not there.
//! * hyper refuses `Transfer-Encoding` under HTTP/1.0; takt reads the body and does not use the connection again.
//! * takt takes a bare LF for CRLF in chunked framing and skips trailers unread; hyper checks both.
//! * hyper takes 100 headers, takt 128.
//! * takt gives a connection up more often: `Keep-Alive: max=0`, a length beside a transfer coding, `close` in a
//!   `Connection` that is not ASCII (hyper skips the whole of such a value).

use takt_wire::{FramingError, Limits, Part, ResponseParser};

use super::hyper_client;
use super::pieces::{bit, options, pieces};

/// The target.
pub fn http_exchange(data: &[u8]) {
    let Some(([flags, how], wire)) = options(data) else { return };
    let setup = Setup { no_body: bit(flags, 0), open: bit(flags, 1), small: bit(flags, 2) };
    let whole = read(&[wire], setup);
    for how in [b'1', how] {
        let split = read(&pieces(wire, how), setup);
        assert_eq!(split, whole, "split {how}");
    }
    if !setup.small {
        compare(wire, how, setup, &whole);
    }
}

#[derive(Clone, Copy)]
struct Setup {
    no_body: bool,
    open: bool,
    small: bool,
}

/// What takt made of the answer.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    status: Option<u16>,
    body: Vec<u8>,
    ended: bool,
    error: Option<FramingError>,
    /// Bytes up to the end, when it ended before the connection did.
    used: usize,
    reusable: bool,
}

fn read(pieces: &[&[u8]], setup: Setup) -> Seen {
    let limits = if setup.small { SMALL } else { Limits::default() };
    let mut parser = ResponseParser::new(limits);
    parser.reset(setup.no_body);
    let mut seen = Seen::default();
    let mut used = 0;
    for piece in pieces {
        match parser.feed(piece, &mut |part| note(&mut seen, &part)) {
            Ok(here) => used += here,
            Err(error) => {
                seen.error = Some(error);
                break;
            }
        }
    }
    if seen.ended {
        seen.used = used;
        seen.reusable = parser.is_reusable();
    } else if seen.error.is_none() {
        seen.error = parser.eof(&mut |part| note(&mut seen, &part)).err();
        assert!(!parser.is_reusable());
    }
    assert!(parser.is_done());
    assert_eq!(seen.ended, seen.error.is_none(), "it ends, or it fails");
    assert_eq!(parser.body_bytes(), seen.body.len() as u64);
    // Which limit is met first, and whether a fault is met before it, depends on the reads.
    if setup.small && seen.error.is_some_and(|e| !e.is_truncation()) {
        seen.error = Some(FramingError::BadLength);
    }
    seen
}

fn note(seen: &mut Seen, part: &Part<'_>) {
    assert!(!seen.ended, "nothing comes after the end");
    match part {
        Part::Head(head) => assert_eq!(seen.status.replace(head.status), None, "one head"),
        Part::Body(bytes) => {
            assert!(seen.status.is_some() && !bytes.is_empty());
            seen.body.extend_from_slice(bytes);
        }
        Part::End => {
            assert!(seen.status.is_some());
            seen.ended = true;
        }
    }
}

fn compare(wire: &[u8], how: u8, setup: Setup, takt: &Seen) {
    let facts = Facts::of(wire);
    if facts.other_coding {
        return;
    }
    assert!(!(facts.old_at_last && takt.reusable), "{takt:?}");
    // Bytes behind the end would be another answer that nobody asked for.
    let open = setup.open && takt.ended && takt.used == wire.len();
    let owned = pieces(wire, how).into_iter().map(<[u8]>::to_vec).collect();
    let hyper = hyper_client::ask(owned, setup.no_body, !open);
    let says = || format!("hyper: {hyper:?}\ntakt: {takt:?}\nfacts: {facts:?}");
    if hyper.ended {
        if takt.error.is_some() {
            assert!(facts.upgrade || takt.error == Some(FramingError::BadLength), "{}", says());
            return;
        }
        assert_eq!(takt.status, hyper.status, "{}", says());
        assert_eq!(takt.body, hyper.body, "{}", says());
        if open {
            assert!(hyper.reusable || !takt.reusable, "{}", says());
            assert!(takt.reusable || !hyper.reusable || facts.told_to_leave, "{}", says());
        }
    } else if takt.ended && facts.upgrade {
        unreachable!("takt refuses upgrades");
    } else if takt.ended {
        let lenient = facts.odd_status
            || facts.headers > 100
            || facts.old_with_coding
            || (facts.chunked && !strictly_chunked(&wire[facts.body_at..]));
        // On an open connection hyper may still wait for what it thinks is missing.
        assert!((hyper.failed || open) && lenient, "{}", says());
    }
}

/// What httparse, asked directly, says of the heads.
#[derive(Debug, Default)]
struct Facts {
    /// A head says 101.
    upgrade: bool,
    odd_status: bool,
    headers: usize,
    /// `Transfer-Encoding` names `identity`, holds an empty item or is not ASCII.
    other_coding: bool,
    /// A head of HTTP/1.0 has a transfer coding.
    old_with_coding: bool,
    /// The final one does.
    old_at_last: bool,
    chunked: bool,
    /// `Keep-Alive: max=…`, a length beside a transfer coding, or a `Connection` that hyper cannot read.
    told_to_leave: bool,
    body_at: usize,
}

impl Facts {
    fn of(wire: &[u8]) -> Self {
        let mut facts = Self::default();
        loop {
            let mut room = [httparse::EMPTY_HEADER; 128];
            let mut head = httparse::Response::new(&mut room);
            let parsed = head.parse(&wire[facts.body_at..]);
            let Ok(httparse::Status::Complete(len)) = parsed else { return facts };
            facts.body_at += len;
            let status = head.code.unwrap_or_default();
            facts.look(&head, status);
            if !matches!(status, 100..200) || facts.upgrade {
                return facts;
            }
        }
    }

    fn look(&mut self, head: &httparse::Response<'_, '_>, status: u16) {
        self.upgrade |= status == 101;
        self.odd_status |= status < 100;
        self.headers = self.headers.max(head.headers.len());
        let of = |name: &'static str| {
            let named = head.headers.iter().filter(move |h| h.name.eq_ignore_ascii_case(name));
            named.map(|h| h.value.to_ascii_lowercase())
        };
        let codings: Vec<_> = of("transfer-encoding").collect();
        self.old_at_last = !codings.is_empty() && head.version == Some(0);
        self.old_with_coding |= self.old_at_last;
        for coding in codings.iter().flat_map(|value| value.split(|&b| b == b',')) {
            let coding = coding.trim_ascii();
            self.other_coding |= coding.is_empty() || coding == b"identity" || !coding.is_ascii();
            self.chunked |= coding == b"chunked";
        }
        let counted = of("keep-alive").any(|value| value.windows(3).any(|w| w == b"max"));
        let unread = of("connection").any(|value| !value.is_ascii());
        self.told_to_leave |=
            counted || unread || (!codings.is_empty() && of("content-length").count() > 0);
    }
}

/// Whether `body` begins with a whole chunked body by the letter of RFC 9112, without trailers.
fn strictly_chunked(mut body: &[u8]) -> bool {
    loop {
        let digits = body.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let Ok(size) = std::str::from_utf8(&body[..digits]) else { return false };
        let Ok(size) = usize::from_str_radix(size, 16) else { return false };
        let Some(line) = body[digits..].iter().position(|&b| b == b'\r' || b == b'\n') else {
            return false;
        };
        let rest = &body[digits + line..];
        let extension = &body[digits..digits + line];
        let blanks = extension.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        if !matches!(extension.get(blanks), None | Some(b';')) {
            return false;
        }
        let Some(rest) = rest.strip_prefix(b"\r\n") else { return false };
        if size == 0 {
            return rest.starts_with(b"\r\n");
        }
        let Some((_, rest)) = rest.split_at_checked(size) else { return false };
        let Some(rest) = rest.strip_prefix(b"\r\n") else { return false };
        body = rest;
    }
}

const SMALL: Limits = Limits { head: 96, body: 24, event: 24 };
