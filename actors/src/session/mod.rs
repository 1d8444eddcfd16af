//! The session: phases one after another on one reactor against one endpoint set.
//!
//! ```text
//!            phase: Started, TrackingStarted
//!   begin ──> issuing ──closed by a limit, the strategy, a stop──> draining ──empty or timed out──┐
//!               │ drain_after: false ─────────────────────────────────────────────────────────────┤
//!               ^                                                                 TrackingStopped, Ended
//!               └───────────── next phase <───────────────────────────────────────────────────────┘
//!                              none left, a stop, a failure ──> ending ──nothing in flight──> Ended
//! ```
//!
//! Invariants:
//! - a request belongs to the phase that issued it, for ever: its completion is recorded under that key,
//!   and reaches the strategy only while that phase runs;
//! - one completion is published for each request issued, error before completion; what the transport
//!   says of a request that is not in flight is counted as a stray and published nowhere;
//! - `Session Ended` is always the last record, also after a stop and a failure.

mod health;
mod outcome;
mod pace;
mod phase;
mod stopping;
#[cfg(test)]
mod tests;
mod together;
mod watchdog;

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;

use takt_engine::{Actor, Context};
use takt_record::{
    Completed, EndedBy, FailedBy, Health, Outcome, PhaseEvent, PhaseId, PhaseKind, PhaseRecord,
    PhaseState, Record, RequestKey, SessionEvent, SessionRecord, SharedPublisher, WindowEvent,
    WindowRecord,
};
use takt_time::{Nanos, Span};

pub use outcome::{OutcomeSlot, PhaseOutcome, SessionOutcome, SessionState};
use pace::Hand;
use phase::PhaseIssuer;
pub use phase::{Limits, PhaseConfig};
use stopping::Stop;
pub use together::{Member, Tell, Together};
use watchdog::Watchdog;

use crate::api::{Answered, Replies, SampleIssuer};
use crate::strategy::Strategy;

/// What a session is told.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the large one is the frequent one; a box would allocate"
)]
pub enum SessionMsg {
    /// The transport is ready: run the phases.
    Begin,
    /// A request has ended.
    Answered(Answered),
    /// The transport cannot go on.
    TransportFailed(Box<str>),
    /// The clock that tells of arrivals has gone: no more will come; see [`crate::Pacer`].
    PacerFailed(Box<str>),
    /// The server's profiler is about to be started, or was stopped: to be recorded. The moment is told back
    /// once the record is on its way, and before that the profiler must not be started.
    Window(WindowEvent, SyncSender<Nanos>),
    /// Stop issuing, drain for the grace time, end. A second one gives up what is in flight at once.
    Stop,
    /// A moment that the strategy of a phase asked for.
    Tick(PhaseId, u64),
    /// A clock outside the reactor says that an arrival of a phase is due; see [`crate::Pacer`].
    Arrival {
        /// The phase whose arrival it is.
        phase: PhaseId,
        /// Its number, from 0.
        ordinal: u64,
        /// When it is due; `None`: the last one was the one before.
        scheduled: Option<Nanos>,
    },
    /// All sessions that go through the phases together are ready for this one: it begins at `start`.
    PhaseMayBegin {
        /// The phase.
        phase: PhaseId,
        /// Its beginning, for all of them.
        start: Nanos,
    },
    /// A phase that others were waited for begins now.
    PhaseBegins(PhaseId, Nanos),
    /// A span of a phase is over.
    PhaseOver(PhaseId),
    /// The drain of a phase, or the grace time of a stop, has run out.
    DrainOver(PhaseId),
    /// The transport has had its time to answer for what it was told to give up.
    CancelOver,
    /// Nothing may have come from the endpoint for too long.
    IdlePerhaps,
    /// The session's own time is over.
    RunOver,
    /// The session has ended and the transport has heard of it.
    Gone,
    /// Time to hand records over and, now and then, to take the instrument's own pulse.
    Pulse,
}

/// An embedder's hook for each request that ended.
pub type CompletedHook = Box<dyn FnMut(&Completed)>;

/// An embedder's hook for the end of a session.
pub type EndedHook = Box<dyn FnOnce()>;

