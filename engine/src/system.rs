//! The system: actors on one host, and the turn that moves them.

use std::io;
use std::rc::Rc;

use takt_time::{Nanos, Span};

use crate::actor::Actor;
use crate::addr::Addr;
use crate::cell::{Cell, Place, Ran};
use crate::core::Core;
use crate::host::{Close, Host, Ready};
use crate::inject::{Inboxes, Remote};
use crate::mailbox::Mailbox;
use crate::meter::Work;
use crate::stats::TurnStats;
use crate::trace::Trace;

/// Actors on one host, on one thread. Step it with [`System::turn`] or let it [`System::run`].
pub struct System<H> {
    host: H,
    core: Core,
    cells: Vec<Option<Box<dyn Cell>>>,
    unstarted: Vec<u32>,
    inboxes: Inboxes,
    ready: Vec<Ready>,
    soon: Vec<u32>,
    foreign: Vec<(u64, u32)>,
    /// Turns in a row that did not look at the sockets because timers were late.
    unpolled: u32,
}

impl<H: Host> System<H> {
    /// An empty system on `host`.
    pub fn new(host: H) -> Self {
        let (core, inboxes) = (Core::new(host.now()), Inboxes::new(host.waker()));
        Self {
            host,
            core,
            cells: Vec::new(),
            unstarted: Vec::new(),
            inboxes,
            ready: Vec::with_capacity(1024),
            soon: Vec::new(),
            foreign: Vec::new(),
            unpolled: 0,
        }
    }

    /// Takes an actor in. Its mailbox holds `capacity` messages; that must cover the most that can be
    /// under way to it at once, see the architecture page on credits.
    pub fn spawn<A: Actor>(&mut self, actor: A, capacity: usize) -> Addr<A::Msg> {
        let number = u32::try_from(self.cells.len()).expect("fewer than 2^32 actors");
        let mailbox = Rc::new(Mailbox::new(number, capacity, self.core.run.clone()));
        self.core.trace.name(std::any::type_name::<A>());
        self.cells.push(Some(Box::new(Place::new(number, actor, mailbox.clone()))));
        self.unstarted.push(number);
        Addr(mailbox)
    }

