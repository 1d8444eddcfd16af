//! What the instrument said of itself between the start and the end of a phase.

use takt_record::{BusyBy, Health, Instrument, Unread, WakeCounts, WakeUp, Wakes, Work};
use takt_time::{Nanos, Span};

/// The readings nearest to the start and to the end of a phase.
///
/// Readings are taken at both moments and about once a second; whether the one at a start is written
/// before or after the start itself does not matter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HealthSpan {
    start: Option<Nanos>,
    end: Option<Nanos>,
    first: Option<Health>,
    last: Option<Health>,
}

impl HealthSpan {
    /// A span that begins at `start`, with the reading before it.
    pub(crate) fn new(start: Nanos, before: Option<Health>) -> Self {
        Self { start: Some(start), end: None, first: before, last: before }
    }

    /// The phase ended.
    pub(crate) fn end(&mut self, end: Nanos) {
        self.end = Some(end);
    }

    /// Takes a reading in.
    pub(crate) fn read(&mut self, reading: &Health) {
        let (Some(start), at) = (self.start, reading.at) else { return };
        let nearer = |to: Nanos, old: Option<Health>| {
            old.is_none_or(|old| distance(at, to) < distance(old.at, to))
        };
        if nearer(start, self.first) {
            self.first = Some(*reading);
        }
        if self.end.is_none_or(|end| nearer(end, self.last)) {
            self.last = Some(*reading);
        }
    }

    /// The differences; `None` unless there are two readings.
    pub(crate) fn result(&self, anomalies: u64) -> Option<Instrument> {
        let (first, last) = (self.first?, self.last?);
        let wall = last.at.saturating_since(first.at);
        if wall == Span::ZERO {
            return None;
        }
        let share = |from: Option<Span>, to: Option<Span>| {
            let spent = to?.as_nanos().saturating_sub(from?.as_nanos());
            Some(spent as f64 / wall.as_nanos() as f64)
        };
        let counted = |of: fn(&Health) -> Option<u64>| Some(of(&last)?.saturating_sub(of(&first)?));
        let busy_share = share(Some(first.busy), Some(last.busy));
        let work = last.work.zip(first.work);
        let looking_share = work.and_then(|(b, a)| share(Some(a.looking), Some(b.looking)));
        let involuntary = counted(|health| health.involuntary);
        let fold = |health: Health| health.work?.fold;
        let us = |span: Span| span.as_micros_f64();
        Some(Instrument {
            runnable_share: share(first.runnable, last.runnable),
            stolen_share: share(first.stolen, last.stolen),
            busy_share,
            busy_by: work.zip(busy_share).and_then(|((b, a), busy)| busy_by(&a, &b, busy)),
            looking_share,
            idle_share: looking_share
                .zip(busy_share)
                .map(|(looking, busy)| (1.0 - looking - busy).max(0.0)),
            cpu_share: share(first.on_cpu, last.on_cpu),
            fold_share: share(fold(first), fold(last)),
            longest_turn_us: Some(us(last.longest_turn)),
            involuntary,
            involuntary_per_s: involuntary.map(|count| count as f64 / wall.as_secs_f64()),
            wakes: work.map(|(b, a)| wakes(&a, &b)),
            turns: Some(last.turns.saturating_sub(first.turns)),
            polls: counted(|health| health.work?.polls),
            reads: counted(|health| health.work?.read_calls),
            writes: counted(|health| health.work?.write_calls),
            wake_up_us: last.work.and_then(|work| {
                Some(WakeUp { p50: us(work.wake_up_p50?), p99: us(work.wake_up_p99?) })
            }),
            guard_us: last.work.and_then(|work| work.head_start).map(us),
            unread_us: work.and_then(|(b, a)| unread(&a, &b)),
            spilled: last.spilled.saturating_sub(first.spilled),
            lost: last.lost.saturating_sub(first.lost),
            connections: last.connections.saturating_sub(first.connections),
            limited: last.limited.saturating_sub(first.limited),
            secured: last.secured.saturating_sub(first.secured),
            resumed: last.resumed.saturating_sub(first.resumed),
            overflows: counted(|health| Some(health.work?.overflows)),
            leftover: counted(|health| Some(health.work?.leftover)),
            used_once: counted(|health| health.work?.used_once),
            anomalies,
        })
    }
}

