//! The inbox that other threads send to, and its wake gate.
//!
//! ```text
//! sender:   queue.push(m);  gate.notify() ── was PARKED ──> waker.wake()
//! reactor:  gate.arm() ── false: something came, look again ── true: park ──> gate.disarm() ──> drain
//! ```
//!
//! The gate is one word, changed only by read-modify-write, so whichever of `arm` and `notify` comes
//! second sees the first: either the sender sees a parked reactor and wakes it, or the reactor sees the
//! notice and does not park. A sender pays a system call only when the reactor sleeps.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use crossbeam::queue::ArrayQueue;

use crate::host::Wake;
use crate::mailbox::Mailbox;
use crate::sync::{AtomicU32, Ordering};

/// The word between one reactor and all who send to it.
#[derive(Debug)]
pub(crate) struct WakeGate(AtomicU32);

const AWAKE: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

impl WakeGate {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(AWAKE))
    }

    /// Sender, after its push: whether the reactor must be woken.
    pub(crate) fn notify(&self) -> bool {
        self.0.swap(NOTIFIED, Ordering::AcqRel) == PARKED
    }

    /// Reactor, before it parks: whether it may.
    pub(crate) fn arm(&self) -> bool {
        self.0.swap(PARKED, Ordering::AcqRel) != NOTIFIED
    }

    /// Reactor, after it parked or was refused to: whether there is something to drain.
    pub(crate) fn disarm(&self) -> bool {
        self.0.swap(AWAKE, Ordering::AcqRel) == NOTIFIED
    }

    /// Reactor, awake: whether there is something to drain. One load when there is not.
    pub(crate) fn look(&self) -> bool {
        self.0.load(Ordering::Relaxed) == NOTIFIED && self.disarm()
    }
}

/// Sends to an actor from another thread. Clones share one bounded queue.
pub struct Remote<M> {
    queue: Arc<ArrayQueue<M>>,
    gate: Arc<WakeGate>,
    waker: Arc<dyn Wake>,
}

impl<M> Remote<M> {
    /// Sends `msg`; never waits.
    ///
    /// # Errors
    /// Gives the message back when the queue is full: the reactor does not keep up, or is gone.
    pub fn send(&self, msg: M) -> Result<(), M> {
        self.queue.push(msg)?;
        if self.gate.notify() {
            self.waker.wake();
        }
        Ok(())
    }
}

impl<M> Clone for Remote<M> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), gate: self.gate.clone(), waker: self.waker.clone() }
    }
}

impl<M> fmt::Debug for Remote<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({} of {} waiting)", self.queue.len(), self.queue.capacity())
    }
}

/// All inboxes of one reactor.
pub(crate) struct Inboxes {
    gate: Arc<WakeGate>,
    waker: Arc<dyn Wake>,
    inboxes: Vec<Box<dyn Drain>>,
}

impl Inboxes {
    pub(crate) fn new(waker: Arc<dyn Wake>) -> Self {
        Self { gate: Arc::new(WakeGate::new()), waker, inboxes: Vec::new() }
    }

    pub(crate) fn gate(&self) -> &WakeGate {
        &self.gate
    }

    /// A new inbox of `capacity` messages in front of `mailbox`.
    pub(crate) fn open<M: Send + 'static>(
        &mut self,
        mailbox: Rc<Mailbox<M>>,
        capacity: usize,
    ) -> Remote<M> {
        let queue = Arc::new(ArrayQueue::new(capacity));
        self.inboxes.push(Box::new(Inbox { queue: queue.clone(), mailbox }));
        Remote { queue, gate: self.gate.clone(), waker: self.waker.clone() }
    }

    /// Moves what has come to the mailboxes and says how much that was. What a full mailbox has no room
    /// for stays queued; the gate is set again so that the next turn goes on with it.
    pub(crate) fn drain(&mut self) -> u64 {
        let (mut moved, mut left) = (0, false);
        for inbox in &mut self.inboxes {
            let (count, more) = inbox.drain();
            moved += count;
            left |= more;
        }
        if left {
            self.gate.notify();
        }
        moved
    }
}

trait Drain {
    fn drain(&mut self) -> (u64, bool);
}

struct Inbox<M> {
    queue: Arc<ArrayQueue<M>>,
    mailbox: Rc<Mailbox<M>>,
}

impl<M> Drain for Inbox<M> {
    fn drain(&mut self) -> (u64, bool) {
        let mut moved = 0;
        while self.mailbox.has_room() {
            match self.queue.pop() {
                Some(msg) => self.mailbox.push(msg),
                None => return (moved, false),
            }
            moved += 1;
        }
        (moved, !self.queue.is_empty())
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::atomic::AtomicUsize;
    use loom::sync::{Arc, Condvar, Mutex};

    /// A reactor that parks when the gate lets it must see every message: each schedule of the senders
    /// and the reactor ends, and with nothing left.
    #[test]
    fn loom_no_message_is_slept_through() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            const SENDERS: usize = 2;
            let gate = Arc::new(WakeGate::new());
            let sent = Arc::new(AtomicUsize::new(0));
            let bell = Arc::new((Mutex::new(false), Condvar::new()));
            let senders: Vec<_> = (0..SENDERS)
                .map(|_| {
                    let (gate, sent, bell) = (gate.clone(), sent.clone(), bell.clone());
                    loom::thread::spawn(move || {
                        sent.fetch_add(1, Ordering::Relaxed);
                        if gate.notify() {
                            *bell.0.lock().unwrap() = true;
                            bell.1.notify_one();
                        }
                    })
                })
                .collect();
            let mut seen = 0;
            while seen < SENDERS {
                if gate.arm() {
                    let mut rung = bell.0.lock().unwrap();
                    while !*rung {
                        rung = bell.1.wait(rung).unwrap();
                    }
                    *rung = false;
                }
                gate.disarm();
                seen = sent.load(Ordering::Relaxed);
            }
            for sender in senders {
                sender.join().unwrap();
            }
        });
    }
}
