//! Events against `serde_json`: what is written reads as the object that the record describes.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::kinds::PhaseKind;
use crate::plan::{ConversationsPlan, PhasePlan};
use crate::records::Text;
use crate::samples;

fn plan(names: &[&str]) -> SessionPlan {
    let phase = |name: &&str| PhasePlan {
        name: (*name).to_owned(),
        kind: PhaseKind::Performance,
        pattern: "poisson".into(),
        rate: Some(1.0),
        ramp: None,
        target_concurrency: None,
        requests: None,
        stream: true,
        conversations: None,
    };
    SessionPlan {
        session_id: "000000000000000000000000000000ff".into(),
        phases: names.iter().map(phase).collect(),
        ..SessionPlan::default()
    }
}

fn written(record: &Record<'_>, plan: &SessionPlan) -> String {
    let mut line = Vec::new();
    EventWriter::new(plan).write(record, &mut line);
    String::from_utf8(line).unwrap()
}

/// The members with a value.
fn present<const N: usize>(members: [(&str, Option<u64>); N]) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((name, value?)));
    members.map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// The event of `record` as an object in memory.
fn expected(record: &Record<'_>, plan: &SessionPlan) -> Value {
    let ns = |at: Option<Nanos>| at.map(Nanos::as_nanos);
    let span = |span: Option<Span>| span.map(Span::as_nanos);
    let (mut key, mut turn, mut data, mut takt) = (None, None, Value::Null, Value::Null);
    let mut more = Map::new();
    let event_type = match record {
        Record::Session(r) => match r.event {
            SessionEvent::Started => "session.started",
            SessionEvent::Interrupted => "session.interrupted",
            SessionEvent::Ended => "session.ended",
            SessionEvent::Failed(by) => {
                data = json!(["ErrorData", by, "the session could not go on"]);
                "error.session"
            }
        },
        Record::Phase(r) => match r.event {
            PhaseEvent::Started { inherited } => {
                takt = json!({ "inherited": inherited });
                "phase.started"
            }
            PhaseEvent::TrackingStarted => "session.start_performance_tracking",
            PhaseEvent::IssuingEnded { by } => {
                takt = json!({ "by": by });
                "phase.issuing_ended"
            }
            PhaseEvent::TrackingStopped => "session.stop_performance_tracking",
            PhaseEvent::Ended { state } => {
                takt = json!({ "state": state });
                "phase.ended"
            }
        },
        Record::Issued(r) => {
            (key, turn) = (Some(r.key), r.turn);
            data = json!(["PromptData", null, null, null, null, null, null, null]);
            takt = json!({
                "ordinal": r.key.ordinal,
                "sample_index": r.sample,
                "scheduled_ns": ns(r.scheduled),
            });
            "sample.issued"
        }
        Record::Token(r) => {
            key = Some(r.key);
            takt = json!({
                "tokens": r.tokens, "content": r.content, "reasoning": r.reasoning,
                "tool_call": r.tool_call, "coalesced": r.coalesced,
            });
            if r.first { "sample.recv_first" } else { "sample.recv_non_first" }
        }
        Record::Error { key: of, failure, message, .. } => {
            key = Some(*of);
            data = json!(["ErrorData", failure.kind, message]);
            let (blame, stage) = (failure.blame, failure.stage);
            takt = json!({ "blame": blame, "stage": stage, "status": failure.status });
            "error.generic"
        }
        Record::Completed(r) => {
            (key, turn) = (Some(r.key), r.turn);
            data = json!(["TextModelOutput", null, null, null]);
            if let Some(finish) = r.finish {
                more.insert("finish_reason".into(), json!(finish));
            }
            more.insert("worker_id".into(), json!(0));
            let (t, n) = (&r.times, &r.tokens);
            takt = json!({
                "ordinal": r.key.ordinal,
                "sample_index": r.sample,
                "outcome": r.outcome.as_str(),
                "error": r.outcome.failure().map(|failure| failure.kind),
                "status": r.status,
                "attempts": r.attempts,
                "reused": r.reused,
                "body_bytes": r.body_bytes,
                "endpoint": r.endpoint,
                "times_ns": present([
                    ("scheduled", ns(t.scheduled)), ("issued", ns(Some(t.issued))),
                    ("acquired", ns(t.acquired)), ("sent", ns(t.sent)),
                    ("written", ns(t.written)), ("first_byte", ns(t.first_byte)),
                    ("first_event", ns(t.first_event)), ("first_token", ns(t.first_token)),
                    ("first_content", ns(t.first_content)), ("last_token", ns(t.last_token)),
                    ("end", ns(Some(t.end))),
                    ("connect", span(t.connect)), ("tls", span(t.tls)),
                    ("socket_wait", span(t.socket_wait)),
                ]),
                "tokens": {
                    "input": n.input, "output": n.output, "cached": n.cached,
                    "first_event": n.first_event, "events": n.events,
                    "coalesced": n.coalesced, "source": n.source,
                },
            });
            "sample.complete"
        }
        Record::Text(r) => {
            key = Some(r.key);
            let of = |kind| (r.kind == kind).then_some(r.text);
            let kinds = [TextKind::Content, TextKind::Reasoning, TextKind::ToolCalls].map(of);
            data = json!(["TextModelOutput", kinds[0], kinds[1], kinds[2]]);
            "sample.text"
        }
        Record::Conversation(r) => {
            more.insert("conversation_id".to_owned(), json!(r.conversation.to_string()));
            match r.event {
                ConversationEvent::Started { turns } => {
                    takt = json!({ "turns": turns });
                    "conversation.started"
                }
                ConversationEvent::Ended(end) => {
                    takt = json!({
                        "state": end.how, "began_ns": end.began.as_nanos(), "turns": end.turns,
                        "succeeded": end.succeeded, "failed": end.failed, "skipped": end.skipped,
                        "unsent": end.unsent, "waited_ns": end.waited.as_nanos(),
                        "paused_ns": end.paused.as_nanos(),
                        "tokens": { "input": end.input, "output": end.output, "cached": end.cached },
                    });
                    "conversation.ended"
                }
            }
        }
        Record::Window(r) => match r.event {
            WindowEvent::Opened => "window.opened",
            WindowEvent::Closed => "window.closed",
        },
        Record::Clock(r) => {
            takt = json!({ "wall_ns": r.wall_ns });
            "instrument.clock"
        }
        Record::Health(r) => {
            takt = json!({
                "on_cpu_ns": span(r.on_cpu), "runnable_ns": span(r.runnable),
                "stolen_ns": span(r.stolen), "involuntary": r.involuntary,
                "busy_ns": r.busy.as_nanos(), "turns": r.turns,
                "longest_turn_ns": r.longest_turn.as_nanos(), "timers": r.timers,
                "ready": r.ready, "messages": r.messages, "spilled": r.spilled,
                "lost": r.lost, "connections": r.connections, "limited": r.limited,
                "secured": r.secured, "resumed": r.resumed, "work": r.work.map(|w| json!({
                    "wakes": {
                        "polled": w.wakes.polled, "deadline": w.wakes.deadline,
                        "readiness": w.wakes.readiness, "remote": w.wakes.remote,
                        "spurious": w.wakes.spurious,
                    },
                    "looking_ns": w.looking.as_nanos(), "sampled": w.sampled,
                    "timers_ns": w.timers.as_nanos(), "parse_ns": w.parse.as_nanos(),
                    "messages_ns": w.messages.as_nanos(), "reads_ns": w.reads.as_nanos(),
                    "writes_ns": w.writes.as_nanos(), "rest_ns": w.rest.as_nanos(),
                    "unread_reads": w.unread_reads, "unread_ns": w.unread.as_nanos(),
                    "unread_max_ns": w.unread_max.as_nanos(), "overflows": w.overflows,
                    "leftover": w.leftover, "polls": w.polls, "read_calls": w.read_calls,
                    "write_calls": w.write_calls, "wake_up_p50_ns": span(w.wake_up_p50),
                    "wake_up_p99_ns": span(w.wake_up_p99), "head_start_ns": span(w.head_start),
                    "fold_ns": span(w.fold), "used_once": w.used_once,
                })),
            });
            "instrument.health"
        }
    };
    let id = key.map(|key| RequestId::new(0xff, key).to_string());
    let talk = turn.map(|turn| turn.conversation.to_string()).unwrap_or_default();
    more.entry("conversation_id").or_insert(json!(talk));
    let phase = record.phase().and_then(|phase| plan.phases.get(usize::from(phase.0)));
    more.extend(phase.map(|phase| ("phase".to_owned(), json!(phase.name))));
    more.extend((!takt.is_null()).then_some(("takt".to_owned(), takt)));
    more.extend([
        ("event_type".to_owned(), json!(event_type)),
        ("timestamp_ns".to_owned(), json!(record.at().as_nanos())),
        ("sample_uuid".to_owned(), json!(id.unwrap_or_default())),
        ("turn".to_owned(), json!(turn.map(|turn| turn.turn))),
        ("data".to_owned(), data),
    ]);
    Value::Object(more)
}

