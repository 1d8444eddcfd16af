//! Each request by itself: issued once, ended once, error before its end, tokens between, times in order.

use takt_record::{Completed, Outcome, Record, Times, Token};
use takt_time::{Nanos, Span};

use super::Found;
use super::lives::{Life, Lives};
use crate::sim::run::{Ran, name};

pub(super) fn check(ran: &Ran, lives: &Lives, found: &mut Found) {
    for (key, life) in &lives.by_key {
        let name = name(*key);
        let (issued, completed) = (life.issued.len(), life.completed.len());
        found.same((issued, completed), (1, 1), || format!("{name}: times issued, ended"));
    }
    for (life, _, done) in lives.whole() {
        in_order(life, done, found);
        let times_in_order = check_times(&done.times, done.attempts);
        found.same(times_in_order, Ok(()), || format!("{}: times", name(done.key)));
        tokens(life, done, found);
    }
    if ran.scenario.link.call_cost == Span::ZERO && ran.scenario.is_peaceful() {
        records_in_order(ran, lives, found);
    }
}

/// Records come in the order of their times; but what was left of an answer that is cut, or given up, is
/// known only then, and keeps the time of its last byte.
fn records_in_order(ran: &Ran, lives: &Lives, found: &mut Found) {
    let ended_well = |key| {
        let life = lives.by_key.get(&key);
        let done = life.and_then(|life| life.completed.first());
        done.is_some_and(|(_, done)| done.outcome == Outcome::Ok)
    };
    let counts = |record: &&Record<'static>| match record {
        Record::Token(token) => ended_well(token.key),
        _ => true,
    };
    let records: Vec<_> = ran.records.iter().filter(counts).collect();
    if let Some(pair) = records.windows(2).find(|pair| pair[0].at() > pair[1].at()) {
        found.say(|| format!("a record is older than the one before it: {pair:?}"));
    }
}

fn in_order(life: &Life, done: &Completed, found: &mut Found) {
    let name = || name(done.key);
    let (begin, end) = (life.issued[0].0, life.completed[0].0);
    let errors = life.errors.iter().map(|(place, _)| *place);
    let between = life.tokens.iter().map(|(place, _)| *place).chain(errors);
    let all = between.chain(life.texts.iter().copied());
    let outside = all.filter(|place| !(begin..end).contains(place)).count();
    found.same(outside, 0, || format!("{}: records before its begin or after its end", name()));
    let failures: Vec<_> = life.errors.iter().map(|(_, failure)| *failure).collect();
    let expected = match done.outcome {
        Outcome::Failed(failure) => vec![failure],
        Outcome::Ok | Outcome::Unanswered => Vec::new(),
    };
    found.same(failures, expected, || format!("{}: errors before its end", name()));
    found.holds((1..=2).contains(&done.attempts), || format!("{}: attempts", name()));
    found.same(done.sample, life.issued[0].1.sample, || format!("{}: sample", name()));
    let (issued, scheduled) = (life.issued[0].1.at, life.issued[0].1.scheduled);
    let times = (done.times.issued, done.times.scheduled);
    found.same(times, (issued, scheduled), || format!("{}: issued and scheduled", name()));
}

/// Times come in the order of their list; those of a second attempt begin anew after the send.
fn check_times(times: &Times, attempts: u8) -> Result<(), String> {
    let ascending = |what: &str, list: &[Option<Nanos>]| {
        let list: Vec<Nanos> = list.iter().flatten().copied().collect();
        if list.is_sorted() { Ok(()) } else { Err(format!("{what}: {times:?}")) }
    };
    let issued = Some(times.issued);
    ascending("the begin", &[times.scheduled, issued, times.sent])?;
    if attempts == 1 {
        ascending("the send", &[issued, times.acquired, times.sent, times.written])?;
    }
    ascending("the written", &[issued, times.acquired, times.written, Some(times.end)])?;
    ascending(
        "the answer",
        &[
            times.sent,
            times.first_byte,
            times.first_event,
            times.first_token,
            times.last_token,
            Some(times.end),
        ],
    )?;
    ascending("the content", &[times.first_token, times.first_content, times.last_token])
}

fn tokens(life: &Life, done: &Completed, found: &mut Found) {
    let name = || name(done.key);
    let tokens: Vec<Token> = life.tokens.iter().map(|(_, token)| *token).collect();
    let (counts, times) = (&done.tokens, &done.times);
    found.same(tokens.len() as u32, counts.events, || format!("{}: token events", name()));
    let coalesced = tokens.iter().filter(|token| token.coalesced).count() as u32;
    found.same(coalesced, counts.coalesced, || format!("{}: coalesced", name()));
    let firsts: Vec<usize> =
        tokens.iter().enumerate().filter(|(_, t)| t.first).map(|(place, _)| place).collect();
    let expected: &[usize] = if tokens.is_empty() { &[] } else { &[0] };
    found.same(&firsts[..], expected, || format!("{}: first tokens", name()));
    found.holds(tokens.is_sorted_by_key(|token| token.at), || format!("{}: token order", name()));
    if !tokens.is_empty() || matches!(done.outcome, Outcome::Ok) && counts.events > 0 {
        let ends = (tokens.first().map(|t| t.at), tokens.last().map(|t| t.at));
        let said = (times.first_token, times.last_token);
        found.same(said, ends, || format!("{}: first and last token", name()));
    }
}
