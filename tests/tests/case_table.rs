//! docs/TESTING.md says which tests hold each case of the list of what goes wrong; here they are looked for.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test that reads the sources of the workspace"
)]

use std::collections::BTreeSet;
use std::path::Path;

/// The names behind every `fn ` below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            functions(&path, found);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_test_that_the_case_table_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut known = BTreeSet::new();
    functions(root, &mut known);
    let page = std::fs::read_to_string(root.join("docs/TESTING.md")).unwrap();
    let rows = page.split("\n## Cases\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = rows.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let named: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 90, "the table is read: {}", named.len());
    // What has a slash in it is a script.
    let there =
        |name: &str| known.contains(name) || (name.contains('/') && root.join(name).is_file());
    let gone: Vec<_> = named.iter().filter(|name| !there(name)).collect();
    assert!(gone.is_empty(), "docs/TESTING.md names tests that are not there: {gone:?}");
}