/// What a session is to do.
pub struct SessionConfig {
    /// Spreads request ids; any number, new for each run.
    pub session_key: u64,
    /// The phases in order, at most 65,535.
    pub phases: Vec<PhaseConfig>,
    /// How long a stop waits for what is in flight.
    pub stop_grace: Span,
    /// Fails the session when nothing has come from the endpoint for so long while requests were in flight.
    pub idle_timeout: Option<Span>,
    /// Fails the session when it is not over so long after its start.
    pub run_timeout: Option<Span>,
    /// Begins each phase together with the sessions of other reactors.
    pub together: Option<Member>,
    /// Has the transport rehearse a request of a schedule so long before its moment, when twice as long or more is left
    /// as its arrival is drawn: code and data have left the caches by then.
    pub rehearse_ahead: Option<Span>,
    /// Begin in the first turn; otherwise [`SessionMsg::Begin`] does.
    pub begin_at_once: bool,
    /// Fills in what the platform knows of the reactor's thread.
    pub probe: Box<dyn FnMut(&mut Health)>,
    /// Called for each request that ended, after it was published.
    pub on_completed: Option<CompletedHook>,
    /// Called when the session is over, its outcome in the slot; the system goes on for its other actors.
    /// Without it the session stops the system.
    pub on_ended: Option<EndedHook>,
}

impl SessionConfig {
    /// `phases`, begun at once, with ten seconds of grace for a stop, no limits of time, no rehearsals, no probe and no
    /// hooks.
    #[must_use]
    pub fn new(phases: Vec<PhaseConfig>) -> Self {
        Self {
            session_key: 0,
            phases,
            stop_grace: Span::from_secs(10),
            idle_timeout: None,
            run_timeout: None,
            together: None,
            rehearse_ahead: None,
            begin_at_once: true,
            probe: Box::new(|_| {}),
            on_completed: None,
            on_ended: None,
        }
    }
}

/// The session actor.
pub struct Session {
    waiting: VecDeque<PhaseConfig>,
    /// The next phase waits for the sessions of other reactors.
    meeting: bool,
    together: Option<Member>,
    running: Option<Running>,
    link: Link,
    /// Why it ends early, if it does.
    stop: Option<Stop>,
    begun: bool,
    /// `Session Ended` is recorded; nothing may follow it.
    over: bool,
    begin_at_once: bool,
    stop_grace: Span,
    run_timeout: Option<Span>,
    watchdog: Watchdog,
    pulses: u64,
    probe: Box<dyn FnMut(&mut Health)>,
    on_completed: Option<CompletedHook>,
    on_ended: Option<EndedHook>,
    phases: Vec<PhaseOutcome>,
    strays: u64,
    slot: OutcomeSlot,
}

/// What issuing needs, apart from the phase.
pub(crate) struct Link {
    session_key: u64,
    publisher: SharedPublisher,
    issuer: Box<dyn SampleIssuer>,
    rehearse_ahead: Option<Span>,
    /// Requests in flight by phase, and all of them.
    in_flight: Vec<u64>,
    all_in_flight: u64,
}

/// The phase at work.
struct Running {
    kind: PhaseKind,
    strategy: Box<dyn Strategy>,
    issuer: PhaseIssuer,
    drain_after: bool,
    drain_timeout: Option<Span>,
    draining: bool,
}

impl Session {
    /// A session over `issuer`, recording into `publisher`, and the slot its outcome will be in.
    ///
    /// # Panics
    /// When there are more phases than a [`PhaseId`] can number.
    #[must_use]
    pub fn new(
        config: SessionConfig,
        issuer: Box<dyn SampleIssuer>,
        publisher: SharedPublisher,
    ) -> (Self, OutcomeSlot) {
        assert!(config.phases.len() <= usize::from(u16::MAX), "phases are numbered by 16 bits");
        let slot = OutcomeSlot::default();
        let in_flight = vec![0; config.phases.len()];
        let link = Link {
            session_key: config.session_key,
            publisher,
            issuer,
            rehearse_ahead: config.rehearse_ahead,
            in_flight,
            all_in_flight: 0,
        };
        let session = Self {
            waiting: config.phases.into(),
            meeting: false,
            together: config.together,
            running: None,
            link,
            stop: None,
            begun: false,
            over: false,
            begin_at_once: config.begin_at_once,
            stop_grace: config.stop_grace,
            run_timeout: config.run_timeout,
            watchdog: Watchdog::new(config.idle_timeout),
            pulses: 0,
            probe: config.probe,
            on_completed: config.on_completed,
            on_ended: config.on_ended,
            phases: Vec::new(),
            strays: 0,
            slot: slot.clone(),
        };
        (session, slot)
    }

