//! Requests of a schedule that are rehearsed before they are due.

use super::*;
use crate::{Arrivals, Share};

/// Arrivals at these microseconds.
struct At(Vec<u64>);

impl Arrivals for At {
    fn next(&mut self) -> Option<Span> {
        (!self.0.is_empty()).then(|| Span::from_micros(self.0.remove(0)))
    }
}

/// What was rehearsed, 100 us ahead, of arrivals at `due`, and what was sent: microsecond, ordinal and sample of each.
fn ran(due: &[u64], share: Share) -> [Vec<(u64, u64, u32)>; 2] {
    let order =
        Order::without_replacement(100, crate::random::stream(3, crate::random::Purpose::Order));
    let strategy = Timed::new(Box::new(At(due.to_vec())), order);
    let mut phase = PhaseConfig::new("p", strategy, 100);
    phase.limits.duration = Some(Span::from_secs(1));
    phase.share = share;
    let rehearse_ahead = Some(Span::from_micros(100));
    let config = SessionConfig { rehearse_ahead, ..config(vec![phase]) };
    let ran = run_planned(config, |_| Plan::Answer(Span::from_millis(5)), &[]);
    let seen = ran.seen.borrow();
    [&seen.rehearsed, &seen.requests].map(|which| {
        let one = |(at, request): &(Nanos, Request)| {
            (at.as_nanos() / 1_000, request.key.ordinal, request.sample)
        };
        which.iter().map(one).collect()
    })
}

/// Checks that `rehearsed` are those of `sent` that were due at these microseconds, 100 us earlier.
#[track_caller]
fn check(due: &[u64], share: Share, expect: &[u64]) {
    let [rehearsed, sent] = ran(due, share);
    let of = |at: &u64| *sent.iter().find(|(sent, ..)| sent == at).expect("sent at its moment");
    let expect: Vec<_> =
        expect.iter().map(of).map(|(at, n, sample)| (at - 100, n, sample)).collect();
    assert_eq!(rehearsed, expect);
}

#[test]
fn what_is_due_after_a_rest_is_rehearsed_with_its_own_sample() {
    check(&[1_000, 2_000, 3_000], Share::All, &[1_000, 2_000, 3_000]);
    // The rest is counted from when the request before was issued.
    check(&[1_000, 1_199, 1_399, 1_400, 2_000], Share::All, &[1_000, 1_399, 2_000]);
    check(&[50, 150, 250], Share::All, &[]);
}

#[test]
fn what_is_due_elsewhere_is_rehearsed_there() {
    let due = [1_000, 2_000, 3_000, 4_000];
    check(&due, Share::Nth { first: 0, of: 2 }, &[1_000, 3_000]);
    check(&due, Share::Nth { first: 1, of: 2 }, &[2_000, 4_000]);
}
