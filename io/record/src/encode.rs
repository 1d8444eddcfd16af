//! Records into bytes. One function a kind; each writes into [`ROOM`] bytes that are known to be there.

use takt_time::{Anchor, Nanos};

use crate::codec::{
    FAILURE_STATUS, MORE, State, completed, conversation, health, issued, more, phase_event,
    present, session_event, tag, token, window_event,
};
use crate::records::{
    Completed, ConversationEvent, ConversationRecord, Failure, Health, Issued, Outcome, PhaseEvent,
    PhaseRecord, RequestKey, SessionEvent, SessionRecord, TextKind, Token, TurnOf, WindowEvent,
    WindowRecord,
};
use crate::varint::{Put, ROOM};
use crate::work::Work;

/// An encoder over the room for one record. Each method returns the bytes it used.
pub(crate) struct Encode<'a> {
    put: Put<'a>,
    state: &'a mut State,
}

impl<'a> Encode<'a> {
    #[inline]
    pub(crate) fn new(room: &'a mut [u8; ROOM], state: &'a mut State) -> Self {
        Self { put: Put::new(room), state }
    }

    #[inline]
    pub(crate) fn token(mut self, t: &Token) -> usize {
        self.phase(t.key);
        self.put.byte(
            tag::TOKEN
                | flag(t.first, token::FIRST)
                | flag(t.tokens.is_some(), token::TOKENS)
                | flag(t.content, token::CONTENT)
                | flag(t.reasoning, token::REASONING)
                | flag(t.tool_call, token::TOOL_CALL)
                | flag(t.coalesced, token::COALESCED),
        );
        self.at(t.at);
        self.ordinal(t.key);
        if let Some(tokens) = t.tokens {
            self.put.number(tokens.into());
        }
        self.put.used()
    }

    #[inline]
    pub(crate) fn issued(mut self, i: &Issued) -> usize {
        self.phase(i.key);
        self.put.byte(
            tag::ISSUED
                | flag(i.scheduled.is_some(), issued::SCHEDULED)
                | flag(i.turn.is_some(), issued::TURN),
        );
        self.at(i.at);
        self.ordinal(i.key);
        self.put.number(i.sample.into());
        if let Some(scheduled) = i.scheduled {
            self.put.step(i.at.as_nanos(), scheduled.as_nanos());
        }
        self.turn(i.turn);
        self.put.used()
    }

    pub(crate) fn completed(mut self, c: &Completed) -> usize {
        self.phase(c.key);
        let outcome = match c.outcome {
            Outcome::Ok => 0,
            Outcome::Failed(_) => completed::FAILED,
            Outcome::Unanswered => completed::UNANSWERED,
        };
        self.put.byte(
            tag::COMPLETED
                | outcome
                | flag(c.reused, completed::REUSED)
                | flag(c.attempts != 1, completed::ATTEMPTS)
                | flag(c.status == Some(200), completed::STATUS_200)
                | flag(c.turn.is_some(), completed::TURN),
        );
        self.put.u16(presence(c));
        let finish = c.finish.map_or(0, |f| f.code() + 1);
        let source = c.tokens.source.map_or(0, |s| s.code() + 1);
        let more = flag(c.endpoint != 0, more::ENDPOINT)
            | flag(c.times.socket_wait.is_some(), more::SOCKET_WAIT);
        self.put.byte(finish | source << 4 | flag(more != 0, MORE));
        if more != 0 {
            self.further(more, c);
        }
        self.at(c.times.end);
        self.ordinal(c.key);
        self.put.number(c.sample.into());
        self.times(c);
        self.count(c.tokens.input);
        self.count(c.tokens.output);
        self.count(c.tokens.cached);
        self.count(c.tokens.first_event);
        self.put.step(c.tokens.output.unwrap_or(0).into(), c.tokens.events.into());
        self.put.number(c.tokens.coalesced.into());
        self.put.number(c.body_bytes);
        if c.attempts != 1 {
            self.put.byte(c.attempts);
        }
        if let Some(status) = c.status
            && status != 200
        {
            self.put.number(status.into());
        }
        if let Outcome::Failed(failure) = c.outcome {
            self.failure(failure);
        }
        self.turn(c.turn);
        self.put.used()
    }

    /// What few requests have.
    fn further(&mut self, more: u8, c: &Completed) {
        self.put.byte(more);
        if more & more::ENDPOINT != 0 {
            self.put.number(c.endpoint.into());
        }
        if let Some(wait) = c.times.socket_wait {
            self.put.number(wait.as_nanos());
        }
    }

