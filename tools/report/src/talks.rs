//! Conversations: what they came to, and their requests by turn number.
//!
//! Times by turn are from the send, so that turns with a delay and turns without one compare. Turn numbers
//! up to [`OWN`] have a row of their own, greater ones share a row for each doubling: a hundred rows at most,
//! with two histograms each while the phase runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use takt_record::{
    Completed, ConversationEnd, ConversationEvent, ConversationRecord, ConversationState,
    ConversationsResult, Outcome, TurnResult,
};
use takt_time::Span;

use crate::series::{MAX_VALUE, Series};
use crate::windows::Windows;

/// The conversations of a phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Talks {
    begun: u64,
    /// Turns of those that began.
    expected: u64,
    ended: [u64; ConversationState::ALL.len()],
    skipped: u64,
    unsent: u64,
    /// Of those that were completed, and not profiled.
    whole: Whole,
    turns: BTreeMap<u32, Turn>,
    /// Differences beyond all measure.
    pub(crate) anomalies: u64,
}

/// Series over completed conversations.
#[derive(Clone, Debug, Default)]
struct Whole {
    duration: Series,
    waited: Series,
    paused: Series,
    turns: Series,
    input: Series,
    output: Series,
    cached: Series,
}

/// The requests of a turn number, or of a range of them.
#[derive(Clone, Debug, Default)]
struct Turn {
    last: u32,
    issued: u64,
    succeeded: u64,
    failed: u64,
    ttft: Series,
    latency: Series,
    input: Mean,
    output: Mean,
    cached: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: u64,
    count: u64,
}

impl Talks {
    /// Nothing yet, and series that keep every value.
    pub(crate) fn keep_values(&mut self) {
        self.whole.each(|series, _| *series = Series::of_values(), &Whole::default());
    }

    /// A conversation began or ended.
    pub(crate) fn conversation(&mut self, record: &ConversationRecord, windows: &Windows) {
        match record.event {
            ConversationEvent::Started { turns } => {
                self.begun += 1;
                self.expected += u64::from(turns);
            }
            ConversationEvent::Ended(end) => self.ended(record, &end, windows),
        }
    }

    fn ended(&mut self, record: &ConversationRecord, end: &ConversationEnd, windows: &Windows) {
        self.ended[usize::from(end.how.code())] += 1;
        self.skipped += u64::from(end.skipped);
        self.unsent += u64::from(end.unsent);
        if end.how != ConversationState::Completed || windows.meet(end.began, record.at) {
            return;
        }
        let Some(duration) = record.at.checked_since(end.began) else {
            self.anomalies += 1;
            return;
        };
        let whole = &mut self.whole;
        for (series, span) in [
            (&mut whole.duration, duration),
            (&mut whole.waited, end.waited),
            (&mut whole.paused, end.paused),
        ] {
            series.record_span(span);
        }
        whole.turns.record(end.turns.into());
        for (series, count) in [
            (&mut whole.input, end.input),
            (&mut whole.output, end.output),
            (&mut whole.cached, end.cached),
        ] {
            if let Some(count) = count {
                series.record(count);
            }
        }
    }

    /// How many are active.
    pub(crate) fn active(&self) -> u64 {
        self.begun.saturating_sub(self.ended.iter().sum())
    }

    /// Turns left out after a failed one.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// A turn of this number was issued; `exact` where every value is kept.
    pub(crate) fn issued(&mut self, number: u32, exact: bool) {
        let (first, last) = row_of(number);
        let turn = self.turns.entry(first).or_insert_with(|| {
            let series = || if exact { Series::of_values() } else { Series::default() };
            Turn { last, ttft: series(), latency: series(), ..Turn::default() }
        });
        turn.issued += 1;
    }

    /// A turn ended in time, `profiled` ones among them.
    pub(crate) fn completed(&mut self, number: u32, done: &Completed, profiled: bool) {
        let Some(turn) = self.turns.get_mut(&row_of(number).0) else { return };
        match done.outcome {
            Outcome::Ok => {}
            Outcome::Failed(_) => return turn.failed += 1,
            Outcome::Unanswered => return,
        }
        turn.succeeded += 1;
        if profiled {
            return;
        }
        let times = &done.times;
        let since = |at: takt_time::Nanos| {
            let span = at.checked_since(times.sent?)?;
            (span <= Span::from_nanos(MAX_VALUE)).then_some(span)
        };
        // What is negative was counted with the phase's own series.
        if let Some(span) = since(times.end) {
            turn.latency.record_span(span);
        }
        if let Some(span) = times.first_token.and_then(since) {
            turn.ttft.record_span(span);
        }
        turn.input.take(done.tokens.input);
        turn.output.take(done.tokens.output);
        turn.cached.take(done.tokens.cached);
    }

