//! A phase: what it is to do, and how far it has come.

use takt_record::{EndedBy, PhaseId, PhaseKind};
use takt_time::{Nanos, Span};

use crate::share::Share;
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
    /// When it stops issuing; of the whole phase, also where it is shared.
    pub limits: Limits,
    /// Which of its requests are this session's.
    pub share: Share,
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
            share: Share::All,
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
    /// Requests of this session.
    pub(crate) issued: u64,
    /// What ended the issuing, once it has ended.
    pub(crate) closed: Option<EndedBy>,
    samples: u32,
    limits: Limits,
    share: Share,
    /// Requests of all sessions before the next, as far as this one knows.
    next: u64,
}

impl PhaseIssuer {
    pub(crate) fn new(id: PhaseId, start: Nanos, config: &PhaseConfig) -> Self {
        let (samples, limits, share) = (config.samples, config.limits, config.share.clone());
        Self { id, start, issued: 0, closed: None, samples, limits, share, next: 0 }
    }

    /// Takes the next ordinal for a request of the moment `at`, or refuses.
    pub(crate) fn admit(&mut self, at: Nanos) -> Option<u64> {
        if self.closed.is_some() {
            return None;
        }
        let taken = match &self.share {
            Share::All | Share::Nth { .. } => match self.reached(self.next, at) {
                None => Ok(self.next),
                by => Err(by),
            },
            Share::Claimed(claims) => {
                claims.take(|next| self.reached(next, at), |by| matches!(by, EndedBy::Dataset))
            }
        };
        match taken {
            Ok(ordinal) => {
                self.issued += 1;
                self.pass(ordinal);
                Some(ordinal)
            }
            Err(by) => {
                self.close(by.unwrap_or(EndedBy::Dataset));
                None
            }
        }
    }

    /// Passes over the next request, of the moment `at`, if it is another session's. Not what would end the phase:
    /// that is seen when it is due.
    pub(crate) fn elsewhere(&mut self, at: Nanos) -> bool {
        let Share::Nth { first, of } = self.share else { return false };
        let own = self.next % of == first;
        if own || self.closed.is_some() || self.reached(self.next, at).is_some() {
            return false;
        }
        self.pass(self.next);
        true
    }

    /// The ordinal of the next request, as far as is known.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    fn pass(&mut self, ordinal: u64) {
        self.next = ordinal + 1;
        if self.limits.requests == Some(self.next) {
            self.close(EndedBy::Requests);
        }
    }

    /// Ends the issuing; what has ended stays ended by its first reason.
    pub(crate) fn close(&mut self, by: EndedBy) {
        self.closed.get_or_insert(by);
    }

    /// Ends the issuing when a limit is reached at `at`.
    pub(crate) fn close_if_over(&mut self, at: Nanos) {
        match self.reached(self.next, at) {
            // What others have taken since is not known here: that is seen when the next is taken.
            Some(EndedBy::Dataset) if matches!(self.share, Share::Claimed(_)) => {}
            Some(by) => self.close(by),
            None => {}
        }
    }

    /// The limit that is reached at `at` in front of request `next` of the phase.
    fn reached(&self, next: u64, at: Nanos) -> Option<EndedBy> {
        let over = |span: Option<Span>| span.is_some_and(|span| at >= self.start + span);
        let limits = &self.limits;
        if over(limits.max_duration) {
            Some(EndedBy::MaxDuration)
        } else if over(limits.duration) {
            Some(EndedBy::Duration)
        } else if limits.requests.is_some_and(|requests| next >= requests) {
            Some(EndedBy::Requests)
        } else if self.passes_are_over(next, at) {
            Some(EndedBy::Dataset)
        } else {
            None
        }
    }

    fn passes_are_over(&self, next: u64, at: Nanos) -> bool {
        let limits = &self.limits;
        limits.requests.is_none()
            && limits.duration.is_none()
            && next > 0
            && next.is_multiple_of(u64::from(self.samples))
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
    use crate::{Burst, Order};

    /// Admits a request each millisecond from 0 on; gives the count and what ended it.
    fn check(limits: Limits, samples: u32, count: u64, by: EndedBy) {
        let start = Nanos::from_nanos(5_000);
        let strategy = Burst::new(Order::single(0), None);
        let config = PhaseConfig { limits, ..PhaseConfig::new("p", strategy, samples) };
        let mut issuer = PhaseIssuer::new(PhaseId(0), start, &config);
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
