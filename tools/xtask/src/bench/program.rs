//! Programs that measure and make their tables themselves: built, run, and what they print is kept as it is.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::own::{Scratch, cargo};
use super::spent;
use super::table::Report;

/// One of them.
#[derive(Debug)]
pub(super) struct Program {
    /// What cargo builds, such as `-p takt-bench --bin event_cost`; empty for a script
    /// and for takt.
    pub(super) build: &'static str,
    /// Where it is below the root.
    pub(super) path: &'static str,
    /// A module that a script's Python needs, and the package that has it.
    pub(super) module: Option<(&'static str, &'static str)>,
}

impl Program {
    /// The command as a user would give it.
    pub(super) fn line(&self, args: &str) -> String {
        let line = match self.build {
            "" => format!("{} {args}", self.path),
            build if args.is_empty() => format!("cargo run --release {build}"),
            build => format!("cargo run --release {build} -- {args}"),
        };
        line.trim_end().to_owned()
    }

    /// Runs it; one that ends with an error has failed, and what it printed is kept.
    pub(super) fn run(&self, root: &Path, words: &[String]) -> anyhow::Result<Report> {
        if let Some((module, package)) = self.module {
            let import = Command::new("python3").args(["-c", &format!("import {module}")]).output();
            let there = import.is_ok_and(|out| out.status.success());
            if !there {
                let why = format!("Python has no module {module} (pip install {package})");
                return Ok(left_out(&why));
            }
        }
        if !self.build.is_empty() {
            let words: Vec<&str> = self.build.split(' ').collect();
            cargo(root, "release", &words)?;
        }
        let folder = Scratch::new()?;
        let out = folder.path().join("out");
        let mut command = Command::new(root.join(self.path));
        // A script that wants takt takes the one that the other benchmarks measure, and builds none in its place.
        command.args(words).current_dir(root).env("TAKT", root.join("target/release/takt"));
        let spent = spent::run(&mut command, &out, || Ok(0.0))?;
        let mut printed = std::fs::read_to_string(&out).context("reading what it printed")?;
        let (user_s, sys_s) = (spent.cpu.user_s, spent.cpu.sys_s);
        printed += &format!("CPU time of all of it: {user_s:.2} s user, {sys_s:.2} s system\n");
        let failed = (!spent.status.success()).then(|| format!("it ended with {}", spent.status));
        Ok(Report { printed, failed, ..Report::default() })
    }
}

/// The words of a command line; `$NAME` is what `variable` has, or the error is its name.
pub(super) fn words(
    args: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<String>, String> {
    let word = |word: &str| match word.strip_prefix('$') {
        Some(name) => variable(name).ok_or_else(|| name.to_owned()),
        None => Ok(word.to_owned()),
    };
    args.split_whitespace().map(word).collect()
}

/// What stands in the place of one that cannot be run here.
pub(super) fn left_out(why: &str) -> Report {
    Report { printed: format!("left out: {why}\n"), ..Report::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_the_one_a_user_would_give() {
        let program = |build| Program { build, path: "target/release/a", module: None };
        assert_eq!(program("-p a --bin a").line(""), "cargo run --release -p a --bin a");
        assert_eq!(program("-p a").line("--n 3"), "cargo run --release -p a -- --n 3");
        assert_eq!(program("").line("8000"), "target/release/a 8000");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let port = |name: &str| (name == "PORT").then(|| "8080".to_owned());
        assert_eq!(words("--quick  $PORT", port).unwrap(), ["--quick", "8080"]);
        assert_eq!(words("$PORT $OTHER", port), Err("OTHER".to_owned()));
    }

    #[test]
    fn what_a_program_prints_is_kept_though_it_fails() {
        let program = Program { build: "", path: "bin/sh", module: None };
        // The root of the file system, so that the shell is found below it.
        let report = program
            .run(Path::new("/"), &["-c", "pwd; echo $TAKT; false"].map(str::to_owned))
            .unwrap();
        let expect = "/\n/target/release/takt\nCPU time of all of it: ";
        assert!(report.printed.starts_with(expect), "{}", report.printed);
        assert_eq!(report.failed.as_deref(), Some("it ended with exit status: 1"));
        let program = Program { module: Some(("no_such_module_of_takt", "none")), ..program };
        let report = program.run(Path::new("/"), &[]).unwrap();
        assert!(report.printed.starts_with("left out: ") && report.failed.is_none());
    }
}