proptest! {
    #[test]
    fn every_event_reads_as_its_record_and_is_one_line(
        records in samples::records(40),
        names in ["\\PC{0,12}", "[\\x00-\\x1f\"\\\\/\u{7f}\u{2028}a-c]{0,12}"],
    ) {
        let plan = plan(&names.each_ref().map(String::as_str));
        for owned in &records {
            let record = owned.get();
            let line = written(&record, &plan);
            prop_assert!(!line.contains('\n'));
            let event: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(&event, &expected(&record, &plan));
            // No key twice, no space between: nothing but the order of the keys is left open.
            prop_assert_eq!(line.len(), event.to_string().len());
        }
    }

    #[test]
    fn data_from_elsewhere_takes_the_place_of_the_record_s(
        texts in prop::array::uniform4(prop::option::of("[\\x00-\\x1f\"\\\\\u{2028}\u{1f600}a-c]{0,12}")),
    ) {
        let [text, output, reasoning, tool_calls] = &texts;
        let messages = text.as_ref().map(|text| json!([{"role": text, "content": 1.5}]));
        let list = |data: &EventData<'_>| {
            let mut line = Vec::new();
            let record = Record::Issued(samples::typical_issued(1));
            EventWriter::new(&plan(&[])).write_with(&record, data, &mut line);
            serde_json::from_slice::<Value>(&line).unwrap()["data"].clone()
        };
        prop_assert_eq!(
            list(&EventData::Prompt { text: text.as_deref().map(Cow::Borrowed), messages: messages.clone() }),
            json!(["PromptData", text, null, messages, null, null, null, null])
        );
        let cow = |text: &Option<String>| text.clone().map(Cow::Owned);
        let data = EventData::Output {
            output: cow(output),
            reasoning: cow(reasoning),
            tool_calls: cow(tool_calls),
        };
        prop_assert_eq!(list(&data), json!(["TextModelOutput", output, reasoning, tool_calls]));
    }
}

