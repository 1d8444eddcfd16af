//! Where the workspace is, and which crates it has.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The workspace's root: the nearest folder at or above `here` whose `Cargo.toml` is a workspace.
///
/// # Errors
/// There is none.
pub fn of(here: &Path) -> anyhow::Result<PathBuf> {
    for folder in here.ancestors() {
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        if manifest.lines().any(|line| line.trim() == "[workspace]") {
            return Ok(folder.to_owned());
        }
    }
    bail!("{} is not inside the workspace", here.display())
}

/// The folders of the member crates, as the root manifest lists them.
///
/// # Errors
/// The manifest cannot be read or lists no members.
pub fn members(root: &Path) -> anyhow::Result<Vec<String>> {
    let manifest = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest)
        .with_context(|| format!("reading {}", manifest.display()))?;
    let members = members_of(&text);
    if members.is_empty() {
        bail!("{} lists no members", manifest.display());
    }
    Ok(members)
}

fn members_of(manifest: &str) -> Vec<String> {
    let Some((_, list)) = manifest.split_once("\nmembers = [") else { return Vec::new() };
    let list = list.split(']').next().unwrap_or_default();
    // Between quotes: every second piece.
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_what_stands_between_quotes() {
        let manifest =
            "[workspace]\nmembers = [\n    \"a\", \"b/c\",\n    \"d\",\n]\nx = [\"e\"]\n";
        assert_eq!(members_of(manifest), ["a", "b/c", "d"]);
        assert!(members_of("[package]\n").is_empty());
    }
}
