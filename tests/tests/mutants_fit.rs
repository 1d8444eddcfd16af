//! The deliberate bugs of the program `mutants` are looked for where they are to be put: a mutant that fits no more
//! proves nothing.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a test that reads the sources of the workspace")]

use std::collections::BTreeSet;
use std::path::Path;

use takt_tests::mutants::MUTANTS;

#[test]
fn every_mutant_fits_its_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of it");
    let put = MUTANTS.iter().map(|mutant| {
        let text = std::fs::read_to_string(root.join(mutant.file))
            .map_err(|error| format!("{}: {}: {error}", mutant.name, mutant.file))?;
        mutant.put_into(&text).map(drop)
    });
    let unfit: Vec<String> = put.filter_map(Result::err).collect();
    assert!(unfit.is_empty(), "mend them in tests/src/mutants.rs:\n{}", unfit.join("\n"));
}

#[test]
fn the_table_has_every_mutant_and_no_other() {
    let page = include_str!("../../docs/TESTING.md");
    let (_, rows) = page.split_once("\n## Mutants\n").expect("there is such a table");
    let rows = rows.split("\n## ").next().unwrap_or_default().lines();
    let rows = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").next());
    let named: BTreeSet<&str> =
        rows.filter(|row| *row != "bug" && !row.starts_with("---")).collect();
    let known: BTreeSet<&str> = MUTANTS.iter().map(|mutant| mutant.name).collect();
    assert_eq!(named, known);
}
