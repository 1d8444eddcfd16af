//! Builds the records of small runs. Times are in milliseconds of the run's clock.

use takt_record::{
    Blame, Completed, EndedBy, ErrorKind, Failure, FinishReason, Fold, Health, Issued, Outcome,
    PhaseEvent, PhaseId, PhaseKind, PhasePlan, PhaseRecord, PhaseResult, PhaseState, Record,
    RequestKey, ResultDoc, SessionEvent, SessionPlan, SessionRecord, Stage, Times, Token,
    TokenCounts, TokenSource,
};
use takt_report::{Limits, RunFold};
use takt_time::{Nanos, Span};

/// A run in the making.
pub(crate) struct Run {
    pub(crate) plan: SessionPlan,
    pub(crate) records: Vec<Record<'static>>,
}

/// A request with sensible times, to be changed before it is added.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) done: Completed,
    pub(crate) tokens: Vec<Token>,
    pub(crate) message: &'static str,
}

pub(crate) fn at(ms: f64) -> Nanos {
    Nanos::ZERO + Span::from_secs_f64(ms / 1e3)
}

/// An open loop.
pub(crate) fn open(name: &str, rate: f64) -> PhasePlan {
    PhasePlan {
        name: name.to_owned(),
        kind: PhaseKind::Performance,
        pattern: "poisson".to_owned(),
        rate: Some(rate),
        ramp: None,
        target_concurrency: None,
        requests: None,
        stream: true,
        conversations: None,
    }
}

/// A closed loop.
pub(crate) fn closed(name: &str, target: u32) -> PhasePlan {
    let pattern = "concurrency".to_owned();
    PhasePlan { pattern, rate: None, target_concurrency: Some(target), ..open(name, 0.0) }
}

pub(crate) fn warmup(name: &str) -> PhasePlan {
    PhasePlan { kind: PhaseKind::Warmup, ..closed(name, 1) }
}

impl Run {
    pub(crate) fn new(phases: Vec<PhasePlan>) -> Self {
        let plan = SessionPlan {
            session_id: "00112233445566778899aabbccddeeff".to_owned(),
            takt: "0.1.0".to_owned(),
            started_at: "2026-01-02T03:04:05Z".to_owned(),
            phases,
            config: serde_json::json!({
                "name": "demo",
                "endpoint": {"url": "http://127.0.0.1:8000", "api": "openai-chat", "model": "tiny"},
                "engine": {"wait": "guard"},
            }),
            host: serde_json::json!({"cores": 2}),
        };
        let event = SessionEvent::Started;
        Self { plan, records: vec![Record::Session(SessionRecord { at: at(0.0), event })] }
    }

    /// The phase runs from `from` to `to`; issuing and tracking end with it.
    pub(crate) fn phase(&mut self, phase: u16, from: f64, to: f64) -> &mut Self {
        self.start(phase, from, 0).end(phase, to, EndedBy::Requests, PhaseState::Complete)
    }

    pub(crate) fn start(&mut self, phase: u16, from: f64, inherited: u32) -> &mut Self {
        self.phase_event(phase, from, PhaseEvent::Started { inherited });
        self.phase_event(phase, from, PhaseEvent::TrackingStarted)
    }

    pub(crate) fn end(&mut self, phase: u16, to: f64, by: EndedBy, state: PhaseState) -> &mut Self {
        self.phase_event(phase, to, PhaseEvent::IssuingEnded { by });
        self.phase_event(phase, to, PhaseEvent::TrackingStopped);
        self.phase_event(phase, to, PhaseEvent::Ended { state })
    }

    pub(crate) fn phase_event(&mut self, phase: u16, when: f64, event: PhaseEvent) -> &mut Self {
        let phase = PhaseId(phase);
        self.records.push(Record::Phase(PhaseRecord { at: at(when), phase, event }));
        self
    }

    pub(crate) fn session(&mut self, when: f64, event: SessionEvent) -> &mut Self {
        self.records.push(Record::Session(SessionRecord { at: at(when), event }));
        self
    }

    pub(crate) fn health(&mut self, reading: Health) -> &mut Self {
        self.records.push(Record::Health(reading));
        self
    }

    pub(crate) fn add(&mut self, request: &Request) -> &mut Self {
        let (done, times) = (request.done, request.done.times);
        self.records.push(Record::Issued(Issued {
            key: done.key,
            sample: done.sample,
            at: times.issued,
            scheduled: times.scheduled,
            turn: None,
        }));
        self.records.extend(request.tokens.iter().map(|&token| Record::Token(token)));
        if let Outcome::Failed(failure) = done.outcome {
            let (key, message) = (done.key, request.message);
            self.records.push(Record::Error { at: times.end, key, failure, message });
        }
        self.records.push(Record::Completed(done));
        self
    }