    /// Backwards from the end to the issue, from there to the schedule, then along the chain; the last
    /// token lies close to the end.
    #[inline]
    fn times(&mut self, c: &Completed) {
        let t = &c.times;
        let issued = t.issued.as_nanos();
        self.put.step(t.end.as_nanos(), issued);
        if let Some(scheduled) = t.scheduled {
            self.put.step(issued, scheduled.as_nanos());
        }
        if let Some(connect) = t.connect {
            self.put.number(connect.as_nanos());
        }
        if let Some(tls) = t.tls {
            self.put.number(tls.as_nanos());
        }
        let mut last = issued;
        last = self.link(last, t.acquired);
        last = self.link(last, t.sent);
        last = self.link(last, t.written);
        last = self.link(last, t.first_byte);
        last = self.link(last, t.first_event);
        last = self.link(last, t.first_token);
        self.link(last, t.first_content);
        if let Some(last_token) = t.last_token {
            self.put.step(t.end.as_nanos(), last_token.as_nanos());
        }
    }

    /// A time of the chain, if it was reached; returns what the next one counts from.
    #[inline]
    fn link(&mut self, last: u64, at: Option<Nanos>) -> u64 {
        let Some(at) = at else { return last };
        self.put.step(last, at.as_nanos());
        at.as_nanos()
    }

    /// The text follows.
    pub(crate) fn error(
        mut self,
        at: Nanos,
        key: RequestKey,
        failure: Failure,
        len: usize,
    ) -> usize {
        self.phase(key);
        self.put.byte(tag::ERROR);
        self.at(at);
        self.ordinal(key);
        self.failure(failure);
        self.put.number(len as u64);
        self.put.used()
    }

    /// The text follows.
    pub(crate) fn text(mut self, at: Nanos, key: RequestKey, kind: TextKind, len: usize) -> usize {
        self.phase(key);
        self.put.byte(tag::TEXT);
        self.at(at);
        self.ordinal(key);
        self.put.byte(match kind {
            TextKind::Content => 0,
            TextKind::Reasoning => 1,
            TextKind::ToolCalls => 2,
        });
        self.put.number(len as u64);
        self.put.used()
    }

    pub(crate) fn session(mut self, s: SessionRecord) -> usize {
        self.put.byte(tag::SESSION);
        self.at(s.at);
        match s.event {
            SessionEvent::Started => self.put.byte(session_event::STARTED),
            SessionEvent::Interrupted => self.put.byte(session_event::INTERRUPTED),
            SessionEvent::Failed(by) => {
                self.put.byte(session_event::FAILED);
                self.put.byte(by.code());
            }
            SessionEvent::Ended => self.put.byte(session_event::ENDED),
        }
        self.put.used()
    }

    pub(crate) fn phase_record(mut self, p: PhaseRecord) -> usize {
        self.put.byte(tag::PHASE);
        self.at(p.at);
        self.put.number(p.phase.0.into());
        match p.event {
            PhaseEvent::Started { inherited } => {
                self.put.byte(phase_event::STARTED);
                self.put.number(inherited.into());
            }
            PhaseEvent::TrackingStarted => self.put.byte(phase_event::TRACKING_STARTED),
            PhaseEvent::IssuingEnded { by } => {
                self.put.byte(phase_event::ISSUING_ENDED);
                self.put.byte(by.code());
            }
            PhaseEvent::TrackingStopped => self.put.byte(phase_event::TRACKING_STOPPED),
            PhaseEvent::Ended { state } => {
                self.put.byte(phase_event::ENDED);
                self.put.byte(state.code());
            }
        }
        self.put.used()
    }

    pub(crate) fn conversation(mut self, c: &ConversationRecord) -> usize {
        self.put.byte(tag::CONVERSATION);
        let end = match c.event {
            ConversationEvent::Started { .. } => None,
            ConversationEvent::Ended(end) => Some(end),
        };
        self.put.byte(end.map_or(0, |end| {
            conversation::ENDED
                | end.how.code() << conversation::STATE
                | flag(end.more, conversation::MORE)
                | flag(end.input.is_some(), conversation::INPUT)
                | flag(end.output.is_some(), conversation::OUTPUT)
                | flag(end.cached.is_some(), conversation::CACHED)
        }));
        self.at(c.at);
        self.put.number(c.phase.0.into());
        self.put.number(c.conversation);
        let end = match c.event {
            ConversationEvent::Started { turns } => {
                self.put.number(turns.into());
                return self.put.used();
            }
            ConversationEvent::Ended(end) => end,
        };
        self.put.step(c.at.as_nanos(), end.began.as_nanos());
        for number in [end.turns, end.succeeded, end.failed, end.skipped, end.unsent] {
            self.put.number(number.into());
        }
        self.put.number(end.waited.as_nanos());
        self.put.number(end.paused.as_nanos());
        for count in [end.input, end.output, end.cached].into_iter().flatten() {
            self.put.number(count);
        }
        self.put.used()
    }

    pub(crate) fn window(mut self, w: WindowRecord) -> usize {
        self.put.byte(tag::WINDOW);
        self.at(w.at);
        self.put.byte(match w.event {
            WindowEvent::Opened => window_event::OPENED,
            WindowEvent::Closed => window_event::CLOSED,
        });
        self.put.used()
    }

