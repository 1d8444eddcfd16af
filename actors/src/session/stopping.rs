//! Ending before the time: stops, failures, drains that run out, and a transport that answers nothing more.
//!
//! ```text
//! Stop      ──> no more issuing, grace time for what is in flight ──over, or a second stop──┐
//! a failure ──> no more issuing ────────────────────────────────────────────────────────────┤
//!                                                                                 Cancel::All
//!                     Ended <── all answered, or no answer for ten seconds: the transport is dead ┘
//! ```
//!
//! A failure grants no grace time: what failed the session is that nothing comes, or that its time is over.

use takt_engine::Context;
use takt_record::{EndedBy, FailedBy, PhaseId, Record, SessionEvent, SessionRecord};
use takt_time::Span;

use super::{Session, SessionMsg};
use crate::api::Cancel;

/// Why the session ends early.
#[derive(Debug)]
pub(super) enum Stop {
    Asked,
    Failed(FailedBy, String),
}

impl Session {
    /// Ends the session early; a second time gives up at once what the first still waits for.
    pub(super) fn stop(&mut self, why: Stop, cx: &mut Context<'_, Self>) {
        if self.over {
            return;
        }
        if self.stop.is_some() {
            return self.give_up(cx);
        }
        let (event, by) = match &why {
            Stop::Failed(by, _) => (SessionEvent::Failed(*by), EndedBy::Failure),
            Stop::Asked => (SessionEvent::Interrupted, EndedBy::Stop),
        };
        let failed = matches!(why, Stop::Failed(..));
        self.stop = Some(why);
        (self.begun, self.meeting) = (true, false);
        let at = cx.stamp();
        self.link.publisher.push(&Record::Session(SessionRecord { at, event }));
        self.link.publisher.flush();
        match &mut self.running {
            None => return self.end(cx),
            Some(running) if running.draining => {
                let id = running.issuer.id;
                cx.call_at(at + self.stop_grace, SessionMsg::DrainOver(id));
                self.drained_perhaps(cx);
            }
            Some(running) => {
                running.issuer.close(by);
                self.issuing_may_have_ended(cx);
            }
        }
        if failed {
            self.give_up(cx);
        }
    }

    /// The drain of a phase, or the grace time of a stop, has run out.
    pub(super) fn drain_over(&mut self, phase: PhaseId, cx: &mut Context<'_, Self>) {
        let stopping = self.stop.is_some();
        match &self.running {
            Some(running) if running.draining && running.issuer.id == phase => {
                if stopping {
                    self.give_up(cx);
                } else {
                    self.link.issuer.cancel(Cancel::Phase(phase));
                }
            }
            _ => {}
        }
    }

    /// Gives up all that is in flight; the session is ending, and waits for nothing else.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_, Self>) {
        if self.over || self.in_flight() == 0 {
            return;
        }
        self.link.issuer.cancel(Cancel::All);
        cx.call_at(cx.now() + CANCEL_PATIENCE, SessionMsg::CancelOver);
    }

    /// The transport does not even answer for what it was told to give up: it is dead. The session ends
    /// without it; whoever reads the records counts what has no end as unanswered.
    pub(super) fn forsake(&mut self, cx: &mut Context<'_, Self>) {
        if self.over {
            return;
        }
        if self.stop.is_none() {
            let (at, by) = (cx.stamp(), FailedBy::Transport);
            let event = SessionEvent::Failed(by);
            self.link.publisher.push(&Record::Session(SessionRecord { at, event }));
            let why =
                format!("{} requests were never answered, not even given up", self.in_flight());
            self.stop = Some(Stop::Failed(by, why));
        }
        self.link.in_flight.fill(0);
        self.link.all_in_flight = 0;
        if self.running.is_some() {
            self.end_phase(cx);
        } else {
            self.ended(cx);
        }
    }

    /// The session's own time is over.
    pub(super) fn run_over(&mut self, cx: &mut Context<'_, Self>) {
        let Some(limit) = self.run_timeout else { return };
        let why =
            format!("it was not over within {limit} (limits.run_timeout); {}", self.awaited());
        self.stop(Stop::Failed(FailedBy::RunTimeout, why), cx);
    }

    /// What is waited for, in words.
    pub(super) fn awaited(&self) -> String {
        let phases = self.phases.iter().zip(&self.link.in_flight).filter(|(_, left)| **left > 0);
        let words: Vec<String> =
            phases.map(|(phase, left)| format!("{left} of phase {}", phase.name)).collect();
        match words.as_slice() {
            [] => "no request was in flight".to_owned(),
            words => format!("requests in flight: {}", words.join(", ")),
        }
    }
}

/// A transport answers for what it gives up in the same turn, or within the time that closing a hundred
/// thousand connections takes.
const CANCEL_PATIENCE: Span = Span::from_secs(10);
