//! The words after the name of a benchmark: flags with values, `--no-build`, and behind `--` what is takt's.

use std::num::ParseIntError;
use std::str::FromStr;

use anyhow::{Context, bail, ensure};

/// What every benchmark takes besides its own flags.
#[derive(Debug)]
pub(super) struct Common {
    /// takt is built first.
    pub(super) build: bool,
    /// Further flags of `takt run`.
    pub(super) takt: Vec<String>,
}

/// Reads `words`; `set` gets each flag with its value.
pub(super) fn read(
    words: &[String],
    mut set: impl FnMut(&str, &str) -> anyhow::Result<()>,
) -> anyhow::Result<Common> {
    let mut common = Common { build: true, takt: Vec::new() };
    let mut words = words.iter();
    while let Some(flag) = words.next() {
        match flag.as_str() {
            "--" => {
                common.takt = words.by_ref().cloned().collect();
                break;
            }
            "--no-build" => common.build = false,
            name => {
                let value = words.next().with_context(|| format!("`{name}` needs a value"))?;
                set(name, value).with_context(|| format!("`{name} {value}`"))?;
            }
        }
    }
    Ok(common)
}

/// A number of which there must be one at least.
pub(super) fn positive<T>(value: &str) -> anyhow::Result<T>
where
    T: FromStr<Err = ParseIntError> + Default + PartialEq,
{
    let number: T = value.parse()?;
    ensure!(number != T::default(), "at least 1");
    Ok(number)
}

/// Values between commas; none at all when the text is empty.
pub(super) fn list<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    text: &str,
) -> anyhow::Result<Vec<T>> {
    let words = text.split(',').filter(|word| !word.is_empty());
    words.map(|word| word.parse().with_context(|| format!("`{word}`"))).collect()
}

/// `yes` or `no`.
pub(super) fn yes(value: &str) -> anyhow::Result<bool> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => bail!("yes or no, not `{other}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_number_of_rounds_and_maybe_is_no_answer() {
        assert_eq!(positive::<u32>("3").unwrap(), 3);
        assert_eq!(positive::<u32>("0").unwrap_err().to_string(), "at least 1");
        assert!(positive::<u64>("-1").is_err());
        assert!(yes("yes").unwrap() && !yes("no").unwrap() && yes("maybe").is_err());
    }
}
