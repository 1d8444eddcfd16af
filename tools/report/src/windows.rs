//! Profiler windows of the server, and what overlaps them.
//!
//! While a server is profiled its steps are slower. So whatever was under way at any moment of a window, whose
//! two records include a margin, is *profiled*: it is counted, and in no distribution. The record of an opening
//! comes before the start of the profiler and that of a closing after its end, so a request can be judged when
//! it ends: no window is found out about later.

use takt_record::{Times, WindowEvent, WindowRecord};
use takt_time::{Nanos, Span};

/// The windows of a session so far, in order and apart from one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows(Vec<Window>);

/// One window; without `closed` it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    opened: Nanos,
    closed: Option<Nanos>,
}

impl Windows {
    /// A window opened or closed. What cannot follow the record before, as in a journal of odd bytes, changes nothing.
    pub fn take(&mut self, record: &WindowRecord) {
        let at = record.at;
        let last = self.0.last_mut();
        match record.event {
            WindowEvent::Opened => {
                if last.is_none_or(|last| last.closed.is_some_and(|closed| closed <= at)) {
                    self.0.push(Window { opened: at, closed: None });
                }
            }
            WindowEvent::Closed => {
                if let Some(last) = last.filter(|last| last.opened <= at) {
                    last.closed.get_or_insert(at);
                }
            }
        }
    }

    /// Was a request under way at a moment of a window? From when it was due, if that was before its issue.
    #[must_use]
    pub fn overlap(&self, times: &Times) -> bool {
        let begun = times.scheduled.map_or(times.issued, |due| due.min(times.issued));
        self.within(begun, times.end).next().is_some()
    }

    /// Did something that lasted from `from` to `to`, both included, meet a window?
    #[must_use]
    pub fn meet(&self, from: Nanos, to: Nanos) -> bool {
        self.within(from, to).next().is_some()
    }

    /// How much of the time from `from` to `to` was in windows.
    #[must_use]
    pub fn covered(&self, from: Nanos, to: Nanos) -> Span {
        let part = |window: Window| {
            let until = window.closed.unwrap_or(to).min(to);
            until.saturating_since(window.opened.max(from)).as_nanos()
        };
        Span::from_nanos(self.within(from, to).map(part).sum())
    }

    /// How many windows there were from `from` to `to`.
    #[must_use]
    pub fn count(&self, from: Nanos, to: Nanos) -> u64 {
        self.within(from, to).count() as u64
    }

    /// Adds those of another fold of the same session, which were the same.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.clone_from(other);
        }
    }

    /// The windows that the time meets, the last one first.
    fn within(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = Window> + '_ {
        let windows = self.0.iter().rev().copied();
        windows
            .skip_while(move |window| window.opened > to)
            .take_while(move |window| window.closed.is_none_or(|closed| closed >= from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Nanos {
        Nanos::ZERO + Span::from_millis(ms)
    }

    fn windows(events: &[(u64, WindowEvent)]) -> Windows {
        let mut windows = Windows::default();
        for &(ms, event) in events {
            windows.take(&WindowRecord { at: at(ms), event });
        }
        windows
    }

    #[test]
    fn a_request_is_profiled_when_it_shares_a_moment_with_a_window() {
        use WindowEvent::{Closed, Opened};
        // From 10 to 20, and from 50 on.
        let windows = windows(&[(10, Opened), (20, Closed), (50, Opened)]);
        let meets = |from, to| windows.meet(at(from), at(to));
        for (from, to) in [(5, 10), (12, 13), (20, 30), (5, 60), (20, 20), (49, 50), (70, 80)] {
            assert!(meets(from, to), "{from} to {to}");
        }
        for (from, to) in [(0, 9), (21, 49), (30, 30)] {
            assert!(!meets(from, to), "{from} to {to}");
        }
        // It was due within the first one, and issued after it.
        let late =
            Times { scheduled: Some(at(19)), issued: at(25), end: at(30), ..Times::default() };
        assert!(windows.overlap(&late));
        assert!(!windows.overlap(&Times { scheduled: None, ..late }));
        assert_eq!(windows.covered(at(15), at(60)), Span::from_millis(15));
        assert_eq!(windows.covered(at(21), at(49)), Span::ZERO);
        assert_eq!((windows.count(at(0), at(60)), windows.count(at(0), at(9))), (2, 0));
    }

    #[test]
    fn events_that_make_no_sense_change_nothing() {
        use WindowEvent::{Closed, Opened};
        assert_eq!(windows(&[(5, Closed)]), Windows::default());
        let twice = [(10, Opened), (12, Opened), (20, Closed), (25, Closed)];
        assert_eq!(windows(&twice), windows(&[(10, Opened), (20, Closed)]));
        let backwards = [(10, Opened), (9, Closed), (20, Closed), (19, Opened), (30, Closed)];
        assert_eq!(windows(&backwards), windows(&[(10, Opened), (20, Closed)]));
    }

    #[test]
    fn windows_never_cover_more_than_the_time_there_is() {
        // Any four events at four moments: two bits of a moment and one of the word each.
        for choice in 0u64..1 << 12 {
            let event = |n: u64| {
                let bits = choice >> (3 * n);
                let opens = bits & 4 == 0;
                (bits & 3, if opens { WindowEvent::Opened } else { WindowEvent::Closed })
            };
            let events = [0, 1, 2, 3].map(event);
            for (from, to) in [(0, 4), (1, 2), (2, 9)] {
                let covered = windows(&events).covered(at(from), at(to));
                assert!(covered <= Span::from_millis(to - from), "{events:?}: {covered}");
            }
        }
    }
}
