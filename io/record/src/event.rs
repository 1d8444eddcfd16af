//! A record as the field writes events down: the keys and words of the seed's event stream, so that its
//! readers can read ours.
//!
//! `event_type`, `timestamp_ns`, `sample_uuid`, `conversation_id`, `turn` and `data` are always there,
//! `finish_reason` and `worker_id` with completions. What the seed has no place for stands behind them:
//! `phase`, the phase's name, and `takt`, an object with what else the record holds. Its event types are
//! used where it has them; records that it does not know (clocks, health, the life of phases) have words
//! of their own.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeTuple, Serializer};
use serde_json::{Map, Value, json};
use takt_time::{Nanos, Span};

use crate::id::RequestId;
use crate::kinds::{EventType, FinishReason};
use crate::plan::SessionPlan;
use crate::records::{
    Completed, Health, Issued, PhaseEvent, PhaseId, Record, RequestKey, SessionEvent, TextKind,
    Times, Token, TokenCounts, TurnOf,
};

/// A record in the words of the field.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Event<'a> {
    /// What happened.
    pub event_type: EventType,
    /// When, on the run's monotonic clock.
    pub timestamp_ns: u64,
    /// The request's id; empty when it is about none.
    pub sample_uuid: String,
    /// The number of its conversation; empty without one.
    pub conversation_id: String,
    /// Turn of the conversation.
    pub turn: Option<u32>,
    /// What came with it.
    pub data: EventData<'a>,
    /// Why the server stopped generating; completions only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<FinishReason>,
    /// The reactor that had the request; completions only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<u32>,
    /// Name of the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<&'a str>,
    /// What else the record holds.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub takt: Map<String, Value>,
}

/// The `data` of an event: `null`, or a list whose first member names its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum EventData<'a> {
    /// None.
    Absent,
    /// `["PromptData", text, token_ids, messages, tools, chat_template_kwargs, chat_template, tool_choice]`.
    /// All `null` in an event from the record alone: it has the index of its sample.
    Prompt {
        /// A plain prompt.
        text: Option<Cow<'a, str>>,
        /// Chat messages.
        messages: Option<Value>,
    },
    /// `["TextModelOutput", output, reasoning, tool_calls]`; `null` where answers are not kept.
    Output {
        /// Answer text.
        output: Option<String>,
        /// Reasoning.
        reasoning: Option<String>,
        /// Tool calls, one JSON object a line.
        tool_calls: Option<String>,
    },
    /// `["ErrorData", type, message]`.
    Error {
        /// The kind.
        kind: &'a str,
        /// The words of server or system.
        message: &'a str,
    },
}

impl<'a> Event<'a> {
    /// The event of `record`, of the session that `plan` describes.
    #[must_use]
    pub fn of(record: &Record<'a>, plan: &'a SessionPlan) -> Self {
        let mut event = Event {
            event_type: Self::type_of(record),
            timestamp_ns: record.at().as_nanos(),
            sample_uuid: String::new(),
            conversation_id: String::new(),
            turn: None,
            data: EventData::Absent,
            finish_reason: None,
            worker_id: None,
            phase: None,
            takt: Map::new(),
        };
        match record {
            Record::Session(r) => event.session(r.event),
            Record::Phase(r) => {
                event.phase = name(plan, r.phase);
                event.takt = object(match r.event {
                    PhaseEvent::Started { inherited } => json!({ "inherited": inherited }),
                    PhaseEvent::IssuingEnded { by } => json!({ "by": by }),
                    PhaseEvent::Ended { state } => json!({ "state": state }),
                    PhaseEvent::TrackingStarted | PhaseEvent::TrackingStopped => Value::Null,
                });
            }
            Record::Issued(r) => event.request(r.key, r.turn, plan).issued(r),
            Record::Token(r) => event.request(r.key, None, plan).token(r),
            Record::Error { key, failure, message, .. } => {
                event.request(*key, None, plan);
                event.data = EventData::Error { kind: failure.kind.as_str(), message };
                let (blame, stage) = (failure.blame, failure.stage);
                event.takt =
                    object(json!({ "blame": blame, "stage": stage, "status": failure.status }));
            }
            Record::Completed(r) => event.request(r.key, r.turn, plan).completed(r),
            Record::Text(r) => {
                event.request(r.key, None, plan);
                let text = Some(r.text.to_owned());
                let (mut output, mut reasoning, mut tool_calls) = (None, None, None);
                match r.kind {
                    TextKind::Content => output = text,
                    TextKind::Reasoning => reasoning = text,
                    TextKind::ToolCalls => tool_calls = text,
                }
                event.data = EventData::Output { output, reasoning, tool_calls };
            }
            Record::Clock(r) => event.takt = object(json!({ "wall_ns": r.wall_ns })),
            Record::Health(r) => event.takt = object(health(r)),
        }
        event
    }

