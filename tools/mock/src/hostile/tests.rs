//! Facts about what leaves, on a clock and sockets that are variables: exact to the nanosecond.

use takt_engine::Close;
use takt_time::Nanos;
use takt_wire::{Answer, AnswerEvent, Api, Ask, Limits, Text};

use super::{Fault, FaultRow, HostileConfig, PlanKey};
use crate::config::{Mode, ServerConfig};
use crate::testing::{CHAT, MS, Rig, STREAM, post, rig, timed};

/// A server of three tokens at 20, 25 and 30 ms, with this fault.
fn spoiled(faults: &[&str], share: f64) -> ServerConfig {
    let mut config = timed(|_| ());
    let Mode::Timed(answers) = config.mode else { panic!("timed") };
    let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    config.mode = Mode::Hostile(Box::new(HostileConfig { answers, faults, share }));
    config
}

/// What comes back for one request at 0, and when.
fn ask(fault: &str, path: &str, body: &str) -> Rig {
    let mut rig = rig(spoiled(&[fault], 1.0));
    rig.connect();
    rig.send(0, post(path, "", body));
    rig.run_to(10_000 * MS);
    rig
}

/// When something was written, in milliseconds, and its events with text.
fn writes(rig: &Rig) -> Vec<(u64, usize)> {
    rig.with(0, |pipe| {
        let line = |(at, bytes): &(Nanos, Vec<u8>)| {
            let text = String::from_utf8_lossy(bytes);
            (at.as_nanos() / MS, text.matches("\"content\":\" ").count())
        };
        pipe.writes.iter().map(line).collect()
    })
}

#[track_caller]
fn check(fault: &str, expect: &[(u64, usize)]) {
    assert_eq!(writes(&ask(fault, CHAT, STREAM)), expect, "{fault}");
}

#[test]
fn faults_of_time_move_what_leaves_and_nothing_else() {
    // The head and the role at once, then the tokens.
    check("crlf", &[(0, 0), (20, 1), (25, 1), (30, 1)]);
    check("role-first=1300ms", &[(0, 0), (1_300, 1), (1_305, 1), (1_310, 1)]);
    check("stall=2s", &[(0, 0), (20, 1), (2_025, 1), (2_030, 1)]);
    check("slow-head=2s", &[(2_000, 0), (2_020, 1), (2_025, 1), (2_030, 1)]);
    check("late-usage=20ms", &[(0, 0), (20, 1), (25, 1), (30, 1), (50, 0)]);
    check("no-nodelay=40ms", &[(0, 0), (40, 3)]);
    check("two-events-a-read=2", &[(0, 0), (25, 2), (30, 1)]);
    check("four-tokens-a-chunk=2", &[(0, 0), (25, 1), (30, 1)]);
}

#[test]
fn endings_come_when_and_as_they_should() {
    let closed = |fault| ask(fault, CHAT, STREAM).with(0, |pipe| pipe.closed);
    let at = |us: u64| Nanos::from_nanos(us * 1_000);
    assert_eq!(closed("crlf"), None);
    assert_eq!(closed("cut-after-tokens=2"), Some((at(27_000), Close::Reset)));
    assert_eq!(closed("close-after-tokens=2"), Some((at(25_000), Close::Orderly)));
    assert_eq!(closed("close-after-answer=30us"), Some((at(30_030), Close::Orderly)));
    assert_eq!(closed("idle-close=5s"), Some((at(5_030_000), Close::Orderly)));
    assert_eq!(closed("never-answers"), None);
    assert_eq!(closed("refuse-later=1"), Some((at(0), Close::Reset)));
    let never = ask("never-answers", CHAT, STREAM);
    assert_eq!(never.received(0), b"");
}

