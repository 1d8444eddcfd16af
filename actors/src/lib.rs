//! The load generator as actors: it decides when what is sent, sends it, and records what came of it.
//!
//! # The tour
//!
//! - [`Session`] runs phases one after another: issuing until a [`Limits`] or a stop ends it, then
//!   draining. It numbers requests, records each one's beginning and end, and always records its own end.
//! - A [`Strategy`] says *when* and *which sample*: [`Timed`] (an open loop over [`Arrivals`]),
//!   [`Concurrency`] (a closed loop), [`Burst`] (as fast as it goes), [`Agentic`] (conversations, whose
//!   requests are [`TurnRequests`]). Its hold on the phase is a [`Pace`].
//! - Several sessions, a reactor each, are one run: a [`Share`] says which requests are whose, and each phase begins
//!   for all [`Member`]s at one moment.
//! - An [`Order`] yields sample indices; [`Samples`] holds the prepared requests.
//! - A [`SampleIssuer`] carries requests: the HTTP [`Client`], or [`planned::Planned`] without a network,
//!   or one of your own.
//!
//! All of it is pure: time, sockets and chance come in through the engine's `Host` and through seeds, so
//! a session runs the same in virtual time as on a machine. Here is one, in virtual time:
//!
//! ```
//! use std::{cell::RefCell, rc::Rc};
//! use takt_actors::planned::{Plan, Planned};
//! use takt_actors::*;
//! use takt_engine::{System, VirtualClock};
//! use takt_record::*;
//! use takt_time::Span;
//!
//! struct Count(u64);
//! impl Fold for Count {
//!     fn fold(&mut self, record: &Record<'_>) {
//!         self.0 += u64::from(matches!(record, Record::Completed(_)));
//!     }
//! }
//!
//! let mut system = System::new(VirtualClock::default());
//! let (transport, _) = Planned::spawn(&mut system, |_| Plan::Answer(Span::from_millis(20)));
//! let records = Rc::new(RefCell::new(Count(0)));
//! let sink = Box::new(InlineSink::new(records.clone()));
//! let publisher = SharedPublisher::new(Publisher::new(sink, PublisherConfig::default()));
//! let arrivals = Poisson::new(1_000.0, stream(42, Purpose::Arrivals)).unwrap();
//! let order = Order::without_replacement(10, stream(42, Purpose::Order));
//! let strategy = Timed::new(Box::new(arrivals), order);
//! let phase = PhaseConfig::new("poisson", strategy, 10).requests(500);
//! let config = SessionConfig::new(vec![phase]);
//! let (session, outcome) = Session::new(config, Box::new(transport), publisher);
//! system.spawn(session, 1024);
//! system.run().unwrap();
//! assert_eq!(outcome.take().unwrap().state, SessionState::Complete);
//! assert_eq!(records.borrow().0, 500);
//! ```
//!
//! `examples/` has a strategy of one's own, another transport, and a hook that stops a run.
#![forbid(unsafe_code)]

mod api;
mod arrivals;
mod client;
mod conversations;
mod order;
pub mod planned;
mod random;
mod session;
mod share;
mod strategy;

pub use api::{Answered, Cancel, Replies, Request, SampleIssuer, Samples, TransportCounters};
pub use arrivals::{
    Arrivals, BadArrivals, Constant, Gamma, Gaps, Poisson, Ramp, ReferencePoisson, Trace,
};
pub use client::{
    Balance, Client, ClientConfig, ClientHandle, ClientMsg, EndpointTarget, PhaseRoute, TimeOut,
    Warmed, WhenWarm,
};
pub use conversations::{
    Around, SALT_AT, Scripts, TalkText, Think, ThinkTime, TurnPlan, TurnRequests, TurnText,
    TurnTexts, salt_of, salted,
};
pub use order::Order;
pub use random::{Chance, Mt19937, Purpose, stream};
pub use session::{
    CompletedHook, EndedHook, Limits, Member, OutcomeSlot, PhaseConfig, PhaseOutcome, Session,
    SessionConfig, SessionMsg, SessionOutcome, SessionState, Tell, Together,
};
pub use share::{Claims, Share, part};
pub use strategy::{
    Agentic, AgenticConfig, Begin, Burst, Concurrency, Pace, Paced, Pacer, Strategy, Timed, Until,
};
