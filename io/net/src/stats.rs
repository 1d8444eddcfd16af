//! What a host counts about itself. Parks by what ended them are counted by the engine, for any host.

use takt_time::Span;

use crate::lateness::WakeUps;

/// Counts since the host was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Calls of `epoll_wait`.
    pub polls: u64,
    /// Reads, those that found nothing included.
    pub reads: u64,
    /// Writes, those that found no room included.
    pub writes: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections begun.
    pub connects: u64,
    /// Times a listener had to pause because accepting failed, for want of descriptors above all.
    pub accepts_paused: u64,
    /// TLS handshakes that ended well.
    pub secured: u64,
    /// Those among them that a ticket made short.
    pub resumed: u64,
    /// Accepted connections dropped because their TLS handshake failed.
    pub not_secured: u64,
    /// How late the kernel woke the thread.
    pub wake_ups: WakeUps,
    /// The current head start before a deadline; `None` unless the wait mode is `guard`.
    pub guard: Option<Span>,
}
