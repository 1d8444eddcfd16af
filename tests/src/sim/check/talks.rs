//! Conversations: turns in order, each after the answer to the one before and exactly its delay later, no more
//! active than are to be, and every turn in one count.

use std::collections::BTreeMap;

use takt_actors::{Arrivals, Scripts, TurnPlan, Until};
use takt_record::{
    Completed, ConversationEnd, ConversationEvent, ConversationRecord, ConversationState, EndedBy,
    Issued, Outcome, PhaseEvent,
};
use takt_time::{Nanos, Span};

use super::Found;
use crate::sim::kept::Kept;
use crate::sim::run::{Ran, name, order};
use crate::sim::scenario::Load;
use crate::sim::talks::{Beginning, Talks, arrivals, scripts, until};

pub(super) fn check(ran: &Ran, found: &mut Found) {
    for (number, phase) in ran.scenario.phases.iter().enumerate() {
        let Load::Agentic(talks) = phase.load else { continue };
        let scripts = scripts(phase, &talks);
        let of = Of { ran, talks, scripts: &scripts, phase: number };
        let mut seen = Seen { arrivals: arrivals(phase, &talks), ..Seen::default() };
        for record in &ran.records {
            seen.take(&of, record, found);
        }
        seen.finish(&of, found);
    }
}

/// A phase.
struct Of<'a> {
    ran: &'a Ran,
    talks: Talks,
    scripts: &'a Scripts,
    phase: usize,
}

impl Of<'_> {
    fn until(&self) -> Until {
        until(&self.ran.scenario.phases[self.phase], &self.talks)
    }
}

/// What was seen of it.
#[derive(Default)]
struct Seen {
    talks: BTreeMap<u64, Talk>,
    /// Conversations in the order in which they began.
    begun: Vec<u64>,
    /// The start of the phase.
    start: Nanos,
    /// When conversations are to begin, where they have a rate.
    arrivals: Option<Box<dyn Arrivals>>,
    active: u64,
    ended: Vec<ConversationEnd>,
    /// Requests of earlier phases in flight.
    inherited: u64,
    is_over: bool,
}

/// A conversation.
#[derive(Default)]
struct Talk {
    /// Its arrival, or when it began where there are none.
    wanted: Nanos,
    issued: u32,
    succeeded: u32,
    failed: u32,
    /// The end of the last answer, once it came.
    answered: Option<Nanos>,
    in_flight: bool,
    over: bool,
}

impl Seen {
    fn take(&mut self, of: &Of<'_>, record: &Kept, found: &mut Found) {
        match record {
            Kept::Phase(phase) if usize::from(phase.phase.0) == of.phase => match phase.event {
                PhaseEvent::Started { inherited } => {
                    (self.inherited, self.start) = (u64::from(inherited), phase.at);
                }
                PhaseEvent::IssuingEnded { by: EndedBy::Dataset } => {
                    self.whole(of, phase.at, found);
                }
                PhaseEvent::Ended { .. } => self.is_over = true,
                _ => {}
            },
            Kept::Completed(done) if usize::from(done.key.phase.0) < of.phase => {
                self.inherited = self.inherited.saturating_sub(1);
            }
            Kept::Conversation(talk) if usize::from(talk.phase.0) == of.phase => match talk.event {
                ConversationEvent::Started { turns } => {
                    self.begin(of, talk, turns, found);
                }
                ConversationEvent::Ended(end) => self.end(talk.conversation, end, found),
            },
            Kept::Issued(issued) if usize::from(issued.key.phase.0) == of.phase => {
                self.issued(of, issued, found);
            }
            Kept::Completed(done) if usize::from(done.key.phase.0) == of.phase => {
                self.completed(done, found);
            }
            _ => {}
        }
    }

