//! What the fuzzers were given and what they found, read again: the targets without the fuzzer.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use targets::{TARGETS, Target};

/// The library of the fuzz programs. It is compiled in, since a crate of another workspace cannot be a
/// dependency where it lies inside this one.
#[allow(unreachable_pub, reason = "a library's items are public; here it is a module")]
#[path = "../fuzz/src/lib.rs"]
mod targets;

/// A corpus is read at each test run, so it stays small.
const FILES_MAX: usize = 60;
const BYTES_MAX: u64 = 4096;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpora")
}

fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

/// Runs a target over its corpus; a failure names the file.
fn replay((name, target): Target) -> anyhow::Result<()> {
    let files = files(&corpora().join(name))?;
    assert!((1..=FILES_MAX).contains(&files.len()), "{name}: {} files", files.len());
    for file in files {
        let data = std::fs::read(&file)?;
        assert!(data.len() as u64 <= BYTES_MAX, "{} is too large", file.display());
        let ran = std::panic::catch_unwind(|| target(&data));
        assert!(ran.is_ok(), "{name} fails on {}", file.display());
    }
    Ok(())
}

#[test]
fn every_target_takes_its_corpus() -> anyhow::Result<()> {
    TARGETS.into_iter().try_for_each(replay)
}

#[test]
fn every_corpus_and_program_has_its_target() -> anyhow::Result<()> {
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stems = |folder: &Path| -> anyhow::Result<Vec<String>> {
        let stem = |file: PathBuf| file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Ok(files(folder)?.into_iter().filter_map(stem).collect())
    };
    assert_eq!(stems(&corpora())?, names);
    assert_eq!(stems(&corpora().with_file_name("fuzz_targets"))?, names);
    Ok(())
}
