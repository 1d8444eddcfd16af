//! What a host counts about itself.

use takt_engine::Woken;
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
    /// Parks by what ended them.
    pub woken: WokenCounts,
    /// How late the kernel woke the thread.
    pub wake_ups: WakeUps,
    /// The current head start before a deadline; `None` unless the wait mode is `guard`.
    pub guard: Option<Span>,
}

/// Parks by what ended them; see [`Woken`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WokenCounts {
    /// [`Woken::Polled`].
    pub polled: u64,
    /// [`Woken::Deadline`].
    pub deadline: u64,
    /// [`Woken::Readiness`].
    pub readiness: u64,
    /// [`Woken::Remote`].
    pub remote: u64,
    /// [`Woken::Spurious`].
    pub spurious: u64,
}

impl WokenCounts {
    pub(crate) fn count(&mut self, woken: Woken) {
        let counter = match woken {
            Woken::Polled => &mut self.polled,
            Woken::Deadline => &mut self.deadline,
            Woken::Readiness => &mut self.readiness,
            Woken::Remote => &mut self.remote,
            Woken::Spurious => &mut self.spurious,
        };
        *counter += 1;
    }
}
