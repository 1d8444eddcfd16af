//! Bounded typed mailboxes and the run queue.
//!
//! A mailbox belongs to one actor; it is in the run queue exactly while it holds messages that nobody is
//! working through. A mailbox that overflows is a mistake in its capacity, not a state of the run: a
//! debug build asserts, a release build lets it grow and counts it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The actors that have something to do, first come first served.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    actors: RefCell<VecDeque<u32>>,
    overflows: Cell<u64>,
}

impl RunQueue {
    pub(crate) fn push(&self, actor: u32) {
        self.actors.borrow_mut().push_back(actor);
    }

    pub(crate) fn pop(&self) -> Option<u32> {
        self.actors.borrow_mut().pop_front()
    }

    /// Takes the actor at `place` in the line, if the line is that long.
    pub(crate) fn take(&self, place: usize) -> Option<u32> {
        self.actors.borrow_mut().remove(place)
    }

    pub(crate) fn len(&self) -> usize {
        self.actors.borrow().len()
    }

    /// Messages that went beyond a mailbox's capacity.
    pub(crate) fn overflows(&self) -> u64 {
        self.overflows.get()
    }
}

/// One actor's messages.
#[derive(Debug)]
pub(crate) struct Mailbox<M> {
    actor: u32,
    capacity: usize,
    messages: RefCell<VecDeque<M>>,
    /// In the run queue, or being worked through.
    queued: Cell<bool>,
    closed: Cell<bool>,
    run: Rc<RunQueue>,
}

impl<M> Mailbox<M> {
    pub(crate) fn new(actor: u32, capacity: usize, run: Rc<RunQueue>) -> Self {
        let messages = RefCell::new(VecDeque::with_capacity(capacity.min(PREALLOCATED)));
        Self { actor, capacity, messages, queued: Cell::new(false), closed: Cell::new(false), run }
    }

    pub(crate) fn actor(&self) -> u32 {
        self.actor
    }

    pub(crate) fn push(&self, msg: M) {
        if self.closed.get() {
            return;
        }
        let mut messages = self.messages.borrow_mut();
        if messages.len() >= self.capacity {
            self.run.overflows.set(self.run.overflows.get() + 1);
            debug_assert!(false, "mailbox of actor {} is over its {}", self.actor, self.capacity);
        }
        messages.push_back(msg);
        if !self.queued.replace(true) {
            self.run.push(self.actor);
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.messages.borrow().len() < self.capacity
    }

    pub(crate) fn pop(&self) -> Option<M> {
        self.messages.borrow_mut().pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.borrow().is_empty()
    }

    /// The actor has worked it through for now: back into the run queue if something is left.
    pub(crate) fn rest(&self) {
        let left = !self.is_empty();
        self.queued.set(left);
        if left {
            self.run.push(self.actor);
        }
    }

    /// The actor is gone: what is sent from now on is dropped, as is what was waiting.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.messages.borrow_mut().clear();
    }
}

const PREALLOCATED: usize = 4096;
