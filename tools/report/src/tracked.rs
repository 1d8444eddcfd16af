//! The distributions of a performance phase.
//!
//! Two sorts of series. Those of the *service* (latencies, TTFT, TPOT, intervals, tokens) take requests
//! that succeeded, and no others. Those of the *instrument* (lateness, queueing, connecting, writing)
//! take every request that got so far, whatever became of it.
//!
//! All times are differences of stamps of one clock; one that comes out negative contradicts the clock
//! and is counted as an anomaly, never recorded as something else.

use crate::counted::Counted;
use takt_record::{Completed, Times, TokenSource, TwoViews};
use takt_time::{Nanos, Span};

use crate::series::{MAX_VALUE, Series};
use crate::slo::Slo;
use crate::streams::{Stream, Streams};
use crate::timeline::Timeline;

/// Everything that is tracked about one phase besides its counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracked {
    pub(crate) timeline: Option<Timeline>,
    pub(crate) latency: Views,
    pub(crate) ttft: Views,
    pub(crate) last_token: Views,
    pub(crate) first_byte: Series,
    pub(crate) first_event: Series,
    pub(crate) first_content: Series,
    pub(crate) tpot: Series,
    pub(crate) itl: Series,
    pub(crate) event_gap: Series,
    pub(crate) lateness: Series,
    pub(crate) queue: Series,
    pub(crate) connect: Series,
    pub(crate) tls: Series,
    pub(crate) write: Series,
    pub(crate) socket_wait: Series,
    pub(crate) in_flight: Series,
    pub(crate) input: Series,
    pub(crate) output: Series,
    pub(crate) cached: Series,
    /// The first token counts from when it arrived, not from when it was read.
    pub(crate) by_arrival: bool,
    /// Successes by who counted their output.
    pub(crate) sources: [u64; TokenSource::ALL.len()],
    /// Token events of successes, and those among them that were coalesced.
    pub(crate) events: u64,
    pub(crate) coalesced: u64,
    /// Successes whose token counts contradict each other.
    pub(crate) disagreeing: u64,
    /// Successes whose streams held no text, though the server counts output.
    pub(crate) unseen: u64,
    /// Successes that were streamed though whole answers were asked for.
    pub(crate) unasked: u64,
    pub(crate) counted: Counted,
    /// Successes within the objective.
    pub(crate) good: u64,
    /// Differences that came out negative, and intervals that found no room.
    pub(crate) anomalies: u64,
}

/// One quantity from its two starting points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    pub(crate) from_schedule: Series,
    pub(crate) from_send: Series,
}

impl Tracked {
    /// The time line, which begins at `at` if nothing began it before.
    pub(crate) fn timeline(&mut self, at: Nanos) -> &mut Timeline {
        self.timeline.get_or_insert_with(|| Timeline::new(at))
    }

    /// Takes the instrument's side of a request that ended.
    pub(crate) fn ended(&mut self, done: &Completed) {
        let times = &done.times;
        if let (Some(sent), Some(scheduled)) = (times.sent, times.scheduled)
            && let Some(lateness) = self.since(sent, scheduled)
        {
            self.lateness.record_span(lateness);
            self.timeline(sent).bin(sent).lateness.record(lateness.as_nanos());
        }
        // A second attempt has the stamps of its own connection and the first one's send.
        if done.attempts <= 1 {
            if let Some(queued) = times.acquired.and_then(|at| self.since(at, times.issued)) {
                self.queue.record_span(queued);
            }
            if let (Some(written), Some(sent)) = (times.written, times.sent)
                && let Some(writing) = self.since(written, sent)
            {
                self.write.record_span(writing);
            }
        }
        if let Some(connecting) = times.connect {
            self.connect.record_span(connecting);
        }
        if let Some(shaking) = times.tls {
            self.tls.record_span(shaking);
        }
    }