    fn begin(&mut self, of: &Of<'_>, at: &ConversationRecord, turns: u32, found: &mut Found) {
        let (number, at) = (at.conversation, at.at);
        let expected = of.scripts.lengths().nth((number % of.scripts.len() as u64) as usize);
        found.same(Some(turns), expected, || format!("turns of conversation {number}"));
        let arrival = self.arrivals.as_mut().and_then(|arrivals| arrivals.next());
        let wanted = arrival.map_or(at, |offset| self.start + offset);
        let free_calls = of.ran.scenario.link.call_cost == Span::ZERO;
        found.holds(if free_calls { at == wanted } else { at >= wanted }, || {
            format!("conversation {number}: begins at {at:?}, its arrival was {wanted:?}")
        });
        self.passes(of, wanted, found);
        let new = self.talks.insert(number, Talk { wanted, ..Talk::default() }).is_none();
        found.holds(new, || format!("conversation {number} began twice"));
        self.begun.push(number);
        self.active += 1;
        if let Beginning::Active(target) = of.talks.begin {
            let sum = self.active + self.inherited;
            found.holds(sum <= u64::from(target), || {
                format!("{sum} conversations and inherited requests where {target} are to be")
            });
        }
    }

    /// A pass over the dataset begins within the least duration, or is the first.
    fn passes(&self, of: &Of<'_>, wanted: Nanos, found: &mut Found) {
        let Until::Passes(least) = of.until() else { return };
        if !self.begun.is_empty() && self.begun.len().is_multiple_of(of.scripts.len()) {
            let within = least.is_some_and(|least| wanted < self.start + least);
            found.holds(within, || format!("a pass more from {wanted:?}, {least:?} is the least"));
        }
    }

    /// Passes that are over at `at` are whole, and the least duration is over.
    fn whole(&self, of: &Of<'_>, at: Nanos, found: &mut Found) {
        let Until::Passes(least) = of.until() else { return };
        let begun = self.begun.len();
        let whole = begun > 0 && begun.is_multiple_of(of.scripts.len());
        found.holds(whole, || format!("{begun} of passes of {} conversations", of.scripts.len()));
        found.holds(at >= self.start + least.unwrap_or_default(), || {
            format!("passes are over at {at:?}, {least:?} is the least")
        });
    }

    fn issued(&mut self, of: &Of<'_>, issued: &Issued, found: &mut Found) {
        let name = || name(issued.key);
        let Some(turn) = issued.turn else {
            return found.say(|| format!("{}: no turn", name()));
        };
        let Some(talk) = self.talks.get_mut(&turn.conversation) else {
            return found.say(|| format!("{}: its conversation has not begun", name()));
        };
        let source = (turn.conversation % of.scripts.len() as u64) as usize;
        let place = |turn: u32| {
            let before: u32 = of.scripts.lengths().take(source).sum();
            before + turn
        };
        let plan = of.scripts.plan(place(talk.issued));
        found.same((turn.turn, issued.sample), (plan.number, place(talk.issued)), || {
            format!("{}: turn and sample", name())
        });
        found.holds(!talk.in_flight && !talk.over, || {
            format!("{}: before the turn before it was answered", name())
        });
        if talk.issued > 0 {
            gate(of, issued, talk.answered, plan, found);
        } else {
            first(of, issued, talk.wanted, plan, found);
        }
        talk.issued += 1;
        (talk.in_flight, talk.answered) = (true, None);
    }

    fn completed(&mut self, done: &Completed, found: &mut Found) {
        let talk = done.turn.and_then(|turn| self.talks.get_mut(&turn.conversation));
        let Some(talk) = talk else { return found.say(|| format!("{}: no turn", name(done.key))) };
        talk.in_flight = false;
        if self.is_over {
            return;
        }
        match done.outcome {
            Outcome::Ok => {
                talk.succeeded += 1;
                talk.answered = Some(done.times.end);
            }
            Outcome::Failed(_) => talk.failed += 1,
            Outcome::Unanswered => {}
        }
    }

    fn end(&mut self, number: u64, end: ConversationEnd, found: &mut Found) {
        let Some(talk) = self.talks.get_mut(&number) else {
            return found.say(|| format!("conversation {number} ends and never began"));
        };
        let said = (end.succeeded, end.failed);
        found
            .same(said, (talk.succeeded, talk.failed), || format!("ends of conversation {number}"));
        let given_up = talk.issued - talk.succeeded - talk.failed;
        let sum = end.succeeded + end.failed + end.skipped + end.unsent + given_up;
        found.same(sum, end.turns, || format!("turns of conversation {number}: {end:?}"));
        let fits = match end.how {
            ConversationState::Completed => end.succeeded == end.turns,
            ConversationState::Failed => end.failed == 1 && end.unsent == 0 && given_up == 0,
            ConversationState::Stopped => {
                end.failed == 0 && end.skipped == 0 && end.unsent + given_up > 0
            }
        };
        found.holds(fits, || format!("conversation {number}: {end:?}"));
        found.holds(!talk.over, || format!("conversation {number} ended twice"));
        talk.over = true;
        self.active = self.active.saturating_sub(1);
        self.ended.push(end);
    }

