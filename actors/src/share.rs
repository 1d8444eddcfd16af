//! Several sessions on one run, a reactor each: which requests of a phase are whose.
//!
//! Together they issue what one alone would: the same requests, numbered the same, with the same samples. An open
//! loop is one schedule that each session draws whole, taking every `of`-th arrival. A closed loop has its places
//! divided, and each request takes the next number that nobody has. What it costs a session to be one of several is
//! a draw for each request of the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which requests of a phase are this session's.
#[derive(Clone, Debug, Default)]
pub enum Share {
    /// All of them.
    #[default]
    All,
    /// Every `of`-th, from number `first` (less than `of`) on: of a schedule that each session draws whole.
    Nth {
        /// The number of its first request, from 0.
        first: u64,
        /// How many sessions there are.
        of: u64,
    },
    /// The next that no session has taken; each has a clone of these.
    Claimed(Claims),
}

/// The numbers of a phase that sessions have taken, and whether one of them ended it for all.
#[derive(Clone, Debug, Default)]
pub struct Claims(Arc<AtomicU64>);

impl Claims {
    /// Takes the next number unless `ends` names what ends the phase in front of it. When `for_all` holds of that, no
    /// other session goes on behind it either: sessions do not agree on the time.
    pub(crate) fn take<E>(
        &self,
        ends: impl Fn(u64) -> Option<E>,
        for_all: impl Fn(&E) -> bool,
    ) -> Result<u64, Option<E>> {
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            let next = seen & !CLOSED;
            let end = ends(next);
            if seen & CLOSED != 0 {
                return Err(end.filter(for_all));
            }
            let then = match &end {
                Some(end) if for_all(end) => seen | CLOSED,
                Some(_) => return Err(end),
                None => seen + 1,
            };
            match self.0.compare_exchange_weak(seen, then, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return end.map_or(Ok(next), |end| Err(Some(end))),
                Err(now) => seen = now,
            }
        }
    }
}

/// The part that falls to session `index` of `of` when `total` places are divided as evenly as they can be: the
/// parts add up to `total`, and the first sessions have the places that are left over.
#[must_use]
pub fn part(total: u64, index: u64, of: u64) -> u64 {
    total / of + u64::from(index < total % of)
}

const CLOSED: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c1_places_are_divided_without_one_more_or_less() {
        for (total, of, parts) in
            [(45, 8, vec![6, 6, 6, 6, 6, 5, 5, 5]), (3, 4, vec![1, 1, 1, 0]), (0, 2, vec![0, 0])]
        {
            let all: Vec<u64> = (0..of).map(|index| part(total, index, of)).collect();
            assert_eq!(all, parts, "{total} over {of}");
        }
    }

    #[test]
    fn each_number_is_taken_once_and_an_end_for_all_ends_it_for_all() {
        let claims = Claims::default();
        let (a, b) = (claims.clone(), claims);
        let until = |last: u64| move |next: u64| (next >= last).then_some("over");
        let taken: Vec<_> = (0..4).map(|_| a.take(until(9), |_| true).unwrap()).collect();
        assert_eq!(taken, [0, 1, 2, 3]);
        assert_eq!(b.take(until(9), |_| true), Ok(4));
        assert_eq!(a.take(until(5), |_| false), Err(Some("over")), "only its own");
        assert_eq!(b.take(until(9), |_| true), Ok(5));
        assert_eq!(a.take(until(6), |_| true), Err(Some("over")));
        assert_eq!(b.take(until(9), |_| true), Err(None), "the other would have gone on");
    }
}
