//! Conversations: the answer gates the next turn.
//!
//! ```text
//!             slot free, or an arrival           last turn answered
//!  waiting to start ──────────> active ─────────────────────────────> completed
//!                                │  ^ └─ a turn failed: the rest is skipped ──> failed
//!                 answered, next │  │ sent: at once, or when its delay is over
//!                                └──┘            the phase is over ───────────> stopped
//! ```
//!
//! One request of a conversation is in flight at a time. A closed loop counts active conversations, those that
//! wait for a tool included; with arrivals a conversation begins at each, whatever is active. A slot that a
//! conversation frees takes the next one in the same call. Requests inherited from an undrained phase hold
//! slots too.
//!
//! What a conversation came to is published at its end. Of each one that began,
//! `turns = succeeded + failed + skipped + unsent + (0 or 1 given up)`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use takt_record::{
    Completed, ConversationEnd, ConversationEvent, ConversationState, EndedBy, Outcome, TurnOf,
};
use takt_time::{Nanos, Span};

use crate::api::Samples;
use crate::arrivals::Arrivals;
use crate::conversations::{Scripts, Think};
use crate::order::Order;
use crate::strategy::{Pace, Strategy};

/// `agentic`.
pub struct Agentic {
    scripts: Rc<Scripts>,
    order: Order,
    config: AgenticConfig,
    active: BTreeMap<u64, Talk>,
    /// How often each conversation of the dataset was begun.
    begun: Vec<u64>,
    started: u64,
    /// Requests of earlier phases still in flight.
    inherited: u32,
    /// The first conversations are still being begun, some at a time.
    filling: bool,
    /// The next arrival, where conversations arrive.
    due: Nanos,
    /// There is none any more.
    arrived_all: bool,
    /// Told the pace that all is over.
    finished: bool,
}

/// How conversations are begun and carried on.
pub struct AgenticConfig {
    /// What begins one.
    pub begin: Begin,
    /// How many.
    pub until: Until,
    /// Whether the delays of the dataset are kept.
    pub recorded_delays: bool,
    /// How long a user thinks where no delay is kept; not before a first turn, nor before results of tools.
    pub think: Option<Think>,
    /// Stops issuing when the first conversation ends that none is left to follow.
    pub stop_on_first_complete: bool,
    /// Who is told that a conversation is over, so that its history can go.
    pub histories: Option<Rc<RefCell<dyn Samples>>>,
}

/// What begins a conversation.
pub enum Begin {
    /// So many are active.
    Concurrency(u32),
    /// Its arrival.
    Arrivals(Box<dyn Arrivals>),
}

/// How many conversations are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// So many; past the dataset's number they repeat.
    Conversations(u64),
    /// The dataset in whole passes: once, or until so long after the start.
    Passes(Option<Span>),
    /// As many as the phase's own end allows.
    Endless,
}

/// An active conversation.
struct Talk {
    source: u32,
    /// The turn in flight, or the next one.
    turn: u32,
    in_flight: bool,
    /// When the next turn is due, where it waits for that.
    due: Option<Nanos>,
    /// Since when it waits.
    since: Nanos,
    end: ConversationEnd,
}

impl Agentic {
    /// Conversations of `scripts`, begun in `order` over the dataset's.
    #[must_use]
    pub fn new(scripts: Rc<Scripts>, order: Order, config: AgenticConfig) -> Self {
        let begun = vec![0; scripts.len()];
        Self {
            scripts,
            order,
            config,
            active: BTreeMap::new(),
            begun,
            started: 0,
            inherited: 0,
            filling: true,
            due: Nanos::ZERO,
            arrived_all: false,
            finished: false,
        }
    }

    /// Whether a conversation is left to begin: now, or at the next arrival where that should have been before.
    fn left(&self, pace: &dyn Pace) -> bool {
        if self.arrived_all {
            return false;
        }
        let at = match self.config.begin {
            Begin::Concurrency(_) => pace.now(),
            Begin::Arrivals(_) => pace.now().min(self.due),
        };
        match self.config.until {
            Until::Conversations(most) => self.started < most,
            Until::Passes(least) => {
                let whole = self.started.is_multiple_of(self.begun.len() as u64);
                let more = || least.is_some_and(|least| at < pace.start() + least);
                self.started == 0 || !whole || more()
            }
            Until::Endless => true,
        }
    }