#[test]
fn ids_lead_back_to_their_requests() {
    let plan = plan(&["p"]);
    for ordinal in [0, 1, 99] {
        let record = samples::typical_issued(ordinal);
        let line = written(&Record::Issued(record), &plan);
        let event: Value = serde_json::from_str(&line).unwrap();
        let id = event["sample_uuid"].as_str().unwrap();
        let id = RequestId::from_hex(id.as_bytes()).unwrap();
        assert_eq!(id.key(0xff), Some(record.key));
    }
}

#[test]
fn every_event_of_a_turn_has_its_conversation_by_name() {
    let mut plan = plan(&["p"]);
    let ids = vec!["c1".into(), "c \"2\"".into()];
    plan.phases[0].conversations = Some(ConversationsPlan { arrivals_per_s: None, ids });
    let turn = Some(TurnOf { conversation: 5, turn: 3 });
    let issued = Issued { turn, ..samples::typical_issued(0) };
    let key = RequestKey { phase: PhaseId(0), ..issued.key };
    let issued = Issued { key, ..issued };
    let (at, kind, text) = (issued.at, TextKind::Content, "x");
    let mut writer = EventWriter::new(&plan);
    for record in [Record::Issued(issued), Record::Text(Text { at, key, kind, text })] {
        writer.see(&record);
        let mut line = Vec::new();
        writer.write(&record, &mut line);
        let event: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(event["conversation_id"], "c \"2\"__repeat_3");
        assert_eq!(event["turn"], 3);
    }
}
