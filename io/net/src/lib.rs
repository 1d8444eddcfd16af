//! Every system call on the reactor's path: [`MioHost`], the [`takt_engine::Host`] that is the operating
//! system, and what a run needs to know about the machine before and while it uses one.
//!
//! This crate holds no policy: nothing is tried again, pooled or timed out here. `unsafe` is found in
//! `sys` alone.
//!
//! ```
//! use std::io::IoSlice;
//! use takt_engine::{Close, Host, Ready, Target};
//! use takt_net::{MioHost, WaitMode};
//!
//! # fn main() -> std::io::Result<()> {
//! let mut host = MioHost::new(WaitMode::default())?;
//! let listener = host.listen(&Target::tcp(([127, 0, 0, 1], 0).into()))?;
//! let port = host.local_addr(listener).expect("a TCP listener has an address");
//! let client = host.connect(&Target::tcp(port))?;
//!
//! let mut ready = Vec::new();
//! while !ready.contains(&Ready::Connected(client)) {
//!     host.park(None, &mut ready)?;
//! }
//! assert_eq!(host.write(client, &[IoSlice::new(b"hello")])?, 5);
//! host.close(client, Close::Orderly);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]
// This is the edge where clocks are read and sockets live.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod affinity;
mod arrivals;
mod clock;
mod host;
mod lateness;
pub mod limits;
mod park;
pub mod resolve;
pub mod schedstat;
mod secure;
pub mod signals;
mod slots;
mod socket;
mod sockets;
mod stats;
mod sys;
mod timer;
pub mod tls;
mod token;
mod wait;

pub use clock::{anchor, now};
pub use host::MioHost;
pub use lateness::WakeUps;
pub use stats::HostStats;
pub use wait::{WaitMode, WaitModeError};
