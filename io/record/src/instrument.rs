//! What the instrument saw of itself during a phase, as `result.json` has it.

use serde::{Deserialize, Serialize};

/// Shares are of the time between the two readings. What was not told is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instrument {
    /// The reactor thread was runnable and not running.
    pub runnable_share: Option<f64>,
    /// Time stolen from the machine, all cores together, over the same wall time.
    pub stolen_share: Option<f64>,
    /// The reactor worked in handlers.
    pub busy_share: Option<f64>,
    /// What it worked on; together [`Self::busy_share`]. From the turns that were measured, one in some;
    /// absent with fewer than 20 of them.
    pub busy_by: Option<BusyBy>,
    /// The reactor looked at the sockets without waiting.
    pub looking_share: Option<f64>,
    /// The reactor waited, asleep or not.
    pub idle_share: Option<f64>,
    /// CPU time of the reactor thread; in a wait mode that does not sleep, waiting too.
    pub cpu_share: Option<f64>,
    /// CPU time of the thread that folds and writes the records.
    pub fold_share: Option<f64>,
    /// The longest turn of the session up to the phase's end.
    pub longest_turn_us: Option<f64>,
    /// Involuntary context switches.
    pub involuntary: Option<u64>,
    /// The same a second.
    pub involuntary_per_s: Option<f64>,
    /// Why the reactor came back from waiting, and how often.
    pub wakes: Option<WakeCounts>,
    /// Turns of the reactor.
    pub turns: Option<u64>,
    /// Calls that looked at the sockets.
    pub polls: Option<u64>,
    /// Calls that read.
    pub reads: Option<u64>,
    /// Calls that wrote.
    pub writes: Option<u64>,
    /// How late the kernel woke the thread, of the session up to the phase's end.
    pub wake_up_us: Option<WakeUp>,
    /// The head start of the wait mode `guard` at the phase's end.
    pub guard_us: Option<f64>,
    /// How long what was read can have stood in the socket, at the most; waking is not in it.
    pub unread_us: Option<Unread>,
    /// Blocks that had to wait in the overflow.
    pub spilled: u64,
    /// Records lost.
    pub lost: u64,
    /// Connections opened.
    pub connections: u64,
    /// Requests that waited because a connection limit was reached.
    pub limited: u64,
    /// TLS handshakes that ended well.
    #[serde(default)]
    pub secured: u64,
    /// Those among them that resumed an earlier session.
    #[serde(default)]
    pub resumed: u64,
    /// Messages beyond the capacity of a mailbox.
    pub overflows: Option<u64>,
    /// Connections closed because bytes came that belonged to no answer.
    pub leftover: Option<u64>,
    /// Connections that ended with their first answer, of endpoints that are known to close them behind it.
    pub used_once: Option<u64>,
    /// Records that contradict their own clock or each other.
    pub anomalies: u64,
}

/// Shares of the phase's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyBy {
    /// Handlers of timers and what they set in motion.
    pub timers: f64,
    /// Calls that read.
    pub reads: f64,
    /// Calls that write.
    pub writes: f64,
    /// Handlers of what was ready: understanding what was read.
    pub parse: f64,
    /// Handlers of messages.
    pub messages: f64,
    /// The engine itself.
    pub engine: f64,
}

/// Parks by what ended them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeCounts {
    /// A look that did not wait.
    pub polled: u64,
    /// A deadline.
    pub deadline: u64,
    /// Readiness.
    pub readiness: u64,
    /// Another thread.
    pub remote: u64,
    /// None of these.
    pub spurious: u64,
}

/// How late the kernel woke the thread, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WakeUp {
    /// Median, at most 25 % too high.
    pub p50: f64,
    /// 99th percentile, the same.
    pub p99: f64,
}

/// How long bytes stood, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unread {
    /// Mean over the reads that were measured.
    pub mean: f64,
    /// The longest of the session up to the phase's end.
    pub max: f64,
}
