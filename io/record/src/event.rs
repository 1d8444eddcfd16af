//! Records as the field writes events down: the keys and words of the seed's event stream, so that its
//! readers can read ours.
//!
//! `event_type`, `timestamp_ns`, `sample_uuid`, `conversation_id`, `turn` and `data` are always there,
//! `finish_reason` and `worker_id` with completions. What the seed has no place for stands behind them:
//! `phase`, the phase's name, and `takt`, an object with what else the record holds. Its event types are
//! used where it has them; records that it does not know (clocks, health, the life of phases) have words
//! of their own.
//!
//! Events are written straight into bytes, because the recorder's thread does it while a run is measured:
//! some 200 ns a request or token, where an object in memory first would be 3 to 5 us.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use takt_time::{Nanos, Span};

use crate::id::RequestId;
use crate::kinds::{EventType, TokenSource};
use crate::plan::{PhasePlan, SessionPlan};
use crate::records::{
    Completed, ConversationEvent, Health, Issued, PhaseEvent, PhaseId, Record, RequestKey,
    SessionEvent, TextKind, Times, Token, TokenCounts, TurnOf, WindowEvent,
};

mod json;
mod work;

use json::Json;

/// Writes records of one session as events.
#[derive(Clone, Debug)]
pub struct EventWriter {
    session: u64,
    /// Of each phase, its name as JSON.
    phases: Vec<Vec<u8>>,
    /// The phases that have conversations, by their places.
    talks: Vec<Option<PhasePlan>>,
    /// The turns of requests under way, whose records between have none.
    turns: BTreeMap<RequestKey, TurnOf>,
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
        output: Option<Cow<'a, str>>,
        /// Reasoning.
        reasoning: Option<Cow<'a, str>>,
        /// Tool calls, one JSON object a line.
        tool_calls: Option<Cow<'a, str>>,
    },
    /// `["ErrorData", type, message]`.
    Error {
        /// The kind.
        kind: &'a str,
        /// The words of server or system.
        message: &'a str,
    },
}

impl EventWriter {
    /// A writer for the session that `plan` describes.
    #[must_use]
    pub fn new(plan: &SessionPlan) -> Self {
        let name = |name: &str| {
            let mut bytes = Vec::new();
            Json(&mut bytes).text(name);
            bytes
        };
        let phases = plan.phases.iter().map(|phase| name(&phase.name)).collect();
        let talks = plan.phases.iter().map(|p| p.conversations.is_some().then(|| p.clone()));
        let (talks, turns) = (talks.collect(), BTreeMap::new());
        Self { session: plan.session_key(), phases, talks, turns }
    }

    /// Takes note of a record, written or not: the events of a request between its first and its last have its
    /// conversation and turn only when these were seen.
    pub fn see(&mut self, record: &Record<'_>) {
        match record {
            Record::Issued(Issued { key, turn: Some(turn), .. }) => {
                self.turns.insert(*key, *turn);
            }
            Record::Completed(done) if done.turn.is_some() => {
                self.turns.remove(&done.key);
            }
            _ => {}
        }
    }

    /// Appends the event of `record` to `out`: one JSON object, no line end.
    pub fn write(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.write_with(record, &EventData::of(record), out);
    }