#[test]
fn a_connection_that_is_used_again_is_not_idle() {
    let mut rig = rig(spoiled(&["idle-close=50ms"], 1.0));
    rig.connect();
    for nth in 0..4 {
        rig.run_to(nth * 60 * MS);
        rig.send(0, post(CHAT, "", STREAM));
    }
    rig.run_to(1_000 * MS);
    assert_eq!(rig.answers(0).len(), 4);
    let closed = rig.with(0, |pipe| pipe.closed).unwrap();
    assert_eq!(closed, (Nanos::from_nanos((180 + 30 + 50) * MS), Close::Orderly));
}

#[test]
fn a_client_that_gives_up_on_a_silent_server_is_forgotten() {
    let mut rig = ask("never-answers", CHAT, STREAM);
    rig.end(0);
    rig.run_to(20_000 * MS);
    assert!(rig.with(0, |pipe| pipe.closed).is_some());
    assert_eq!((rig.counts.open(), rig.counts.running()), (0, 0));
}

/// Faults that the answers of a route have nothing for, and why.
const LACKING: [(&str, &[&str]); 5] = [
    // Only chat has a place for reasoning and for calls beside text.
    ("/v1/completions", &["reasoning-first", "reasoning-key", "mixed-delta", "tool-call"]),
    // It has no choices, no `[DONE]`, and always counts.
    (
        "/v1/responses",
        &[
            "after-done",
            "usage-between",
            "reasoning-first",
            "reasoning-key",
            "mixed-delta",
            "tool-call",
            "no-done",
            "empty-choices",
            "usage-with-choices",
        ],
    ),
    // It has no choices, and always counts.
    (
        "/generate",
        &[
            "usage-between",
            "reasoning-first",
            "reasoning-key",
            "mixed-delta",
            "tool-call",
            "empty-choices",
            "usage-with-choices",
        ],
    ),
    // They are never streamed, and have no text.
    (
        "/v1/embeddings",
        &[
            "big-event",
            "split-utf8",
            "crlf",
            "cr",
            "two-events-a-read",
            "no-space",
            "comments",
            "sse-fields",
            "data-lines",
            "role-first",
            "empty-content",
            "usage-between",
            "after-done",
            "reasoning-first",
            "reasoning-key",
            "mixed-delta",
            "tool-call",
            "no-end",
            "no-done",
            "null-content",
            "no-content",
            "empty-choices",
            "usage-with-choices",
            "usage-partial",
            "four-tokens-a-chunk",
            "one-token",
            "usage-short",
            // One write has none before it.
            "no-nodelay",
        ],
    ),
    (CHAT, &[]),
];

const ALL: &str = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;

