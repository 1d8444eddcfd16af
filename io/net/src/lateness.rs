//! How late the kernel wakes this thread, and the head start that makes up for it.
//!
//! [`Lateness`] is a small fixed histogram, four buckets to the octave (a quantile is at most 25 % too
//! high) from 1 us to 67 ms. [`Guard`] keeps one that forgets and derives the head start from it.

use takt_time::Span;

/// A histogram of wake-up latenesses.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    counts: [u32; BUCKETS],
    total: u64,
    max: Span,
}

/// How late the kernel woke the thread, from the instant its timer was set to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeUps {
    /// Wake-ups by the timer, out of sleep.
    pub count: u64,
    /// Median, at most 25 % too high.
    pub p50: Span,
    /// 99th percentile, at most 25 % too high.
    pub p99: Span,
    /// The latest of all, exact.
    pub max: Span,
}

/// The head start of [`crate::WaitMode::Guard`].
///
/// It starts wide, since waking too late spoils a send and waking too early only costs CPU. After
/// [`Guard::SETTLED`] wake-ups it follows the 99.9th percentile of their lateness, within a floor (below
/// it, going to sleep and coming back costs more than it saves) and the mode's cap. A wake-up later than
/// the cap counts for nothing: the thread was kept from its core, and no head start that is allowed would
/// have helped. Counts are halved each [`Guard::HALF_LIFE`] wake-ups, so that a noisy minute is forgotten.
///
/// Deadlines that follow each other by less than the head start leave no time to sleep, so they teach
/// nothing either: there `guard` is `spin`.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    recent: Lateness,
    since_halved: u32,
    cap: Span,
    current: Span,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        Self { counts: [0; BUCKETS], total: 0, max: Span::ZERO }
    }

    pub(crate) fn record(&mut self, late: Span) {
        let bucket = &mut self.counts[bucket(late)];
        *bucket = bucket.saturating_add(1);
        self.total += 1;
        self.max = self.max.max(late);
    }

    /// The upper edge of the bucket that holds the `q`-quantile, or the maximum if that is less; zero
    /// when nothing was recorded.
    pub(crate) fn quantile(&self, q: f64) -> Span {
        let rank = ((self.total as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return upper_edge(index).min(self.max);
            }
        }
        self.max
    }

    pub(crate) fn summary(&self) -> WakeUps {
        let (p50, p99) = (self.quantile(0.5), self.quantile(0.99));
        WakeUps { count: self.total, p50, p99, max: self.max }
    }

    /// Forgets half. The maximum falls to the edge of the highest bucket still in use.
    fn halve(&mut self) {
        self.total = 0;
        let mut highest = None;
        for (index, count) in self.counts.iter_mut().enumerate() {
            *count /= 2;
            self.total += u64::from(*count);
            highest = if *count > 0 { Some(index) } else { highest };
        }
        self.max = self.max.min(highest.map_or(Span::ZERO, upper_edge));
    }
}

impl Guard {
    /// The head start before anything is known.
    pub(crate) const WIDE: Span = Span::from_micros(200);
    /// The least head start.
    pub(crate) const FLOOR: Span = Span::from_micros(15);
    /// Wake-ups seen before the estimate counts.
    pub(crate) const SETTLED: u64 = 256;
    /// Wake-ups after which each count is halved.
    pub(crate) const HALF_LIFE: u32 = 4_096;
    /// Wake-ups between two looks at the estimate.
    const PERIOD: u32 = 64;

    pub(crate) fn new(cap: Span) -> Self {
        Self { recent: Lateness::new(), since_halved: 0, cap, current: Self::WIDE.min(cap) }
    }

    /// The longest that is allowed.
    pub(crate) fn cap(&self) -> Span {
        self.cap
    }

    /// How long before a deadline to be awake.
    pub(crate) fn current(&self) -> Span {
        self.current
    }

