//! placeholder
#![forbid(unsafe_code)]

mod api;
mod arrivals;
mod order;
mod random;
mod session;
mod strategy;

pub use api::{Answered, Cancel, Replies, Request, SampleIssuer, Samples, TransportCounters};
pub use arrivals::{Arrivals, BadRate, Constant, Poisson};
pub use order::{Order, Shuffle};
pub use random::{Purpose, stream};
pub use session::{
    CompletedHook, Limits, OutcomeSlot, PhaseConfig, PhaseOutcome, Session, SessionConfig,
    SessionMsg, SessionOutcome, SessionState,
};
pub use strategy::{Burst, Concurrency, Pace, Strategy, Timed};
