//! What is said while a run goes on: all of it on stderr, above the progress bar if there is one.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;

use crate::cli::{LogLevel, OutputArgs};
use crate::config::{self, Secret};

/// A hold on stderr for every thread.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    level: LogLevel,
    bar: Arc<Mutex<Option<ProgressBar>>>,
    /// What no line may show.
    secrets: Arc<Mutex<Vec<Secret>>>,
    has_bar: bool,
}

impl Console {
    pub(crate) fn new(output: OutputArgs) -> Self {
        let level =
            if output.quiet { output.log_level.min(LogLevel::Warn) } else { output.log_level };
        let has_bar = !output.quiet && std::io::stderr().is_terminal();
        Self { level, bar: Arc::default(), secrets: Arc::default(), has_bar }
    }

    /// Shows none of `secrets` in any line from now on.
    pub(crate) fn hide(&self, secrets: &[Secret]) {
        secrets.clone_into(&mut self.secrets.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether a bar is to be shown.
    pub(crate) fn has_bar(&self) -> bool {
        self.has_bar
    }

    /// Shows `bar` below all lines from now on, or none.
    pub(crate) fn show(&self, bar: Option<ProgressBar>) {
        let before = std::mem::replace(&mut *self.lock(), bar);
        if let Some(before) = before {
            before.finish_and_clear();
        }
    }

    pub(crate) fn error(&self, message: impl Display) {
        self.line(LogLevel::Error, "error: ", &message);
    }

    pub(crate) fn warn(&self, message: impl Display) {
        self.line(LogLevel::Warn, "warning: ", &message);
    }

    pub(crate) fn info(&self, message: impl Display) {
        self.line(LogLevel::Info, "", &message);
    }

    pub(crate) fn debug(&self, message: impl Display) {
        self.line(LogLevel::Debug, "debug: ", &message);
    }

    fn line(&self, level: LogLevel, word: &str, message: &dyn Display) {
        if level > self.level {
            return;
        }
        let mut line = format!("{word}{message}");
        config::clear(&mut line, &self.secrets.lock().unwrap_or_else(PoisonError::into_inner));
        // Whoever closed stderr does not want to know.
        let print = || drop(writeln!(std::io::stderr().lock(), "{line}"));
        match &*self.lock() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
