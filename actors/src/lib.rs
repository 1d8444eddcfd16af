//! placeholder
#![forbid(unsafe_code)]

mod api;
mod session;
mod strategy;

pub use api::{Answered, Cancel, Replies, Request, SampleIssuer, Samples, TransportCounters};
pub use session::SessionMsg;
pub use strategy::{Pace, Strategy};
