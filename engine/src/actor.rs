//! What an actor is.

use crate::context::Context;
use crate::host::Ready;

/// A state machine that owns its state, gets messages, timers and readiness one at a time, and acts
/// through its [`Context`]. Nothing in it may block or read a clock.
pub trait Actor: Sized + 'static {
    /// What it is told: one closed enum per actor.
    type Msg: 'static;

    /// Called once, in the turn after the actor was spawned, before anything else.
    fn started(&mut self, _cx: &mut Context<'_, Self>) {}

    /// A message, or a timer's message at its time.
    fn handle(&mut self, msg: Self::Msg, cx: &mut Context<'_, Self>);

    /// Readiness of a stream that the actor owns.
    fn ready(&mut self, _event: Ready, _cx: &mut Context<'_, Self>) {}
}
