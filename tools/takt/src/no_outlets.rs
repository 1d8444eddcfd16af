//! What stands in for the outlets in a takt that was built without ZMQ: the configuration has refused all
//! that would need them.

use std::sync::mpsc::Receiver;

use takt_record::SessionPlan;
use takt_recorder::{Outlet, Tick};

use crate::config::Config;
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::folder::RunFolder;
use crate::pacer;
use crate::plan::Times;
use crate::watched::Watched;

/// Nothing leaves the run.
pub(crate) struct Outlets;

/// There was no aggregator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aggregated {
    Not,
}

impl Aggregated {
    pub(crate) fn is_here(&self) -> bool {
        false
    }

    pub(crate) fn lost(&self) -> Option<String> {
        None
    }
}

/// There are none.
pub(crate) enum Snapshots {}

/// There is none.
pub(crate) enum Process {}

impl Outlets {
    pub(crate) fn open(
        _config: &Config,
        _plan: &SessionPlan,
        _folder: &RunFolder,
        _console: &Console,
    ) -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(crate) fn pacer(
        &mut self,
        _config: &Config,
        _times: &Times,
        _plan: &SessionPlan,
        _commands: Receiver<pacer::Command>,
    ) -> Result<Process, Failure> {
        Err(Failure::says(Exit::Input, "engine.pacer: `process` needs ZMQ"))
    }

    pub(crate) fn take(&mut self) -> (Vec<Box<dyn Outlet>>, Option<Snapshots>) {
        (Vec::new(), None)
    }

    pub(crate) fn aggregated(&mut self) -> Aggregated {
        Aggregated::Not
    }

    pub(crate) fn close(self, _console: &Console) {}
}

impl Snapshots {
    pub(crate) fn look(&mut self, _watched: &Watched, _tick: &Tick<'_>) {
        match *self {}
    }
}
