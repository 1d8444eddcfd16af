//! The conformance corpus (`tests/corpus`): every file gives the events written beside it, however it is cut.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that reads the files of the corpus"
)]

use std::path::Path;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde_json::{Map, Value, json};
use takt_time::Nanos;
use takt_wire::{
    Answer, AnswerEvent, Api, Ask, CountedBy, FailKind, FinishReason, Form, Limits, Outcome, Stage,
    Text, Token,
};

/// A file of bytes and what is written of it.
struct Case {
    name: String,
    wire: Vec<u8>,
    says: Value,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "http") {
            let says = std::fs::read(path.with_extension("json")).unwrap();
            cases.push(Case {
                name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                wire: std::fs::read(&path).unwrap(),
                says: serde_json::from_slice(&says).unwrap(),
            });
        }
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

/// What is seen of an answer, in the words of the corpus.
#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    /// Text since the last event that is none.
    text: Map<String, Value>,
    outcome: Option<Value>,
}

impl Seen {
    fn look(&mut self, event: &AnswerEvent<'_>) {
        assert!(self.outcome.is_none(), "nothing follows the end");
        match event {
            AnswerEvent::Text(text) => self.text(text),
            AnswerEvent::Token(token) => self.token(token),
            AnswerEvent::Head { status, .. } => self.events.push(json!({"head": status})),
            AnswerEvent::FirstEvent { .. } => self.events.push(json!({"first_event": true})),
            AnswerEvent::Finish { reason, .. } => {
                self.flush();
                self.events.push(json!({"finish": finish(*reason)}));
            }
            AnswerEvent::Usage(usage) => {
                self.flush();
                let counts = [
                    ("input", usage.prompt),
                    ("output", usage.completion),
                    ("cached", usage.cached),
                    ("reasoning", usage.reasoning),
                ];
                let given =
                    counts.into_iter().filter_map(|(name, n)| Some((name.to_owned(), json!(n?))));
                self.events.push(json!({"usage": Value::Object(given.collect())}));
            }
            AnswerEvent::End(outcome) => {
                self.flush();
                self.outcome = Some(ended(outcome));
            }
        }
    }

    fn text(&mut self, text: &Text<'_>) {
        let (kind, piece) = match text {
            Text::Content(piece) => ("content", *piece),
            Text::Reasoning(piece) => ("reasoning", *piece),
            Text::ToolCall { index, id, name, arguments } => {
                let mut call = json!({"index": index});
                for (key, value) in [("id", id), ("name", name), ("arguments", arguments)] {
                    if let Some(value) = value {
                        call[key] = json!(value);
                    }
                }
                let calls = self.text.entry("tool_calls").or_insert_with(|| json!([]));
                return calls.as_array_mut().unwrap().push(call);
            }
            Text::Body(_) => return,
        };
        let sofar = self.text.get(kind).and_then(Value::as_str).unwrap_or_default();
        self.text.insert(kind.to_owned(), json!(format!("{sofar}{piece}")));
    }

    fn token(&mut self, token: &Token) {
        let mut told = std::mem::take(&mut self.text);
        if let Some(tokens) = token.tokens {
            told.insert("tokens".to_owned(), json!(tokens));
        }
        self.events.push(json!({"token": told}));
    }

    /// Text of a whole answer belongs to no token event.
    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.events.push(json!({"text": std::mem::take(&mut self.text)}));
        }
    }
}

fn ended(outcome: &Outcome) -> Value {
    let mut said = json!({"ok": outcome.is_ok(), "form": form(outcome.form)});
    if let Some((tokens, by)) = outcome.output {
        said["output_tokens"] = json!(tokens);
        said["counted_by"] = json!(match by {
            CountedBy::Usage => "usage",
            CountedBy::ContinuousUsage => "continuous_usage",
            CountedBy::TokenIds => "token_ids",
            CountedBy::Events => "events",
        });
    }
    if let Some(failure) = &outcome.failure {
        let (kind, stage) = (kind(failure.kind), stage(failure.stage));
        said["failure"] = json!({"kind": kind, "stage": stage, "says": failure.message});
    }
    said
}

/// Plays the pieces to `answer` as one connection would.
fn play(answer: &mut Answer, case: &Case, pieces: &mut dyn Iterator<Item = &[u8]>) -> Seen {
    let says = &case.says;
    answer.begin(Ask {
        api: Api::parse(says["api"].as_str().unwrap()).unwrap(),
        stream: says["stream"].as_bool().unwrap(),
        keep_text: true,
        no_body: false,
    });
    let mut seen = Seen::default();
    let mut all_used = true;
    for piece in pieces {
        let fed = answer.feed(piece, Nanos::from_nanos(1), &mut |event| seen.look(&event));
        all_used &= fed.used == piece.len();
    }
    match says["end"].as_str().unwrap() {
        "open" => {}
        "closed" => answer.eof(&mut |event| seen.look(&event)),
        "reset" => answer.cut("connection reset by peer", &mut |event| seen.look(&event)),
        other => panic!("{}: an end called {other}", case.name),
    }
    if let Some(outcome) = &mut seen.outcome {
        outcome["reusable"] = json!(answer.is_reusable() && all_used);
    }
    seen
}

