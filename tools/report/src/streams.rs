//! Streams that are open: from the first token event of a request to its end.
//!
//! A slab with a free list, found through a hash map that is never walked. Places and their memory go
//! from a finished stream to the next one, so once as many streams as are ever open at a time have been
//! seen, a token costs no allocation.
//!
//! **What is measured and what is not.** The gap of an event is its stamp minus that of the token event
//! before. An event that came in the same read as the one before is *coalesced*: its gap of zero says
//! nothing about the server, so it enters no series; its tokens are added to those of its read.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use takt_record::{RequestKey, Token, TokenCounts};
use takt_time::Nanos;

use crate::packed::Packed;
use crate::series::Series;

/// The open streams of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    places: HashMap<RequestKey, u32, BuildHasherDefault<KeyHasher>>,
    slab: Vec<Stream>,
    free: Vec<u32>,
}

/// What came of one stream so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    gaps: Packed,
    last: Nanos,
    /// Tokens of the first event, by its own account.
    first: u32,
    /// Tokens of all later events.
    later: u64,
    /// Every event so far said how many tokens it carries.
    told: bool,
    /// Gaps that found no room.
    dropped: u64,
}

/// What a token event contradicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Odd {
    /// It is older than the one before it.
    Backwards,
    /// Not the first, and no first one came before.
    NoFirst,
    /// The first for the second time.
    SecondFirst,
}

impl Streams {
    /// Takes a token event in.
    pub(crate) fn token(&mut self, token: &Token) -> Result<(), Odd> {
        if let Some(&place) = self.places.get(&token.key) {
            if token.first {
                return Err(Odd::SecondFirst);
            }
            return self.slab[place as usize].later_event(token);
        }
        if !token.first {
            return Err(Odd::NoFirst);
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.slab.push(Stream::default());
            (self.slab.len() - 1) as u32
        });
        self.slab[place as usize].first_event(token);
        self.places.insert(token.key, place);
        Ok(())
    }

    /// Ends a stream: hands what came of it to `finish`, or drops it.
    pub(crate) fn end<R>(
        &mut self,
        key: RequestKey,
        finish: impl FnOnce(&Stream) -> R,
    ) -> Option<R> {
        let place = self.places.remove(&key)?;
        let stream = &mut self.slab[place as usize];
        let result = finish(stream);
        stream.gaps.clear();
        self.free.push(place);
        Some(result)
    }

    /// Streams open now.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.places.len()
    }

    /// Places made so far, open or free.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.slab.len()
    }
}

impl Stream {
    fn first_event(&mut self, token: &Token) {
        self.last = token.at;
        self.first = token.tokens.unwrap_or(1);
        self.told = token.tokens.is_some();
        (self.later, self.dropped) = (0, 0);
    }

    fn later_event(&mut self, token: &Token) -> Result<(), Odd> {
        let gap = token.at.checked_since(self.last).ok_or(Odd::Backwards)?;
        let tokens = token.tokens.unwrap_or(1);
        self.told &= token.tokens.is_some();
        self.later += u64::from(tokens);
        self.last = token.at;
        if token.coalesced {
            // Tokens in the first read end no gap: there is nothing to add them to.
            self.gaps.more_tokens(tokens);
        } else if !self.gaps.push(gap.as_nanos(), tokens) {
            self.dropped += 1;
        }
        Ok(())
    }

    /// Adds the gaps of a stream that ended well to the series of its phase.
    pub(crate) fn count_into(
        &self,
        counts: &TokenCounts,
        event_gap: &mut Series,
        itl: &mut Series,
    ) {
        let scale = self.tokens_per_told_token(counts);
        let mut carried = 0;
        for (gap_ns, tokens) in self.gaps.each() {
            event_gap.record(gap_ns);
            carried += gap_ns;
            if tokens == 0 {
                continue;
            }
            if let Some(scale) = scale {
                let interval = carried as f64 / (f64::from(tokens) * scale);
                itl.record_n(interval.round() as u64, u64::from(tokens));
            }
            carried = 0;
        }
    }

    /// Gaps that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Do the events' own counts contradict the total by more than one token and 2 %?
    pub(crate) fn disagrees(&self, output: u32) -> bool {
        let (told, output) = (u64::from(self.first) + self.later, u64::from(output));
        self.told && told.abs_diff(output) > 1 + output / 50
    }

    /// Where the events did not say how many tokens they carry, the tokens after the first event are
    /// shared out evenly over the later events; `None` when the total is not known or leaves none.
    fn tokens_per_told_token(&self, counts: &TokenCounts) -> Option<f64> {
        if self.told {
            return Some(1.0);
        }
        let rest = counts.output?.checked_sub(counts.first_event.unwrap_or(self.first))?;
        (rest > 0 && self.later > 0).then(|| f64::from(rest) / self.later as f64)
    }
}

