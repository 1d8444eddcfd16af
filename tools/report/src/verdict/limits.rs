//! From which figures on a run is suspect.

use takt_time::Span;

/// Limits of the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Open loop: lateness p99 may be this, or [`Self::lateness_gap_share`] of the mean gap if that is
    /// more.
    pub lateness: Span,
    /// Open loop: share of the mean gap between arrivals that lateness p99 may be.
    pub lateness_gap_share: f64,
    /// Open loop: how far the time from first to last send may be off the drawn schedule's, as a share.
    pub off_schedule: f64,
    /// Share of time that the reactor thread was runnable and not running.
    pub runnable: f64,
    /// Share of time stolen from the machine.
    pub stolen: f64,
    /// Involuntary context switches of the reactor thread a second.
    pub involuntary: f64,
    /// How long answers can have stood in the socket unread, in the mean, or [`Self::unread_share`] of
    /// the mean latency from send if that is more.
    pub unread: Span,
    /// Share of the mean latency that answers may have stood unread.
    pub unread_share: f64,
    /// Requests that this machine had no descriptor or port for.
    pub refused: f64,
    /// Share of requests whose connection was closed because bytes came that belonged to no answer.
    pub leftover: f64,
    /// Blocks that had to wait in the ring's overflow.
    pub spilled: f64,
    /// Share of requests that waited because a connection limit was reached.
    pub limited: f64,
    /// Share of requests that may fail or stay unanswered.
    pub casualties: f64,
    /// Share of token events that came in one read with the one before.
    pub coalesced: f64,
    /// Share of successes whose token counts contradict each other.
    pub disagreeing: f64,
    /// Share of successes whose streams may have held no text though output was counted.
    pub unseen: f64,
    /// Share of successes that may have come as streams though whole answers were asked for.
    pub unasked: f64,
    /// Share of the time to the first token (or byte) that it lay in the socket, on average, where the kernel's
    /// stamps tell.
    pub socket_wait: f64,
    /// CPU time of the thread that folds and writes the records, as a share of the time.
    pub fold: f64,
    /// Closed loop: busy share of the reactor from which on the client is what is measured.
    pub busy: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lateness: Span::from_micros(100),
            lateness_gap_share: 0.1,
            off_schedule: 0.005,
            runnable: 0.01,
            stolen: 0.01,
            involuntary: 100.0,
            unread: Span::from_micros(50),
            unread_share: 0.1,
            refused: 1.0,
            leftover: 0.01,
            spilled: 1.0,
            limited: 0.001,
            casualties: 0.01,
            coalesced: 0.05,
            disagreeing: 0.01,
            unseen: 0.01,
            unasked: 0.01,
            socket_wait: 0.05,
            fold: 0.95,
            busy: 0.9,
        }
    }
}