/// What a reactor that was busy for this share of the time worked on, by the turns that were measured.
fn busy_by(from: &Work, to: &Work, busy: f64) -> Option<BusyBy> {
    if to.sampled.saturating_sub(from.sampled) < SAMPLED_LEAST {
        return None;
    }
    let spent =
        |of: fn(&Work) -> Span| of(to).as_nanos().saturating_sub(of(from).as_nanos()) as f64;
    let (timers, reads) = (spent(|work| work.timers), spent(|work| work.reads));
    let (writes, parse) = (spent(|work| work.writes), spent(|work| work.parse));
    let (messages, engine) = (spent(|work| work.messages), spent(|work| work.rest));
    let all = timers + reads + writes + parse + messages + engine;
    (all > 0.0).then(|| {
        let share = |part: f64| part / all * busy;
        BusyBy {
            timers: share(timers),
            reads: share(reads),
            writes: share(writes),
            parse: share(parse),
            messages: share(messages),
            engine: share(engine),
        }
    })
}

fn wakes(from: &Work, to: &Work) -> WakeCounts {
    let since = |of: fn(&Wakes) -> u64| of(&to.wakes).saturating_sub(of(&from.wakes));
    WakeCounts {
        polled: since(|wakes| wakes.polled),
        deadline: since(|wakes| wakes.deadline),
        readiness: since(|wakes| wakes.readiness),
        remote: since(|wakes| wakes.remote),
        spurious: since(|wakes| wakes.spurious),
    }
}

fn unread(from: &Work, to: &Work) -> Option<Unread> {
    let reads = to.unread_reads.saturating_sub(from.unread_reads);
    let sum = to.unread.as_nanos().saturating_sub(from.unread.as_nanos());
    (reads >= SAMPLED_LEAST).then(|| Unread {
        mean: sum as f64 / reads as f64 / 1e3,
        max: to.unread_max.as_micros_f64(),
    })
}

/// The worse of two reactors: the greatest shares, the sums of what is counted.
pub(crate) fn worse(a: &Instrument, b: &Instrument) -> Instrument {
    let most = |of: fn(&Instrument) -> Option<f64>| of(a).into_iter().chain(of(b)).reduce(f64::max);
    let sum = |of: fn(&Instrument) -> Option<u64>| match (of(a), of(b)) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    let busier = if b.busy_share > a.busy_share { b } else { a };
    let later = |a: Option<WakeUp>, b: Option<WakeUp>| {
        a.into_iter().chain(b).reduce(|a, b| if b.p99 > a.p99 { b } else { a })
    };
    let longer = |a: Option<Unread>, b: Option<Unread>| {
        a.into_iter().chain(b).reduce(|a, b| if b.mean > a.mean { b } else { a })
    };
    Instrument {
        runnable_share: most(|seen| seen.runnable_share),
        stolen_share: most(|seen| seen.stolen_share),
        busy_share: busier.busy_share,
        busy_by: busier.busy_by,
        looking_share: busier.looking_share,
        idle_share: busier.idle_share,
        cpu_share: most(|seen| seen.cpu_share),
        fold_share: most(|seen| seen.fold_share),
        longest_turn_us: most(|seen| seen.longest_turn_us),
        involuntary: sum(|seen| seen.involuntary),
        involuntary_per_s: most(|seen| seen.involuntary_per_s),
        wakes: match (a.wakes, b.wakes) {
            (Some(a), Some(b)) => Some(WakeCounts {
                polled: a.polled + b.polled,
                deadline: a.deadline + b.deadline,
                readiness: a.readiness + b.readiness,
                remote: a.remote + b.remote,
                spurious: a.spurious + b.spurious,
            }),
            (a, b) => a.or(b),
        },
        turns: sum(|seen| seen.turns),
        polls: sum(|seen| seen.polls),
        reads: sum(|seen| seen.reads),
        writes: sum(|seen| seen.writes),
        wake_up_us: later(a.wake_up_us, b.wake_up_us),
        guard_us: most(|seen| seen.guard_us),
        unread_us: longer(a.unread_us, b.unread_us),
        spilled: a.spilled + b.spilled,
        lost: a.lost + b.lost,
        connections: a.connections + b.connections,
        limited: a.limited + b.limited,
        secured: a.secured + b.secured,
        resumed: a.resumed + b.resumed,
        overflows: sum(|seen| seen.overflows),
        leftover: sum(|seen| seen.leftover),
        used_once: sum(|seen| seen.used_once),
        anomalies: a.anomalies + b.anomalies,
    }
}

