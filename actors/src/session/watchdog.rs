//! The idle watchdog: fails a session whose endpoint says nothing while requests are in flight.
//!
//! One timer for the session, armed only while something is in flight. Nothing re-arms it when bytes come: the
//! receiver stamps a time and that is all. When the timer fires, the deadline is worked out from the stamp,
//! and the timer is armed for the rest or the session has failed.
//!
//! The interval begins with the last progress, or when something came to be in flight, or with the phase,
//! whichever is latest; so a phase inherits no silence from the one before. What is in flight is looked at
//! after each message: a closed loop that replaces each answer in the same call never has nothing in
//! flight.
//!
//! It is no limit of a single request: one that hangs is found when the others have ended.

use takt_engine::{Context, TimerKey};
use takt_record::FailedBy;
use takt_time::{Nanos, Span};

use super::stopping::Stop;
use super::{Session, SessionMsg};

/// The state of the watchdog.
#[derive(Debug)]
pub(super) struct Watchdog {
    timeout: Option<Span>,
    timer: Option<TimerKey>,
    /// Since when something is in flight, in this phase.
    since: Nanos,
    /// The last answer in full, for transports that know of no other progress.
    answered: Option<Nanos>,
}

impl Watchdog {
    pub(super) fn new(timeout: Option<Span>) -> Self {
        Self { timeout, timer: None, since: Nanos::ZERO, answered: None }
    }

    /// A phase begins at `at`.
    pub(super) fn restart(&mut self, at: Nanos) {
        self.since = at;
    }

    /// A request was answered in full.
    pub(super) fn heard(&mut self, at: Nanos) {
        self.answered = self.answered.max(Some(at));
    }

    /// When the silence has lasted too long.
    fn deadline(&self, progress: Option<Nanos>, timeout: Span) -> Nanos {
        let heard = progress.max(self.answered);
        heard.map_or(self.since, |heard| heard.max(self.since)) + timeout
    }
}

impl Session {
    /// Arms the timer when something has come to be in flight, and disarms it when nothing is left.
    pub(super) fn watch(&mut self, cx: &mut Context<'_, Self>) {
        let Some(timeout) = self.watchdog.timeout else { return };
        let busy = self.in_flight() > 0 && !self.over;
        match self.watchdog.timer {
            None if busy => {
                self.watchdog.since = cx.now();
                let timer = cx.call_at(cx.now() + timeout, SessionMsg::IdlePerhaps);
                self.watchdog.timer = Some(timer);
            }
            Some(timer) if !busy => {
                cx.cancel(timer);
                self.watchdog.timer = None;
            }
            None | Some(_) => {}
        }
    }

    /// The timer has fired.
    pub(super) fn idle_perhaps(&mut self, cx: &mut Context<'_, Self>) {
        let Some(timeout) = self.watchdog.timeout else { return };
        let deadline = self.watchdog.deadline(self.link.issuer.progress(), timeout);
        let again = if deadline <= cx.now() {
            let why = format!(
                "nothing came from the endpoint for {timeout} \
                 (limits.endpoint_response_idle_timeout); {}",
                self.awaited()
            );
            self.stop(Stop::Failed(FailedBy::EndpointIdle, why), cx);
            // What was given up may be on its way back still.
            cx.now() + timeout
        } else {
            deadline
        };
        self.watchdog.timer = Some(cx.call_at(again, SessionMsg::IdlePerhaps));
    }
}
