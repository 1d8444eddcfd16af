//! `takt events`: every record of a journal once, in the words of the field.

use std::collections::BTreeMap;
use std::io::Read as _;

use serde_json::{Value, json};
use takt_record::{
    Blame, Block, BlockWriter, Completed, EndedBy, ErrorKind, Failure, FinishReason, Fold, Issued,
    JournalWriter, Outcome, PhaseEvent, PhaseId, PhaseKind, PhasePlan, PhaseRecord, PhaseState,
    Record, RequestId, RequestKey, SessionEvent, SessionPlan, SessionRecord, Stage, Stretch, Text,
    TextKind, Times, Token, TokenCounts, TokenSource, fold_journal,
};
use takt_time::{Anchor, Nanos};

use crate::bench::{Bench, Done, Mock};

fn at(ns: u64) -> Nanos {
    Nanos::from_nanos(ns)
}

fn key(ordinal: u64) -> RequestKey {
    RequestKey { phase: PhaseId(0), ordinal }
}

/// A session of two requests: the first is answered in two events and its text kept, the second fails.
fn records() -> Vec<Record<'static>> {
    let session = |ns, event| Record::Session(SessionRecord { at: at(ns), event });
    let phase = |ns, event| Record::Phase(PhaseRecord { at: at(ns), phase: PhaseId(0), event });
    let issued = |ordinal, ns| {
        let (sample, scheduled) = (ordinal as u32, Some(at(ns - 1)));
        Record::Issued(Issued { key: key(ordinal), sample, at: at(ns), scheduled, turn: None })
    };
    let token = |ns, first| {
        Record::Token(Token {
            at: at(ns),
            key: key(0),
            first,
            tokens: Some(1),
            content: true,
            reasoning: false,
            tool_call: false,
            coalesced: false,
        })
    };
    let text =
        |ns, text| Record::Text(Text { at: at(ns), key: key(0), kind: TextKind::Content, text });
    let failure = Failure {
        kind: ErrorKind::HttpStatus,
        blame: Blame::Server,
        stage: Stage::Head,
        status: Some(500),
    };
    let done = |ordinal, ns, outcome| Completed {
        key: key(ordinal),
        sample: ordinal as u32,
        outcome,
        times: Times { issued: at(20), sent: Some(at(21)), end: at(ns), ..Times::default() },
        tokens: TokenCounts::default(),
        finish: None,
        status: Some(500),
        attempts: 1,
        reused: false,
        body_bytes: 9,
        endpoint: 0,
        turn: None,
    };
    let ok = Completed {
        finish: Some(FinishReason::Stop),
        status: Some(200),
        tokens: TokenCounts {
            output: Some(2),
            events: 2,
            source: Some(TokenSource::Usage),
            ..TokenCounts::default()
        },
        ..done(0, 50, Outcome::Ok)
    };
    vec![
        Record::Clock(Anchor { mono: at(1), wall_ns: 1_700_000_000_000_000_000 }),
        session(2, SessionEvent::Started),
        phase(10, PhaseEvent::Started { inherited: 0 }),
        phase(10, PhaseEvent::TrackingStarted),
        issued(0, 20),
        issued(1, 22),
        token(30, true),
        text(30, "Hel"),
        token(40, false),
        text(40, "lo"),
        Record::Completed(ok),
        Record::Error { at: at(55), key: key(1), failure, message: "HTTP 500: boom" },
        Record::Completed(done(1, 55, Outcome::Failed(failure))),
        phase(60, PhaseEvent::IssuingEnded { by: EndedBy::Requests }),
        phase(61, PhaseEvent::TrackingStopped),
        phase(62, PhaseEvent::Ended { state: PhaseState::Complete }),
        session(70, SessionEvent::Ended),
    ]
}

