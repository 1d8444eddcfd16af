//! Puts deliberate bugs into a copy of the workspace, one at a time, and shows that each is found: by a seed of the
//! simulation, or where no simulated server goes, by the tests of the crate that reads or counts.
//! `mutants [NAME]`, all of them or one, in a scratch folder under the build folder.
//!
//! A check that never failed has proven nothing. A mutant that survives means that a rule is missing, or that
//! no seed comes where it lives.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "starts the compiler and says how long it took")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Instant;

use takt_tests::mutants::{MUTANTS, Mutant};

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of it");
    let scratch = root.join("target/mutants");
    let mut survivors = 0;
    for mutant in MUTANTS.iter().filter(|m| wanted.as_ref().is_none_or(|w| m.name.contains(w))) {
        copy(root, &scratch);
        let began = Instant::now();
        let built = put(mutant, &scratch).and_then(|()| build(mutant, &scratch));
        let building = began.elapsed().as_secs();
        let began = Instant::now();
        let caught = built.and_then(|()| hunt(mutant, &scratch));
        let seconds =
            format!("{:5.1} s after {building} s of building", began.elapsed().as_secs_f64());
        match caught {
            Ok(by) => println!("caught in {seconds}: {}\n    {by}", mutant.name),
            Err(why) => {
                println!("SURVIVED  {seconds}: {}\n    {why}", mutant.name);
                survivors += 1;
            }
        }
    }
    if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Puts a mutant into the copy.
fn put(mutant: &Mutant, copy: &Path) -> Result<(), String> {
    let path = copy.join(mutant.file);
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    std::fs::write(&path, mutant.put_into(&text)?).map_err(|error| error.to_string())
}

fn build(mutant: &Mutant, copy: &Path) -> Result<(), String> {
    let build = match mutant.tests {
        None => cargo(copy, &["build", "-q", "-p", "takt-tests", "--bin", "simulate"]),
        Some((package, _)) => cargo(copy, &["test", "-q", "-p", package, "--tests", "--no-run"]),
    };
    if build.status.success() {
        return Ok(());
    }
    Err(format!("does not build: {}", String::from_utf8_lossy(&build.stderr)))
}

/// Gives what caught it.
fn hunt(mutant: &Mutant, copy: &Path) -> Result<String, String> {
    match mutant.tests {
        None => by_seeds(copy),
        Some((package, filter)) => by_tests(copy, package, filter),
    }
}

/// Runs seeds until one fails.
fn by_seeds(copy: &Path) -> Result<String, String> {
    let hunt = ["run", "-q", "-p", "takt-tests", "--bin", "simulate", "--", "--hunt", SEEDS];
    let run = cargo(copy, &hunt);
    let said = String::from_utf8_lossy(&run.stdout);
    if run.status.success() {
        return Err(format!("{SEEDS} seeds found nothing"));
    }
    if !said.starts_with("seed ") {
        return Err(format!("no seeds were run: {}", String::from_utf8_lossy(&run.stderr)));
    }
    let told: Vec<&str> = said.lines().take(2).map(str::trim).collect();
    Ok(told.join(": ").chars().take(200).collect())
}

/// Runs the tests of a package; gives the first that failed, and how many more did.
fn by_tests(copy: &Path, package: &str, filter: &str) -> Result<String, String> {
    let run = cargo(copy, &["test", "-p", package, "--tests", "--no-fail-fast", filter]);
    let said = String::from_utf8_lossy(&run.stdout);
    let failed =
        said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let failed: Vec<&str> = failed.collect();
    match failed.as_slice() {
        [] => Err(format!("the tests of {package} found nothing")),
        [one] => Ok(format!("{package}: {one}")),
        [first, more @ ..] => Ok(format!("{package}: {first} and {} more", more.len())),
    }
}

fn cargo(copy: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("cargo");
    command.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("target"));
    // Quick to build and quick enough to run.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
    // Most of each crate is as it was for the mutant before.
    command.env("CARGO_INCREMENTAL", "1");
    // A failure that a property once had would be found without looking.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    command.args(args).output().expect("cargo starts")
}

/// Brings the copy of the workspace up to date; only what differs is written, so that builds stay short, and what is
/// no more in the workspace goes.
fn copy(root: &Path, to: &Path) {
    for folder in ["engine", "io", "actors", "tools", "tests", "bench"] {
        copy_folder(&root.join(folder), &to.join(folder));
    }
    for file in ["Cargo.toml", "Cargo.lock", "clippy.toml"] {
        copy_file(&root.join(file), &to.join(file));
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the build folder can be written");
    for entry in std::fs::read_dir(to).expect("a folder of the copy") {
        let old = entry.expect("a folder of the copy").path();
        let gone = old.file_name().is_some_and(|name| !from.join(name).exists());
        match (gone, old.is_dir()) {
            (true, true) => std::fs::remove_dir_all(&old),
            (true, false) => std::fs::remove_file(&old),
            (false, _) => Ok(()),
        }
        .expect("the build folder can be written");
    }
    for entry in std::fs::read_dir(from).expect("a folder of the workspace") {
        let path: PathBuf = entry.expect("a folder of the workspace").path();
        let name = path.file_name().expect("entries have names");
        if path.is_dir() {
            if name != "target" && name != "corpora" {
                copy_folder(&path, &to.join(name));
            }
        } else {
            copy_file(&path, &to.join(name));
        }
    }
}

fn copy_file(from: &Path, to: &Path) {
    let new = std::fs::read(from).expect("a file of the workspace");
    if std::fs::read(to).is_ok_and(|old| old == new) {
        return;
    }
    std::fs::write(to, new).expect("the build folder can be written");
}

/// Far more than any mutant has needed.
const SEEDS: &str = "4000";
