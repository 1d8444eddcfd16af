//! The clocks: `CLOCK_MONOTONIC` for every instant of a run, paired once with the wall clock.

use rustix::time::{ClockId, Timespec, clock_gettime};
use takt_time::{Anchor, Nanos};

/// The monotonic clock. Some 36 ns where the kernel answers from the vDSO.
#[must_use]
pub fn now() -> Nanos {
    Nanos::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// A paired reading of the monotonic and the wall clock.
///
/// The wall clock is read between two monotonic readings; of several tries the one with the smallest
/// bracket wins, and its middle is the instant. The error is at most half that bracket.
#[must_use]
pub fn anchor() -> Anchor {
    let bracketed = || {
        let before = now();
        let wall_ns = nanos(clock_gettime(ClockId::Realtime));
        let bracket = now().saturating_since(before);
        let mono = Nanos::from_nanos(before.as_nanos() + bracket.as_nanos() / 2);
        (bracket, Anchor { mono, wall_ns })
    };
    let mut best = bracketed();
    for _ in 1..TRIES {
        let next = bracketed();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// Nanoseconds since the clock's origin; these clocks are never negative.
fn nanos(t: Timespec) -> u64 {
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Enough that one of them runs without an interrupt in the middle.
const TRIES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let readings: Vec<Nanos> = (0..1_000).map(|_| now()).collect();
        assert!(readings.is_sorted());
    }

    #[test]
    fn an_anchor_lies_between_readings_around_it() {
        let before = now();
        let anchor = anchor();
        assert!(before <= anchor.mono && anchor.mono <= now());
        // 2020-01-01: any wall clock that is set at all is later.
        assert!(anchor.wall_ns > 1_577_836_800_000_000_000);
    }
}
