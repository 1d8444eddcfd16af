//! Each request by itself: issued once, ended once, error before its end, tokens between, times in order.

use std::collections::BTreeSet;

use takt_record::{Outcome, RequestKey, Times};
use takt_time::{Nanos, Span};

use super::Found;
use super::lives::{Life, Lives, Whole};
use crate::sim::kept::Kept;
use crate::sim::run::{Ran, name};

pub(super) fn check(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    for life in lives.all() {
        let times = (life.issued().count(), life.completed().count());
        found.same(times, (1, 1), || format!("{}: times issued, ended", name(life.key)));
        let Some(whole) = life.whole() else { continue };
        in_order(&whole, found);
        let times_in_order = check_times(&whole.done.times, whole.done.attempts);
        found.same(times_in_order, Ok(()), || format!("{}: times", name(life.key)));
        tokens(&whole, found);
    }
    if ran.scenario.link.call_cost == Span::ZERO && ran.scenario.is_peaceful() {
        records_in_order(ran, lives, found);
    }
}

/// Records come in the order of their times; but what was left of an answer that is cut, or given up, is
/// known only then, and keeps the time of its last byte.
fn records_in_order(ran: &Ran, lives: &Lives<'_>, found: &mut Found) {
    let ended_well = |life: Life<'_>| {
        life.completed().next().is_some_and(|(_, done)| done.outcome == Outcome::Ok)
    };
    let ended_badly: BTreeSet<RequestKey> =
        lives.all().filter(|life| !ended_well(*life)).map(|life| life.key).collect();
    let counts = |record: &&Kept| match record {
        Kept::Token(token) => !ended_badly.contains(&token.key),
        _ => true,
    };
    let mut records = ran.records.iter().filter(counts);
    let Some(mut before) = records.next() else { return };
    for record in records {
        if before.at() > record.at() {
            let pair = (before, record);
            return found.say(|| format!("a record is older than the one before it: {pair:?}"));
        }
        before = record;
    }
}

fn in_order(whole: &Whole<'_>, found: &mut Found) {
    let &Whole { life, begin, issued, end, done } = whole;
    let name = || name(done.key);
    let outside = life.between().filter(|place| !(begin..end).contains(place)).count();
    found.same(outside, 0, || format!("{}: records before its begin or after its end", name()));
    let failures: Vec<_> = life.errors().collect();
    let expected = match done.outcome {
        Outcome::Failed(failure) => vec![failure],
        Outcome::Ok | Outcome::Unanswered => Vec::new(),
    };
    found.same(failures, expected, || format!("{}: errors before its end", name()));
    found.holds((1..=2).contains(&done.attempts), || format!("{}: attempts", name()));
    found.same(done.sample, issued.sample, || format!("{}: sample", name()));
    let times = (done.times.issued, done.times.scheduled);
    found
        .same(times, (issued.at, issued.scheduled), || format!("{}: issued and scheduled", name()));
}

/// Times come in the order of their list; those of a second attempt begin anew after the send.
fn check_times(times: &Times, attempts: u8) -> Result<(), String> {
    let ascending = |what: &str, list: &[Option<Nanos>]| match list.iter().flatten().is_sorted() {
        true => Ok(()),
        false => Err(format!("{what}: {times:?}")),
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

fn tokens(whole: &Whole<'_>, found: &mut Found) {
    let &Whole { life, done, .. } = whole;
    let name = || name(done.key);
    let tokens = life.tokens();
    let (counts, times) = (&done.tokens, &done.times);
    let count = tokens.clone().count();
    found.same(count as u32, counts.events, || format!("{}: token events", name()));
    let coalesced = tokens.clone().filter(|token| token.coalesced).count() as u32;
    found.same(coalesced, counts.coalesced, || format!("{}: coalesced", name()));
    let firsts = tokens.clone().map(|token| token.first);
    let first_alone = firsts.clone().enumerate().all(|(place, first)| first == (place == 0));
    found.holds(first_alone, || {
        format!("{}: first tokens: {:?}", name(), firsts.collect::<Vec<_>>())
    });
    let in_order = tokens.clone().map(|token| token.at).is_sorted();
    found.holds(in_order, || format!("{}: token order", name()));
    if count > 0 || matches!(done.outcome, Outcome::Ok) && counts.events > 0 {
        let mut at = tokens.map(|token| token.at);
        let first = at.next();
        let ends = (first, at.last().or(first));
        let said = (times.first_token, times.last_token);
        found.same(said, ends, || format!("{}: first and last token", name()));
    }
}