    /// Takes the service's side of a request that succeeded.
    pub(crate) fn succeeded(&mut self, done: &Completed, streams: &mut Streams, slo: Option<&Slo>) {
        let times = &self.as_asked(&done.times);
        let Some(sent) = times.sent else {
            self.anomalies += 1;
            return;
        };
        let latency = self.view(|t| &mut t.latency, times, sent, times.end);
        if let Some(at) = times.first_token {
            self.view(|t| &mut t.ttft, times, sent, at);
        }
        if let Some(at) = times.last_token {
            self.view(|t| &mut t.last_token, times, sent, at);
        }
        for (at, series) in [
            (times.first_byte, (|t| &mut t.first_byte) as fn(&mut Self) -> &mut Series),
            (times.first_event, |t| &mut t.first_event),
            (times.first_content, |t| &mut t.first_content),
        ] {
            if let Some(span) = at.and_then(|at| self.since(at, sent)) {
                series(self).record_span(span);
            }
        }
        if let Some(wait) = times.socket_wait {
            self.socket_wait.record_span(wait);
        }
        let tpot = self.tokens(done, streams);
        if slo.is_some_and(|slo| slo.met(times, tpot)) {
            self.good += 1;
        }
        let bin = self.timeline(times.end).bin(times.end);
        bin.succeeded += 1;
        bin.output_tokens += u64::from(done.tokens.output.unwrap_or(0));
        if let Some(latency) = latency {
            bin.latency.record(latency.as_nanos());
        }
    }

    /// Counts a request that succeeded while the server was profiled: its times are no result.
    pub(crate) fn set_aside(&mut self, done: &Completed) {
        let bin = self.timeline(done.times.end).bin(done.times.end);
        bin.succeeded += 1;
        bin.output_tokens += u64::from(done.tokens.output.unwrap_or(0));
    }

    /// Takes how the answer of a success came; `asked` for a stream, or not.
    pub(crate) fn came(&mut self, done: &Completed, asked: bool) {
        // A single token may be the end itself, which has no text.
        let counted = done.tokens.output.is_some_and(|output| output > 1);
        self.unseen += u64::from(asked && counted && done.tokens.events == 0);
        // What comes whole has no first token.
        self.unasked += u64::from(!asked && done.times.first_token.is_some());
    }

    /// The times with the first token where it is asked to be.
    fn as_asked(&self, times: &Times) -> Times {
        let wait = times.socket_wait.filter(|_| self.by_arrival).unwrap_or(Span::ZERO);
        Times { first_token: times.first_token.map(|at| at.saturating_sub(wait)), ..*times }
    }

    /// Nothing yet, and series that keep every value.
    pub(crate) fn of_values() -> Self {
        let mut tracked = Self::default();
        tracked.each_series(|series, _| *series = Series::of_values(), &Self::default());
        tracked
    }

    /// Gives back what only a growing series needs.
    pub(crate) fn freeze(&mut self) {
        self.each_series(|series, _| series.freeze(), &Self::default());
    }

