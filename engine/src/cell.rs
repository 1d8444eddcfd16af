//! An actor in its place: the typed actor behind an untyped face, so that a system can hold many kinds.

use std::rc::Rc;

use slab::Slab;

use crate::actor::Actor;
use crate::context::{Context, Ports};
use crate::core::Core;
use crate::host::{Host, Ready};
use crate::mailbox::Mailbox;
use crate::trace::Dispatch;

/// How far a cell came through its mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// Through, or to the end of its budget; it is back in the run queue if something is left.
    Rested(u32),
    /// A timer is due first; go on with the rest of the budget afterwards.
    TimerDue(u32),
}

/// What a system asks of an actor's place.
pub(crate) trait Cell {
    fn start(&mut self, core: &mut Core, host: &mut dyn Host);
    fn fire(&mut self, slot: u32, core: &mut Core, host: &mut dyn Host);
    fn ready(&mut self, event: Ready, core: &mut Core, host: &mut dyn Host);
    fn run(&mut self, budget: u32, core: &mut Core, host: &mut dyn Host) -> Ran;
    /// Moves what `call_soon` left to the mailbox.
    fn queue_soon(&mut self);
    fn close(&mut self);
}

/// The place of an `A`.
pub(crate) struct Place<A: Actor> {
    number: u32,
    actor: A,
    ports: Ports<A::Msg>,
}

impl<A: Actor> Place<A> {
    pub(crate) fn new(number: u32, actor: A, mailbox: Rc<Mailbox<A::Msg>>) -> Self {
        let soon = std::collections::VecDeque::new();
        Self { number, actor, ports: Ports { mailbox, timers: Slab::new(), soon } }
    }

    /// Begins a call: the actor, and the world as it sees it meanwhile. No closure, so that a message is not moved into
    /// one.
    #[inline]
    fn begin<'a>(
        &'a mut self,
        what: Dispatch,
        core: &'a mut Core,
        host: &'a mut dyn Host,
    ) -> (&'a mut A, Context<'a, A>) {
        core.begin(self.number, what);
        (&mut self.actor, Context { actor: self.number, core, host, ports: &mut self.ports })
    }
}

impl<A: Actor> Cell for Place<A> {
    fn start(&mut self, core: &mut Core, host: &mut dyn Host) {
        let (actor, mut cx) = self.begin(Dispatch::Start, core, host);
        actor.started(&mut cx);
    }

    fn fire(&mut self, slot: u32, core: &mut Core, host: &mut dyn Host) {
        // Absent only when an actor cancelled another's timer, against which a debug build asserts.
        if let Some(msg) = self.ports.timers.try_remove(slot as usize) {
            let (actor, mut cx) = self.begin(Dispatch::Timer, core, host);
            actor.handle(msg, &mut cx);
        }
    }

    fn ready(&mut self, event: Ready, core: &mut Core, host: &mut dyn Host) {
        let (actor, mut cx) = self.begin(Dispatch::Ready, core, host);
        actor.ready(event, &mut cx);
    }

    fn run(&mut self, budget: u32, core: &mut Core, host: &mut dyn Host) -> Ran {
        let mut done = 0;
        while done < budget {
            let Some(msg) = self.ports.mailbox.pop() else { break };
            let (actor, mut cx) = self.begin(Dispatch::Message, core, host);
            actor.handle(msg, &mut cx);
            done += 1;
            if core.leaving || core.stopped {
                break;
            }
            if core.is_due(host) {
                return Ran::TimerDue(done);
            }
        }
        self.ports.mailbox.rest();
        Ran::Rested(done)
    }

    fn queue_soon(&mut self) {
        while let Some(msg) = self.ports.soon.pop_front() {
            self.ports.mailbox.push(msg);
        }
    }

    fn close(&mut self) {
        self.ports.mailbox.close();
        self.ports.timers.clear();
        self.ports.soon.clear();
    }
}