    fn begin(&mut self, cx: &mut Context<'_, Self>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.next_phase(cx);
    }

    fn next_phase(&mut self, cx: &mut Context<'_, Self>) {
        if self.stop.is_some() || self.waiting.is_empty() {
            return self.end(cx);
        }
        match &self.together {
            None => self.begin_phase(cx.stamp(), cx),
            Some(member) => {
                self.meeting = true;
                member.ready(self.next_id(), cx.stamp());
            }
        }
    }

    fn next_id(&self) -> PhaseId {
        PhaseId(u16::try_from(self.phases.len()).expect("counted in `new`"))
    }

    fn begin_phase(&mut self, start: Nanos, cx: &mut Context<'_, Self>) {
        let Some(config) = self.waiting.pop_front() else { return };
        self.meeting = false;
        let id = self.next_id();
        let issuer = PhaseIssuer::new(id, start, &config);
        if let Some(at) = issuer.ends_at()
            && !config.strategy.ends_itself()
        {
            cx.call_at(at, SessionMsg::PhaseOver(id));
        }
        self.phases.push(PhaseOutcome {
            name: config.name,
            state: PhaseState::Complete,
            ended_by: EndedBy::Strategy,
            issued: 0,
        });
        self.running = Some(Running {
            kind: config.kind,
            strategy: config.strategy,
            issuer,
            drain_after: config.drain_after,
            drain_timeout: config.drain_timeout,
            draining: false,
        });
        self.watchdog.restart(start);
        let inherited = u32::try_from(self.in_flight()).unwrap_or(u32::MAX);
        self.record_phase(start, id, PhaseEvent::Started { inherited });
        self.record_health(start, cx);
        if config.kind == PhaseKind::Performance {
            self.record_phase(start, id, PhaseEvent::TrackingStarted);
        }
        self.link.publisher.flush();
        self.with_strategy(cx, |strategy, hand| strategy.start(hand));
    }

    /// Lets the strategy act, then sees whether that ended the issuing.
    fn with_strategy(
        &mut self,
        cx: &mut Context<'_, Self>,
        act: impl FnOnce(&mut dyn Strategy, &mut Hand<'_, '_>),
    ) {
        let Some(Running { strategy, issuer, .. }) = &mut self.running else { return };
        act(strategy.as_mut(), &mut Hand { issuer, link: &mut self.link, cx });
        self.issuing_may_have_ended(cx);
    }

    fn issuing_may_have_ended(&mut self, cx: &mut Context<'_, Self>) {
        let Some(running) = &mut self.running else { return };
        let Some(by) = running.issuer.closed else { return };
        if running.draining {
            return;
        }
        running.draining = true;
        running.strategy.issuing_ended();
        let id = running.issuer.id;
        let grace = match self.stop {
            None => running.drain_timeout.filter(|_| running.drain_after),
            Some(_) => Some(self.stop_grace),
        };
        let now = cx.stamp();
        self.record_phase(now, id, PhaseEvent::IssuingEnded { by });
        if let Some(grace) = grace {
            cx.call_at(now + grace, SessionMsg::DrainOver(id));
        }
        self.drained_perhaps(cx);
    }

    /// Ends the running phase when nothing it waits for is left.
    fn drained_perhaps(&mut self, cx: &mut Context<'_, Self>) {
        let Some(running) = &self.running else { return };
        if !running.draining {
            return;
        }
        // A stop waits for everything, an undrained phase for nothing.
        let left = match self.stop {
            None if running.drain_after => self.link.in_flight[usize::from(running.issuer.id.0)],
            None => 0,
            Some(_) => self.in_flight(),
        };
        if left == 0 {
            self.end_phase(cx);
        }
    }

