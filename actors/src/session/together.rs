//! Sessions of several reactors that go through the phases of one run side by side: each phase begins at one moment for
//! all of them, when the last has ended the one before.
//!
//! The lock is taken once a phase and once at the end.

use std::sync::{Arc, Mutex, PoisonError};

use takt_record::PhaseId;
use takt_time::{Nanos, Span};

use super::SessionMsg;

/// Sends to a session from wherever; what cannot be sent goes to one that is no more.
pub type Tell = Box<dyn Fn(SessionMsg) + Send>;

/// Sessions that begin each phase together.
#[derive(Clone)]
pub struct Together(Arc<Mutex<Meeting>>);

/// One of them. Dropped, it no longer keeps the others waiting; if its session had not come to its end by then, they are
/// told to stop.
pub struct Member {
    together: Together,
    place: usize,
    done: bool,
}

/// The others' hold on a session.
#[derive(Default)]
struct Place {
    tell: Option<Tell>,
    waits: Option<PhaseId>,
    gone: bool,
}

struct Meeting {
    places: Vec<Place>,
    /// A session has broken off.
    broken: bool,
    /// When the last of those that wait came.
    latest: Nanos,
}

impl Together {
    /// Of `count` sessions, of which each is a [`member`](Self::member).
    #[must_use]
    pub fn new(count: usize) -> Self {
        let places = std::iter::repeat_with(Place::default).take(count).collect();
        Self(Arc::new(Mutex::new(Meeting { places, broken: false, latest: Nanos::ZERO })))
    }

    /// The session in `place`, from 0.
    #[must_use]
    pub fn member(&self, place: usize) -> Member {
        Member { together: self.clone(), place, done: false }
    }

    /// How the session in `place` is reached. To be said before it runs.
    pub fn reached_by(&self, place: usize, tell: Tell) {
        self.with(|meeting| {
            let broken = meeting.broken;
            let place = &mut meeting.places[place];
            place.tell = Some(tell);
            if broken {
                place.hear(SessionMsg::Stop);
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Meeting) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Member {
    /// The session has nothing more to do, and its end ends no other.
    pub(super) fn done(mut self) {
        self.done = true;
    }

    /// The session could begin `phase` now; it is told when all can.
    pub(super) fn ready(&self, phase: PhaseId, now: Nanos) {
        self.together.with(|meeting| {
            meeting.places[self.place].waits = Some(phase);
            meeting.latest = meeting.latest.max(now);
            meeting.begin_perhaps();
        });
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.together.with(|meeting| {
            meeting.places[self.place] = Place { gone: true, ..Place::default() };
            if !self.done {
                meeting.broken = true;
                meeting.places.iter().for_each(|place| place.hear(SessionMsg::Stop));
            }
            meeting.begin_perhaps();
        });
    }
}

impl Meeting {
    /// Lets the next phase begin when nobody who will take part in it is missing.
    fn begin_perhaps(&mut self) {
        let mut there = self.places.iter().filter(|place| !place.gone);
        if !there.all(|place| place.waits.is_some()) {
            return;
        }
        let start = self.latest + LEAD;
        for place in &mut self.places {
            if let Some(phase) = place.waits.take() {
                place.hear(SessionMsg::PhaseMayBegin { phase, start });
            }
        }
    }
}

impl Place {
    fn hear(&self, msg: SessionMsg) {
        if let Some(tell) = &self.tell {
            tell(msg);
        }
    }
}

/// From the moment that the last session is ready to the beginning of the phase: time enough for all to hear of it.
const LEAD: Span = Span::from_millis(2);
