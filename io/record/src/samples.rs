//! Records for tests: any at all, and typical ones.

use proptest::option;
use proptest::prelude::*;
use takt_time::{Anchor, Nanos, Span};

use crate::kinds::{
    Blame, ConversationState, EndedBy, ErrorKind, FailedBy, FinishReason, PhaseState, Stage,
    TokenSource,
};
use crate::records::{
    Completed, ConversationEnd, ConversationEvent, ConversationRecord, Failure, Health, Issued,
    Outcome, PhaseEvent, PhaseId, PhaseRecord, Record, RequestKey, SessionEvent, SessionRecord,
    Text, TextKind, Times, Token, TokenCounts, TurnOf, WindowEvent, WindowRecord,
};
use crate::work::Work;

/// A record that owns its text.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    record: Record<'static>,
    text: String,
}

impl Owned {
    pub(crate) fn get(&self) -> Record<'_> {
        match self.record {
            Record::Error { at, key, failure, .. } => {
                Record::Error { at, key, failure, message: &self.text }
            }
            Record::Text(text) => Record::Text(Text { text: &self.text, ..text }),
            other => other,
        }
    }
}

pub(crate) fn records(most: usize) -> impl Strategy<Value = Vec<Owned>> {
    prop::collection::vec(owned(), 0..most)
}

fn owned() -> impl Strategy<Value = Owned> {
    (record(), "\\PC{0,40}").prop_map(|(record, text)| Owned { record, text })
}

fn record() -> impl Strategy<Value = Record<'static>> {
    prop_oneof![
        session().prop_map(Record::Session),
        phase().prop_map(Record::Phase),
        issued().prop_map(Record::Issued),
        token().prop_map(Record::Token),
        (nanos(), key(), failure()).prop_map(|(at, key, failure)| Record::Error {
            at,
            key,
            failure,
            message: ""
        }),
        completed().prop_map(Record::Completed),
        (nanos(), key(), text_kind()).prop_map(|(at, key, kind)| Record::Text(Text {
            at,
            key,
            kind,
            text: ""
        })),
        (nanos(), number()).prop_map(|(mono, wall_ns)| Record::Clock(Anchor { mono, wall_ns })),
        health().prop_map(Record::Health),
        conversation().prop_map(Record::Conversation),
        (nanos(), one_of(&[WindowEvent::Opened, WindowEvent::Closed]))
            .prop_map(|(at, event)| Record::Window(WindowRecord { at, event })),
    ]
}

/// Numbers of all sizes, the ends included.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift)
    ]
}

fn small() -> impl Strategy<Value = u32> {
    number().prop_map(|number| number as u32)
}

fn nanos() -> impl Strategy<Value = Nanos> {
    number().prop_map(Nanos::from_nanos)
}

fn span() -> impl Strategy<Value = Span> {
    number().prop_map(Span::from_nanos)
}

fn key() -> impl Strategy<Value = RequestKey> {
    (prop_oneof![0..3u16, any::<u16>()], number())
        .prop_map(|(phase, ordinal)| RequestKey { phase: PhaseId(phase), ordinal })
}

fn turn() -> impl Strategy<Value = Option<TurnOf>> {
    option::of((number(), small()).prop_map(|(conversation, turn)| TurnOf { conversation, turn }))
}

fn one_of<T: Copy + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn text_kind() -> impl Strategy<Value = TextKind> {
    one_of(&[TextKind::Content, TextKind::Reasoning, TextKind::ToolCalls])
}

fn session() -> impl Strategy<Value = SessionRecord> {
    let event = prop_oneof![
        one_of(&[SessionEvent::Started, SessionEvent::Interrupted, SessionEvent::Ended]),
        one_of(FailedBy::ALL).prop_map(SessionEvent::Failed),
    ];
    (nanos(), event).prop_map(|(at, event)| SessionRecord { at, event })
}

fn phase() -> impl Strategy<Value = PhaseRecord> {
    let event = prop_oneof![
        small().prop_map(|inherited| PhaseEvent::Started { inherited }),
        Just(PhaseEvent::TrackingStarted),
        one_of(EndedBy::ALL).prop_map(|by| PhaseEvent::IssuingEnded { by }),
        Just(PhaseEvent::TrackingStopped),
        one_of(PhaseState::ALL).prop_map(|state| PhaseEvent::Ended { state }),
    ];
    (nanos(), any::<u16>(), event).prop_map(|(at, phase, event)| PhaseRecord {
        at,
        phase: PhaseId(phase),
        event,
    })
}