    /// The records in order of time, as a reactor would have written them.
    pub(crate) fn sorted(&self) -> Vec<Record<'static>> {
        let mut records = self.records.clone();
        // Ends of phases come after what else happens at the same moment.
        let last = |r: &Record<'_>| match r {
            Record::Phase(p) => !matches!(p.event, PhaseEvent::Started { .. }),
            Record::Session(s) => s.event != SessionEvent::Started,
            _ => false,
        };
        records.sort_by_key(|record| (record.at(), last(record)));
        records
    }

    pub(crate) fn fold(&self) -> RunFold {
        fold(&self.plan, self.sorted())
    }

    /// The result of the run, its end written.
    pub(crate) fn result(&mut self) -> ResultDoc {
        let end = self.sorted().last().map_or(at(0.0), Record::at);
        self.records.push(Record::Session(SessionRecord { at: end, event: SessionEvent::Ended }));
        self.fold().result(&Limits::default())
    }

    /// The result of its only phase.
    pub(crate) fn only_phase(&mut self) -> PhaseResult {
        let mut phases = self.result().phases;
        assert_eq!(phases.len(), 1);
        phases.remove(0)
    }
}

pub(crate) fn fold(
    plan: &SessionPlan,
    records: impl IntoIterator<Item = Record<'static>>,
) -> RunFold {
    let mut fold = RunFold::new(plan.clone());
    for record in records {
        fold.fold(&record);
    }
    fold
}

/// A request of phase 0 that succeeds: issued and sent at `sent`, ended at `end`.
pub(crate) fn ok(ordinal: u64, sent: f64, end: f64) -> Request {
    let sent = at(sent);
    let times = Times {
        issued: sent,
        acquired: Some(sent),
        sent: Some(sent),
        written: Some(sent),
        end: at(end),
        ..Times::default()
    };
    let done = Completed {
        key: RequestKey { phase: PhaseId(0), ordinal },
        sample: 0,
        outcome: Outcome::Ok,
        times,
        tokens: TokenCounts::default(),
        finish: Some(FinishReason::Stop),
        status: Some(200),
        attempts: 1,
        reused: true,
        body_bytes: 0,
        endpoint: 0,
        turn: None,
    };
    Request { done, tokens: Vec::new(), message: "" }
}

/// The same, failed with a status.
pub(crate) fn failed(ordinal: u64, sent: f64, end: f64) -> Request {
    let mut request = ok(ordinal, sent, end);
    let (blame, stage) = (Blame::Server, Stage::Head);
    let failure = Failure { kind: ErrorKind::HttpStatus, blame, stage, status: Some(503) };
    request.done.outcome = Outcome::Failed(failure);
    request.done.finish = None;
    request.message = "busy";
    request
}

impl Request {
    pub(crate) fn of_phase(mut self, phase: u16) -> Self {
        self.done.key.phase = PhaseId(phase);
        self.tokens.iter_mut().for_each(|token| token.key.phase = PhaseId(phase));
        self
    }

    pub(crate) fn scheduled(mut self, when: f64) -> Self {
        self.done.times.scheduled = Some(at(when));
        self.done.times.issued = at(when);
        self
    }

    /// Token events at these moments with these numbers of tokens; equal moments are one read.
    pub(crate) fn streamed(mut self, events: &[(f64, Option<u32>)], output: u32) -> Self {
        let mut last = None;
        for &(when, tokens) in events {
            let (first, coalesced) = (last.is_none(), last == Some(at(when)));
            last = Some(at(when));
            self.tokens.push(Token {
                at: at(when),
                key: self.done.key,
                first,
                tokens,
                content: true,
                reasoning: false,
                tool_call: false,
                coalesced,
            });
        }
        let first = self.tokens.first().map(|token| token.at);
        let told = events.iter().all(|(_, tokens)| tokens.is_some());
        self.done.times.first_token = first;
        self.done.times.first_content = first;
        self.done.times.last_token = last;
        self.done.tokens = TokenCounts {
            output: Some(output),
            first_event: events.first().map(|(_, tokens)| tokens.unwrap_or(1)),
            events: events.len() as u32,
            coalesced: self.tokens.iter().filter(|token| token.coalesced).count() as u32,
            source: Some(if told { TokenSource::ContinuousUsage } else { TokenSource::Usage }),
            ..TokenCounts::default()
        };
        self
    }
}

/// Within the three significant digits of a histogram.
#[track_caller]
pub(crate) fn near(got: f64, want: f64) {
    assert!((got - want).abs() <= want.abs() / 1000.0, "{got}, wanted {want}");
}
