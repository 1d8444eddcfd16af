//! Time-outs of one kind: as all of them last equally long, they expire in the order in which they began.
//!
//! So one queue and one timer serve any number of requests. What has ended is not looked for in the
//! queue; it is skipped when its moment comes, and swept out when it makes up more than half.

use std::collections::VecDeque;

use takt_time::{Nanos, Span};

use super::TimeOut;
use super::config::ClientConfig;
use super::flight::FlightKey;

/// The time-outs of one kind. `T` names what times out; the owner knows whether it still lives.
#[derive(Debug)]
pub(super) struct Deadlines<T> {
    span: Option<Span>,
    queue: VecDeque<(Nanos, T)>,
    /// A timer is under way, for the head or for something before it.
    armed: bool,
}

/// The time-outs of requests, by kind.
#[derive(Debug)]
pub(super) struct RequestDeadlines {
    first_byte: Deadlines<FlightKey>,
    request: Deadlines<FlightKey>,
    /// Of the turns of each phase.
    turns: Vec<Deadlines<FlightKey>>,
}

impl RequestDeadlines {
    pub(super) fn new(config: &ClientConfig) -> Self {
        Self {
            first_byte: Deadlines::new(config.first_byte_timeout),
            request: Deadlines::new(config.request_timeout),
            turns: config.phases.iter().map(|phase| Deadlines::new(phase.turn_timeout)).collect(),
        }
    }

    /// Those of a kind; `None` for the turns of a phase that there is not.
    #[inline]
    pub(super) fn of(&mut self, kind: TimeOut) -> Option<&mut Deadlines<FlightKey>> {
        match kind {
            TimeOut::FirstByte => Some(&mut self.first_byte),
            TimeOut::Request => Some(&mut self.request),
            TimeOut::Turn(phase) => self.turns.get_mut(usize::from(phase)),
        }
    }
}

impl<T: Copy> Deadlines<T> {
    /// None at all when `span` is `None`.
    pub(super) fn new(span: Option<Span>) -> Self {
        Self { span, queue: VecDeque::new(), armed: false }
    }

    /// `item` began at `from`. Gives the instant for which a timer is to be armed, if one is.
    #[inline]
    pub(super) fn add(&mut self, from: Nanos, item: T) -> Option<Nanos> {
        let at = from + self.span?;
        // Beginnings come in order; where one does not, it waits a little longer rather than jump the line.
        let at = self.queue.back().map_or(at, |&(last, _)| last.max(at));
        self.queue.push_back((at, item));
        if self.armed {
            return None;
        }
        self.armed = true;
        Some(at)
    }

    /// Sweeps out what has ended, if that is more than half; `live` is how many may be alive at most.
    #[inline]
    pub(super) fn sweep(&mut self, live: usize, is_live: impl Fn(T) -> bool) {
        if self.queue.len() > 2 * live + FEW {
            self.queue.retain(|&(_, item)| is_live(item));
        }
    }

    /// To be called until it gives `None` when the timer has fired: what is due by now, dead or alive.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<T> {
        let &(at, item) = self.queue.front()?;
        if at > now {
            return None;
        }
        self.queue.pop_front();
        Some(item)
    }

    /// The timer has fired and what was due is gone: the instant for which it is to be armed again.
    pub(super) fn rearm(&mut self, is_live: impl Fn(T) -> bool) -> Option<Nanos> {
        while self.queue.pop_front_if(|&mut (_, item)| !is_live(item)).is_some() {}
        self.armed = !self.queue.is_empty();
        self.queue.front().map(|&(at, _)| at)
    }
}

/// Below this many a sweep is not worth it.
const FEW: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: u64 = 100;

    fn deadlines() -> Deadlines<u64> {
        Deadlines::new(Some(Span::from_nanos(SPAN)))
    }

    fn at(ns: u64) -> Nanos {
        Nanos::from_nanos(ns)
    }

    #[test]
    fn one_timer_serves_all_and_moves_to_the_first_that_lives() {
        let mut d = deadlines();
        assert_eq!(d.add(at(10), 0), Some(at(10 + SPAN)));
        for from in 1..5 {
            assert_eq!(d.add(at(10 + from), from), None);
        }
        assert_eq!(d.pop_due(at(10 + SPAN)), Some(0));
        assert_eq!(d.pop_due(at(10 + SPAN)), None);
        assert_eq!(d.rearm(|item| item >= 3), Some(at(13 + SPAN)));
        assert_eq!(d.rearm(|_| false), None);
        assert_eq!(d.add(at(500), 9), Some(at(500 + SPAN)));
    }

    #[test]
    fn what_has_ended_takes_no_memory() {
        let mut d = deadlines();
        // One lives for ever at the head, a million come and go behind it.
        for item in 0..1_000_000 {
            d.add(at(item), item);
            d.sweep(2, |live| live == 0 || live == item);
        }
        assert!(d.queue.len() <= 2 * 2 + FEW + 1, "{}", d.queue.len());
        assert_eq!(d.pop_due(at(SPAN)), Some(0));
    }

    #[test]
    fn without_a_span_there_is_nothing() {
        let mut d = Deadlines::new(None);
        assert_eq!(d.add(at(0), 1), None);
        assert_eq!(d.pop_due(Nanos::MAX), None);
    }
}