#[test]
fn every_fault_changes_the_answers_of_every_route_or_is_refused_there() {
    let mut wrong = Vec::new();
    for row in Fault::all() {
        let fault: Fault = match row.name {
            "refuse-later" => "refuse-later=1".parse().unwrap(),
            name => name.parse().unwrap(),
        };
        for (path, lacks) in LACKING {
            let lacking = lacks.contains(&row.name);
            let found = fault.lacks().any(|api| api.path() == path);
            if found != lacking {
                wrong.push(format!("{fault} on {path}: lacking is {found}"));
                continue;
            }
            assert_eq!(row.lacks.contains(&path), lacking, "{fault} on {path}");
            let rig = ask(&fault.to_string(), path, ALL);
            let refused = rig.received(0).starts_with(b"HTTP/1.1 501 ");
            assert_eq!(refused, lacking, "{fault} on {path}");
            if refused {
                let says = format!("have nothing that the fault {fault} changes");
                assert!(rig.answers(0)[0].body.contains(&says), "{}", rig.answers(0)[0].body);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_fault_that_does_not_fail_leaves_the_text_that_was_sent() {
    let apis = [
        (CHAT, Api::OpenaiChat),
        ("/v1/completions", Api::OpenaiCompletions),
        ("/v1/responses", Api::OpenaiResponses),
        ("/generate", Api::SglangGenerate),
    ];
    for (path, api) in apis {
        let good = read(&ask("late-usage=1ms", path, ALL), api).expect("it is good");
        for row in Fault::all().filter(|row| !row.lacks.contains(&path)) {
            let Some((text, tokens)) = read(&ask(row.name, path, ALL), api) else { continue };
            let text = if row.name == "mixed-delta" { text.replace("hm", "") } else { text };
            let (want, counted) = match row.name {
                "big-event" => {
                    assert!(
                        text.len() > 256 << 10 && text.contains(&good.0[good.0.len() - 5..]),
                        "{path}"
                    );
                    continue;
                }
                "split-utf8" => (good.0.replace(|c| c != ' ', "\u{1f680}"), good.1),
                "one-token" => (good.0[..good.0[1..].find(' ').unwrap() + 1].to_owned(), Some(1)),
                "usage-short" | "usage-partial" | "no-end" => (good.0.clone(), tokens),
                _ => (good.0.clone(), good.1),
            };
            assert_eq!(text, want, "{} on {path}", row.name);
            assert_eq!(tokens, counted, "{} on {path}", row.name);
        }
    }
}

/// The text of an answer and the server's count, as the client reads them; `None` of one that fails.
fn read(rig: &Rig, api: Api) -> Option<(String, Option<u64>)> {
    let ask = Ask { api, stream: true, keep_text: true, no_body: false };
    let mut answer = Answer::new(ask, Limits::default());
    let (mut text, mut good, mut tokens) = (String::new(), None, None);
    let mut look = |event: AnswerEvent<'_>| match event {
        AnswerEvent::Text(Text::Content(more) | Text::Reasoning(more)) => text.push_str(more),
        AnswerEvent::Usage(usage) => tokens = usage.completion.map(u64::from),
        AnswerEvent::End(end) => good = Some(end.failure.is_none()),
        _ => {}
    };
    answer.feed(&rig.received(0), Nanos::ZERO, &mut look);
    answer.eof(&mut look);
    good.filter(|good| *good).map(|_| (text, tokens))
}

#[test]
fn every_fault_leaves_a_server_that_serves_on_on_every_route() {
    for row in Fault::all().filter(|row| row.name != "refuse-later") {
        for (path, _) in LACKING {
            for body in ["{}", STREAM, ALL] {
                let mut rig = ask(row.name, path, body);
                let number = rig.connect();
                rig.send(number, "GET /health HTTP/1.1\r\n\r\n");
                rig.run_to(20_000 * MS);
                let answers = rig.answers(number);
                assert_eq!((answers[0].status, answers[0].complete), (200, true), "{}", row.name);
                assert!(rig.counts.running() <= 1, "{}", row.name);
            }
        }
    }
}

#[test]
fn a_fault_is_the_same_whenever_it_is_drawn_and_comes_at_its_share() {
    let Mode::Hostile(config) = spoiled(&["crlf", "stall"], 0.25).mode else { panic!() };
    let drawn = |ordinal| config.draw(PlanKey::Ordinal(ordinal));
    let met: Vec<Fault> = (0..10_000).filter_map(drawn).collect();
    // Four standard deviations of the binomial are 174.
    assert!(met.len().abs_diff(2_500) < 174, "{}", met.len());
    let stalls = met.iter().filter(|fault| fault.to_string().starts_with("stall")).count();
    assert!(stalls.abs_diff(met.len() / 2) < 120, "{stalls}");
    assert_eq!(drawn(3), drawn(3));
}

#[test]
fn names_are_read_back_and_are_all_different() {
    let names: Vec<FaultRow> = Fault::all().collect();
    for row in &names {
        let text = match &row.default {
            Some(default) => format!("{}={default}", row.name),
            None => row.name.to_owned(),
        };
        assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        assert_eq!(names.iter().filter(|other| other.name == row.name).count(), 1, "{}", row.name);
    }
    for (text, says) in [
        ("splitt", "no fault \"splitt\""),
        ("crlf=3", "takes no setting"),
        ("stall=3", "no time, such as stall=2s"),
        ("cut-after-tokens=0", "no number"),
        ("redirect=7", "no status of 300 to 399"),
        ("redirect=99999", "no status of 300 to 399"),
    ] {
        let error = text.parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
