//! How a session ended, for the program that ran it. The figures are in the records.

use std::cell::RefCell;
use std::rc::Rc;

use takt_record::{EndedBy, PhaseState};

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// All phases ran.
    Complete,
    /// A stop was asked for.
    Interrupted,
    /// It could not go on, and why.
    Failed(String),
}

/// One phase that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseOutcome {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub state: PhaseState,
    /// What ended its issuing.
    pub ended_by: EndedBy,
    /// Requests issued.
    pub issued: u64,
}

/// A session that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOutcome {
    /// How.
    pub state: SessionState,
    /// The phases that were begun, in order.
    pub phases: Vec<PhaseOutcome>,
    /// Answers that named no request in flight: a fault of the transport, and never counted.
    pub strays: u64,
}

/// Where the outcome is found once the session has ended.
#[derive(Clone, Debug, Default)]
pub struct OutcomeSlot(Rc<RefCell<Option<SessionOutcome>>>);

impl OutcomeSlot {
    /// Takes the outcome; `None` while the session runs.
    #[must_use]
    pub fn take(&self) -> Option<SessionOutcome> {
        self.0.borrow_mut().take()
    }

    pub(crate) fn put(&self, outcome: SessionOutcome) {
        *self.0.borrow_mut() = Some(outcome);
    }
}
