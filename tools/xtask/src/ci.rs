//! Everything that must hold before a change is taken, in steps, the quick ones first.
//!
//! Each step prints one line when it starts and one when it ends, with its time. The first that fails
//! ends the run and says how to repeat it alone. Nothing is needed but a Rust toolchain and a C/C++
//! compiler.
//!
//! Few builds: clippy checks once, tests and examples share the test profile's objects, and only the
//! one crate under loom is built again, in a target folder of its own since its flags differ.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::{fuzz, tidy};

/// An example shows something and ends; one that takes longer hangs.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// Enough to notice what a change broke at once; long runs are for a machine left alone.
const FUZZ_INPUTS: u64 = 6000;

/// Crates with examples that run here.
const EXAMPLES_OF: [&str; 2] = ["engine", "actors"];

/// Runs the steps named in `words`, or all of them.
///
/// # Errors
/// A step failed, or none has that name.
pub fn run(root: &Path, words: &[String]) -> anyhow::Result<()> {
    let steps = chosen(words)?;
    let began = Instant::now();
    let mut lines = Vec::new();
    for step in steps {
        println!("\nci: {} …  ({})", step.name(), step.by_hand());
        let step_began = Instant::now();
        let outcome = step.run(root);
        let took = seconds(step_began);
        match outcome {
            Ok(says) => lines.push(format!("ci: {:<9} ok      {took}  {says}", step.name())),
            Err(error) => {
                lines.push(format!("ci: {:<9} FAILED  {took}  {error:#}", step.name()));
                println!("\n{}", lines.join("\n"));
                bail!("step `{0}` failed; alone: cargo xtask ci {0}", step.name());
            }
        }
        println!("{}", lines[lines.len() - 1]);
    }
    if lines.len() > 1 {
        println!("\n{}\nci: all good  {}", lines.join("\n"), seconds(began));
    }
    Ok(())
}

fn chosen(words: &[String]) -> anyhow::Result<Vec<Step>> {
    if words.is_empty() {
        return Ok(Step::ALL.to_vec());
    }
    words
        .iter()
        .map(|word| {
            Step::ALL.into_iter().find(|step| step.name() == word).with_context(|| {
                format!(
                    "no step is called `{word}`; there are {}",
                    Step::ALL.map(Step::name).join(", ")
                )
            })
        })
        .collect()
}

fn seconds(since: Instant) -> String {
    format!("{:6.1} s", since.elapsed().as_secs_f64())
}

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Fmt,
    Tidy,
    Clippy,
    Test,
    Fuzz,
    Loom,
    Examples,
}

impl Step {
    const ALL: [Self; 7] =
        [Self::Fmt, Self::Tidy, Self::Clippy, Self::Test, Self::Fuzz, Self::Loom, Self::Examples];

    fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Tidy => "tidy",
            Self::Clippy => "clippy",
            Self::Test => "test",
            Self::Fuzz => "fuzz",
            Self::Loom => "loom",
            Self::Examples => "examples",
        }
    }

    /// What to type for the same without this program.
    fn by_hand(self) -> &'static str {
        match self {
            Self::Fmt => "cargo fmt --all -- --check",
            Self::Tidy => "cargo xtask tidy",
            Self::Clippy => "cargo clippy --workspace --all-targets --locked -- -D warnings",
            Self::Test => "cargo test --workspace --locked",
            Self::Fuzz => {
                "cargo test --workspace --test fuzz_corpora --locked; cargo xtask fuzz --seconds 3"
            }
            Self::Loom => {
                "RUSTFLAGS='--cfg loom' cargo test -p takt-engine --release --lib \
                 --target-dir target/loom loom"
            }
            Self::Examples => "cargo run -p CRATE --example NAME, for each",
        }
    }

    /// Runs it and says in a few words what was done.
    fn run(self, root: &Path) -> anyhow::Result<String> {
        match self {
            Self::Fmt => {
                passes(cargo(root, &["fmt", "--all", "--", "--check"]))?;
                Ok("no difference".into())
            }
            Self::Tidy => {
                tidy::run(root)?;
                Ok("no finding".into())
            }
            Self::Clippy => {
                let words = ["clippy", "--workspace", "--all-targets", "--locked"];
                let mut clippy = cargo(root, &words);
                clippy.args(["--", "-D", "warnings"]);
                passes(clippy)?;
                Ok("no warning".into())
            }
            Self::Test => tests(cargo(root, &["test", "--workspace", "--locked"])),
            Self::Fuzz => fuzzed(root),
            Self::Loom => loom(root),
            Self::Examples => examples(root),
        }
    }
}

