//! The witness: what the server counted, for anyone on any thread to look at while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::json;

/// Counters of one server. Only the server writes them, so each is a load and a store; readers may see
/// two counters a moment apart.
#[derive(Debug)]
pub struct Counts {
    by_status: [AtomicU64; STATUSES],
    connections: AtomicU64,
    open: AtomicU64,
    reset: AtomicU64,
    running: AtomicU64,
    waiting: AtomicU64,
    tokens: AtomicU64,
    gone: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            by_status: [const { AtomicU64::new(0) }; STATUSES],
            connections: AtomicU64::new(0),
            open: AtomicU64::new(0),
            reset: AtomicU64::new(0),
            running: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            gone: AtomicU64::new(0),
        }
    }
}

impl Counts {
    /// Requests answered so far, whatever the status. One counts when its answer's last byte is handed to
    /// the connection.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.by_status.iter().map(get).sum()
    }

    /// Requests answered with `status`.
    #[must_use]
    pub fn with_status(&self, status: u16) -> u64 {
        self.by_status.get(place(status)).map_or(0, get)
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        get(&self.connections)
    }

    /// Connections open now.
    #[must_use]
    pub fn open(&self) -> u64 {
        get(&self.open)
    }

    /// Connections reset because too many were open.
    #[must_use]
    pub fn reset(&self) -> u64 {
        get(&self.reset)
    }

    /// Requests in service now (`timed`).
    #[must_use]
    pub fn running(&self) -> u64 {
        get(&self.running)
    }

    /// Requests that wait for a slot now (`timed`).
    #[must_use]
    pub fn waiting(&self) -> u64 {
        get(&self.waiting)
    }

    /// Tokens put into answers so far (`timed`).
    #[must_use]
    pub fn tokens(&self) -> u64 {
        get(&self.tokens)
    }

    /// Requests whose client went away before it had its answer (`timed`).
    #[must_use]
    pub fn gone(&self) -> u64 {
        get(&self.gone)
    }

    pub(crate) fn answered(&self, status: u16) {
        if let Some(counter) = self.by_status.get(place(status)) {
            add(counter, 1);
        }
    }

    pub(crate) fn opened(&self) {
        add(&self.connections, 1);
        add(&self.open, 1);
    }

    pub(crate) fn closed(&self) {
        self.open.store(get(&self.open).saturating_sub(1), Ordering::Relaxed);
    }

    pub(crate) fn was_reset(&self) {
        add(&self.reset, 1);
    }

    pub(crate) fn emitted(&self, tokens: u32) {
        add(&self.tokens, u64::from(tokens));
    }

    pub(crate) fn went_away(&self) {
        add(&self.gone, 1);
    }

    pub(crate) fn in_service(&self, running: usize, waiting: usize) {
        self.running.store(running as u64, Ordering::Relaxed);
        self.waiting.store(waiting as u64, Ordering::Relaxed);
    }

    /// The same in the text format of Prometheus.
    pub(crate) fn expose(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"# TYPE takt_mock_requests_total counter\n");
        for (index, counter) in self.by_status.iter().enumerate().filter(|(_, c)| get(c) > 0) {
            out.extend_from_slice(b"takt_mock_requests_total{status=\"");
            json::number(out, index as u64 + u64::from(FIRST_STATUS));
            out.extend_from_slice(b"\"} ");
            json::number(out, get(counter));
            out.push(b'\n');
        }
        for (name, kind, counter) in [
            ("connections_total", "counter", &self.connections),
            ("connections_open", "gauge", &self.open),
            ("connections_reset_total", "counter", &self.reset),
            ("requests_running", "gauge", &self.running),
            ("requests_waiting", "gauge", &self.waiting),
            ("tokens_total", "counter", &self.tokens),
            ("clients_gone_total", "counter", &self.gone),
        ] {
            for part in ["# TYPE takt_mock_", name, " ", kind, "\ntakt_mock_", name, " "] {
                out.extend_from_slice(part.as_bytes());
            }
            json::number(out, get(counter));
            out.push(b'\n');
        }
    }
}

fn place(status: u16) -> usize {
    usize::from(status.wrapping_sub(FIRST_STATUS))
}

fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(get(counter) + more, Ordering::Relaxed);
}

const FIRST_STATUS: u16 = 100;
const STATUSES: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_status() {
        let counts = Counts::default();
        for status in [200, 200, 429, 99, 600] {
            counts.answered(status);
        }
        assert_eq!((counts.with_status(200), counts.with_status(429)), (2, 1));
        assert_eq!((counts.requests(), counts.with_status(99)), (3, 0));
    }

    #[test]
    fn exposition_names_each_family_once() {
        let counts = Counts::default();
        counts.answered(200);
        counts.opened();
        let mut out = Vec::new();
        counts.expose(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\ntakt_mock_requests_total{status=\"200\"} 1\n"), "{text}");
        assert!(
            text.contains(
                "\n# TYPE takt_mock_connections_open gauge\ntakt_mock_connections_open 1\n"
            )
        );
        let mut types: Vec<&str> = text.lines().filter(|l| l.starts_with('#')).collect();
        let all = types.len();
        types.dedup();
        assert_eq!(types.len(), all);
    }
}
