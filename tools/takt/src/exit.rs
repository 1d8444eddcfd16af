//! How the program ends: the exit codes, and errors that carry one.

use std::fmt;

/// The exit codes. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Done = 0,
    /// A fault of takt, or of the disk or the terminal at the end of a run.
    Internal = 1,
    /// The command line, the configuration or the dataset cannot be used.
    Input = 2,
    /// The endpoint cannot be reached, or this machine refuses what a run needs.
    Setup = 3,
    /// The run could not go on, or nothing in it succeeded.
    Failed = 4,
    /// The verdict is not `valid`, and `--strict` was given; records are broken; a gate says FAIL.
    NotValid = 5,
    /// A gate cannot tell.
    Inconclusive = 6,
    /// A signal stopped it.
    Interrupted = 130,
}

/// An error with the exit code that it leads to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into() }
    }

    pub(crate) fn says(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, error: anyhow::anyhow!("{message}") }
    }
}

/// Gives an error its exit code.
pub(crate) trait OrExit<T> {
    fn or_exit(self, exit: Exit) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(exit, error))
    }
}
