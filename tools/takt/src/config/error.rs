//! What is wrong with a configuration, and where.

use std::fmt;

use super::node::Origin;
use super::secret::{Secret, clear};

/// An error of the configuration: `file:line: key: what is wrong; how to mend it`.
#[derive(Debug)]
pub(crate) struct ConfigError {
    at: Origin,
    path: String,
    says: String,
}

impl ConfigError {
    /// An error about the key at `path` (empty for the whole), said at `at`. `says` must not show values
    /// that may be secrets.
    pub(crate) fn new(at: Origin, path: impl Into<String>, says: impl Into<String>) -> Self {
        Self { at, path: path.into(), says: says.into() }
    }

    /// The same error with none of `secrets` in its text: a value that is wrong may be quoted.
    pub(super) fn without(mut self, secrets: &[Secret]) -> Self {
        clear(&mut self.says, secrets);
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        // A flag or `--set` names the key already.
        let named = matches!(&self.at, Origin::Set(path) if **path == *self.path);
        if !self.path.is_empty() && !named {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.says)
    }
}

impl std::error::Error for ConfigError {}

/// The candidate most like `given`, if it is like it at all: a letter wrong in three at the most, or only its
/// end missing.
pub(crate) fn nearest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let given = given.to_lowercase();
    candidates
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, name), name))
        .filter(|(wrong, name)| {
            let begun = given.len() >= 3 && name.starts_with(&*given);
            wrong * 3 <= given.len().max(name.len()) || begun
        })
        .min_by_key(|(wrong, _)| *wrong)
        .map(|(_, name)| name)
}
