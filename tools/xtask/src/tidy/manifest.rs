//! Rules for manifests: each crate says what it is.

use super::{Finding, SourceFile};

pub(super) fn check(file: &SourceFile, found: &mut Vec<Finding>) {
    let a_crate = file.path.ends_with("/Cargo.toml");
    if a_crate && !describes_itself(&file.text) {
        found.push(file.finding(1, "lacks a `description` in `[package]`"));
    }
}

fn describes_itself(manifest: &str) -> bool {
    manifest
        .lines()
        .filter_map(|line| line.strip_prefix("description = "))
        .any(|value| value.trim_matches(['"', ' ']).len() > 10)
}

#[cfg(test)]
mod tests {
    use super::super::found_in;
    use super::*;

    #[test]
    fn a_crate_without_a_description_is_found() {
        assert_eq!(found_in("io/x/Cargo.toml", "[package]\nname = \"x\"\n", check).len(), 1);
        assert_eq!(found_in("io/x/Cargo.toml", "description = \"\"\n", check).len(), 1);
        assert!(
            found_in("io/x/Cargo.toml", "description = \"What a crate is\"\n", check).is_empty()
        );
        assert!(found_in("Cargo.toml", "[workspace]\n", check).is_empty());
    }
}