/// Reads the corpora again, and looks a little further where cargo-fuzz is installed.
fn fuzzed(root: &Path) -> anyhow::Result<String> {
    // The whole workspace is named, so that what the tests have built is not built again.
    let words = ["test", "--workspace", "--test", "fuzz_corpora", "--locked"];
    tests(cargo(root, &words))?;
    let targets = fuzz::targets(root)?;
    if !fuzz::installed() {
        return Ok(format!("corpora of {} targets; {}", targets.len(), fuzz::NOT_INSTALLED));
    }
    fuzz::each(root, &targets, fuzz::Budget::Repeatable(FUZZ_INPUTS))?;
    Ok(format!("corpora of {} targets, and {FUZZ_INPUTS} inputs for each", targets.len()))
}

fn loom(root: &Path) -> anyhow::Result<String> {
    let mut command = cargo(root, &["test", "-p", "takt-engine", "--release", "--lib", "--locked"]);
    command.args(["--target-dir", "target/loom", "loom"]);
    command.env("RUSTFLAGS", "--cfg loom");
    tests(command)
}

/// Runs `command`, a `cargo test`, shows what it prints, and adds up its result lines. A run in which
/// nothing was tested is a failure: a filter that matches nothing would pass for ever.
fn tests(mut command: Command) -> anyhow::Result<String> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("starting cargo")?;
    let mut tally = Tally::default();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.context("reading the tests' output")?;
            println!("{line}");
            tally.add(&line);
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "{} ({status})", tally.says());
    ensure!(tally.passed > 0, "no test ran");
    Ok(tally.says())
}

/// Result lines of test programs, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    programs: u64,
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds a line such as `test result: ok. 5 passed; 0 failed; 1 ignored; …`; others are no matter.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.programs += 1;
        let counts = result.split_once(". ").map_or("", |(_, counts)| counts);
        for count in counts.split("; ") {
            let Some((n, what)) = count.split_once(' ') else { continue };
            let Ok(n) = n.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += n,
                "failed" => self.failed += n,
                "ignored" => self.ignored += n,
                _ => {}
            }
        }
    }

    fn says(&self) -> String {
        let Self { programs, passed, failed, ignored } = self;
        format!("{passed} passed, {failed} failed, {ignored} ignored in {programs} test programs")
    }
}

/// Examples are built as `cargo test --workspace` builds them, so that nothing is built again, and run as
/// they are.
fn examples(root: &Path) -> anyhow::Result<String> {
    let words = ["build", "--workspace", "--examples", "--profile", "test", "--locked"];
    passes(cargo(root, &words))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let built = root.join(target).join("debug/examples");
    let mut count = 0;
    for folder in EXAMPLES_OF {
        let names = example_names(&root.join(folder).join("examples"))?;
        ensure!(!names.is_empty(), "{folder}/examples is empty");
        for name in names {
            println!("ci: {folder}/examples/{name}");
            let mut example = Command::new(built.join(&name));
            example.current_dir(root);
            passes_within(example, EXAMPLE_LIMIT).with_context(|| format!("example {name}"))?;
            count += 1;
        }
    }
    Ok(format!("{count} ran"))
}

fn example_names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if path.extension().is_some_and(|e| e == "rs")
            && let Some(stem) = stem
        {
            names.push(stem.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The cargo that runs this program.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// That cargo at the workspace's root.
fn cargo(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.current_dir(root).args(words);
    command
}

fn passes(mut command: Command) -> anyhow::Result<()> {
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Runs `command` and stops it when it takes longer than `limit`.
fn passes_within(mut command: Command, limit: Duration) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut child = command.spawn().context("starting it")?;
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "it ended with {status}");
            return Ok(());
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("still running after {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_added_up() {
        let mut tally = Tally::default();
        tally.add("running 6 tests");
        tally.add("test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        tally.add("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured");
        assert_eq!(tally, Tally { programs: 2, passed: 7, failed: 3, ignored: 1 });
    }

    #[test]
    fn steps_are_chosen_by_name() {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(chosen(&[]).unwrap(), Step::ALL);
        assert_eq!(chosen(&words("loom fmt")).unwrap(), [Step::Loom, Step::Fmt]);
        assert!(chosen(&words("lint")).is_err());
    }
}
