//! The report says what the records say, counted here a second time; nothing is lost on the way, and the
//! journal gives the same report.

use std::collections::BTreeMap;

use takt_record::{
    Completed, Distribution, ErrorKind, JournalEnd, JournalReader, Outcome, PhaseEvent, PhaseId,
    PhaseKind, PhaseResult, fold_journal,
};
use takt_report::RunFold;
use takt_time::{Nanos, Span};

use super::Found;
use super::lives::{Life, Lives, Whole};
use crate::sim::kept::Kept;
use crate::sim::run::{Ran, plan};

pub(super) fn check(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    let counters = ran.published;
    found.same(counters.lost, 0, || "records lost".to_owned());
    found.same(ran.records.len() as u64, counters.records, || "records received".to_owned());
    found.holds(ran.out_of_line.is_empty(), || format!("out of line: {:?}", ran.out_of_line));
    if ran.scenario.records.refused == 0 {
        found.same(counters.spilled, 0, || "blocks spilled".to_owned());
    }
    for (number, result) in ran.result.phases.iter().enumerate() {
        phase(ran, lives, number, result, found);
    }
    journal(ran, found);
}

/// The journal, read back, is whole and gives the same report.
fn journal(ran: &Ran, found: &mut Found) {
    let mut reader = JournalReader::open(&ran.journal[..]).expect("a journal was begun");
    let mut fold = RunFold::new(plan(&ran.scenario));
    let summary = fold_journal(&mut reader, &mut fold).expect("memory can be read");
    found.same(summary.end, JournalEnd::Whole, || "end of the journal".to_owned());
    let result = fold.result(&takt_report::Limits::default());
    found.holds(result == ran.result, || "the journal gives another report".to_owned());
}

/// What is counted of one phase.
#[derive(Default)]
struct Tally {
    issued: u64,
    succeeded: u64,
    failed: u64,
    unanswered: u64,
    late: u64,
    retried: u64,
    profiled: u64,
    errors: BTreeMap<ErrorKind, u64>,
    output: u64,
    events: u64,
    latency: Sum,
    from_schedule: Sum,
    ttft: Sum,
    tpot: Sum,
    lateness: Sum,
    gaps: Sum,
}

/// Count, sum and extremes of some spans.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    sum_ns: u128,
    least: Option<Span>,
    most: Option<Span>,
}

impl Sum {
    fn take(&mut self, from: Option<Nanos>, to: Option<Nanos>) {
        let (Some(from), Some(to)) = (from, to) else { return };
        self.add(to - from);
    }

    fn add(&mut self, span: Span) {
        self.count += 1;
        self.sum_ns += u128::from(span.as_nanos());
        self.least = Some(self.least.map_or(span, |least| least.min(span)));
        self.most = self.most.max(Some(span));
    }

    fn check(&self, said: Option<Distribution>, unit_ns: f64, of: &str, found: &mut Found) {
        found.same(said.map_or(0, |said| said.count), self.count, || format!("{of}: count"));
        let (Some(said), Some(least), Some(most)) = (said, self.least, self.most) else { return };
        let mean = self.sum_ns as f64 / self.count as f64 / unit_ns;
        // A fold holds the gaps of an open stream in four bytes each: one part in 2^26.
        let near = |a: f64, b: f64| (a - b).abs() <= 2f64.powi(-26) * b.abs() + 1e-9;
        found.holds(near(said.mean, mean), || format!("{of}: mean {} not {mean}", said.mean));
        let ends = (least.as_nanos() as f64 / unit_ns, most.as_nanos() as f64 / unit_ns);
        found.holds(near(said.min, ends.0) && near(said.max, ends.1), || {
            format!("{of}: from {} to {}, not {ends:?}", said.min, said.max)
        });
    }
}

impl Tally {
    fn take(&mut self, life: Life<'_>, done: &Completed, late: bool, profiled: bool) {
        self.issued += 1;
        if late {
            self.late += 1;
            return;
        }
        let times = &done.times;
        self.retried += u64::from(done.attempts > 1);
        self.profiled += u64::from(profiled);
        if times.scheduled.is_some() && !profiled {
            self.lateness.take(times.scheduled, times.sent);
        }
        match done.outcome {
            Outcome::Failed(failure) => {
                self.failed += 1;
                *self.errors.entry(failure.kind).or_default() += 1;
            }
            Outcome::Unanswered => self.unanswered += 1,
            Outcome::Ok if profiled => self.succeeded += 1,
            Outcome::Ok => {
                self.succeeded += 1;
                self.latency.take(times.sent, Some(times.end));
                self.from_schedule.take(times.scheduled, Some(times.end));
                self.ttft.take(times.sent, times.first_token);
                self.tpot(done);
                self.output += u64::from(done.tokens.output.unwrap_or(0));
                self.events += u64::from(done.tokens.events);
                for (before, after) in life.tokens().zip(life.tokens().skip(1)) {
                    if !after.coalesced {
                        self.gaps.take(Some(before.at), Some(after.at));
                    }
                }
            }
        }
    }
}