    pub(crate) fn clock(mut self, anchor: Anchor) -> usize {
        self.put.byte(tag::CLOCK);
        self.at(anchor.mono);
        self.put.number(anchor.wall_ns);
        self.put.used()
    }

    pub(crate) fn health(mut self, h: &Health) -> usize {
        self.put.byte(tag::HEALTH);
        self.put.byte(
            flag(h.on_cpu.is_some(), health::ON_CPU)
                | flag(h.runnable.is_some(), health::RUNNABLE)
                | flag(h.stolen.is_some(), health::STOLEN)
                | flag(h.involuntary.is_some(), health::INVOLUNTARY)
                | flag(h.secured | h.resumed != 0, health::TLS)
                | flag(h.work.is_some(), health::WORK),
        );
        self.at(h.at);
        for span in [h.on_cpu, h.runnable, h.stolen].into_iter().flatten() {
            self.put.number(span.as_nanos());
        }
        if let Some(involuntary) = h.involuntary {
            self.put.number(involuntary);
        }
        for number in [
            h.busy.as_nanos(),
            h.turns,
            h.longest_turn.as_nanos(),
            h.timers,
            h.ready,
            h.messages,
            h.spilled,
            h.lost,
            h.connections,
            h.limited,
        ] {
            self.put.number(number);
        }
        if h.secured | h.resumed != 0 {
            self.put.number(h.secured);
            self.put.number(h.resumed);
        }
        if let Some(work) = &h.work {
            self.work(work);
        }
        self.put.used()
    }

    fn work(&mut self, work: &Work) {
        for number in work.counts() {
            self.put.number(number);
        }
        let options = work.options();
        let bits = (0..).zip(options).map(|(bit, option)| u8::from(option.is_some()) << bit);
        self.put.byte(bits.fold(0, |all, bit| all | bit));
        for number in options.into_iter().flatten() {
            self.put.number(number);
        }
    }

    /// Says so when the request is of another phase than the one before.
    #[inline]
    fn phase(&mut self, key: RequestKey) {
        if key.phase.0 != self.state.phase {
            self.state.phase = key.phase.0;
            self.put.byte(tag::PHASE_CHANGE);
            self.put.number(key.phase.0.into());
        }
    }

    #[inline]
    fn at(&mut self, at: Nanos) {
        self.put.step(self.state.at, at.as_nanos());
        self.state.at = at.as_nanos();
    }

    #[inline]
    fn ordinal(&mut self, key: RequestKey) {
        self.put.step(self.state.ordinal, key.ordinal);
        self.state.ordinal = key.ordinal;
    }

    #[inline]
    fn count(&mut self, count: Option<u32>) {
        if let Some(count) = count {
            self.put.number(count.into());
        }
    }

    #[inline]
    fn turn(&mut self, turn: Option<TurnOf>) {
        if let Some(turn) = turn {
            self.put.number(turn.conversation);
            self.put.number(turn.turn.into());
        }
    }

    #[inline(always)]
    fn failure(&mut self, failure: Failure) {
        self.put.byte(failure.kind.code());
        let status = flag(failure.status.is_some(), FAILURE_STATUS);
        self.put.byte(failure.blame.code() << 4 | failure.stage.code() | status);
        if let Some(status) = failure.status {
            self.put.number(status.into());
        }
    }
}

#[inline]
fn flag(on: bool, bit: u8) -> u8 {
    if on { bit } else { 0 }
}

#[inline]
fn presence(c: &Completed) -> u16 {
    let t = &c.times;
    let bit = |on: bool, bit: u16| if on { bit } else { 0 };
    bit(t.scheduled.is_some(), present::SCHEDULED)
        | bit(t.acquired.is_some(), present::ACQUIRED)
        | bit(t.connect.is_some(), present::CONNECT)
        | bit(t.tls.is_some(), present::TLS)
        | bit(t.sent.is_some(), present::SENT)
        | bit(t.written.is_some(), present::WRITTEN)
        | bit(t.first_byte.is_some(), present::FIRST_BYTE)
        | bit(t.first_event.is_some(), present::FIRST_EVENT)
        | bit(t.first_token.is_some(), present::FIRST_TOKEN)
        | bit(t.first_content.is_some(), present::FIRST_CONTENT)
        | bit(t.last_token.is_some(), present::LAST_TOKEN)
        | bit(c.tokens.input.is_some(), present::INPUT)
        | bit(c.tokens.output.is_some(), present::OUTPUT)
        | bit(c.tokens.cached.is_some(), present::CACHED)
        | bit(c.tokens.first_event.is_some(), present::FIRST_EVENT_TOKENS)
        | bit(c.status.is_some_and(|s| s != 200), present::STATUS)
}