fn distance(a: Nanos, b: Nanos) -> u64 {
    a.as_nanos().abs_diff(b.as_nanos())
}

/// With fewer turns or reads that were measured nothing is said of them.
const SAMPLED_LEAST: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(ms: u64, busy_ms: u64, spilled: u64) -> Health {
        let busy = Span::from_millis(busy_ms);
        Health { at: at(ms), busy, spilled, ..Health::default() }
    }

    fn at(ms: u64) -> Nanos {
        Nanos::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn the_readings_nearest_to_start_and_end_count() {
        let mut span = HealthSpan::new(at(1_000), Some(reading(100, 5, 1)));
        span.read(&reading(1_001, 50, 2));
        span.read(&reading(2_000, 600, 2));
        span.end(at(3_001));
        span.read(&reading(3_001, 1_050, 9));
        span.read(&reading(4_000, 3_000, 99));
        let seen = span.result(0).unwrap();
        // 1,001 to 3,001 ms: busy 1,000 of 2,000 ms, 7 blocks spilled; nothing said of the rest.
        assert_eq!((seen.busy_share, seen.spilled, seen.runnable_share), (Some(0.5), 7, None));
    }

    #[test]
    fn kinds_of_work_share_the_time_that_the_reactor_was_busy() {
        let with = |ms, busy_ms, work| Health { work: Some(work), ..reading(ms, busy_ms, 0) };
        let span = Span::from_micros;
        let work = Work {
            sampled: 20,
            timers: span(10),
            parse: span(10),
            reads: span(30),
            writes: span(40),
            rest: span(10),
            looking: Span::from_millis(100),
            unread_reads: 40,
            unread: span(200),
            unread_max: span(90),
            wakes: Wakes { readiness: 7, ..Wakes::default() },
            leftover: 3,
            head_start: Some(span(60)),
            ..Work::default()
        };
        let seen = |work| {
            let mut health = HealthSpan::new(at(0), Some(with(0, 0, Work::default())));
            health.read(&with(1_000, 500, work));
            health.result(0).unwrap()
        };
        let all = seen(work);
        // Of 500 ms in a second: a tenth timers, three tenths reads, four tenths writes.
        let by = all.busy_by.unwrap();
        for (got, expected) in [
            (by.timers, 0.05),
            (by.reads, 0.15),
            (by.writes, 0.2),
            (by.parse, 0.05),
            (by.messages, 0.0),
            (by.engine, 0.05),
        ] {
            assert!((got - expected).abs() < 1e-9, "{by:?}");
        }
        assert_eq!((all.looking_share, all.idle_share), (Some(0.1), Some(0.4)));
        assert_eq!(all.unread_us, Some(Unread { mean: 5.0, max: 90.0 }));
        assert_eq!((all.wakes.unwrap().readiness, all.leftover), (7, Some(3)));
        assert_eq!((all.guard_us, all.wake_up_us, all.fold_share), (Some(60.0), None, None));
        let few = seen(Work { sampled: 19, unread_reads: 19, ..work });
        assert_eq!((few.busy_by, few.unread_us), (None, None));
        // Two reactors: counts add up, of the rest the worse is told.
        let both = worse(&all, &few);
        assert_eq!((both.wakes.unwrap().readiness, both.leftover), (14, Some(6)));
        assert_eq!((both.busy_by, both.unread_us), (all.busy_by, all.unread_us));
    }
}