    /// A way to send to an actor from other threads, through a queue of `capacity` messages.
    pub fn remote<M: Send + 'static>(&mut self, to: &Addr<M>, capacity: usize) -> Remote<M> {
        self.inboxes.open(to.0.clone(), capacity)
    }

    /// Gives events of a foreign descriptor, by its token, to an actor.
    pub fn own_foreign<M>(&mut self, token: u64, by: &Addr<M>) {
        self.foreign.push((token, by.0.actor()));
    }

    /// Runs until an actor stops the system.
    ///
    /// # Errors
    /// When the host cannot wait; see [`Host::park`].
    pub fn run(&mut self) -> io::Result<()> {
        while !self.core.stopped {
            self.turn()?;
        }
        Ok(())
    }

    /// One turn: park, timers, other threads, readiness, messages. Does nothing once stopped.
    ///
    /// # Errors
    /// When the host cannot wait; see [`Host::park`].
    pub fn turn(&mut self) -> io::Result<()> {
        if self.core.stopped {
            return Ok(());
        }
        self.start_actors();
        let notified = self.park()?;
        let began = self.core.seen();
        self.fire_due();
        if notified | self.inboxes.gate().look() {
            self.core.stats.remote += self.inboxes.drain();
        }
        self.deliver_ready();
        self.queue_soon();
        self.run_actors();
        let ended = self.core.read_clock(&self.host);
        self.core.stats.turn_took(ended.saturating_since(began));
        if self.core.meter.on {
            self.core.meter.end(ended, &mut self.core.stats.sampled);
        }
        self.core.stats.overflows = self.core.run.overflows();
        Ok(())
    }

    /// Whether an actor has stopped the system.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.core.stopped
    }

    /// The host.
    pub fn host(&mut self) -> &mut H {
        &mut self.host
    }

    /// Counters of this system.
    #[must_use]
    pub fn stats(&self) -> &TurnStats {
        &self.core.stats
    }

    /// Hash and last dispatches of this system.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.core.trace
    }

    fn start_actors(&mut self) {
        for number in std::mem::take(&mut self.unstarted) {
            self.with(number, |cell, core, host| cell.start(core, host));
        }
    }

    /// Waits, or only looks when there is something to do. Says whether other threads have sent.
    fn park(&mut self) -> io::Result<bool> {
        let runnable = self.core.run.len() > 0 || !self.core.soon.is_empty();
        let deadline = self.core.wheel.next_deadline();
        let from = self.core.seen();
        let late = deadline.is_some_and(|at| at <= from);
        if late && from.saturating_since(self.core.polled) < LOOK_AT_LEAST_EVERY {
            self.unpolled += 1;
            if self.unpolled < UNPOLLED_MAX {
                self.core.meter.begin(self.core.polled, from, from);
                return Ok(false);
            }
        }
        self.unpolled = 0;
        let only_look = runnable || late || self.core.stopped;
        let notified = !only_look && !self.inboxes.gate().arm();
        let until = if only_look || notified { Some(Nanos::ZERO) } else { deadline };
        let woken = self.host.park(until, &mut self.ready)?;
        let to = self.core.read_clock(&self.host);
        self.core.meter.begin(self.core.polled, from, to);
        self.core.polled = to;
        self.core.stats.woke(woken, from, to);
        Ok(!only_look && (self.inboxes.gate().disarm() || notified))
    }

    /// Fires what is due, in order, each with what it sets in motion. When the sockets have waited long,
    /// because timers are due faster than they can be served, one timer at most: so each side goes on and
    /// neither starves.
    fn fire_due(&mut self) {
        while !self.core.stopped && self.core.is_due(&self.host) {
            let seen = self.core.seen();
            let Some((deadline, (actor, slot))) = self.core.wheel.pop_due(seen) else { return };
            let stats = &mut self.core.stats;
            stats.timers += 1;
            stats.latest_timer = stats.latest_timer.max(seen.saturating_since(deadline));
            let queued = self.core.run.len();
            self.core.enter(Work::Timers, &self.host);
            self.with(actor, |cell, core, host| cell.fire(slot, core, host));
            self.run_newest(queued);
            self.core.leave(&self.host);
            self.core.refresh_clock(&self.host);
            if self.core.seen().saturating_since(self.core.polled) >= LOOK_AT_LEAST_EVERY {
                return;
            }
        }
    }

    /// Runs the actors that a timer has just made runnable, before all that waited already: a send that is
    /// handed from actor to actor must not queue behind the completions of a batch.
    fn run_newest(&mut self, queued: usize) {
        for _ in 0..NEWEST_MAX {
            let Some(number) = self.core.run.take(queued) else { return };
            let mut budget = ACTOR_BUDGET;
            while let Ran::TimerDue(done) = self.run_actor(number, budget) {
                budget = budget.saturating_sub(done);
            }
        }
    }

    /// Delivers readiness in batches, each followed by the messages that it caused. A batch is read
    /// before any message of it is handled: the prototype's closed loop gained 6 % by that.
    fn deliver_ready(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        for batch in ready.chunks(READY_BATCH) {
            for &event in batch {
                self.deliver(event);
                self.fire_due();
            }
            if ready.len() > READY_BATCH {
                self.run_actors();
            }
        }
        ready.clear();
        self.ready = ready;
    }

    fn deliver(&mut self, event: Ready) {
        let owner = match event {
            Ready::Foreign(token) => {
                self.foreign.iter().find(|(known, _)| *known == token).map(|&(_, actor)| actor)
            }
            _ => event.stream().and_then(|stream| self.core.owner(stream)),
        };
        let Some(actor) = owner else {
            // Its owner closed it or left; what was accepted for nobody must not stay open.
            if let Ready::Accepted { stream, .. } = event {
                self.host.close(stream, Close::Reset);
            }
            return;
        };
        if let Ready::Accepted { stream, .. } = event {
            self.core.own(stream, actor);
        }
        self.core.stats.ready += 1;
        self.core.enter(Work::Readiness, &self.host);
        self.with(actor, |cell, core, host| cell.ready(event, core, host));
        self.core.leave(&self.host);
    }

    fn queue_soon(&mut self) {
        std::mem::swap(&mut self.soon, &mut self.core.soon);
        for index in 0..self.soon.len() {
            if let Some(cell) = &mut self.cells[self.soon[index] as usize] {
                cell.queue_soon();
            }
        }
        self.soon.clear();
    }

    /// Runs actors until none is runnable or the turn's budget is used.
    fn run_actors(&mut self) {
        self.core.enter(Work::Messages, &self.host);
        let mut left = TURN_BUDGET;
        while left > 0 && !self.core.stopped {
            let Some(number) = self.core.run.pop() else { break };
            let mut budget = ACTOR_BUDGET.min(left);
            loop {
                let ran = self.run_actor(number, budget);
                let (Ran::Rested(done) | Ran::TimerDue(done)) = ran;
                left = left.saturating_sub(done);
                if matches!(ran, Ran::Rested(_)) {
                    break;
                }
                self.fire_due();
                budget = budget.saturating_sub(done);
            }
        }
        self.core.leave(&self.host);
    }

    /// Runs an actor through its mailbox, up to `budget` messages or the next timer; one that is gone rests.
    #[inline]
    fn run_actor(&mut self, number: u32, budget: u32) -> Ran {
        let Some(cell) = &mut self.cells[number as usize] else { return Ran::Rested(0) };
        let ran = cell.run(budget, &mut self.core, &mut self.host);
        let (Ran::Rested(done) | Ran::TimerDue(done)) = ran;
        self.core.stats.messages += u64::from(done);
        self.part(number);
        ran
    }

    fn with(&mut self, number: u32, call: impl FnOnce(&mut dyn Cell, &mut Core, &mut dyn Host)) {
        if let Some(cell) = &mut self.cells[number as usize] {
            call(cell.as_mut(), &mut self.core, &mut self.host);
            self.part(number);
        }
    }

    /// Lets an actor go that asked for it, with its streams.
    fn part(&mut self, number: u32) {
        if !std::mem::take(&mut self.core.leaving) {
            return;
        }
        if let Some(mut cell) = self.cells[number as usize].take() {
            cell.close();
        }
        for stream in self.core.streams_of(number) {
            self.core.disown(stream);
            self.host.close(stream, Close::Orderly);
        }
    }
}

/// Readiness events between two looks at the mailboxes.
const READY_BATCH: usize = 32;
/// Messages one actor handles before the next has its turn.
const ACTOR_BUDGET: u32 = 256;
/// Actors that run on behalf of one timer; a longer chain goes on in the ordinary queue.
const NEWEST_MAX: u32 = 8;
/// Messages of one turn.
const TURN_BUDGET: u32 = 4096;
/// While timers are late the sockets are still looked at this often, and no more often.
const LOOK_AT_LEAST_EVERY: Span = Span::from_micros(20);
/// The same in turns, for a clock that stands still.
const UNPOLLED_MAX: u32 = 64;

#[cfg(test)]
mod tests;