    pub(crate) fn record(&mut self, late: Span) {
        if late > self.cap {
            return;
        }
        self.recent.record(late);
        self.since_halved += 1;
        if self.since_halved == Self::HALF_LIFE {
            self.recent.halve();
            self.since_halved = 0;
        }
        if self.since_halved.is_multiple_of(Self::PERIOD) && self.recent.total >= Self::SETTLED {
            self.current = self.recent.quantile(0.999).max(Self::FLOOR).min(self.cap);
        }
    }
}

/// Four to the octave, the first octave starting at 2^10 ns.
fn bucket(late: Span) -> usize {
    let ns = late.as_nanos();
    if ns < 1 << FIRST_OCTAVE {
        return 0;
    }
    let octave = ns.ilog2();
    let quarter = (ns >> (octave - 2)) & 3;
    ((octave - FIRST_OCTAVE) as usize * 4 + quarter as usize).min(BUCKETS - 1)
}

/// The least span beyond bucket `index`.
fn upper_edge(index: usize) -> Span {
    let octave = FIRST_OCTAVE + (index / 4) as u32;
    Span::from_nanos((5 + index as u64 % 4) << (octave - 2))
}

const FIRST_OCTAVE: u32 = 10;
/// 16 octaves: up to 2^26 ns, what is later falls in the last one.
const BUCKETS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_span_lies_below_the_upper_edge_of_its_bucket_and_within_a_quarter_of_it() {
        for ns in [0, 1, 1_023, 1_024, 1_279, 1_280, 5_000, 99_999, 1_000_000, 50_000_000] {
            let late = Span::from_nanos(ns);
            let edge = upper_edge(bucket(late));
            assert!(late < edge, "{late} {edge}");
            assert!(ns < 1_024 || edge.as_nanos() <= ns + ns / 4 + 1, "{late} {edge}");
        }
    }

    #[test]
    fn quantiles_come_from_the_rank_and_never_pass_the_maximum() {
        let mut h = Lateness::new();
        assert_eq!(h.quantile(0.5), Span::ZERO);
        for us in 1..=100 {
            h.record(Span::from_micros(us));
        }
        let summary = h.summary();
        assert_eq!((summary.count, summary.max), (100, Span::from_micros(100)));
        for (got, exact) in [(summary.p50, 50_000), (summary.p99, 99_000)] {
            assert!((exact..=exact * 5 / 4).contains(&got.as_nanos()), "{got}");
        }
    }

    fn guard_after(wake_ups: impl IntoIterator<Item = Span>) -> Span {
        let mut guard = Guard::new(Span::from_micros(300));
        wake_ups.into_iter().for_each(|late| guard.record(late));
        guard.current()
    }

    #[test]
    fn the_guard_stays_wide_until_enough_is_known() {
        let few = Guard::SETTLED as usize - 1;
        assert_eq!(guard_after(vec![Span::from_micros(20); few]), Guard::WIDE);
        assert_eq!(Guard::new(Span::from_micros(50)).current(), Span::from_micros(50));
    }

    #[test]
    fn the_guard_follows_the_wake_ups_between_floor_and_cap() {
        let many = Guard::SETTLED as usize;
        assert_eq!(guard_after(vec![Span::from_micros(1); many]), Guard::FLOOR);
        assert_eq!(guard_after(vec![Span::from_micros(60); many]), Span::from_micros(60));
        assert_eq!(guard_after(vec![Span::from_micros(299); many]), Span::from_micros(299));
    }

    #[test]
    fn wake_ups_beyond_the_cap_do_not_widen_the_guard() {
        let usual = vec![Span::from_micros(60); Guard::SETTLED as usize];
        let stalls = vec![Span::from_millis(5); 100];
        assert_eq!(guard_after(stalls.into_iter().chain(usual)), Span::from_micros(60));
    }

    #[test]
    fn the_guard_forgets_a_noisy_minute() {
        let quiet = Span::from_micros(20);
        let noisy = vec![Span::from_micros(250); 100];
        // 100 halved seven times is 0.
        let long = Guard::HALF_LIFE as usize * 7;
        let after = guard_after(noisy.into_iter().chain(vec![quiet; long]));
        assert!(after >= quiet && after <= Span::from_micros(25), "{after}");
    }
}