    /// Whether a conversation may begin now, whatever else is; where they arrive none may but at its arrival.
    fn has_slot(&self) -> bool {
        match self.config.begin {
            Begin::Concurrency(target) => {
                (self.active.len() as u64) + u64::from(self.inherited) < u64::from(target)
            }
            Begin::Arrivals(_) => false,
        }
    }

    /// Begins conversations as far as slots go, `most` of them. Says whether it could have gone on.
    fn fill(&mut self, most: u32, pace: &mut dyn Pace) -> bool {
        for _ in 0..most {
            if !self.has_slot() || !self.left(pace) || !self.begin(None, pace) {
                return false;
            }
        }
        true
    }

    /// Begins a conversation, for the moment `scheduled` of its arrival. False when the phase takes no more.
    fn begin(&mut self, scheduled: Option<Nanos>, pace: &mut dyn Pace) -> bool {
        let at = scheduled.unwrap_or(pace.now());
        if !pace.is_open(at) {
            return false;
        }
        let source = self.order.draw();
        let before = &mut self.begun[source as usize];
        let number = u64::from(source) + self.scripts.len() as u64 * *before;
        *before += 1;
        self.started += 1;
        let turns = self.scripts.turns_of(source);
        let began = pace.now();
        pace.conversation(number, began, ConversationEvent::Started { turns });
        let end = ConversationEnd { began, turns, ..ConversationEnd::default() };
        let talk = Talk { source, turn: 0, in_flight: false, due: None, since: at, end };
        self.active.insert(number, talk);
        let delay = self.scripts.turn(source, 0).delay.filter(|_| self.config.recorded_delays);
        match delay {
            Some(delay) => self.wait(number, at, delay, pace),
            None => self.send(number, scheduled, pace),
        }
        true
    }

    /// Sends the next turn of a conversation now, which was wanted at `scheduled`.
    fn send(&mut self, number: u64, scheduled: Option<Nanos>, pace: &mut dyn Pace) {
        let Some(talk) = self.active.get_mut(&number) else { return };
        let of = self.scripts.turn(talk.source, talk.turn);
        let sample = self.scripts.sample(talk.source, talk.turn);
        let turn = TurnOf { conversation: number, turn: of.number };
        if let Some(due) = talk.due.take() {
            talk.end.paused += due.saturating_since(talk.since);
        }
        // Refused when the phase is over: then the conversation is stopped with it.
        talk.in_flight = pace.issue_turn(sample, scheduled, turn).is_some();
    }

    /// Sends the next turn of a conversation so long after `since`.
    fn wait(&mut self, number: u64, since: Nanos, delay: Span, pace: &mut dyn Pace) {
        let Some(talk) = self.active.get_mut(&number) else { return };
        let due = since + delay;
        (talk.since, talk.due) = (since, Some(due));
        pace.at(due, TALKS + number);
    }

    /// Goes on with a conversation whose turn was answered at `at`.
    fn go_on(&mut self, number: u64, at: Nanos, pace: &mut dyn Pace) {
        let Some(talk) = self.active.get_mut(&number) else { return };
        talk.turn += 1;
        let next = self.scripts.turn(talk.source, talk.turn);
        let recorded = next.delay.filter(|_| self.config.recorded_delays);
        let thinks = self.config.think.as_mut().filter(|_| recorded.is_none() && !next.is_tool);
        match recorded.or(thinks.map(Think::draw)).filter(|delay| *delay > Span::ZERO) {
            Some(delay) => self.wait(number, at, delay, pace),
            None => self.send(number, None, pace),
        }
    }

    /// Enters what became of a turn. Gives how that ends its conversation, if it does.
    fn enter(&mut self, done: &Completed) -> Option<(u64, ConversationState)> {
        let number = done.turn?.conversation;
        let talk = self.active.get_mut(&number)?;
        talk.in_flight = false;
        let end = &mut talk.end;
        end.waited += done.times.end.saturating_since(done.times.issued);
        let last = talk.turn + 1 == end.turns;
        let how = match done.outcome {
            Outcome::Ok => {
                end.succeeded += 1;
                for (sum, count) in [
                    (&mut end.input, done.tokens.input),
                    (&mut end.output, done.tokens.output),
                    (&mut end.cached, done.tokens.cached),
                ] {
                    if let Some(count) = count {
                        *sum = Some(sum.unwrap_or(0) + u64::from(count));
                    }
                }
                last.then_some(ConversationState::Completed)
            }
            Outcome::Failed(_) => {
                end.failed = 1;
                end.skipped = end.turns - talk.turn - 1;
                Some(ConversationState::Failed)
            }
            Outcome::Unanswered => {
                end.unsent = end.turns - talk.turn - 1;
                Some(ConversationState::Stopped)
            }
        };
        how.map(|how| (number, how))
    }

