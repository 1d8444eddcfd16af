//! Rules for every text file: nothing of the machine it was written on.

use super::{Finding, SourceFile};

/// Beginnings of paths that exist on somebody's machine only. Split, since this file is read too.
const MACHINE_PATHS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

pub(super) fn check(file: &SourceFile, found: &mut Vec<Finding>) {
    for (at, line) in file.text.lines().enumerate() {
        for path in MACHINE_PATHS.iter().filter(|path| begins_a_path(line, path)) {
            found.push(file.finding(at + 1, format!("`{path}…` is a path of one machine")));
        }
    }
}

/// Whether `path` stands in `line` as the beginning of a path, not as a part of a longer one.
fn begins_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::found_in;
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found_and_a_part_of_a_url_is_not() {
        for path in MACHINE_PATHS {
            assert_eq!(found_in("docs/a.md", &format!("see {path}x"), check).len(), 1);
            let url = format!("see https://example.org{path}x");
            assert!(found_in("docs/a.md", &url, check).is_empty());
        }
    }
}