fn issued() -> impl Strategy<Value = Issued> {
    (key(), small(), nanos(), option::of(nanos()), turn())
        .prop_map(|(key, sample, at, scheduled, turn)| Issued { key, sample, at, scheduled, turn })
}

fn token() -> impl Strategy<Value = Token> {
    (nanos(), key(), option::of(small()), any::<[bool; 5]>()).prop_map(
        |(at, key, tokens, [first, content, reasoning, tool_call, coalesced])| Token {
            at,
            key,
            first,
            tokens,
            content,
            reasoning,
            tool_call,
            coalesced,
        },
    )
}

fn failure() -> impl Strategy<Value = Failure> {
    (one_of(ErrorKind::ALL), one_of(Blame::ALL), one_of(Stage::ALL), option::of(any::<u16>()))
        .prop_map(|(kind, blame, stage, status)| Failure { kind, blame, stage, status })
}

fn times() -> impl Strategy<Value = Times> {
    let stamp = || option::of(nanos());
    let spans = (option::of(span()), option::of(span()), option::of(span()));
    let start = (stamp(), nanos(), stamp(), spans, stamp());
    let rest = (stamp(), stamp(), stamp(), stamp(), stamp(), stamp(), nanos());
    (start, rest).prop_map(|(start, rest)| {
        let (scheduled, issued, acquired, (connect, tls, socket_wait), sent) = start;
        let (written, first_byte, first_event, first_token, first_content, last_token, end) = rest;
        Times {
            scheduled,
            issued,
            acquired,
            connect,
            tls,
            socket_wait,
            sent,
            written,
            first_byte,
            first_event,
            first_token,
            first_content,
            last_token,
            end,
        }
    })
}

fn counts() -> impl Strategy<Value = TokenCounts> {
    let count = || option::of(small());
    let source = option::of(one_of(TokenSource::ALL));
    (count(), count(), count(), count(), small(), small(), source).prop_map(
        |(input, output, cached, first_event, events, coalesced, source)| TokenCounts {
            input,
            output,
            cached,
            first_event,
            events,
            coalesced,
            source,
        },
    )
}

fn completed() -> impl Strategy<Value = Completed> {
    let outcome = prop_oneof![
        Just(Outcome::Ok),
        failure().prop_map(Outcome::Failed),
        Just(Outcome::Unanswered)
    ];
    let status = option::of(prop_oneof![Just(200), any::<u16>()]);
    let finish = option::of(one_of(FinishReason::ALL));
    let endpoint = prop_oneof![Just(0), any::<u16>()];
    let end = (finish, status, any::<u8>(), any::<bool>(), number(), endpoint, turn());
    (key(), small(), outcome, times(), counts(), end).prop_map(
        |(key, sample, outcome, times, tokens, end)| {
            let (finish, status, attempts, reused, body_bytes, endpoint, turn) = end;
            Completed {
                key,
                sample,
                outcome,
                times,
                tokens,
                finish,
                status,
                attempts,
                reused,
                body_bytes,
                endpoint,
                turn,
            }
        },
    )
}

fn conversation() -> impl Strategy<Value = ConversationRecord> {
    let spans = (nanos(), span(), span());
    let tokens = prop::array::uniform3(option::of(number()));
    let ended = (
        one_of(ConversationState::ALL),
        any::<bool>(),
        spans,
        prop::array::uniform5(small()),
        tokens,
    );
    let ended =
        ended.prop_map(|(how, more, (began, waited, paused), n, [input, output, cached])| {
            let [turns, succeeded, failed, skipped, unsent] = n;
            ConversationEvent::Ended(ConversationEnd {
                how,
                began,
                turns,
                succeeded,
                failed,
                skipped,
                unsent,
                waited,
                paused,
                input,
                output,
                cached,
                more,
            })
        });
    let event = prop_oneof![small().prop_map(|turns| ConversationEvent::Started { turns }), ended];
    (nanos(), any::<u16>(), number(), event).prop_map(|(at, phase, conversation, event)| {
        ConversationRecord { at, phase: PhaseId(phase), conversation, event }
    })
}