/// Writes a journal of these records into the folder `out`, over the data set `q.jsonl`.
fn journal(bench: &Bench, records: &[Record<'_>]) -> SessionPlan {
    bench.file("q.jsonl", "{\"prompt\": \"Who?\"}\n{\"prompt\": \"What?\"}\n");
    let dataset = json!({"path": bench.path("q.jsonl"), "format": "jsonl"});
    let load = json!({"pattern": "poisson", "rate": 10.0});
    let plan = SessionPlan {
        session_id: "00000000000000000000000000000007".into(),
        phases: vec![PhasePlan {
            name: "perf".into(),
            kind: PhaseKind::Performance,
            pattern: "poisson".into(),
            rate: Some(10.0),
            ramp: None,
            target_concurrency: None,
            requests: Some(2),
            stream: true,
            conversations: None,
        }],
        config: json!({
            "endpoint": {"url": "http://127.0.0.1:1", "api": "openai-chat", "model": "m"},
            "phases": [{"name": "perf", "load": load, "dataset": dataset, "requests": 2}],
        }),
        ..SessionPlan::default()
    };
    std::fs::create_dir_all(bench.path("out/journal")).unwrap();
    let file = std::fs::File::create(bench.path("out/journal/000000.takt")).unwrap();
    let mut journal = JournalWriter::begin(file, &plan).unwrap();
    for half in records.chunks(records.len().div_ceil(2)) {
        let mut writer = BlockWriter::new(Block::with_capacity(4096));
        half.iter().for_each(|record| writer.push(record).unwrap());
        journal.append(writer.block(), Stretch::Whole).unwrap();
    }
    plan
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_keys_and_words_are_those_of_the_field() {
    let bench = Bench::new();
    let plan = journal(&bench, &records());
    let id = |ordinal| RequestId::new(plan.session_key(), key(ordinal)).to_string();
    let (a, b) = (id(0), id(1));
    let done = bench.takt(&["events", "out"]).exits(0);
    assert_eq!(done.stderr, "");
    let none = "\"sample_uuid\":\"\",\"conversation_id\":\"\",\"turn\":null,\"data\":null";
    let of = |id: &str| format!("\"sample_uuid\":\"{id}\",\"conversation_id\":\"\",\"turn\":null");
    let prompt = "[\"PromptData\",null,null,null,null,null,null,null]";
    // The beginnings of the lines, up to what the field has no place for.
    let expected = [
        format!("{{\"event_type\":\"instrument.clock\",\"timestamp_ns\":1,{none},\"takt\":"),
        format!("{{\"event_type\":\"session.started\",\"timestamp_ns\":2,{none}}}"),
        format!("{{\"event_type\":\"phase.started\",\"timestamp_ns\":10,{none},\"phase\":\"perf\""),
        format!(
            "{{\"event_type\":\"session.start_performance_tracking\",\"timestamp_ns\":10,{none},\
             \"phase\":\"perf\"}}"
        ),
        format!(
            "{{\"event_type\":\"sample.issued\",\"timestamp_ns\":20,{},\"data\":{prompt},\
             \"phase\":\"perf\",\"takt\":{{",
            of(&a)
        ),
        format!("{{\"event_type\":\"sample.issued\",\"timestamp_ns\":22,{},", of(&b)),
        format!(
            "{{\"event_type\":\"sample.recv_first\",\"timestamp_ns\":30,{},\"data\":null,\
             \"phase\":\"perf\",",
            of(&a)
        ),
        format!("{{\"event_type\":\"sample.recv_non_first\",\"timestamp_ns\":40,{},", of(&a)),
        format!(
            "{{\"event_type\":\"sample.complete\",\"timestamp_ns\":50,{},\"data\":\
             [\"TextModelOutput\",\"Hello\",null,null],\"finish_reason\":\"stop\",\"worker_id\":0,\
             \"phase\":\"perf\",",
            of(&a)
        ),
        format!(
            "{{\"event_type\":\"error.generic\",\"timestamp_ns\":55,{},\"data\":\
             [\"ErrorData\",\"http_status\",\"HTTP 500: boom\"],\"phase\":\"perf\",",
            of(&b)
        ),
        format!(
            "{{\"event_type\":\"sample.complete\",\"timestamp_ns\":55,{},\"data\":\
             [\"TextModelOutput\",null,null,null],\"worker_id\":0,\"phase\":\"perf\",",
            of(&b)
        ),
        format!("{{\"event_type\":\"phase.issuing_ended\",\"timestamp_ns\":60,{none},"),
        format!(
            "{{\"event_type\":\"session.stop_performance_tracking\",\"timestamp_ns\":61,{none},"
        ),
        format!("{{\"event_type\":\"phase.ended\",\"timestamp_ns\":62,{none},"),
        format!("{{\"event_type\":\"session.ended\",\"timestamp_ns\":70,{none}}}"),
    ];
    let got: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(got.len(), expected.len(), "{}", done.stdout);
    for (got, expected) in got.iter().zip(&expected) {
        assert!(got.starts_with(expected), "{got}\nis not\n{expected}");
    }
    let complete = &lines(&done.stdout)[8]["takt"];
    assert_eq!((&complete["outcome"], &complete["tokens"]["output"]), (&"ok".into(), &2.into()));
    assert_eq!(complete["times_ns"], json!({"issued": 20, "sent": 21, "end": 50}));
}

#[test]
fn prompts_come_from_the_data_set_that_the_run_names() {
    let bench = Bench::new();
    journal(&bench, &records());
    let args = ["events", "out", "--with-prompts", "--type", "sample.issued"];
    let events = lines(&bench.takt(&args).exits(0).stdout);
    assert_eq!(events[0]["data"][1], "Who?");
    assert_eq!((&events[1]["data"][1], &events[1]["data"][3]), (&"What?".into(), &Value::Null));
    let messages = json!([{"role": "user", "content": "x"}]);
    let row = json!({ "messages": messages });
    bench.file("q.jsonl", &format!("{row}\n{row}\n"));
    let events = lines(&bench.takt(&args).exits(0).stdout);
    assert_eq!((&events[0]["data"][1], &events[0]["data"][3]), (&Value::Null, &messages));
    std::fs::remove_file(bench.path("q.jsonl")).unwrap();
    bench.takt(&args).exits(2).says("q.jsonl: cannot be opened");
}

#[test]
fn filters_are_checked_and_kept() {
    let bench = Bench::new();
    journal(&bench, &records());
    let types = |args: &[&str]| -> Vec<String> {
        let done = bench.takt(&[&["events", "out"], args].concat()).exits(0);
        lines(&done.stdout).iter().map(|e| e["event_type"].as_str().unwrap().into()).collect()
    };
    assert_eq!(types(&["--type", "sample.complete"]), ["sample.complete"; 2]);
    assert_eq!(
        types(&["--type", "error", "--type", "session.ended"]),
        ["error.generic", "session.ended"]
    );
    let of_phase = types(&["--phase", "perf"]);
    assert_eq!(of_phase.len(), 12, "all but two of the session and the clock: {of_phase:?}");
    bench.takt(&["events", "out", "--phase", "p"]).exits(2).says("it has perf");
    bench.takt(&["events", "out", "--type", "sample.completed"]).exits(2).says("sample.complete");
    bench.takt(&["events", "none"]).exits(2).says("is no folder");
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.takt(&["events", "empty"]).exits(2).says("holds no journal");
}

#[test]
fn e4_a_journal_cut_at_any_byte_is_printed_as_far_as_it_is_whole() {
    let bench = Bench::new();
    journal(&bench, &records());
    let path = bench.path("out/journal/000000.takt");
    let bytes = std::fs::read(&path).unwrap();
    let whole = bench.takt(&["events", "out"]).exits(0).stdout;
    let head = whole.len();
    for cut in (0..24).map(|step| bytes.len() - 1 - step * bytes.len() / 32) {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let done = bench.takt(&["events", "out"]);
        if done.code == 2 {
            assert!(done.stderr.contains("journal"), "{}", done.stderr);
            continue;
        }
        let done = done.exits(0);
        // Text of an answer without its end comes last; all before is as it was.
        let lines: Vec<&str> =
            done.stdout.lines().filter(|line| !line.contains("sample.text")).collect();
        assert!(whole.lines().zip(&lines).all(|(whole, line)| whole == *line), "at {cut}");
        assert!(done.stdout.len() < head);
    }
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    bench.takt(&["events", "out"]).exits(0).says("the file ends inside a block");
}

/// Counts records by what they are.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Fold for Counts {
    fn fold(&mut self, record: &Record<'_>) {
        let name = match record {
            Record::Session(_) => "session",
            Record::Phase(_) => "phase",
            Record::Issued(_) => "issued",
            Record::Token(_) => "token",
            Record::Error { .. } => "error",
            Record::Completed(_) => "complete",
            Record::Text(_) => "text",
            Record::Conversation(_) => "conversation",
            Record::Window(_) => "window",
            Record::Clock(_) => "clock",
            Record::Health(_) => "health",
        };
        *self.0.entry(name).or_default() += 1;
    }
}

#[test]
fn every_record_of_a_run_is_there_once() {
    let bench = Bench::new();
    let mock = Mock::start(
        &bench,
        &["--ttft", "1ms", "--tpot", "1ms", "--tokens", "uniform:1..5", "--errors", "500:0.1"],
    );
    let args = ["--concurrency", "8", "--requests", "300", "--warmup-requests", "40"];
    bench.run(&mock.url(), &args).exits(0);
    let mut counts = Counts::default();
    let path = bench.path("out/journal/000000.takt");
    fold_journal(&mut takt_recorder::open_journal(&path).unwrap(), &mut counts).unwrap();
    let events = lines(&bench.takt(&["events", "out"]).exits(0).stdout);
    assert_eq!(events.len() as u64, counts.0.values().sum::<u64>());
    let of = |words: &[&str]| {
        events.iter().filter(|e| words.contains(&e["event_type"].as_str().unwrap())).count() as u64
    };
    assert_eq!(of(&["sample.issued"]), counts.0["issued"]);
    assert_eq!(of(&["sample.recv_first", "sample.recv_non_first"]), counts.0["token"]);
    assert_eq!(of(&["error.generic"]), counts.0["error"]);
    assert_eq!(
        of(&["instrument.clock", "instrument.health"]),
        counts.0["clock"] + counts.0["health"]
    );
    for word in ["sample.issued", "sample.complete"] {
        let ids: std::collections::BTreeSet<_> = (events.iter())
            .filter(|event| event["event_type"] == word)
            .map(|event| event["sample_uuid"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len() as u64, 340, "{word}: each request once");
    }
}

#[test]
fn whoever_closes_the_pipe_wants_no_more() {
    let bench = Bench::new();
    let many: Vec<_> = (0..4_000).flat_map(|_| records()).collect();
    let mut blocks = many.chunks(20);
    let plan = journal(&bench, &many[..20]);
    let file = std::fs::File::create(bench.path("out/journal/000000.takt")).unwrap();
    let mut out = JournalWriter::begin(file, &plan).unwrap();
    blocks
        .try_for_each(|block| {
            let mut writer = BlockWriter::new(Block::with_capacity(8192));
            block.iter().for_each(|record| writer.push(record).unwrap());
            out.append(writer.block(), Stretch::Whole)
        })
        .unwrap();
    let mut child = bench.command(&["events", "out"]).spawn().unwrap();
    let mut first = [0; 100];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    // The reader is gone with the pipe's end that was taken.
    let done = Done::from(child.wait_with_output().unwrap());
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
}