    /// Adds the distributions of another fold of the same phase. How many were in flight together is
    /// not a sum of distributions: that one is given up.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.each_series(Series::merge, other);
        self.in_flight = Series::default();
        match (&mut self.timeline, &other.timeline) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, theirs) => mine.clone_from(theirs),
            (Some(_), None) => {}
        }
        for (mine, theirs) in self.sources.iter_mut().zip(other.sources) {
            *mine += theirs;
        }
        self.events += other.events;
        self.coalesced += other.coalesced;
        self.disagreeing += other.disagreeing;
        self.unseen += other.unseen;
        self.unasked += other.unasked;
        self.counted.merge(&other.counted);
        self.good += other.good;
        self.anomalies += other.anomalies;
    }

    /// Token counts, TPOT and the gaps of the stream. Gives the request's TPOT:
    /// (last token - first token) / (output tokens - tokens in the first event).
    fn tokens(&mut self, done: &Completed, streams: &mut Streams) -> Option<Span> {
        let (times, counts) = (&done.times, &done.tokens);
        for (count, series) in [
            (counts.input, &mut self.input),
            (counts.output, &mut self.output),
            (counts.cached, &mut self.cached),
        ] {
            if let Some(count) = count {
                series.record(u64::from(count));
            }
        }
        if let Some(source) = counts.source {
            self.sources[usize::from(source.code())] += 1;
        }
        self.events += u64::from(counts.events);
        self.coalesced += u64::from(counts.coalesced);
        let (event_gap, itl) = (&mut self.event_gap, &mut self.itl);
        let stream = streams.end(done.key, |stream: &Stream| {
            stream.count_into(counts, event_gap, itl);
            (stream.dropped(), counts.output.is_some_and(|output| stream.disagrees(output)))
        });
        let (dropped, told_otherwise) = stream.unwrap_or_default();
        self.anomalies += dropped;
        // Every token event carries a token at least.
        let too_few = counts.output.is_some_and(|output| output < counts.events);
        self.disagreeing += u64::from(told_otherwise || too_few);

        let rest = counts.output?.checked_sub(counts.first_event.unwrap_or(1))?;
        let span = self.since(times.last_token?, times.first_token?)?;
        if span == Span::ZERO {
            // All tokens came in one read: nothing was seen of the time between them.
            return None;
        }
        let tpot = Span::from_nanos(span.as_nanos().checked_div(u64::from(rest))?);
        self.tpot.record_span(tpot);
        Some(tpot)
    }

    /// Records `at` in both views; gives the one from schedule, or from send without a schedule.
    fn view(
        &mut self,
        pick: fn(&mut Self) -> &mut Views,
        times: &Times,
        sent: Nanos,
        at: Nanos,
    ) -> Option<Span> {
        let from_send = self.since(at, sent);
        let from_schedule = times.scheduled.and_then(|scheduled| self.since(at, scheduled));
        let views = pick(self);
        if let Some(span) = from_send {
            views.from_send.record_span(span);
        }
        if let Some(span) = from_schedule {
            views.from_schedule.record_span(span);
        }
        from_schedule.or(from_send)
    }

    /// `later - earlier`; what is negative or beyond all measure is an anomaly and `None`.
    fn since(&mut self, later: Nanos, earlier: Nanos) -> Option<Span> {
        let span = later.checked_since(earlier).filter(|span| span.as_nanos() <= MAX_VALUE);
        self.anomalies += u64::from(span.is_none());
        span
    }

    fn each_series(&mut self, act: fn(&mut Series, &Series), other: &Self) {
        for (mine, theirs) in [
            (&mut self.latency, &other.latency),
            (&mut self.ttft, &other.ttft),
            (&mut self.last_token, &other.last_token),
        ] {
            act(&mut mine.from_schedule, &theirs.from_schedule);
            act(&mut mine.from_send, &theirs.from_send);
        }
        for (mine, theirs) in [
            (&mut self.first_byte, &other.first_byte),
            (&mut self.first_event, &other.first_event),
            (&mut self.first_content, &other.first_content),
            (&mut self.tpot, &other.tpot),
            (&mut self.itl, &other.itl),
            (&mut self.event_gap, &other.event_gap),
            (&mut self.lateness, &other.lateness),
            (&mut self.queue, &other.queue),
            (&mut self.connect, &other.connect),
            (&mut self.tls, &other.tls),
            (&mut self.write, &other.write),
            (&mut self.socket_wait, &other.socket_wait),
            (&mut self.in_flight, &other.in_flight),
            (&mut self.input, &other.input),
            (&mut self.output, &other.output),
            (&mut self.cached, &other.cached),
        ] {
            act(mine, theirs);
        }
    }
}

impl Views {
    /// Both distributions in units of `unit`.
    pub(crate) fn result(&self, unit: f64) -> TwoViews {
        TwoViews {
            from_schedule: self.from_schedule.distribution(unit),
            from_send: self.from_send.distribution(unit),
        }
    }

    /// That from schedule if there is one, else that from send.
    pub(crate) fn live(&self) -> &Series {
        if self.from_schedule.count() > 0 { &self.from_schedule } else { &self.from_send }
    }
}