fn health() -> impl Strategy<Value = Health> {
    let spans = (option::of(span()), option::of(span()), option::of(span()), span(), span());
    let counts = prop::collection::vec(number(), 10);
    let rest = (counts, option::of(work()));
    (nanos(), spans, option::of(number()), rest).prop_map(|(at, spans, involuntary, (n, work))| {
        let (on_cpu, runnable, stolen, busy, longest_turn) = spans;
        Health {
            at,
            on_cpu,
            runnable,
            stolen,
            involuntary,
            busy,
            turns: n[0],
            longest_turn,
            timers: n[1],
            ready: n[2],
            messages: n[3],
            spilled: n[4],
            lost: n[5],
            connections: n[6],
            limited: n[7],
            secured: n[8],
            resumed: n[9],
            work,
        }
    })
}

fn work() -> impl Strategy<Value = Work> {
    let options = prop::collection::vec(option::of(number()), Work::OPTIONS);
    (prop::collection::vec(number(), Work::COUNTS), options).prop_map(|(counts, options)| {
        Work::new(counts.try_into().expect("so many"), options.try_into().expect("so many"))
    })
}

/// A request of an open loop at 100,000 a second, an hour into the run.
pub(crate) fn typical_issued(ordinal: u64) -> Issued {
    let at = HOUR + ordinal * 10_000;
    Issued {
        key: RequestKey { phase: PhaseId(1), ordinal },
        sample: (ordinal * 7919 % 20_000) as u32,
        at: Nanos::from_nanos(at),
        scheduled: Some(Nanos::from_nanos(at - 2_345)),
        turn: None,
    }
}

/// One event of one of 1,000 streams that carry 100,000 events a second.
pub(crate) fn typical_token(number: u64) -> Token {
    Token {
        at: Nanos::from_nanos(HOUR + number * 10_000),
        key: RequestKey { phase: PhaseId(1), ordinal: 1_000_000 + number * 617 % 1_000 },
        first: false,
        tokens: None,
        content: true,
        reasoning: false,
        tool_call: false,
        coalesced: false,
    }
}

/// A stream of 2 s whose first token came after 150 ms, complete with usage, 1,000 of them in flight.
pub(crate) fn typical_completed(number: u64) -> Completed {
    let end = HOUR + number * 2_000_000;
    let issued = end - 2_000_000_000;
    let at = |after: u64| Some(Nanos::from_nanos(issued + after));
    Completed {
        key: RequestKey { phase: PhaseId(1), ordinal: 1_000_000 + number * 617 % 1_000 },
        sample: (number * 7919 % 20_000) as u32,
        outcome: Outcome::Ok,
        times: Times {
            scheduled: Some(Nanos::from_nanos(issued - 1_900)),
            issued: Nanos::from_nanos(issued),
            acquired: at(400),
            connect: None,
            tls: None,
            socket_wait: None,
            sent: at(900),
            written: at(6_200),
            first_byte: at(150_000_000),
            first_event: at(150_000_000),
            first_token: at(150_004_000),
            first_content: at(150_004_000),
            last_token: at(1_999_950_000),
            end: Nanos::from_nanos(end),
        },
        tokens: TokenCounts {
            input: Some(812),
            output: Some(256),
            cached: None,
            first_event: Some(1),
            events: 256,
            coalesced: 3,
            source: Some(TokenSource::Usage),
        },
        finish: Some(FinishReason::Length),
        status: Some(200),
        attempts: 1,
        reused: true,
        body_bytes: 63_000,
        endpoint: 0,
        turn: None,
    }
}

/// The same without a stream, answered within 400 us: 64 in flight.
pub(crate) fn typical_plain(number: u64) -> Completed {
    let stream = typical_completed(number);
    let end = HOUR + number * 10_000;
    let issued = end - 400_000;
    let at = |after: u64| Some(Nanos::from_nanos(issued + after));
    Completed {
        key: RequestKey { phase: PhaseId(1), ordinal: number ^ 21 },
        times: Times {
            issued: Nanos::from_nanos(issued),
            acquired: at(0),
            sent: at(400),
            written: at(6_200),
            first_byte: at(400_000),
            end: Nanos::from_nanos(end),
            ..Times::default()
        },
        tokens: TokenCounts::default(),
        body_bytes: 200,
        ..stream
    }
}

const HOUR: u64 = 3_600_000_000_000;