    /// Lets a conversation go.
    fn end(&mut self, number: u64, how: ConversationState, at: Nanos, pace: &mut dyn Pace) {
        let Some(talk) = self.active.remove(&number) else { return };
        let more = self.left(pace);
        let end = ConversationEnd { how, more, ..talk.end };
        pace.conversation(number, at, ConversationEvent::Ended(end));
        if let Some(histories) = &self.config.histories {
            histories.borrow_mut().forget(number);
        }
    }

    /// A conversation has ended, or there is nothing more to begin: is that the end?
    fn finish_perhaps(&mut self, one_ended: bool, pace: &mut dyn Pace) {
        if self.finished || self.left(pace) {
            return;
        }
        let by = if self.config.stop_on_first_complete && one_ended {
            EndedBy::FirstComplete
        } else if self.active.is_empty() {
            match self.config.until {
                Until::Conversations(most) if most != self.begun.len() as u64 => {
                    EndedBy::Conversations
                }
                _ => EndedBy::Dataset,
            }
        } else {
            return;
        };
        self.finished = true;
        pace.finished_by(by);
    }

    fn arm_next_arrival(&mut self, pace: &mut dyn Pace) {
        let Begin::Arrivals(arrivals) = &mut self.config.begin else { return };
        match arrivals.next() {
            Some(offset) => self.due = pace.start() + offset,
            None => self.arrived_all = true,
        }
        if self.left(pace) {
            pace.at(self.due, ARRIVAL);
        } else {
            self.finish_perhaps(false, pace);
        }
    }
}

impl Strategy for Agentic {
    fn start(&mut self, pace: &mut dyn Pace) {
        match self.config.begin {
            Begin::Concurrency(_) => {
                self.inherited = pace.inherited();
                pace.soon(FILLING);
            }
            Begin::Arrivals(_) => {
                self.filling = false;
                self.arm_next_arrival(pace);
            }
        }
    }

    fn tick(&mut self, token: u64, pace: &mut dyn Pace) {
        match token {
            FILLING => {
                self.filling = self.fill(FILL, pace);
                if self.filling {
                    pace.soon(FILLING);
                }
            }
            // Passes may be over by now.
            ARRIVAL if !self.left(pace) => self.finish_perhaps(false, pace),
            ARRIVAL => {
                if self.begin(Some(self.due), pace) {
                    self.arm_next_arrival(pace);
                }
            }
            _ => {
                let number = token - TALKS;
                let due = self.active.get(&number).and_then(|talk| talk.due);
                if due.is_some() {
                    self.send(number, due, pace);
                }
            }
        }
    }

    fn completed(&mut self, done: &Completed, pace: &mut dyn Pace) {
        match self.enter(done) {
            Some((number, how)) => {
                self.end(number, how, done.times.end, pace);
                self.finish_perhaps(true, pace);
                if !self.filling && !self.finished {
                    self.fill(1, pace);
                }
            }
            None => {
                if let Some(turn) = done.turn {
                    self.go_on(turn.conversation, done.times.end, pace);
                }
            }
        }
    }

    fn inherited_ended(&mut self, pace: &mut dyn Pace) {
        self.inherited = self.inherited.saturating_sub(1);
        if !self.filling {
            self.fill(1, pace);
        }
    }

    fn drained(&mut self, done: &Completed, pace: &mut dyn Pace) {
        match self.enter(done) {
            Some((number, how)) => self.end(number, how, done.times.end, pace),
            None => {
                // It would have gone on.
                if let Some(talk) =
                    done.turn.and_then(|turn| self.active.get_mut(&turn.conversation))
                {
                    talk.turn += 1;
                }
            }
        }
    }

    fn over(&mut self, pace: &mut dyn Pace) {
        while let Some((&number, talk)) = self.active.first_key_value() {
            let unsent = talk.end.turns - talk.turn - u32::from(talk.in_flight);
            if let Some(talk) = self.active.get_mut(&number) {
                talk.end.unsent = unsent;
            }
            self.end(number, ConversationState::Stopped, pace.now(), pace);
        }
    }
}

/// Conversations begun at the start between two looks at the sockets.
const FILL: u32 = 32;
/// Tokens of ticks: more to begin, an arrival, and from here on conversations by their number.
const FILLING: u64 = 0;
const ARRIVAL: u64 = 1;
const TALKS: u64 = 2;
