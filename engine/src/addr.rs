//! `Addr`: where to send to an actor of this thread.

use std::fmt;
use std::rc::Rc;

use crate::mailbox::Mailbox;

/// The address of an actor that takes `M`. Sending queues the message; the actor runs later in the same
/// turn. To send from another thread see [`crate::Remote`].
pub struct Addr<M>(pub(crate) Rc<Mailbox<M>>);

impl<M> Addr<M> {
    /// Queues `msg`. A message to an actor that has stopped is dropped.
    pub fn send(&self, msg: M) {
        self.0.push(msg);
    }
}

impl<M> Clone for Addr<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M> fmt::Debug for Addr<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Addr")
    }
}