/// Multiply-and-fold over the two numbers of a [`RequestKey`], which come from ourselves and need no
/// defence against chosen collisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        // 2^64 over the golden ratio spreads neighbours; folding brings high bits to the low end.
        let product = u128::from(self.0 ^ value) * u128::from(0x9e37_79b9_7f4a_7c15u64);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_record::PhaseId;

    /// Feeds events (stamp, tokens, coalesced), ends the stream and gives (event gaps, intervals).
    fn series(events: &[(u64, Option<u32>, bool)], output: Option<u32>) -> (Series, Series) {
        let (mut streams, key) = (Streams::default(), RequestKey::default());
        for (place, &(at, tokens, coalesced)) in events.iter().enumerate() {
            streams.token(&event(key, at, place == 0, tokens, coalesced)).unwrap();
        }
        let counts = TokenCounts { output, ..TokenCounts::default() };
        let (mut gaps, mut itl) = (Series::default(), Series::default());
        streams.end(key, |stream| stream.count_into(&counts, &mut gaps, &mut itl)).unwrap();
        assert_eq!(streams.open(), 0);
        (gaps, itl)
    }

    fn event(key: RequestKey, at: u64, first: bool, tokens: Option<u32>, coalesced: bool) -> Token {
        let at = Nanos::from_nanos(at);
        let (content, reasoning, tool_call) = (true, false, false);
        Token { at, key, first, tokens, content, reasoning, tool_call, coalesced }
    }

    fn shape(series: &Series) -> (u64, u128) {
        (series.count(), series.sum())
    }

    #[test]
    fn tokens_of_one_event_share_its_gap() {
        let (gaps, itl) =
            series(&[(0, Some(2), false), (400, Some(4), false), (500, Some(1), false)], Some(7));
        // Gaps 400 and 100; intervals 4 x 100 and 1 x 100.
        assert_eq!((shape(&gaps), shape(&itl)), ((2, 500), (5, 500)));
        assert_eq!(itl.quantile(1000), Some(100));
    }

    #[test]
    fn where_events_do_not_tell_the_rest_is_shared_evenly() {
        // 9 tokens, 1 in the first event, 8 over two gaps: 4 each, so 400 / 4 and 200 / 4.
        let (gaps, itl) =
            series(&[(0, None, false), (400, None, false), (600, None, false)], Some(9));
        assert_eq!((shape(&gaps), shape(&itl)), ((2, 600), (2, 150)));
    }

    #[test]
    fn without_a_total_there_are_gaps_and_no_intervals() {
        let (gaps, itl) = series(&[(0, None, false), (400, None, false)], None);
        assert_eq!((gaps.count(), itl.count()), (1, 0));
    }

    #[test]
    fn a_coalesced_event_adds_its_tokens_and_no_gap() {
        let (gaps, itl) = series(
            &[(0, Some(1), false), (0, Some(1), true), (300, Some(1), false), (300, Some(2), true)],
            Some(5),
        );
        assert_eq!((shape(&gaps), shape(&itl)), ((1, 300), (3, 300)));
    }

    #[test]
    fn an_event_without_tokens_hands_its_time_on() {
        let (gaps, itl) =
            series(&[(0, Some(1), false), (100, Some(0), false), (300, Some(1), false)], Some(2));
        assert_eq!((shape(&gaps), shape(&itl)), ((2, 300), (1, 300)));
    }

    #[test]
    fn places_are_used_again() {
        let mut streams = Streams::default();
        for ordinal in 0..10_000 {
            let key = RequestKey { phase: PhaseId(1), ordinal };
            streams.token(&event(key, 1, true, None, false)).unwrap();
            if ordinal >= 8 {
                let old = RequestKey { ordinal: ordinal - 8, ..key };
                streams.end(old, |_| ()).unwrap();
            }
        }
        assert_eq!((streams.open(), streams.places()), (8, 9));
    }

    #[test]
    fn a_contradicting_event_is_told_apart() {
        let (mut streams, key) = (Streams::default(), RequestKey::default());
        assert_eq!(streams.token(&event(key, 5, false, None, false)), Err(Odd::NoFirst));
        streams.token(&event(key, 5, true, None, false)).unwrap();
        assert_eq!(streams.token(&event(key, 6, true, None, false)), Err(Odd::SecondFirst));
        assert_eq!(streams.token(&event(key, 4, false, None, false)), Err(Odd::Backwards));
    }
}
