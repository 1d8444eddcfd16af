//! The built-in server of the test, and what it says of what it did.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use takt_mock::{Truth, TruthSink};

/// What the server did for one request. Instants are of the machine's monotonic clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Did {
    /// When each event with tokens was to be written, and when it was.
    pub(super) events: Vec<(u64, u64)>,
    /// When the last byte was written.
    pub(super) ended: Option<u64>,
}

/// What the server did, by the id of the request.
#[derive(Clone, Default)]
pub(super) struct Deeds(Arc<Mutex<HashMap<String, Did>>>);

impl Deeds {
    /// What has been told so far; it is forgotten here.
    pub(super) fn take(&self) -> HashMap<String, Did> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl TruthSink for Deeds {
    fn truth(&mut self, line: &Truth<'_>) {
        let Some(id) = line.id.and_then(|id| std::str::from_utf8(id).ok()) else { return };
        let events = line.events.iter();
        let events = events.map(|event| (event.planned.as_nanos(), event.written.as_nanos()));
        let did =
            Did { events: events.collect(), ended: line.ended.map(takt_time::Nanos::as_nanos) };
        // Taken between two runs: nobody waits here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), did);
    }
}
