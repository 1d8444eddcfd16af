//! The driver: steps systems in turn on one clock, and moves the clock when none has anything to do.
//!
//! Each system is stepped as often as it has something to do at the current instant; then the clock goes
//! to whatever comes first of the deadlines that the hosts wait for and the events of the network. When
//! there is neither, nothing would ever happen again: that is a deadlock. When a thousand turns and more
//! go by at one instant the systems turn in circles. Both are told with the last dispatches of each system.

use std::fmt::Write;

use takt_engine::System;
use takt_time::Nanos;

use super::host::{SimHost, World};

/// Moves the systems of one world.
#[derive(Debug)]
pub struct Drive {
    world: World,
    /// Still moving by then, the systems have hung.
    horizon: Nanos,
    turns: u64,
}

/// Why a simulation cannot go on, in words, last dispatches included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck(pub String);

impl Drive {
    /// A driver of `world` that gives up at `horizon`.
    #[must_use]
    pub fn new(world: World, horizon: Nanos) -> Self {
        Self { world, horizon, turns: 0 }
    }

    /// Runs until the first system stops.
    ///
    /// # Errors
    /// [`Stuck`] when that can never come, or has not by the horizon.
    pub fn run(&mut self, systems: &mut [&mut System<SimHost>]) -> Result<(), Stuck> {
        loop {
            self.settle(systems)?;
            if systems[0].is_stopped() {
                return Ok(());
            }
            if !self.move_on(systems)? {
                return Err(self.stuck("deadlock: nothing will ever happen again", systems));
            }
        }
    }

    /// Runs until nothing will ever happen again, as it must once all work is done.
    ///
    /// # Errors
    /// [`Stuck`] when that has not come by the horizon.
    pub fn run_dry(&mut self, systems: &mut [&mut System<SimHost>]) -> Result<(), Stuck> {
        loop {
            self.settle(systems)?;
            if !self.move_on(systems)? {
                return Ok(());
            }
        }
    }

    /// Moves the clock to what happens next, if anything does.
    fn move_on(&mut self, systems: &mut [&mut System<SimHost>]) -> Result<bool, Stuck> {
        let waits = systems.iter_mut().filter(|system| !system.is_stopped());
        let deadlines = waits.filter_map(|system| system.host().deadline());
        let Some(at) = deadlines.chain(self.world.next_at()).min() else { return Ok(false) };
        if at > self.horizon {
            return Err(self.stuck("hung: still running at the horizon", systems));
        }
        self.world.move_to(at);
        Ok(true)
    }

    /// Turns so far, of all systems.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Steps the systems until none has anything to do at this instant.
    fn settle(&mut self, systems: &mut [&mut System<SimHost>]) -> Result<(), Stuck> {
        let (mut at, mut turns) = (self.world.now(), 0);
        loop {
            let mut any = false;
            for system in systems.iter_mut() {
                if !system.is_stopped() && system.host().has_work() {
                    system.turn().expect("a simulated park does not fail");
                    any = true;
                }
            }
            if !any {
                return Ok(());
            }
            self.turns += 1;
            turns += 1;
            if self.world.now() > at {
                // Calls may cost time.
                (at, turns) = (self.world.now(), 0);
            }
            if turns > TURNS_AT_ONCE || at > self.horizon {
                return Err(self.stuck("livelock: the systems turn in circles", systems));
            }
        }
    }

    fn stuck(&self, what: &str, systems: &[&mut System<SimHost>]) -> Stuck {
        let mut words = format!("{what}, at {:?}\n", self.world.now());
        for (number, system) in systems.iter().enumerate() {
            let stopped = if system.is_stopped() { ", stopped" } else { "" };
            let _ = write!(words, "system {number}{stopped}: {:?}", system.trace());
        }
        Stuck(words)
    }
}

/// A burst issues one request a turn: far more turns at one instant than any scenario has requests.
const TURNS_AT_ONCE: u64 = 1_000_000;