    fn end_phase(&mut self, cx: &mut Context<'_, Self>) {
        let Some(mut running) = self.running.take() else { return };
        let Running { strategy, issuer, .. } = &mut running;
        issuer.close(EndedBy::Stop);
        strategy.over(&mut Hand { issuer, link: &mut self.link, cx });
        let ended_by = running.issuer.closed.unwrap_or(EndedBy::Stop);
        let state = match (&self.stop, ended_by) {
            (Some(Stop::Asked), _) => PhaseState::Interrupted,
            (Some(Stop::Failed(..)), _) => PhaseState::Failed,
            (None, EndedBy::MaxDuration) => PhaseState::Capped,
            (None, _) => PhaseState::Complete,
        };
        let (id, now) = (running.issuer.id, cx.stamp());
        self.record_health(now, cx);
        if running.kind == PhaseKind::Performance {
            self.record_phase(now, id, PhaseEvent::TrackingStopped);
        }
        self.record_phase(now, id, PhaseEvent::Ended { state });
        self.link.publisher.flush();
        let outcome = &mut self.phases[usize::from(id.0)];
        (outcome.state, outcome.ended_by, outcome.issued) =
            (state, ended_by, running.issuer.issued);
        self.next_phase(cx);
    }

    /// No phase is left: gives up what undrained phases left behind, and ends when all is answered.
    fn end(&mut self, cx: &mut Context<'_, Self>) {
        if self.in_flight() > 0 {
            self.give_up(cx);
        } else {
            self.ended(cx);
        }
    }

    fn ended(&mut self, cx: &mut Context<'_, Self>) {
        self.over = true;
        // A failure of one ends the others: its member goes without a word.
        if let (Some(member), false) =
            (self.together.take(), matches!(self.stop, Some(Stop::Failed(..))))
        {
            member.done();
        }
        let (at, event) = (cx.stamp(), SessionEvent::Ended);
        self.link.publisher.push(&Record::Session(SessionRecord { at, event }));
        self.link.publisher.flush();
        self.link.issuer.shut_down();
        let state = match self.stop.take() {
            None => SessionState::Complete,
            Some(Stop::Asked) => SessionState::Interrupted,
            Some(Stop::Failed(_, why)) => SessionState::Failed(why),
        };
        let phases = std::mem::take(&mut self.phases);
        self.slot.put(SessionOutcome { state, phases, strays: self.strays });
        cx.call_soon(SessionMsg::Gone);
    }

    fn answered(&mut self, answer: &Answered, cx: &mut Context<'_, Self>) {
        let Answered { completed, error } = answer;
        let key = completed.key;
        match self.link.in_flight.get_mut(usize::from(key.phase.0)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => return self.strays += 1,
        }
        self.link.all_in_flight -= 1;
        if completed.outcome == Outcome::Ok {
            self.watchdog.heard(completed.times.end);
        }
        if let Outcome::Failed(failure) = completed.outcome {
            let message = error.as_deref().unwrap_or_default();
            let at = completed.times.end;
            self.link.publisher.push(&Record::Error { at, key, failure, message });
        }
        self.link.publisher.completed(completed);
        if let Some(hook) = &mut self.on_completed {
            hook(completed);
        }
        self.pass_on(key, completed, cx);
    }

    /// Tells the strategy of the running phase, then sees what the answer ends.
    fn pass_on(&mut self, key: RequestKey, completed: &Completed, cx: &mut Context<'_, Self>) {
        let Some(running) = &self.running else {
            return if self.begun && !self.meeting && self.in_flight() == 0 {
                self.ended(cx);
            };
        };
        let (own, draining) = (running.issuer.id == key.phase, running.draining);
        if draining {
            if own && let Some(Running { strategy, issuer, .. }) = &mut self.running {
                strategy.drained(completed, &mut Hand { issuer, link: &mut self.link, cx });
            }
            self.drained_perhaps(cx);
        } else if own {
            self.with_strategy(cx, |strategy, hand| strategy.completed(completed, hand));
        } else {
            self.with_strategy(cx, |strategy, hand| strategy.inherited_ended(hand));
        }
    }

