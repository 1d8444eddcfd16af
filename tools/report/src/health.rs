//! What the instrument said of itself between the start and the end of a phase.

use takt_record::{Health, Instrument};
use takt_time::{Nanos, Span};

/// The readings nearest to the start and to the end of a phase.
///
/// Readings are taken at both moments and about once a second; whether the one at a start is written
/// before or after the start itself does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HealthSpan {
    start: Option<Nanos>,
    end: Option<Nanos>,
    first: Option<Health>,
    last: Option<Health>,
}

impl HealthSpan {
    /// A span that begins at `start`, with the reading before it.
    pub(crate) fn new(start: Nanos, before: Option<Health>) -> Self {
        Self { start: Some(start), end: None, first: before, last: before }
    }

    /// The phase ended.
    pub(crate) fn end(&mut self, end: Nanos) {
        self.end = Some(end);
    }

    /// Takes a reading in.
    pub(crate) fn read(&mut self, reading: &Health) {
        let (Some(start), at) = (self.start, reading.at) else { return };
        let nearer = |to: Nanos, old: Option<Health>| {
            old.is_none_or(|old| distance(at, to) < distance(old.at, to))
        };
        if nearer(start, self.first) {
            self.first = Some(*reading);
        }
        if self.end.is_none_or(|end| nearer(end, self.last)) {
            self.last = Some(*reading);
        }
    }

    /// The differences; `None` unless there are two readings.
    pub(crate) fn result(&self, anomalies: u64) -> Option<Instrument> {
        let (first, last) = (self.first?, self.last?);
        let wall = last.at.saturating_since(first.at);
        if wall == Span::ZERO {
            return None;
        }
        let share = |from: Option<Span>, to: Option<Span>| {
            let spent = to?.as_nanos().saturating_sub(from?.as_nanos());
            Some(spent as f64 / wall.as_nanos() as f64)
        };
        Some(Instrument {
            runnable_share: share(first.runnable, last.runnable),
            stolen_share: share(first.stolen, last.stolen),
            busy_share: share(Some(first.busy), Some(last.busy)),
            longest_turn_us: Some(last.longest_turn.as_micros_f64()),
            involuntary: last.involuntary.zip(first.involuntary).map(|(b, a)| b.saturating_sub(a)),
            spilled: last.spilled.saturating_sub(first.spilled),
            lost: last.lost.saturating_sub(first.lost),
            connections: last.connections.saturating_sub(first.connections),
            limited: last.limited.saturating_sub(first.limited),
            secured: last.secured.saturating_sub(first.secured),
            resumed: last.resumed.saturating_sub(first.resumed),
            anomalies,
        })
    }
}

/// The worse of two reactors: the greatest shares, the sums of what is counted.
pub(crate) fn worse(a: &Instrument, b: &Instrument) -> Instrument {
    let most = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
    Instrument {
        runnable_share: most(a.runnable_share, b.runnable_share),
        stolen_share: most(a.stolen_share, b.stolen_share),
        busy_share: most(a.busy_share, b.busy_share),
        longest_turn_us: most(a.longest_turn_us, b.longest_turn_us),
        involuntary: a.involuntary.zip(b.involuntary).map(|(a, b)| a + b).or(a.involuntary),
        spilled: a.spilled + b.spilled,
        lost: a.lost + b.lost,
        connections: a.connections + b.connections,
        limited: a.limited + b.limited,
        secured: a.secured + b.secured,
        resumed: a.resumed + b.resumed,
        anomalies: a.anomalies + b.anomalies,
    }
}

fn distance(a: Nanos, b: Nanos) -> u64 {
    a.as_nanos().abs_diff(b.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ms: u64, busy_ms: u64, spilled: u64) -> Health {
        let busy = Span::from_millis(busy_ms);
        Health { at: at(ms), busy, spilled, ..Health::default() }
    }

    fn at(ms: u64) -> Nanos {
        Nanos::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_readings_nearest_to_start_and_end_count() {
        let mut span = HealthSpan::new(at(1_000), Some(reading(100, 5, 1)));
        span.read(&reading(1_001, 50, 2));
        span.read(&reading(2_000, 600, 2));
        span.end(at(3_001));
        span.read(&reading(3_001, 1_050, 9));
        span.read(&reading(4_000, 3_000, 99));
        let seen = span.result(0).unwrap();
        // 1,001 to 3,001 ms: busy 1,000 of 2,000 ms, 7 blocks spilled; nothing said of the rest.
        assert_eq!((seen.busy_share, seen.spilled, seen.runnable_share), (Some(0.5), 7, None));
    }
}
