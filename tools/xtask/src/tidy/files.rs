//! The files that the rules look at.

use std::path::Path;

use anyhow::Context;

use super::Finding;

/// A text file of the workspace.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Relative to the workspace's root, with `/` between the parts.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl SourceFile {
    /// What follows the last dot of the name; empty without one.
    #[must_use]
    pub fn extension(&self) -> &str {
        extension(&self.path)
    }

    /// A finding in this file; `line` counts from 1.
    #[must_use]
    pub fn finding(&self, line: usize, says: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, says: says.into() }
    }

    /// Whether the file lies in `folder`, given relative to the root.
    #[must_use]
    pub fn within(&self, folder: &str) -> bool {
        self.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

/// Kinds of files that are read; the rest is data.
const EXTENSIONS: [&str; 9] = ["rs", "md", "toml", "sh", "lua", "yaml", "yml", "py", ""];

/// Folders of a checkout that hold the project, apart from the members'.
const FOLDERS: [&str; 4] = ["docs", ".ci", ".cargo", ".github"];

/// Folders of data, which need not be text, at any depth.
const DATA: [&str; 2] = ["target", "corpora"];

/// Every text file of the project.
///
/// # Errors
/// A folder or file cannot be read, or is not UTF-8.
pub(super) fn read(root: &Path, members: &[String]) -> anyhow::Result<Vec<SourceFile>> {
    let mut paths = Vec::new();
    list(root, "", false, &mut paths)?;
    for folder in FOLDERS.iter().copied().chain(members.iter().map(String::as_str)) {
        if root.join(folder).is_dir() {
            list(root, folder, true, &mut paths)?;
        }
    }
    paths.sort();
    paths.dedup();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(root.join(&path))
                .with_context(|| format!("reading {path}"))?;
            Ok(SourceFile { path, text })
        })
        .collect()
}

fn list(root: &Path, folder: &str, deep: bool, out: &mut Vec<String>) -> anyhow::Result<()> {
    let at = root.join(folder);
    let entries = std::fs::read_dir(&at).with_context(|| format!("reading {}", at.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && deep && !DATA.contains(&name) {
            list(root, &path, deep, out)?;
        } else if kind.is_file() && EXTENSIONS.contains(&extension(name)) {
            out.push(path);
        }
    }
    Ok(())
}

fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}
