//! What is known of each request, gathered: its records, each with its place among all, and what servers say.
//!
//! Gathered by sorting, not by copying: a long run has a million records.

use takt_record::{Completed, Failure, Issued, PhaseId, RequestKey, Token};

use crate::sim::kept::Kept;
use crate::sim::log::Told;
use crate::sim::run::Ran;

/// The requests of a run.
pub(super) struct Lives<'a> {
    ran: &'a Ran,
    /// The place of each record that is of a request, by request, in their order.
    records: Vec<Place>,
    /// The same of what servers say.
    told: Vec<Place>,
}

/// The place of something that is of a request: phase, ordinal and place in one number, since that is sorted in a
/// fifth of the time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u128);

impl Place {
    fn new(key: RequestKey, place: usize) -> Self {
        Self(u128::from(key.phase.0) << 112 | u128::from(key.ordinal) << 48 | place as u128)
    }

    fn key(self) -> RequestKey {
        let phase = PhaseId((self.0 >> 112) as u16);
        RequestKey { phase, ordinal: (self.0 >> 48) as u64 }
    }

    fn place(self) -> usize {
        self.0 as usize & ((1 << 48) - 1)
    }
}

/// One request.
#[derive(Clone, Copy)]
pub(super) struct Life<'a> {
    pub(super) key: RequestKey,
    ran: &'a Ran,
    places: &'a [Place],
    told: &'a [Place],
}

/// One that began and ended once, as it must.
#[derive(Clone, Copy)]
pub(super) struct Whole<'a> {
    pub(super) life: Life<'a>,
    /// The place of `issued`.
    pub(super) begin: usize,
    pub(super) issued: &'a Issued,
    /// The place of `done`.
    pub(super) end: usize,
    pub(super) done: &'a Completed,
}

impl<'a> Lives<'a> {
    pub(super) fn of(ran: &'a Ran) -> Self {
        let records = ran.records.iter().map(Kept::key);
        let session = ran.scenario.seed;
        let told = ran.told.iter().map(|told| told.id.and_then(|id| id.key(session)));
        Self { ran, records: by_request(records), told: by_request(told) }
    }

    /// All of them, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = Life<'_>> {
        self.those(&self.records)
    }

    /// Those of a phase, in order.
    pub(super) fn of_phase(&self, phase: PhaseId) -> impl Iterator<Item = Life<'_>> {
        let from = self.records.partition_point(|at| at.key().phase < phase);
        let to = self.records.partition_point(|at| at.key().phase <= phase);
        self.those(&self.records[from..to])
    }

    fn those<'l>(&'l self, records: &'l [Place]) -> impl Iterator<Item = Life<'l>> {
        let mut rest = &self.told[..];
        records.chunk_by(|a, b| a.key() == b.key()).map(move |places| {
            let key = places[0].key();
            let before = rest.iter().take_while(|told| told.key() < key).count();
            let own = rest[before..].iter().take_while(|told| told.key() == key).count();
            let told = &rest[before..before + own];
            rest = &rest[before + own..];
            Life { key, ran: self.ran, places, told }
        })
    }
}

/// Places by request, each with those it had.
fn by_request(keys: impl Iterator<Item = Option<RequestKey>>) -> Vec<Place> {
    let mut places: Vec<Place> =
        keys.enumerate().filter_map(|(place, key)| Some(Place::new(key?, place))).collect();
    places.sort_unstable();
    places
}

impl<'a> Life<'a> {
    /// Its records.
    fn records(self) -> impl Iterator<Item = (usize, &'a Kept)> {
        self.places.iter().map(move |at| (at.place(), &self.ran.records[at.place()]))
    }

    pub(super) fn issued(self) -> impl Iterator<Item = (usize, &'a Issued)> {
        self.records().filter_map(|(place, record)| match record {
            Kept::Issued(issued) => Some((place, issued)),
            _ => None,
        })
    }

    pub(super) fn tokens(self) -> impl Iterator<Item = &'a Token> + Clone {
        self.places.iter().filter_map(move |at| match &self.ran.records[at.place()] {
            Kept::Token(token) => Some(token),
            _ => None,
        })
    }

    pub(super) fn errors(self) -> impl Iterator<Item = Failure> {
        self.records().filter_map(|(_, record)| match record {
            Kept::Error(_, _, failure) => Some(*failure),
            _ => None,
        })
    }

    pub(super) fn completed(self) -> impl Iterator<Item = (usize, &'a Completed)> {
        self.records().filter_map(|(place, record)| match record {
            Kept::Completed(done) => Some((place, &**done)),
            _ => None,
        })
    }

    /// The places of its tokens, texts and errors.
    pub(super) fn between(self) -> impl Iterator<Item = usize> {
        let is_between = |record: &Kept| !matches!(record, Kept::Issued(_) | Kept::Completed(_));
        self.records().filter_map(move |(place, record)| is_between(record).then_some(place))
    }

    /// What servers say of it, in the order in which they said it.
    pub(super) fn told(self) -> impl ExactSizeIterator<Item = &'a Told> {
        self.told.iter().map(move |at| &self.ran.told[at.place()])
    }

    pub(super) fn whole(self) -> Option<Whole<'a>> {
        let (mut begins, mut ends) = (self.issued(), self.completed());
        let (begin, issued) = begins.next()?;
        let (end, done) = ends.next()?;
        let once = begins.next().is_none() && ends.next().is_none();
        once.then_some(Whole { life: self, begin, issued, end, done })
    }
}
