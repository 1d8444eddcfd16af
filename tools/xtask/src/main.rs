//! `cargo xtask CHORE`: reads the command line and hands over to the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Context, bail};
use xtask::{bench, ci, fuzz, root, tidy};

const USAGE: &str = "\
usage: cargo xtask CHORE

  ci [STEP…]     all checks, or the named ones: fmt, tidy, clippy, test, fuzz, loom, examples
  tidy           the rules of the house that no compiler checks
  fuzz [--seconds N] [TARGET…]
                 fuzz targets, each for N seconds (needs cargo-fuzz)
  bench NAME     measures what takt costs; `cargo xtask bench` lists what there is
  bench all      all benchmarks, onto one page of tables";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match chore(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn chore(words: &[String]) -> anyhow::Result<()> {
    let Some((name, rest)) = words.split_first() else { bail!("no chore named\n\n{USAGE}") };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let here = std::env::current_dir().context("reading the current directory")?;
    let root = root::of(&here)?;
    match name.as_str() {
        "ci" => ci::run(&root, rest),
        "tidy" => tidy::run(&root),
        "fuzz" => fuzz::run(&root, rest),
        "bench" => bench::run(&root, rest),
        other => bail!("no chore is called `{other}`\n\n{USAGE}"),
    }
}
