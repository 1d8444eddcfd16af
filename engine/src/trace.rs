//! A rolling hash and a ring of the last dispatches: proof of a replay, and a post-mortem.
//!
//! Two runs dispatched the same things in the same order at the same instants exactly when, collisions
//! aside, their hashes agree. Costs a multiply and a store per dispatch.

use std::fmt;

use takt_time::Nanos;

/// What was dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// `started`.
    Start,
    /// A timer.
    Timer,
    /// A readiness event.
    Ready,
    /// A message, those left with `call_soon` included.
    Message,
}

/// The trace of one system.
#[derive(Clone)]
pub struct Trace {
    hash: u64,
    count: u64,
    ring: [(Nanos, u32, Dispatch); RING],
    names: Vec<&'static str>,
}

impl Trace {
    pub(crate) fn new() -> Self {
        let nothing = (Nanos::ZERO, 0, Dispatch::Start);
        Self { hash: SEED, count: 0, ring: [nothing; RING], names: Vec::new() }
    }

    /// Remembers what type the next actor number has.
    pub(crate) fn name(&mut self, name: &'static str) {
        self.names.push(name);
    }

    #[inline]
    pub(crate) fn note(&mut self, at: Nanos, actor: u32, what: Dispatch) {
        let word = at.as_nanos() ^ (u64::from(actor) << 48) ^ ((what as u64) << 40);
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
        self.ring[self.count as usize % RING] = (at, actor, what);
        self.count += 1;
    }

    /// The hash over all dispatches so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Dispatches so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The last dispatches, oldest first: instant, actor's type, kind.
    pub fn last(&self) -> impl Iterator<Item = (Nanos, &'static str, Dispatch)> + '_ {
        let from = self.count.saturating_sub(RING as u64);
        (from..self.count).map(|n| {
            let (at, actor, what) = self.ring[n as usize % RING];
            (at, self.names.get(actor as usize).copied().unwrap_or("?"), what)
        })
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} dispatches, hash {:016x}; the last:", self.count, self.hash)?;
        for (at, actor, what) in self.last() {
            writeln!(f, "  {at:?} {what:?} {actor}")?;
        }
        Ok(())
    }
}

const RING: usize = 64;
const SEED: u64 = 0xcbf2_9ce4_8422_2325;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