    /// As [`write`](Self::write), with `data` in the place of what the record alone says.
    pub fn write_with(&self, record: &Record<'_>, data: &EventData<'_>, out: &mut Vec<u8>) {
        let mut json = Json(out);
        json.raw(r#"{"event_type":""#).raw(EventType::of(record).as_str());
        json.raw(r#"","timestamp_ns":"#).number(record.at().as_nanos());
        match request(record) {
            Some((key, turn)) => {
                let turn = turn.or_else(|| self.turns.get(&key).copied());
                self.request(key, turn, &mut json);
            }
            None => {
                json.raw(r#","sample_uuid":"","conversation_id":"#);
                match record {
                    Record::Conversation(r) => json.text(&self.name(r.phase, r.conversation)),
                    _ => json.text(""),
                };
                json.raw(r#","turn":null"#);
            }
        }
        json.raw(r#","data":"#);
        data.write(&mut json);
        if let Record::Completed(done) = record {
            if let Some(finish) = done.finish {
                json.raw(r#","finish_reason":"#).word(finish.as_str());
            }
            json.raw(r#","worker_id":"#).number(ONLY_WORKER);
        }
        let phase = record.phase().and_then(|phase| self.phases.get(usize::from(phase.0)));
        if let Some(name) = phase {
            json.raw(r#","phase":"#).bytes(name);
        }
        rest(record, &mut json);
        json.raw("}");
    }

    fn request(&self, key: RequestKey, turn: Option<TurnOf>, json: &mut Json<'_>) {
        let id = RequestId::new(self.session, key).hex();
        json.raw(r#","sample_uuid":""#).bytes(&id);
        match turn {
            None => json.raw(r#"","conversation_id":"","turn":null"#),
            Some(TurnOf { conversation, turn }) => {
                json.raw(r#"","conversation_id":"#).text(&self.name(key.phase, conversation));
                json.raw(r#","turn":"#).number(turn)
            }
        };
    }

    /// The name of a conversation.
    fn name(&self, phase: PhaseId, conversation: u64) -> String {
        let plan = self.talks.get(usize::from(phase.0)).and_then(Option::as_ref);
        plan.map_or_else(|| conversation.to_string(), |plan| plan.conversation_id(conversation))
    }
}

impl EventType {
    /// The word for what `record` says.
    #[must_use]
    pub fn of(record: &Record<'_>) -> Self {
        match record {
            Record::Session(r) => match r.event {
                SessionEvent::Started => Self::SessionStarted,
                SessionEvent::Interrupted => Self::SessionInterrupted,
                SessionEvent::Failed(_) => Self::ErrorSession,
                SessionEvent::Ended => Self::SessionEnded,
            },
            Record::Phase(r) => match r.event {
                PhaseEvent::Started { .. } => Self::PhaseStarted,
                PhaseEvent::TrackingStarted => Self::TrackingStarted,
                PhaseEvent::IssuingEnded { .. } => Self::PhaseIssuingEnded,
                PhaseEvent::TrackingStopped => Self::TrackingStopped,
                PhaseEvent::Ended { .. } => Self::PhaseEnded,
            },
            Record::Issued(_) => Self::SampleIssued,
            Record::Token(r) if r.first => Self::SampleRecvFirst,
            Record::Token(_) => Self::SampleRecvNonFirst,
            Record::Error { .. } => Self::ErrorGeneric,
            Record::Completed(_) => Self::SampleComplete,
            Record::Text(_) => Self::SampleText,
            Record::Conversation(r) => match r.event {
                ConversationEvent::Started { .. } => Self::ConversationStarted,
                ConversationEvent::Ended(_) => Self::ConversationEnded,
            },
            Record::Window(r) => match r.event {
                WindowEvent::Opened => Self::WindowOpened,
                WindowEvent::Closed => Self::WindowClosed,
            },
            Record::Clock(_) => Self::Clock,
            Record::Health(_) => Self::Health,
        }
    }
}

impl<'a> EventData<'a> {
    /// What `record` alone says.
    #[must_use]
    pub fn of(record: &Record<'a>) -> Self {
        match record {
            Record::Session(r) => match r.event {
                SessionEvent::Failed(by) => {
                    Self::Error { kind: by.as_str(), message: "the session could not go on" }
                }
                SessionEvent::Started | SessionEvent::Interrupted | SessionEvent::Ended => {
                    Self::Absent
                }
            },
            Record::Issued(_) => Self::Prompt { text: None, messages: None },
            Record::Error { failure, message, .. } => {
                Self::Error { kind: failure.kind.as_str(), message }
            }
            Record::Completed(_) => {
                Self::Output { output: None, reasoning: None, tool_calls: None }
            }
            Record::Text(r) => {
                let (mut output, mut reasoning, mut tool_calls) = (None, None, None);
                let place = match r.kind {
                    TextKind::Content => &mut output,
                    TextKind::Reasoning => &mut reasoning,
                    TextKind::ToolCalls => &mut tool_calls,
                };
                *place = Some(Cow::Borrowed(r.text));
                Self::Output { output, reasoning, tool_calls }
            }
            Record::Phase(_)
            | Record::Token(_)
            | Record::Conversation(_)
            | Record::Window(_)
            | Record::Clock(_)
            | Record::Health(_) => Self::Absent,
        }
    }

    fn write(&self, json: &mut Json<'_>) {
        match self {
            Self::Absent => json.raw("null"),
            Self::Prompt { text, messages } => {
                json.raw(r#"["PromptData","#).maybe_text(text.as_deref()).raw(",null,");
                match messages {
                    Some(messages) => json.value(messages),
                    None => json.raw("null"),
                };
                json.raw(",null,null,null,null]")
            }
            Self::Output { output, reasoning, tool_calls } => {
                json.raw(r#"["TextModelOutput","#).maybe_text(output.as_deref());
                json.raw(",").maybe_text(reasoning.as_deref());
                json.raw(",").maybe_text(tool_calls.as_deref()).raw("]")
            }
            Self::Error { kind, message } => {
                json.raw(r#"["ErrorData","#).word(kind).raw(",").text(message).raw("]")
            }
        };
    }
}

/// The request that a record is about, and its turn where the record has it.
fn request(record: &Record<'_>) -> Option<(RequestKey, Option<TurnOf>)> {
    match record {
        Record::Issued(r) => Some((r.key, r.turn)),
        Record::Completed(r) => Some((r.key, r.turn)),
        Record::Token(r) => Some((r.key, None)),
        Record::Text(r) => Some((r.key, None)),
        Record::Error { key, .. } => Some((*key, None)),
        Record::Session(_)
        | Record::Phase(_)
        | Record::Conversation(_)
        | Record::Window(_)
        | Record::Clock(_)
        | Record::Health(_) => None,
    }
}

/// What the seed has no place for. All words in it are ours and need no escape.
fn rest(record: &Record<'_>, json: &mut Json<'_>) {
    match record {
        Record::Issued(r) => issued(r, json),
        Record::Token(r) => token(r, json),
        Record::Completed(r) => completed(r, json),
        Record::Phase(r) => match r.event {
            PhaseEvent::Started { inherited } => {
                json.raw(r#","takt":{"inherited":"#).number(inherited).raw("}");
            }
            PhaseEvent::IssuingEnded { by } => {
                json.raw(r#","takt":{"by":"#).word(by.as_str()).raw("}");
            }
            PhaseEvent::Ended { state } => {
                json.raw(r#","takt":{"state":"#).word(state.as_str()).raw("}");
            }
            PhaseEvent::TrackingStarted | PhaseEvent::TrackingStopped => {}
        },
        Record::Error { failure, .. } => {
            json.raw(r#","takt":{"blame":"#).word(failure.blame.as_str());
            json.raw(r#","stage":"#).word(failure.stage.as_str());
            json.raw(r#","status":"#).maybe(failure.status).raw("}");
        }
        Record::Clock(r) => {
            json.raw(r#","takt":{"wall_ns":"#).number(r.wall_ns).raw("}");
        }
        Record::Health(r) => health(r, json),
        Record::Conversation(r) => conversation(&r.event, json),
        Record::Session(_) | Record::Window(_) | Record::Text(_) => {}
    }
}

fn issued(issued: &Issued, json: &mut Json<'_>) {
    json.raw(r#","takt":{"ordinal":"#).number(issued.key.ordinal);
    json.raw(r#","sample_index":"#).number(issued.sample);
    json.raw(r#","scheduled_ns":"#).maybe(issued.scheduled.map(Nanos::as_nanos)).raw("}");
}

fn token(token: &Token, json: &mut Json<'_>) {
    json.raw(r#","takt":{"tokens":"#).maybe(token.tokens);
    json.raw(r#","content":"#).flag(token.content);
    json.raw(r#","reasoning":"#).flag(token.reasoning);
    json.raw(r#","tool_call":"#).flag(token.tool_call);
    json.raw(r#","coalesced":"#).flag(token.coalesced).raw("}");
}

fn completed(done: &Completed, json: &mut Json<'_>) {
    json.raw(r#","takt":{"ordinal":"#).number(done.key.ordinal);
    json.raw(r#","sample_index":"#).number(done.sample);
    json.raw(r#","outcome":"#).word(done.outcome.as_str());
    json.raw(r#","error":"#).maybe_word(done.outcome.failure().map(|f| f.kind.as_str()));
    json.raw(r#","status":"#).maybe(done.status);
    json.raw(r#","attempts":"#).number(done.attempts);
    json.raw(r#","reused":"#).flag(done.reused);
    json.raw(r#","body_bytes":"#).number(done.body_bytes);
    json.raw(r#","endpoint":"#).number(done.endpoint);
    json.raw(r#","times_ns":{"#);
    times(&done.times, json);
    json.raw(r#"},"tokens":{"#);
    tokens(&done.tokens, json);
    json.raw("}}");
}

/// Times that were reached; `connect`, `tls` and `socket_wait` are spans.
fn times(times: &Times, json: &mut Json<'_>) {
    json.raw(r#""issued":"#).number(times.issued.as_nanos());
    let instants = [
        (r#","scheduled":"#, times.scheduled),
        (r#","acquired":"#, times.acquired),
        (r#","sent":"#, times.sent),
        (r#","written":"#, times.written),
        (r#","first_byte":"#, times.first_byte),
        (r#","first_event":"#, times.first_event),
        (r#","first_token":"#, times.first_token),
        (r#","first_content":"#, times.first_content),
        (r#","last_token":"#, times.last_token),
        (r#","end":"#, Some(times.end)),
    ];
    for (name, at) in instants {
        if let Some(at) = at {
            json.raw(name).number(at.as_nanos());
        }
    }
    let spans = [
        (r#","connect":"#, times.connect),
        (r#","tls":"#, times.tls),
        (r#","socket_wait":"#, times.socket_wait),
    ];
    for (name, span) in spans {
        if let Some(span) = span {
            json.raw(name).number(span.as_nanos());
        }
    }
}

fn tokens(counts: &TokenCounts, json: &mut Json<'_>) {
    json.raw(r#""input":"#).maybe(counts.input);
    json.raw(r#","output":"#).maybe(counts.output);
    json.raw(r#","cached":"#).maybe(counts.cached);
    json.raw(r#","first_event":"#).maybe(counts.first_event);
    json.raw(r#","events":"#).number(counts.events);
    json.raw(r#","coalesced":"#).number(counts.coalesced);
    json.raw(r#","source":"#).maybe_word(counts.source.map(TokenSource::as_str));
}

fn conversation(event: &ConversationEvent, json: &mut Json<'_>) {
    let end = match event {
        ConversationEvent::Started { turns } => {
            json.raw(r#","takt":{"turns":"#).number(*turns).raw("}");
            return;
        }
        ConversationEvent::Ended(end) => end,
    };
    json.raw(r#","takt":{"state":"#).word(end.how.as_str());
    json.raw(r#","began_ns":"#).number(end.began.as_nanos());
    json.raw(r#","turns":"#).number(end.turns);
    json.raw(r#","succeeded":"#).number(end.succeeded);
    json.raw(r#","failed":"#).number(end.failed);
    json.raw(r#","skipped":"#).number(end.skipped);
    json.raw(r#","unsent":"#).number(end.unsent);
    json.raw(r#","waited_ns":"#).number(end.waited.as_nanos());
    json.raw(r#","paused_ns":"#).number(end.paused.as_nanos());
    json.raw(r#","tokens":{"input":"#).maybe(end.input);
    json.raw(r#","output":"#).maybe(end.output);
    json.raw(r#","cached":"#).maybe(end.cached).raw("}}");
}

fn health(health: &Health, json: &mut Json<'_>) {
    json.raw(r#","takt":{"on_cpu_ns":"#).maybe(health.on_cpu.map(Span::as_nanos));
    json.raw(r#","runnable_ns":"#).maybe(health.runnable.map(Span::as_nanos));
    json.raw(r#","stolen_ns":"#).maybe(health.stolen.map(Span::as_nanos));
    json.raw(r#","involuntary":"#).maybe(health.involuntary);
    json.raw(r#","busy_ns":"#).number(health.busy.as_nanos());
    json.raw(r#","turns":"#).number(health.turns);
    json.raw(r#","longest_turn_ns":"#).number(health.longest_turn.as_nanos());
    json.raw(r#","timers":"#).number(health.timers);
    json.raw(r#","ready":"#).number(health.ready);
    json.raw(r#","messages":"#).number(health.messages);
    json.raw(r#","spilled":"#).number(health.spilled);
    json.raw(r#","lost":"#).number(health.lost);
    json.raw(r#","connections":"#).number(health.connections);
    json.raw(r#","limited":"#).number(health.limited);
    json.raw(r#","secured":"#).number(health.secured);
    json.raw(r#","resumed":"#).number(health.resumed).raw(r#","work":"#);
    work::work(health.work.as_ref(), json);
    json.raw("}");
}

/// A run has one reactor.
const ONLY_WORKER: u32 = 0;

#[cfg(test)]
mod tests;
