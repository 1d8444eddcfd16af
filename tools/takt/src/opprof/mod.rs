//! `takt opprof`: what the server was doing. Files are opened and text is printed here; what is read and
//! judged is in `takt-opprof`.

mod attribute;
mod check;
mod demo;
mod during;
mod experts;
mod files;
mod gate;
mod join;
mod outputs;
mod pairs;
mod records;
mod window;

pub(crate) use during::{During, Shared as ServerShared, attach};
pub(crate) use gate::comparable;

use crate::cli::OpprofCommand;
use crate::console::Console;
use crate::exit::{Exit, Failure};

/// Carries the command out.
pub(crate) fn opprof(command: &OpprofCommand, console: &Console) -> Result<Exit, Failure> {
    match command {
        OpprofCommand::Check(args) => check::check(args, console),
        OpprofCommand::Window(args) => window::window(args, console),
        OpprofCommand::Attribute(args) => attribute::attribute(args, console),
        OpprofCommand::Calibrate(args) => attribute::calibrate(args, console),
        OpprofCommand::Experts(args) => experts::experts(args),
        OpprofCommand::Join(args) => join::join(args, console),
        OpprofCommand::Demo(args) => demo::demo(args, console),
        OpprofCommand::Gate(args) => gate::gate(args, console),
    }
}
