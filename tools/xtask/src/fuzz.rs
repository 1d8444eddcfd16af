//! `cargo xtask fuzz`: each fuzz target for some seconds, where cargo-fuzz is installed.
//!
//! What a run finds stays in `target/fuzz`: new inputs in `corpus/TARGET`, inputs that fail in `artifacts/`. How
//! they come from there into the committed corpora is in `tests/fuzz/README.md`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// Seconds for each target unless `--seconds` says otherwise.
const SECONDS: u64 = 10;

/// What to say where the tool is missing.
pub const NOT_INSTALLED: &str =
    "cargo-fuzz is not installed (cargo install --locked cargo-fuzz); nothing was fuzzed";

/// Reads the words behind `fuzz` and runs the targets that they name, or all.
///
/// # Errors
/// A bad word, no cargo-fuzz, or a target that found something.
pub fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let all = targets(root)?;
    let (seconds, chosen) = parse(words, &all)?;
    if !installed() {
        bail!(NOT_INSTALLED);
    }
    each(root, &chosen, Budget::Seconds(seconds))
}

/// How far a target is run.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// So many seconds, by chance of its own.
    Seconds(u64),
    /// The same inputs every time, so many: what passed once passes again, on a faster machine too, so that CI
    /// tells of the change at hand and of nothing else.
    Repeatable(u64),
}

/// Whether `cargo fuzz` is there.
#[must_use]
pub fn installed() -> bool {
    let output = Command::new(super::ci::program()).args(["fuzz", "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

/// The names of all targets.
///
/// # Errors
/// The folder of their programs cannot be read.
pub fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("tests/fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder);
    let entries = entries.with_context(|| format!("reading {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Runs each target, one after the other.
///
/// # Errors
/// A target does not build, or found something.
pub fn each(root: &Path, targets: &[String], budget: Budget) -> anyhow::Result<()> {
    for target in targets {
        println!("fuzz: {target}, {budget:?}");
        one(root, target, budget).with_context(|| format!("fuzz target {target}"))?;
    }
    Ok(())
}

fn one(root: &Path, target: &str, budget: Budget) -> anyhow::Result<()> {
    let (fuzz, out) = (root.join("tests/fuzz"), root.join("target/fuzz"));
    let artifacts = out.join("artifacts");
    let found = match budget {
        Budget::Seconds(_) => out.join("corpus").join(target),
        // What this machine found before must not decide what comes.
        Budget::Repeatable(_) => {
            let fresh = out.join("repeatable").join(target);
            if fresh.exists() {
                std::fs::remove_dir_all(&fresh)
                    .with_context(|| format!("emptying {}", fresh.display()))?;
            }
            fresh
        }
    };
    for folder in [&found, &artifacts] {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let mut command = Command::new(super::ci::program());
    command.current_dir(root).args(["fuzz", "run", "--sanitizer", "none"]);
    command.arg("--fuzz-dir").arg(&fuzz).arg("--target-dir").arg(&out);
    command.arg(target).arg(&found).arg(fuzz.join("corpora").join(target));
    command.args(["--", "-max_len=4096", "-timeout=10"]);
    match budget {
        Budget::Seconds(seconds) => command.arg(format!("-max_total_time={seconds}")),
        Budget::Repeatable(inputs) => command.arg("-seed=1").arg(format!("-runs={inputs}")),
    };
    command.arg(format!("-artifact_prefix={}/{target}-", artifacts.display()));
    let words = fuzz.join("dictionaries").join(format!("{target}.dict"));
    if words.exists() {
        command.arg(format!("-dict={}", words.display()));
    }
    let status = command.status().context("starting cargo fuzz")?;
    ensure!(status.success(), "it ended with {status}; its input is in {}", artifacts.display());
    Ok(())
}

fn parse(words: &[String], all: &[String]) -> anyhow::Result<(u64, Vec<String>)> {
    let (mut seconds, mut chosen) = (SECONDS, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--seconds" {
            let number = words.next().context("--seconds: say how many")?;
            seconds = number.parse().with_context(|| format!("--seconds: `{number}`"))?;
        } else if all.contains(word) {
            chosen.push(word.clone());
        } else {
            bail!("no target is called `{word}`; there are {}", all.join(", "));
        }
    }
    // To libFuzzer, no seconds are all seconds.
    ensure!(seconds > 0, "--seconds: at least 1");
    Ok((seconds, if chosen.is_empty() { all.to_vec() } else { chosen }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_targets_and_seconds() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let all = words("a b c");
        let read = |line: &str| parse(&words(line), &all);
        assert_eq!(read("").unwrap(), (SECONDS, all.clone()));
        assert_eq!(read("b --seconds 3 a").unwrap(), (3, words("b a")));
        for bad in ["d", "--seconds", "--seconds x", "--seconds 0"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
