//! A phase: what it is to do, and how far it has come.

use takt_record::{EndedBy, PhaseId, PhaseKind};
use takt_time::{Nanos, Span};

use crate::strategy::Strategy;

/// What a phase is to do.
pub struct PhaseConfig {
    /// Unique in the session.
    pub name: String,
    /// Performance, accuracy or warm-up.
    pub kind: PhaseKind,
    /// When to issue what.
    pub strategy: Box<dyn Strategy>,
    /// Samples in its dataset: the length of a pass. 0 where the strategy knows of its own when it is through.
    pub samples: u32,
    /// When it stops issuing.
    pub limits: Limits,
    /// Waits for its requests before the next phase begins.
    pub drain_after: bool,
    /// Gives up the requests that are left after this; `None` waits for all.
    pub drain_timeout: Option<Span>,
}

impl PhaseConfig {
    /// A performance phase over `samples` samples that drains at its end, without a limit of its own: it
    /// issues the dataset once.
    #[must_use]
    pub fn new(name: &str, strategy: impl Strategy + 'static, samples: u32) -> Self {
        Self {
            name: name.into(),
            kind: PhaseKind::Performance,
            strategy: Box::new(strategy),
            samples,
            limits: Limits::default(),
            drain_after: true,
            drain_timeout: None,
        }
    }

    /// The same, for so many requests.
    #[must_use]
    pub fn requests(mut self, requests: u64) -> Self {
        self.limits.requests = Some(requests);
        self
    }
}

/// When a phase stops issuing, whichever comes first. With neither `requests` nor `duration` the dataset
/// is issued in whole passes: once, or until `min_duration` is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Exactly so many requests.
    pub requests: Option<u64>,
    /// For so long.
    pub duration: Option<Span>,
    /// Passes over the dataset go on until this is over.
    pub min_duration: Option<Span>,
    /// Not longer than this; a phase that it ends is `capped`.
    pub max_duration: Option<Span>,
}

/// The issuing side of a running phase: numbers requests and refuses them when it is over.
#[derive(Debug)]
pub(crate) struct PhaseIssuer {
    pub(crate) id: PhaseId,
    pub(crate) start: Nanos,
    pub(crate) issued: u64,
    /// What ended the issuing, once it has ended.
    pub(crate) closed: Option<EndedBy>,
    samples: u32,
    limits: Limits,
}

impl PhaseIssuer {
    pub(crate) fn new(id: PhaseId, start: Nanos, samples: u32, limits: Limits) -> Self {
        Self { id, start, issued: 0, closed: None, samples, limits }
    }

    /// Takes the next ordinal for a request of the moment `at`, or refuses.
    pub(crate) fn admit(&mut self, at: Nanos) -> Option<u64> {
        self.close_if_over(at);
        if self.closed.is_some() {
            return None;
        }
        let ordinal = self.issued;
        self.issued += 1;
        if self.limits.requests == Some(self.issued) {
            self.closed = Some(EndedBy::Requests);
        }
        Some(ordinal)
    }

    /// Ends the issuing; what has ended stays ended by its first reason.
    pub(crate) fn close(&mut self, by: EndedBy) {
        self.closed.get_or_insert(by);
    }

    /// Ends the issuing when a limit is reached at `at`.
    pub(crate) fn close_if_over(&mut self, at: Nanos) {
        let over = |span: Option<Span>| span.is_some_and(|span| at >= self.start + span);
        let limits = &self.limits;
        let by = if over(limits.max_duration) {
            EndedBy::MaxDuration
        } else if over(limits.duration) {
            EndedBy::Duration
        } else if limits.requests == Some(self.issued) {
            EndedBy::Requests
        } else if self.passes_are_over(at) {
            EndedBy::Dataset
        } else {
            return;
        };
        self.close(by);
    }

    fn passes_are_over(&self, at: Nanos) -> bool {
        let limits = &self.limits;
        limits.requests.is_none()
            && limits.duration.is_none()
            && self.issued > 0
            && self.issued.is_multiple_of(u64::from(self.samples))
            && limits.min_duration.is_none_or(|least| at >= self.start + least)
    }

    /// When a span ends the issuing, if one can, whichever comes first.
    pub(crate) fn ends_at(&self) -> Option<Nanos> {
        let spans = [self.limits.duration, self.limits.max_duration];
        spans.into_iter().flatten().min().map(|span| self.start + span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Admits a request each millisecond from 0 on; gives the count and what ended it.
    fn check(limits: Limits, samples: u32, count: u64, by: EndedBy) {
        let start = Nanos::from_nanos(5_000);
        let mut issuer = PhaseIssuer::new(PhaseId(0), start, samples, limits);
        let mut at = start;
        while let Some(ordinal) = issuer.admit(at) {
            assert_eq!(ordinal + 1, issuer.issued);
            at += Span::from_millis(1);
        }
        assert_eq!((issuer.issued, issuer.closed), (count, Some(by)), "{limits:?}");
        assert_eq!(issuer.admit(at), None, "what is closed stays closed");
    }

    #[test]
    fn a_phase_ends_at_whichever_limit_comes_first() {
        let ms = |n| Some(Span::from_millis(n));
        let none = Limits::default();
        check(none, 10, 10, EndedBy::Dataset);
        check(Limits { requests: Some(25), ..none }, 10, 25, EndedBy::Requests);
        check(Limits { duration: ms(7), ..none }, 10, 7, EndedBy::Duration);
        check(Limits { duration: ms(30), ..none }, 10, 30, EndedBy::Duration);
        check(Limits { requests: Some(5), duration: ms(7), ..none }, 10, 5, EndedBy::Requests);
        check(Limits { requests: Some(9), duration: ms(7), ..none }, 10, 7, EndedBy::Duration);
        check(Limits { max_duration: ms(4), ..none }, 10, 4, EndedBy::MaxDuration);
        check(Limits { max_duration: ms(40), ..none }, 10, 10, EndedBy::Dataset);
    }

    #[test]
    fn min_duration_repeats_the_dataset_in_whole_passes() {
        let least = |n| Limits { min_duration: Some(Span::from_millis(n)), ..Limits::default() };
        check(least(3), 10, 10, EndedBy::Dataset);
        check(least(15), 10, 20, EndedBy::Dataset);
        check(least(20), 10, 20, EndedBy::Dataset);
        check(least(21), 10, 30, EndedBy::Dataset);
    }
}
