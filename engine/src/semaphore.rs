//! A semaphore for actors: permits with FIFO waiters, as messages.
//!
//! There is nothing to block on in an actor, so a waiter is a message: it is sent to its address at once
//! when a permit is free, else when one comes free, first come first served. Whoever gets the message
//! holds the permit and must [`Semaphore::release`] it.
//!
//! ```
//! # use takt_engine::Semaphore;
//! let mut slots: Semaphore<&str> = Semaphore::new(1);
//! assert!(slots.try_acquire());
//! assert!(!slots.try_acquire());
//! assert_eq!(slots.release(), Ok(()));
//! assert_eq!(slots.available(), 1);
//! ```

use std::collections::VecDeque;
use std::fmt;

use crate::addr::Addr;

/// Permits and those who wait for one, as messages of type `M`.
pub struct Semaphore<M> {
    available: usize,
    held: usize,
    waiters: VecDeque<(Addr<M>, M)>,
}

/// More permits were released than were held: one was released twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHeld;

impl<M> Semaphore<M> {
    /// A semaphore with `permits` permits, all free.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self { available: permits, held: 0, waiters: VecDeque::new() }
    }

    /// Takes a permit if one is free. A waiter in line has precedence, so none is free while one waits.
    pub fn try_acquire(&mut self) -> bool {
        if self.available == 0 {
            return false;
        }
        self.available -= 1;
        self.held += 1;
        true
    }

    /// Sends `msg` to `to` as soon as a permit is free, at once if one is; the permit goes with it.
    pub fn acquire(&mut self, to: &Addr<M>, msg: M) {
        if self.try_acquire() {
            to.send(msg);
        } else {
            self.waiters.push_back((to.clone(), msg));
        }
    }

    /// Gives a permit back; it goes to the first waiter, if any.
    ///
    /// # Errors
    /// When none is held: a permit was released twice. Nothing changes then.
    pub fn release(&mut self) -> Result<(), NotHeld> {
        if self.held == 0 {
            return Err(NotHeld);
        }
        match self.waiters.pop_front() {
            Some((to, msg)) => to.send(msg),
            None => {
                self.held -= 1;
                self.available += 1;
            }
        }
        Ok(())
    }

    /// Free permits.
    #[must_use]
    pub fn available(&self) -> usize {
        self.available
    }

    /// Permits held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Waiters in line.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

impl<M> fmt::Debug for Semaphore<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiters.len();
        write!(f, "Semaphore({} free, {} held, {waiting} waiting)", self.available, self.held)
    }
}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a permit was released that nobody holds")
    }
}

impl std::error::Error for NotHeld {}