    /// The word for what `record` says.
    #[must_use]
    pub fn type_of(record: &Record<'_>) -> EventType {
        match record {
            Record::Session(r) => match r.event {
                SessionEvent::Started => EventType::SessionStarted,
                SessionEvent::Interrupted => EventType::SessionInterrupted,
                SessionEvent::Failed(_) => EventType::ErrorSession,
                SessionEvent::Ended => EventType::SessionEnded,
            },
            Record::Phase(r) => match r.event {
                PhaseEvent::Started { .. } => EventType::PhaseStarted,
                PhaseEvent::TrackingStarted => EventType::TrackingStarted,
                PhaseEvent::IssuingEnded { .. } => EventType::PhaseIssuingEnded,
                PhaseEvent::TrackingStopped => EventType::TrackingStopped,
                PhaseEvent::Ended { .. } => EventType::PhaseEnded,
            },
            Record::Issued(_) => EventType::SampleIssued,
            Record::Token(r) if r.first => EventType::SampleRecvFirst,
            Record::Token(_) => EventType::SampleRecvNonFirst,
            Record::Error { .. } => EventType::ErrorGeneric,
            Record::Completed(_) => EventType::SampleComplete,
            Record::Text(_) => EventType::SampleText,
            Record::Clock(_) => EventType::Clock,
            Record::Health(_) => EventType::Health,
        }
    }

    fn request(
        &mut self,
        key: RequestKey,
        turn: Option<TurnOf>,
        plan: &'a SessionPlan,
    ) -> &mut Self {
        self.sample_uuid = RequestId::new(plan.session_key(), key).to_string();
        self.phase = name(plan, key.phase);
        if let Some(turn) = turn {
            self.conversation_id = turn.conversation.to_string();
            self.turn = Some(turn.turn);
        }
        self
    }

    fn session(&mut self, event: SessionEvent) {
        if let SessionEvent::Failed(by) = event {
            let message = "the session could not go on";
            self.data = EventData::Error { kind: by.as_str(), message };
        }
    }

    fn issued(&mut self, issued: &Issued) {
        self.data = EventData::Prompt { text: None, messages: None };
        self.takt = object(json!({
            "ordinal": issued.key.ordinal,
            "sample_index": issued.sample,
            "scheduled_ns": issued.scheduled.map(Nanos::as_nanos),
        }));
    }

    fn token(&mut self, token: &Token) {
        self.takt = object(json!({
            "tokens": token.tokens,
            "content": token.content,
            "reasoning": token.reasoning,
            "tool_call": token.tool_call,
            "coalesced": token.coalesced,
        }));
    }

    fn completed(&mut self, done: &Completed) {
        self.data = EventData::Output { output: None, reasoning: None, tool_calls: None };
        self.finish_reason = done.finish;
        self.worker_id = Some(ONLY_WORKER);
        self.takt = object(json!({
            "ordinal": done.key.ordinal,
            "sample_index": done.sample,
            "outcome": done.outcome.as_str(),
            "error": done.outcome.failure().map(|failure| failure.kind),
            "status": done.status,
            "attempts": done.attempts,
            "reused": done.reused,
            "body_bytes": done.body_bytes,
            "endpoint": done.endpoint,
            "times_ns": times(&done.times),
            "tokens": tokens(&done.tokens),
        }));
    }
}

impl Serialize for EventData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_none(),
            Self::Prompt { text, messages } => {
                let mut list = serializer.serialize_tuple(8)?;
                list.serialize_element("PromptData")?;
                list.serialize_element(text)?;
                list.serialize_element(&None::<()>)?;
                list.serialize_element(messages)?;
                for _ in 0..4 {
                    list.serialize_element(&None::<()>)?;
                }
                list.end()
            }
            Self::Output { output, reasoning, tool_calls } => {
                ("TextModelOutput", output, reasoning, tool_calls).serialize(serializer)
            }
            Self::Error { kind, message } => ("ErrorData", kind, message).serialize(serializer),
        }
    }
}