    fn finish(&self, of: &Of<'_>, found: &mut Found) {
        let phase = &of.ran.scenario.phases[of.phase];
        let left = self.talks.values().filter(|talk| !talk.over).count();
        found.same(left, 0, || format!("phase {}: conversations without an end", of.phase));
        if let Some(most) = of.talks.conversations {
            found.holds(self.begun.len() as u64 <= most, || {
                format!("more than {most} conversations")
            });
        }
        // Those that the order gives, each under a number of its own.
        let (mut drawn, mut times) = (order(phase), vec![0u64; of.scripts.len()]);
        for &number in &self.begun {
            let source = drawn.draw();
            let before = &mut times[source as usize];
            let expected = u64::from(source) + of.scripts.len() as u64 * *before;
            *before += 1;
            found.same(number, expected, || "the next conversation".to_owned());
        }
        let result = &of.ran.result.phases[of.phase];
        let skipped: u64 = self.ended.iter().map(|end| u64::from(end.skipped)).sum();
        found.same(result.skipped, skipped, || "skipped turns".to_owned());
        let Some(said) = &result.conversations else {
            return found.say(|| "no conversations in the result".to_owned());
        };
        let of_state = |how| self.ended.iter().filter(|end| end.how == how).count() as u64;
        let should =
            [ConversationState::Completed, ConversationState::Failed, ConversationState::Stopped];
        found.same([said.completed, said.failed, said.stopped], should.map(of_state), || {
            "conversations by their ends".to_owned()
        });
        found.same(said.begun, self.begun.len() as u64, || "conversations begun".to_owned());
        // Expected turns are each in one count; what is late was given up by its conversation.
        let counted = result.succeeded + result.failed + result.unanswered + result.late;
        let all = counted + result.skipped + said.turns_unsent;
        found.same(said.turns_expected, all, || "turns expected".to_owned());
    }
}

/// The first turn leaves when its conversation is to begin, or exactly its delay later.
fn first(of: &Of<'_>, issued: &Issued, wanted: Nanos, plan: TurnPlan, found: &mut Found) {
    let name = || name(issued.key);
    let arrives = matches!(of.talks.begin, Beginning::Arrivals(..));
    let delay = plan.delay.filter(|_| of.talks.delays);
    let due = wanted + delay.unwrap_or(Span::ZERO);
    let scheduled = (arrives || delay.is_some()).then_some(due);
    found.same(issued.scheduled, scheduled, || format!("{}: first turn, due", name()));
    let free_calls = of.ran.scenario.link.call_cost == Span::ZERO;
    found.holds(if free_calls { issued.at == due } else { issued.at >= due }, || {
        format!("{}: first turn issued at {:?}, due at {due:?}", name(), issued.at)
    });
}

/// The next turn leaves with the answer, or exactly its delay later.
fn gate(of: &Of<'_>, issued: &Issued, answered: Option<Nanos>, plan: TurnPlan, found: &mut Found) {
    let name = || name(issued.key);
    let Some(answered) = answered else {
        return found.say(|| format!("{}: the turn before it was not answered", name()));
    };
    let recorded = plan.delay.filter(|_| of.talks.delays);
    let thinks = of.talks.think.is_some() && !plan.is_tool && recorded.is_none();
    let free_calls = of.ran.scenario.link.call_cost == Span::ZERO;
    match (recorded, issued.scheduled) {
        (Some(delay), scheduled) => {
            found.same(scheduled, Some(answered + delay), || format!("{}: due", name()));
        }
        (None, Some(_)) => found.holds(thinks, || format!("{}: a delay from nowhere", name())),
        (None, None) => {
            let at_once = if free_calls { issued.at == answered } else { issued.at >= answered };
            found.holds(at_once, || {
                format!("{}: issued at {:?}, answered at {answered:?}", name(), issued.at)
            });
        }
    }
    if let Some(due) = issued.scheduled {
        let on_time = if free_calls { issued.at == due } else { issued.at >= due };
        found.holds(on_time, || format!("{}: issued at {:?}, due at {due:?}", name(), issued.at));
    }
}