    fn pulse(&mut self, cx: &mut Context<'_, Self>) {
        if self.over {
            return;
        }
        let now = cx.now();
        self.pulses += 1;
        if self.pulses.is_multiple_of(PULSES_PER_HEALTH) {
            self.record_health(now, cx);
        }
        self.link.publisher.turn(now);
        cx.call_at(now + PULSE, SessionMsg::Pulse);
    }

    /// Records a profiler window's opening or closing.
    fn window(&self, event: WindowEvent, told: &SyncSender<Nanos>, cx: &mut Context<'_, Self>) {
        if self.over {
            return;
        }
        let at = cx.stamp();
        self.link.publisher.push(&Record::Window(WindowRecord { at, event }));
        // Whoever asked may have given up.
        let _ = told.try_send(at);
    }

    fn in_flight(&self) -> u64 {
        self.link.all_in_flight
    }

    fn record_phase(&mut self, at: Nanos, phase: PhaseId, event: PhaseEvent) {
        self.link.publisher.push(&Record::Phase(PhaseRecord { at, phase, event }));
    }
}

impl Actor for Session {
    type Msg = SessionMsg;

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        self.link.issuer.attach(Replies(cx.addr()));
        let (at, event) = (cx.stamp(), SessionEvent::Started);
        self.link.publisher.push(&Record::Session(SessionRecord { at, event }));
        self.link.publisher.flush();
        cx.call_at(at + PULSE, SessionMsg::Pulse);
        if let Some(span) = self.run_timeout {
            cx.call_at(at + span, SessionMsg::RunOver);
        }
        if self.begin_at_once {
            self.begin(cx);
        }
        self.watch(cx);
    }

    fn handle(&mut self, msg: SessionMsg, cx: &mut Context<'_, Self>) {
        let current = self.running.as_ref().map(|running| running.issuer.id);
        match msg {
            SessionMsg::Begin => self.begin(cx),
            // By reference: it is the one message large and frequent enough for a copy to count.
            SessionMsg::Answered(ref answer) => self.answered(answer, cx),
            SessionMsg::Tick(phase, token) if current == Some(phase) => {
                if self.running.as_ref().is_some_and(|running| !running.draining) {
                    self.with_strategy(cx, |strategy, hand| strategy.tick(token, hand));
                }
            }
            SessionMsg::Arrival { phase, ordinal, scheduled } if current == Some(phase) => {
                if self.running.as_ref().is_some_and(|running| !running.draining) {
                    self.with_strategy(cx, |s, hand| s.arrived(ordinal, scheduled, hand));
                }
            }
            SessionMsg::PhaseMayBegin { phase, start } => {
                cx.call_at(start, SessionMsg::PhaseBegins(phase, start));
            }
            SessionMsg::PhaseBegins(phase, start) => {
                if self.meeting && phase == self.next_id() {
                    self.begin_phase(start, cx);
                }
            }
            SessionMsg::PhaseOver(phase) if current == Some(phase) => {
                if let Some(running) = &mut self.running {
                    running.issuer.close_if_over(cx.now());
                }
                self.issuing_may_have_ended(cx);
            }
            SessionMsg::Tick(..) | SessionMsg::PhaseOver(_) | SessionMsg::Arrival { .. } => {}
            SessionMsg::DrainOver(phase) => self.drain_over(phase, cx),
            SessionMsg::CancelOver => self.forsake(cx),
            SessionMsg::IdlePerhaps => self.idle_perhaps(cx),
            SessionMsg::RunOver => self.run_over(cx),
            SessionMsg::TransportFailed(why) => {
                self.stop(Stop::Failed(FailedBy::Transport, why.into()), cx);
            }
            SessionMsg::PacerFailed(why) => {
                self.stop(Stop::Failed(FailedBy::Pacer, why.into()), cx);
            }
            SessionMsg::Window(event, told) => self.window(event, &told, cx),
            SessionMsg::Stop => self.stop(Stop::Asked, cx),
            SessionMsg::Gone => match self.on_ended.take() {
                None => cx.stop_system(),
                Some(tell) => {
                    cx.stop();
                    tell();
                }
            },
            SessionMsg::Pulse => self.pulse(cx),
        }
        self.watch(cx);
    }
}

/// Between two looks at the records that wait.
const PULSE: Span = Span::from_millis(50);
/// One health record a second.
const PULSES_PER_HEALTH: u64 = 20;