fn name(plan: &SessionPlan, phase: PhaseId) -> Option<&str> {
    plan.phases.get(usize::from(phase.0)).map(|phase| phase.name.as_str())
}

/// Times that were reached; `connect`, `tls` and `socket_wait` are spans.
fn times(times: &Times) -> Value {
    let instants = [
        ("scheduled", times.scheduled),
        ("issued", Some(times.issued)),
        ("acquired", times.acquired),
        ("sent", times.sent),
        ("written", times.written),
        ("first_byte", times.first_byte),
        ("first_event", times.first_event),
        ("first_token", times.first_token),
        ("first_content", times.first_content),
        ("last_token", times.last_token),
        ("end", Some(times.end)),
    ];
    let instants = instants.into_iter().filter_map(|(name, at)| Some((name, at?.as_nanos())));
    let spans =
        [("connect", times.connect), ("tls", times.tls), ("socket_wait", times.socket_wait)];
    let spans = spans.into_iter().filter_map(|(name, span)| Some((name, span?.as_nanos())));
    instants.chain(spans).map(|(name, ns)| (name.to_owned(), Value::from(ns))).collect()
}

fn tokens(counts: &TokenCounts) -> Value {
    json!({
        "input": counts.input,
        "output": counts.output,
        "cached": counts.cached,
        "first_event": counts.first_event,
        "events": counts.events,
        "coalesced": counts.coalesced,
        "source": counts.source,
    })
}

fn health(health: &Health) -> Value {
    json!({
        "on_cpu_ns": health.on_cpu.map(Span::as_nanos),
        "runnable_ns": health.runnable.map(Span::as_nanos),
        "stolen_ns": health.stolen.map(Span::as_nanos),
        "involuntary": health.involuntary,
        "busy_ns": health.busy.as_nanos(),
        "turns": health.turns,
        "longest_turn_ns": health.longest_turn.as_nanos(),
        "timers": health.timers,
        "ready": health.ready,
        "messages": health.messages,
        "spilled": health.spilled,
        "lost": health.lost,
        "connections": health.connections,
        "limited": health.limited,
        "secured": health.secured,
        "resumed": health.resumed,
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A run has one reactor.
const ONLY_WORKER: u32 = 0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kinds::PhaseKind;
    use crate::plan::PhasePlan;
    use crate::samples;

    fn plan() -> SessionPlan {
        let phase = PhasePlan {
            name: "p".into(),
            kind: PhaseKind::Performance,
            pattern: "poisson".into(),
            rate: Some(1.0),
            ramp: None,
            target_concurrency: None,
            requests: None,
            stream: true,
        };
        SessionPlan {
            session_id: "000000000000000000000000000000ff".into(),
            phases: vec![phase],
            ..SessionPlan::default()
        }
    }

    proptest! {
        #[test]
        fn every_record_is_one_line_with_the_keys_of_the_field(
            records in samples::records(40),
        ) {
            let plan = plan();
            for owned in &records {
                let record = owned.get();
                let line = serde_json::to_string(&Event::of(&record, &plan)).unwrap();
                prop_assert!(!line.contains('\n'));
                let keys = "{\"event_type\":";
                prop_assert!(line.starts_with(keys), "{}", line);
                let event: Value = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(&event["timestamp_ns"], &json!(record.at().as_nanos()));
                for key in ["sample_uuid", "conversation_id"] {
                    prop_assert!(event[key].is_string());
                }
                prop_assert!(event.get("turn").is_some() && event.get("data").is_some());
                let completed = matches!(record, Record::Completed(_));
                prop_assert_eq!(event.get("worker_id").is_some(), completed);
            }
        }
    }

    #[test]
    fn ids_lead_back_to_their_requests() {
        let plan = plan();
        for ordinal in [0, 1, 99] {
            let record = samples::typical_issued(ordinal);
            let event = Event::of(&Record::Issued(record), &plan);
            let id = RequestId::from_hex(event.sample_uuid.as_bytes()).unwrap();
            assert_eq!(id.key(0xff), Some(record.key));
        }
    }
}