#[track_caller]
fn check(case: &Case, mut seen: Seen, how: &str) {
    let name = &case.name;
    let expect = case.says["events"].as_array().unwrap();
    assert_eq!(&seen.events, expect, "{name}, {how}");
    let outcome =
        seen.outcome.as_mut().unwrap_or_else(|| panic!("{name}, {how}: it has not ended"));
    let mut expect = case.says["outcome"].clone();
    if let (Some(seen), Some(expect)) = (outcome.get_mut("failure"), expect.get_mut("failure")) {
        let (said, part) = (seen["says"].take(), expect["says"].take());
        let holds = said.as_str().unwrap().contains(part.as_str().unwrap());
        assert!(holds, "{name}, {how}: {said} does not hold {part}");
    }
    assert_eq!(*outcome, expect, "{name}, {how}");
}

fn fresh() -> Answer {
    let ask = Ask { api: Api::Raw, stream: false, keep_text: true, no_body: false };
    Answer::new(ask, Limits::default())
}

/// Plays the files of a row of the case list, or those of none, whole, byte by byte and in two pieces cut at every
/// place.
#[track_caller]
fn at_every_split(row: Option<&str>) {
    // One after another in the same memory, as on one connection.
    let (mut answer, mut played) = (fresh(), 0);
    for case in &cases() {
        let rows = case.says["cases"].as_array();
        let belongs = match (row, rows) {
            (Some(row), Some(rows)) => rows.iter().any(|other| other == row),
            (row, rows) => row.is_none() && rows.is_none(),
        };
        if !belongs {
            continue;
        }
        played += 1;
        let wire = &case.wire[..];
        check(case, play(&mut answer, case, &mut std::iter::once(wire)), "whole");
        check(case, play(&mut answer, case, &mut wire.chunks(1)), "byte by byte");
        if wire.len() > EVERY_SPLIT_MAX {
            continue;
        }
        for at in 1..wire.len() {
            let (one, other) = wire.split_at(at);
            let seen = play(&mut answer, case, &mut [one, other].into_iter());
            check(case, seen, &format!("split at {at}"));
        }
    }
    assert!(played > 0, "{row:?} has no file");
}

macro_rules! rows {
    ($(fn $name:ident($row:expr);)+) => { $(
        #[test]
        fn $name() {
            at_every_split($row);
        }
    )+ };
}

rows! {
    fn f1_corpus_at_every_split(Some("F1"));
    fn f2_corpus_at_every_split(Some("F2"));
    fn f3_corpus_at_every_split(Some("F3"));
    fn f4_corpus_at_every_split(Some("F4"));
    fn f5_corpus_at_every_split(Some("F5"));
    fn f6_corpus_at_every_split(Some("F6"));
    fn f7_corpus_at_every_split(Some("F7"));
    fn f8_corpus_at_every_split(Some("F8"));
    fn f9_corpus_at_every_split(Some("F9"));
    fn f10_corpus_at_every_split(Some("F10"));
    fn f11_corpus_at_every_split(Some("F11"));
    fn f12_corpus_at_every_split(Some("F12"));
    fn f13_corpus_at_every_split(Some("F13"));
    fn f14_corpus_at_every_split(Some("F14"));
    fn f15_corpus_at_every_split(Some("F15"));
    fn t1_corpus_at_every_split(Some("T1"));
    fn t6_corpus_at_every_split(Some("T6"));
    fn corpus_of_no_row_at_every_split(None);
}

#[test]
fn f1_every_file_gives_its_events_in_random_pieces() {
    assert!(cases().len() >= 100, "the corpus is read");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut answer = fresh();
    for case in &cases() {
        for longest in [2usize, 7, 60, 1_500, 40_000] {
            let (mut pieces, mut rest) = (Vec::new(), &case.wire[..]);
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(rng.random_range(1..=longest.min(rest.len())));
                pieces.push(piece);
                rest = behind;
            }
            let seen = play(&mut answer, case, &mut pieces.into_iter());
            check(case, seen, &format!("pieces of up to {longest}"));
        }
    }
}

#[test]
fn the_page_of_the_corpus_lists_every_key_that_files_use() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for case in cases() {
        let says = case.says.as_object().unwrap();
        let events = says["events"].as_array().unwrap().iter().filter_map(Value::as_object);
        let keys = says.keys().chain(says["outcome"].as_object().unwrap().keys());
        for key in keys.chain(events.flat_map(Map::keys)) {
            assert!(
                page.contains(&format!("`{key}`")),
                "{}: README.md does not explain `{key}`",
                case.name
            );
        }
    }
}

fn finish(reason: FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::FunctionCall => "function_call",
        FinishReason::Other => "other",
    }
}

fn form(form: Form) -> &'static str {
    match form {
        Form::None => "none",
        Form::Stream => "stream",
        Form::Whole => "whole",
        Form::Bytes => "bytes",
    }
}

fn kind(kind: FailKind) -> &'static str {
    match kind {
        FailKind::HttpStatus => "http_status",
        FailKind::ApiError => "api_error",
        FailKind::Truncated => "truncated",
        FailKind::BadJson => "bad_json",
        FailKind::BadFraming => "bad_framing",
        FailKind::ContentType => "content_type",
        FailKind::TooLarge => "too_large",
    }
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Head => "head",
        Stage::Body => "body",
        Stage::Tokens => "tokens",
    }
}

/// Larger files are cut at random places only.
const EVERY_SPLIT_MAX: usize = 16 << 10;
