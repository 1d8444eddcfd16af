//! Facts about event streams. Each is checked for the whole and byte by byte; the property tests add
//! every other split and a model written from the standard.

use proptest::prelude::*;

use super::*;
use crate::testing::split;

type Seen = (Vec<(String, String)>, Option<SseTooLarge>);

fn run<'a>(slices: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> (Seen, SseParser) {
    let mut parser = SseParser::new(limit);
    let mut events = Vec::new();
    let mut error = None;
    for slice in slices {
        let fed = parser.feed(slice, &mut |event| {
            events.push((String::from_utf8_lossy(event.name).into(), event.text().into()));
        });
        if let Err(e) = fed {
            error = Some(e);
            break;
        }
    }
    ((events, error), parser)
}

/// The data of the events in `wire`, all of them unnamed.
#[track_caller]
fn check(wire: &str, expect: &[&str]) {
    let expect: Vec<_> = expect.iter().map(|data| ("", *data)).collect();
    check_named(wire, &expect);
}

#[track_caller]
fn check_named(wire: &str, expect: &[(&str, &str)]) {
    let expect: Vec<_> = expect.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
    assert_eq!(run([wire.as_bytes()], 1 << 20).0, (expect.clone(), None));
    assert_eq!(run(wire.as_bytes().chunks(1), 1 << 20).0, (expect, None), "byte by byte");
}

#[test]
fn f2_all_line_ends_and_two_events_in_one_read() {
    for end in ["\n", "\r\n", "\r"] {
        let wire = format!("data: a{end}{end}data: b{end}{end}");
        check(&wire, &["a", "b"]);
    }
    check("data: a\r\n\rdata: b\n\r\n", &["a", "b"]);
}

#[test]
fn f3_fields_as_the_standard_says() {
    check("data:{}\n\ndata: {}\n\ndata:  {}\n\n", &["{}", "{}", " {}"]);
    check(": ping\n\n:\ndata: a\n: in between\ndata: b\n\n", &["a\nb"]);
    check_named(
        "event: error\nid: 7\nretry: 10\ndata: x\n\ndata: y\n\n",
        &[("error", "x"), ("", "y")],
    );
    check("data\n\ndata:\ndata\n\n", &["", "\n"]);
    check("event: lonely\n\nid: 3\n\n\n\n", &[]);
    check("datax: a\n data: b\nDATA: c\n\n", &[]);
}

#[test]
fn id_and_retry_are_kept() {
    let (_, parser) = run([&b"id: 7\nretry: 10\n\nid: a\0b\nretry: 1x\nretry:\n\n"[..]], 100);
    assert_eq!((parser.last_id(), parser.retry()), (&b"7"[..], Some(Span::from_millis(10))));
}

#[test]
fn byte_order_mark_is_skipped_in_front_only() {
    check("\u{feff}data: a\n\n", &["a"]);
    check("\u{feff}\u{feff}data: a\n\n", &[]);
    check("data: \u{feff}\n\n", &["\u{feff}"]);
    let not_a_mark = [&b"\xEF\xBBdata: a\ndata: b\n\n"[..]];
    assert_eq!(run(not_a_mark, 100).0.0, [(String::new(), "b".to_owned())]);
}

#[test]
fn f1_large_event_and_split_characters_are_whole() {
    let text = "ü€😀".repeat(30_000);
    let wire = format!("data: {text}\n\n");
    for size in [1, 7, 4096] {
        let (seen, _) = run(wire.as_bytes().chunks(size), 1 << 20);
        assert_eq!(seen, (vec![(String::new(), text.clone())], None), "slices of {size}");
    }
}

#[test]
fn unterminated_event_is_pending_and_not_dispatched() {
    for (wire, pending) in [
        ("data: a\n\ndata: b", true),
        ("data: a\n\ndata: b\n", true),
        ("data: a\n\n: ping", false),
        ("data: a\n\nevent: x\n", false),
        ("data: a\n\n", false),
    ] {
        let ((events, _), mut parser) = run([wire.as_bytes()], 100);
        assert_eq!((events.len(), parser.pending()), (1, pending), "{wire:?}");
        let mut rest = Vec::new();
        parser.finish(&mut |event| rest.push(event.data.to_vec())).expect("within the limit");
        assert_eq!(rest.len(), usize::from(pending));
        assert!(!parser.pending());
    }
}

#[test]
fn event_in_one_slice_is_not_copied() {
    let (_, parser) = run([&b"data: {\"a\":1}\n\nid: 1\nevent: e\ndata: {}\n\n"[..]], 100);
    assert_eq!((parser.data.capacity(), parser.line.capacity()), (0, 0));
}

#[test]
fn events_past_the_limit_are_refused() {
    let too_large = Some(SseTooLarge { limit: 10 });
    for (wire, before) in [
        ("data: a\n\ndata: 12345\n\n", 1),
        ("data: a\n\n: 1234567890\n\n", 1),
        ("data: 12\ndata: 34\ndata: 56\ndata: 78\n\n", 0),
    ] {
        for size in [1, 3, 100] {
            let ((events, error), _) = run(wire.as_bytes().chunks(size), 10);
            assert_eq!((events.len(), error), (before, too_large), "{wire:?} by {size}");
        }
    }
}

#[test]
fn reset_forgets_the_stream() {
    let (_, mut parser) = run([&b"event: e\ndata: half"[..]], 100);
    parser.reset();
    let mut events = Vec::new();
    let sink = &mut |event: SseEvent<'_>| events.push((event.name.to_vec(), event.data.to_vec()));
    parser.feed(b"data: a\n\n", sink).expect("within the limit");
    assert_eq!(events, [(Vec::new(), b"a".to_vec())]);
}

/// The standard's rules, written down plainly for a whole text.
fn model(text: &str) -> Vec<(String, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
    // The piece behind the last line end is no line.
    let (ended, _) = text.rsplit_once('\n').unwrap_or(("", ""));
    let lines: Vec<&str> = if text.contains('\n') { ended.split('\n').collect() } else { vec![] };
    for line in lines {
        if line.is_empty() {
            if let Some(joined) = data.strip_suffix('\n') {
                events.push((name.clone(), joined.to_owned()));
            }
            name.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "data" => data += &format!("{value}\n"),
            _ => {}
        }
    }
    events
}

proptest! {
    #[test]
    fn any_text_in_any_split_gives_what_the_standard_says(
        text in "(\u{feff})?(data|event|id|:|: |x|ü|\n|\r|\r\n|data: a\n\n){0,40}",
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let expect = (model(&text), None);
        prop_assert_eq!(&run([text.as_bytes()], 1000).0, &expect);
        prop_assert_eq!(&run(split(text.as_bytes(), &cuts), 1000).0, &expect);
        prop_assert_eq!(&run(text.as_bytes().chunks(1), 1000).0, &expect);
    }

    #[test]
    fn limit_makes_no_difference_between_splits(
        text in "(data: |event: |a|bc|\n|\r\n){0,40}",
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
        limit in 1usize..20,
    ) {
        let whole = run([text.as_bytes()], limit).0;
        prop_assert_eq!(run(split(text.as_bytes(), &cuts), limit).0, whole);
    }
}
