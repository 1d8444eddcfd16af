//! Arrivals that were recorded.

use std::sync::Arc;

use takt_time::Span;

use super::{Arrivals, BadArrivals};

/// The moments of a recording, at a speed of one's choice. It ends with the recording.
#[derive(Clone, Debug)]
pub struct Trace {
    times: Arc<[Span]>,
    next: usize,
    speed: f64,
}

impl Trace {
    /// `times` counted from the first one, each not before the one it follows; `speed` 2 replays them in
    /// half the time.
    ///
    /// # Errors
    /// When `speed` is no usable number.
    ///
    /// # Panics
    /// When `times` go back.
    pub fn new(times: Arc<[Span]>, speed: f64) -> Result<Self, BadArrivals> {
        assert!(times.is_sorted(), "a recording goes forward");
        if !(1e-6..=1e6).contains(&speed) {
            return Err(BadArrivals::Speed(speed));
        }
        Ok(Self { times, next: 0, speed })
    }
}

impl Arrivals for Trace {
    fn next(&mut self) -> Option<Span> {
        let at = self.times.get(self.next)?.as_nanos();
        self.next += 1;
        // Of each moment, not of each gap: rounding never adds up.
        Some(Span::from_nanos((at as f64 / self.speed).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(ns: &[u64], speed: f64) -> Vec<u64> {
        let mut trace =
            Trace::new(ns.iter().map(|ns| Span::from_nanos(*ns)).collect(), speed).unwrap();
        std::iter::from_fn(|| trace.next()).map(Span::as_nanos).collect()
    }

    #[test]
    fn a_trace_is_replayed_as_it_is_and_ends() {
        let times = [0, 0, 5, 7_000_000_001];
        assert_eq!(replay(&times, 1.0), times);
        assert!(replay(&[], 1.0).is_empty());
    }

    #[test]
    fn a_speed_divides_each_moment_and_errors_never_add_up() {
        let times: Vec<u64> = (0..10_000).map(|k| k * 10).collect();
        let fast = replay(&times, 3.0);
        for (k, at) in fast.iter().enumerate() {
            let exact = k as f64 * 10.0 / 3.0;
            assert!((*at as f64 - exact).abs() <= 0.5, "arrival {k} at {at}");
        }
        assert_eq!(replay(&[0, 10], 0.5), [0, 20]);
    }

    #[test]
    fn a_speed_that_is_none_is_refused() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Trace::new(Arc::from([]), speed).is_err(), "{speed}");
        }
    }
}