    pub(crate) fn freeze(&mut self) {
        self.whole.each(|series, _| series.freeze(), &Whole::default());
        for turn in self.turns.values_mut() {
            turn.ttft.freeze();
            turn.latency.freeze();
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.begun += other.begun;
        self.expected += other.expected;
        self.ended.iter_mut().zip(other.ended).for_each(|(mine, theirs)| *mine += theirs);
        self.skipped += other.skipped;
        self.unsent += other.unsent;
        self.anomalies += other.anomalies;
        self.whole.each(Series::merge, &other.whole);
        for (&first, theirs) in &other.turns {
            match self.turns.entry(first) {
                Entry::Vacant(place) => {
                    place.insert(theirs.clone());
                }
                Entry::Occupied(mut mine) => mine.get_mut().merge(theirs),
            }
        }
    }

    /// A row for each turn number.
    pub(crate) fn turns(&self) -> Vec<TurnResult> {
        let rows = self.turns.iter();
        rows.map(|(&turn, seen)| TurnResult {
            turn,
            last_turn: (seen.last > turn).then_some(seen.last),
            issued: seen.issued,
            succeeded: seen.succeeded,
            failed: seen.failed,
            ttft_ms: seen.ttft.distribution(MS),
            latency_ms: seen.latency.distribution(MS),
            input_tokens: seen.input.result(),
            output_tokens: seen.output.result(),
            cached_tokens: seen.cached.result(),
        })
        .collect()
    }

    pub(crate) fn result(&self) -> ConversationsResult {
        let ended = |how: ConversationState| self.ended[usize::from(how.code())];
        let whole = &self.whole;
        ConversationsResult {
            begun: self.begun,
            completed: ended(ConversationState::Completed),
            failed: ended(ConversationState::Failed),
            stopped: ended(ConversationState::Stopped),
            turns_expected: self.expected,
            turns_unsent: self.unsent,
            turns: whole.turns.distribution(1.0),
            duration_ms: whole.duration.distribution(MS),
            waited_ms: whole.waited.distribution(MS),
            paused_ms: whole.paused.distribution(MS),
            input_tokens: whole.input.distribution(1.0),
            output_tokens: whole.output.distribution(1.0),
            cached_tokens: whole.cached.distribution(1.0),
        }
    }
}

impl Whole {
    fn each(&mut self, act: fn(&mut Series, &Series), other: &Self) {
        for (mine, theirs) in [
            (&mut self.duration, &other.duration),
            (&mut self.waited, &other.waited),
            (&mut self.paused, &other.paused),
            (&mut self.turns, &other.turns),
            (&mut self.input, &other.input),
            (&mut self.output, &other.output),
            (&mut self.cached, &other.cached),
        ] {
            act(mine, theirs);
        }
    }
}

impl Turn {
    fn merge(&mut self, other: &Self) {
        self.issued += other.issued;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.ttft.merge(&other.ttft);
        self.latency.merge(&other.latency);
        for (mine, theirs) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cached, other.cached),
        ] {
            *mine = Mean { sum: mine.sum + theirs.sum, count: mine.count + theirs.count };
        }
    }
}

impl Mean {
    fn take(&mut self, count: Option<u32>) {
        if let Some(count) = count {
            self.sum += u64::from(count);
            self.count += 1;
        }
    }

    fn result(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// First and last number of the row that a turn is counted in.
fn row_of(number: u32) -> (u32, u32) {
    if number <= OWN {
        return (number, number);
    }
    let above = (number - 1) / OWN;
    let first = OWN << above.ilog2();
    (first + 1, first.saturating_mul(2))
}

/// Turn numbers with a row of their own.
const OWN: u32 = 64;
const MS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_conversations_share_rows_and_every_number_has_one() {
        let rows = [1, 64, 65, 128, 129, 256, 257, u32::MAX].map(row_of);
        let expect = [
            (1, 1),
            (64, 64),
            (65, 128),
            (65, 128),
            (129, 256),
            (129, 256),
            (257, 512),
            ((1 << 31) + 1, u32::MAX),
        ];
        assert_eq!(rows, expect);
        for number in 1..10_000 {
            let (first, last) = row_of(number);
            assert!((first..=last).contains(&number));
        }
    }

    #[test]
    fn turn_numbers_that_only_the_second_part_has_keep_their_values() {
        let done = |end: u64| Completed {
            key: takt_record::RequestKey::default(),
            sample: 0,
            outcome: Outcome::Ok,
            times: takt_record::Times {
                sent: Some(takt_time::Nanos::ZERO),
                end: takt_time::Nanos::from_nanos(end),
                ..takt_record::Times::default()
            },
            tokens: takt_record::TokenCounts::default(),
            finish: None,
            status: Some(200),
            attempts: 1,
            reused: true,
            body_bytes: 0,
            endpoint: 0,
            turn: None,
        };
        let part = |turns: &[u32]| {
            let mut talks = Talks::default();
            talks.keep_values();
            for &turn in turns {
                talks.issued(turn, true);
                talks.completed(turn, &done(1_234_567_891), false);
            }
            talks
        };
        let mut all = part(&[1]);
        all.merge(&part(&[1, 2]));
        assert_eq!(all.turns(), part(&[1, 1, 2]).turns());
        assert_eq!(all.turns()[1].latency_ms.unwrap().p.p50, 1_234.567_891);
    }
}
