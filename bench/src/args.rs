//! Flags of the form `--name value`, which is all these programs need.

use std::fmt;
use std::str::FromStr;

/// The flags given on a command line, each taken once.
#[derive(Debug)]
pub struct Args {
    pairs: Vec<(String, String)>,
}

impl Args {
    /// Reads `--name value` pairs; `words` is the command line without the program's name.
    ///
    /// # Errors
    /// A word that is no flag, or a flag without a value.
    pub fn read(words: impl IntoIterator<Item = String>) -> Result<Self, BadArg> {
        let mut pairs = Vec::new();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let name = word
                .strip_prefix("--")
                .ok_or_else(|| BadArg(format!("`{word}` is not a flag; flags are `--name value`")))?
                .to_owned();
            let value = words.next().ok_or_else(|| BadArg(format!("`--{name}` needs a value")))?;
            pairs.push((name, value));
        }
        Ok(Self { pairs })
    }

    /// Takes the flag `--name`, when it was given.
    ///
    /// # Errors
    /// The value is not a `T`.
    pub fn take<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, BadArg> {
        let Some(at) = self.pairs.iter().position(|(given, _)| given == name) else {
            return Ok(None);
        };
        let (_, value) = self.pairs.remove(at);
        match value.parse() {
            Ok(parsed) => Ok(Some(parsed)),
            Err(_) => Err(BadArg(format!("`--{name} {value}` is not a value of the right kind"))),
        }
    }

    /// Says that no more flags are known.
    ///
    /// # Errors
    /// A flag is left: it is unknown, or was given twice.
    pub fn done(self) -> Result<(), BadArg> {
        match self.pairs.first() {
            None => Ok(()),
            Some((name, _)) => Err(BadArg(format!("`--{name}` is unknown or given twice"))),
        }
    }
}

/// A command line that cannot be followed, with the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct BadArg(pub String);

impl fmt::Display for BadArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadArg {}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Result<Args, BadArg> {
        Args::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_are_taken_by_name_and_kind() {
        let mut given = args("--seconds 2.5 --connections 64").unwrap();
        assert_eq!(given.take::<usize>("connections"), Ok(Some(64)));
        assert_eq!(given.take::<f64>("seconds"), Ok(Some(2.5)));
        assert_eq!(given.take::<u64>("requests"), Ok(None));
        assert_eq!(given.done(), Ok(()));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        assert!(args("64").is_err());
        assert!(args("--seconds").is_err());
        assert!(args("--seconds soon").unwrap().take::<f64>("seconds").is_err());
        assert!(args("--second 1").unwrap().done().is_err());
    }
}
