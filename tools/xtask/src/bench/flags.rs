//! The words after the name of a benchmark: flags with values, `--no-build`, and behind `--` what is takt's.

use anyhow::Context;

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
