//! Whether the endpoint went away before the end: failures of requests that were issued behind the last success. They may be
//! few beside the successes, since a client that is refused does not hurry.

use takt_time::{Nanos, Span};

/// The last success, and the failures behind it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gone {
    success: Option<Nanos>,
    failures: u64,
    /// The first of them was issued then, and the last ended.
    first: Option<Nanos>,
    last: Option<Nanos>,
}

impl Gone {
    /// A request succeeded, by `end`.
    pub(crate) fn succeeded(&mut self, end: Nanos) {
        *self = Self { success: self.success.max(Some(end)), ..Self::default() };
    }

    /// A request that was `issued` then failed, by `end`.
    pub(crate) fn failed(&mut self, issued: Nanos, end: Nanos) {
        if self.success.is_none_or(|success| issued < success) {
            return;
        }
        self.failures += 1;
        self.first = self.first.into_iter().chain([issued]).min();
        self.last = self.last.max(Some(end));
    }

    /// What another reactor saw.
    pub(crate) fn merge(&mut self, other: Self) {
        let success = self.success.max(other.success);
        let behind = |gone: &Self| gone.first >= success;
        let both = [*self, other].into_iter().filter(behind);
        *self = both.fold(Self { success, ..Self::default() }, |all, gone| Self {
            success,
            failures: all.failures + gone.failures,
            first: all.first.into_iter().chain(gone.first).min(),
            last: all.last.max(gone.last),
        });
    }

    /// From the last success to the last failure, when they are more than bad luck.
    pub(crate) fn tail(&self) -> Option<Span> {
        let (success, last) = (self.success?, self.last?);
        (self.failures >= FEW).then(|| last.saturating_since(success))
    }

    /// How many failures there are behind the last success.
    pub(crate) fn failures(&self) -> u64 {
        self.failures
    }

    /// How much of a phase of so many seconds is behind its last success.
    pub(crate) fn share(&self, length_s: f64) -> f64 {
        self.tail().map_or(0.0, |tail| tail.as_secs_f64() / length_s)
    }
}

/// A larger share of a phase is more than its last moment.
pub(crate) const GONE: f64 = 0.05;

/// Fewer failures at the end say nothing.
const FEW: u64 = 10;