impl Tally {
    /// (Last token - first token) / (output tokens - tokens in the first event); of one token, and of tokens
    /// that came in one read, there is none.
    fn tpot(&mut self, done: &Completed) {
        let (times, tokens) = (&done.times, &done.tokens);
        let (Some(first), Some(last)) = (times.first_token, times.last_token) else { return };
        let before = tokens.first_event.unwrap_or(1);
        let rest = tokens.output.unwrap_or(0).saturating_sub(before);
        if rest > 0 && last > first {
            self.tpot.add(Span::from_nanos((last - first).as_nanos() / u64::from(rest)));
        }
    }
}

/// When servers were profiled: the first moment and the place of its record, and the last moment.
fn windows(ran: &Ran) -> Vec<((Nanos, usize), Nanos)> {
    let events = ran.records.iter().enumerate().filter_map(|(place, record)| match record {
        Kept::Window(window) => Some((window.at, place)),
        _ => None,
    });
    let events: Vec<_> = events.collect();
    let window = |ends: &[_]| (ends[0], ends.get(1).map_or(Nanos::MAX, |(at, _)| *at));
    events.chunks(2).map(window).collect()
}

fn phase(ran: &Ran, lives: &Lives<'_>, number: usize, said: &PhaseResult, found: &mut Found) {
    let ended = ran.records.iter().position(|record| match record {
        Kept::Phase(phase) if usize::from(phase.phase.0) == number => {
            matches!(phase.event, PhaseEvent::Ended { .. })
        }
        _ => false,
    });
    let windows = windows(ran);
    let mut tally = Tally::default();
    let own = lives.of_phase(PhaseId(number as u16));
    for Whole { life, done, end, .. } in own.filter_map(Life::whole) {
        let profiled = windows.iter().any(|&(opened, closed)| {
            let times = &done.times;
            let due = times.scheduled.unwrap_or(times.issued).min(times.issued);
            // Of what ends at the very instant, that which was recorded before is not.
            due <= closed && (times.end, end) >= opened
        });
        tally.take(life, done, ended.is_some_and(|ended| end > ended), profiled);
    }
    let of = |what: &str| format!("report of phase {number}: {what}");
    for (what, is, should) in [
        ("issued", said.issued, tally.issued),
        ("succeeded", said.succeeded, tally.succeeded),
        ("failed", said.failed, tally.failed),
        ("completed", said.completed, tally.succeeded + tally.failed),
        ("unanswered", said.unanswered, tally.unanswered),
        ("late", said.late, tally.late),
        ("retried", said.retried, tally.retried),
        ("profiled", said.profiled, tally.profiled),
        ("sum", said.completed + said.unanswered + said.late, said.issued),
    ] {
        found.same(is, should, || of(what));
    }
    found.same(&said.errors, &tally.errors, || of("errors"));
    if said.kind != PhaseKind::Performance {
        return;
    }
    for (what, said, own, unit) in [
        ("latency", said.latency_ms.from_send, tally.latency, 1e6),
        ("latency from schedule", said.latency_ms.from_schedule, tally.from_schedule, 1e6),
        ("ttft", said.ttft_ms.from_send, tally.ttft, 1e6),
        ("tpot", said.tpot_ms, tally.tpot, 1e6),
        ("lateness", said.lateness_us, tally.lateness, 1e3),
        ("event gaps", said.event_gap_ms, tally.gaps, 1e6),
    ] {
        own.check(said, unit, &of(what), found);
    }
    let tokens = said.tokens.as_ref();
    let total = tokens.and_then(|tokens| tokens.output_total).unwrap_or(0);
    found.same(total, tally.output, || of("output tokens"));
    found.same(tokens.map_or(0, |tokens| tokens.events), tally.events, || of("token events"));
    let anomalies = said.instrument.as_ref().map_or(0, |instrument| instrument.anomalies);
    found.same(anomalies, 0, || of("anomalies"));
}
