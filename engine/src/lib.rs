//! A single-threaded actor engine for programs that must act at exact times.
//!
//! # The tour
//!
//! A [`System`] holds [`Actor`]s on one thread and one [`Host`], the only door to clock and sockets. An
//! actor owns its state and is called with one thing at a time: a message, a timer, the readiness of a
//! stream. It acts through its [`Context`]. One [`System::turn`] is
//!
//! ```text
//!   park until the next deadline, readiness or another thread   (or only look, when there is work)
//!     └─ fire every timer that is due, by (deadline, call order)
//!        └─ take in what other threads sent                     Remote -> inbox -> mailbox
//!           └─ deliver readiness, 32 events at a time           Actor::ready
//!              └─ run mailboxes, each actor within its budget   Actor::handle
//! ```
//!
//! Between any two calls the wheel is looked at, so **a due timer waits for the one handler that is
//! running and for nothing else**: not for a batch of readiness, not for a queue of messages. When timers
//! are due faster than they can be served, timers and sockets take turns.
//!
//! Nothing blocks but `park`; nothing is allocated per message once queues have their size; the same
//! inputs at the same instants give the same dispatches, which [`Trace`] proves with a hash.
//!
//! ```
//! use takt_engine::{Actor, Context};
//!
//! /// Counts to ten, every 100 microseconds, on absolute deadlines: no drift.
//! struct Ticker { start: takt_time::Nanos, ticks: u64 }
//! enum Tick { Due }
//!
//! impl Actor for Ticker {
//!     type Msg = Tick;
//!     fn started(&mut self, cx: &mut Context<'_, Self>) {
//!         self.start = cx.now();
//!         cx.call_at(self.start, Tick::Due);
//!     }
//!     fn handle(&mut self, Tick::Due: Tick, cx: &mut Context<'_, Self>) {
//!         self.ticks += 1;
//!         if self.ticks == 10 {
//!             return cx.stop_system();
//!         }
//!         let next = self.start + takt_time::Span::from_micros(100 * self.ticks);
//!         cx.call_at(next, Tick::Due);
//!     }
//! }
//! ```
//!
//! What it is not: a runtime for futures, a thread pool, a place for policy. It never retries, never
//! times out and never logs.
#![forbid(unsafe_code)]

mod actor;
mod addr;
mod cell;
mod context;
mod core;
mod host;
mod inject;
mod mailbox;
mod meter;
mod semaphore;
mod stats;
mod sync;
mod system;
mod trace;
mod virtual_clock;
mod wheel;

pub use actor::Actor;
pub use addr::Addr;
pub use context::Context;
pub use host::{
    Close, Host, HostCounts, ReadOutcome, Ready, StreamId, Target, Then, TlsLayer, Wake, Woken,
};
pub use inject::Remote;
pub use semaphore::{NotHeld, Semaphore};
pub use stats::{SampledTurns, TurnStats, Unread, WokenCounts};
pub use system::System;
pub use trace::{Dispatch, Trace};
pub use virtual_clock::VirtualClock;
pub use wheel::{TimerKey, Wheel};
