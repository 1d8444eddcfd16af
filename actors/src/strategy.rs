//! When to issue, and which sample: the trait, and what a strategy may do.

mod agentic;
mod burst;
mod concurrency;
mod paced;
mod timed;

pub use agentic::{Agentic, AgenticConfig, Begin, Until};
pub use burst::Burst;
pub use concurrency::Concurrency;
pub use paced::{Paced, Pacer};
pub use timed::Timed;

use takt_record::{Completed, ConversationEvent, EndedBy, RequestKey, TurnOf};
use takt_time::Nanos;

use crate::order::Order;

/// Decides when a request is issued and with which sample, and nothing else: limits, ids, records and
/// drains are the session's. All calls come from the reactor, one at a time.
pub trait Strategy {
    /// The phase begins; [`Pace::start`] is now.
    fn start(&mut self, pace: &mut dyn Pace);

    /// A moment that was asked for with [`Pace::at`] or [`Pace::soon`] has come.
    fn tick(&mut self, token: u64, pace: &mut dyn Pace);

    /// A request of this phase has ended, well or not.
    fn completed(&mut self, _done: &Completed, _pace: &mut dyn Pace) {}

    /// A request of an earlier phase, undrained, has ended: it frees its place and counts for nothing.
    fn inherited_ended(&mut self, _pace: &mut dyn Pace) {}

    /// A clock outside the reactor says that arrival `ordinal` is due, `None` after the last; see
    /// [`Pacer`].
    fn arrived(&mut self, _ordinal: u64, _scheduled: Option<Nanos>, _pace: &mut dyn Pace) {}

    /// The phase issues nothing more, whatever ended that. Called once.
    fn issuing_ended(&mut self) {}

    /// It says itself when there are no more arrivals of before the phase's end: they may still be on their way when the
    /// session sees that moment pass.
    fn ends_itself(&self) -> bool {
        false
    }

    /// A request of this phase has ended after the phase stopped issuing.
    fn drained(&mut self, _done: &Completed, _pace: &mut dyn Pace) {}

    /// The phase is over; nothing can be issued. Called once, last.
    fn over(&mut self, _pace: &mut dyn Pace) {}
}

/// A strategy's hold on its phase.
pub trait Pace {
    /// The instant of this call.
    fn now(&self) -> Nanos;

    /// The start of the phase: what a schedule counts from.
    fn start(&self) -> Nanos;

    /// When a span ends the issuing, if one does.
    fn end(&self) -> Option<Nanos>;

    /// Requests of earlier phases still in flight.
    fn inherited(&self) -> u32;

    /// Requests of this phase in flight.
    fn in_flight(&self) -> u64;

    /// Issues `sample`, for the moment `scheduled` of an open loop's schedule or `None` in a closed loop.
    /// `None` comes back when the phase takes no more: stop issuing then.
    fn issue(&mut self, sample: u32, scheduled: Option<Nanos>) -> Option<RequestKey>;

    /// The same with the sample that `order` has for it.
    fn issue_next(&mut self, order: &mut Order, scheduled: Option<Nanos>) -> Option<RequestKey>;

    /// Whether the request for the moment `scheduled` is another session's, which then counts as issued here: see
    /// [`Share::Nth`](crate::Share::Nth).
    fn elsewhere(&mut self, _scheduled: Nanos) -> bool {
        false
    }

    /// The same as [`issue`](Self::issue), of a turn of a conversation.
    fn issue_turn(
        &mut self,
        sample: u32,
        scheduled: Option<Nanos>,
        turn: TurnOf,
    ) -> Option<RequestKey>;

    /// Whether the phase would take a request for the moment `at`.
    fn is_open(&mut self, at: Nanos) -> bool;

    /// Records what happened to a conversation.
    fn conversation(&mut self, conversation: u64, at: Nanos, event: ConversationEvent);

    /// Asks for a tick at `when`; at once, in order, when that is past.
    fn at(&mut self, when: Nanos, token: u64);

    /// When to have a [`rehearsal`](Self::rehearse) of a request for the moment `when`, if that is of any use.
    fn rehearsal_for(&self, _when: Nanos) -> Option<Nanos> {
        None
    }

    /// Has the transport rehearse the next request, with the sample that `order` has for it, for the moment
    /// `scheduled`.
    fn rehearse(&mut self, _order: &mut Order, _scheduled: Nanos) {}

    /// Asks for a tick after the sockets have been looked at.
    fn soon(&mut self, token: u64);

    /// Says that nothing more will come: the phase ends its issuing.
    fn finished(&mut self) {
        self.finished_by(EndedBy::Strategy);
    }

    /// The same, and says what ended it. A limit of the phase that is reached by now comes first.
    fn finished_by(&mut self, by: EndedBy);
}
