//! When bytes came to this machine: the kernel's stamps (`SO_TIMESTAMPING`, software, on receipt), made into
//! instants of the monotonic clock.
//!
//! The kernel stamps with the wall clock. The two clocks are read together every so often, since the wall
//! clock is slewed and set; between two such readings they are taken to run alike, which is off by the
//! slewing: 500 ppm at the most (`adjtimex(2)`), 25 us over the time between two readings. The stamp of a read is that
//! of the last segment in it: what came before it lay in the socket for longer.

use std::io;
use std::os::fd::BorrowedFd;

use takt_time::{Nanos, Span};

use crate::{clock, sys};

/// Stamps of one host.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Whether connections that are begun are to have them.
    pub(crate) wanted: bool,
    /// Wall clock minus monotonic clock, and when they were read.
    paired: Option<(i64, Nanos)>,
}

impl Arrivals {
    /// Asks the kernel to stamp what comes in on a socket.
    pub(crate) fn ask(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        sys::stamp_receipts(socket)
    }

    /// The instant of a stamp of a read that returned at `at`; `None` of one that cannot be: the wall clock was
    /// set in between.
    pub(crate) fn instant(&mut self, wall_ns: u64, at: Nanos) -> Option<Nanos> {
        let ahead = match self.paired {
            Some((ahead, read)) if at.saturating_since(read) < PAIRED_FOR => ahead,
            _ => {
                let pair = clock::anchor();
                let ahead = pair.wall_ns as i64 - pair.mono.as_nanos() as i64;
                self.paired = Some((ahead, at));
                ahead
            }
        };
        let instant = Nanos::from_nanos(u64::try_from(wall_ns as i64 - ahead).ok()?);
        // Before the read by less than a socket could hold it; after it by no more than the clocks' error.
        let possible = at.saturating_since(instant) < LONGEST_WAIT
            && instant.saturating_since(at) < CLOCKS_ERROR;
        possible.then_some(instant.min(at))
    }
}

/// How long a paired reading is good for.
const PAIRED_FOR: Span = Span::from_millis(50);
/// Nothing lies in a socket of a client that reads for longer than this.
const LONGEST_WAIT: Span = Span::from_secs(600);
const CLOCKS_ERROR: Span = Span::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_become_instants_and_impossible_ones_are_none() {
        let mut arrivals = Arrivals::default();
        let pair = clock::anchor();
        let at = pair.mono + Span::from_millis(10);
        let before = |us: u64| pair.wall_ns + 10_000_000 - us * 1_000;
        let waited = |us: u64, arrivals: &mut Arrivals| {
            arrivals.instant(before(us), at).map(|arrived| at.saturating_since(arrived))
        };
        for us in [150, 3_000, 1_000_000] {
            let waited = waited(us, &mut arrivals).expect("it is possible");
            let error = waited.as_nanos().abs_diff(us * 1_000);
            assert!(error < 100_000, "{us} us: off by {error} ns");
        }
        // The wall clock was set back, or forward, by an hour.
        let hour = 3_600_000_000_000;
        assert_eq!(arrivals.instant(pair.wall_ns - hour, at), None);
        assert_eq!(arrivals.instant(pair.wall_ns + hour, at), None);
        assert_eq!(arrivals.instant(0, at), None);
    }
}
