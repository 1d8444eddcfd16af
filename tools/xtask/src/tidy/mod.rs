//! The rules of the house that no compiler checks.
//!
//! Each rule is a pure function from one file to findings; this module reads the files and gathers.
//! A rule that cannot be broken by accident, or that clippy has, does not belong here.
//!
//! What is read: the member crates' folders, `docs`, `.ci` and the files at the root. What else lies
//! about in a checkout (run folders, editors' files) is nobody's business.

mod code;
mod files;
mod manifest;
mod markdown;
mod rust;
mod text;

use std::fmt;
use std::path::Path;

use anyhow::bail;

pub use files::SourceFile;

/// A rule broken, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Relative to the workspace's root.
    pub path: String,
    /// Counted from 1; the first line for what concerns the file as a whole.
    pub line: usize,
    /// What is wrong and what to do about it.
    pub says: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.says)
    }
}

/// Every rule over every file of the workspace at `root`.
///
/// # Errors
/// A file cannot be read.
pub fn findings(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let members = crate::root::members(root)?;
    let files = files::read(root, &members)?;
    let exists = |path: &str| root.join(path).exists();
    let mut found = Vec::new();
    for file in &files {
        text::check(file, &mut found);
        match file.extension() {
            "rs" => rust::check(file, &mut found),
            "md" => markdown::check(file, &files, &exists, &mut found),
            "toml" => manifest::check(file, &mut found),
            _ => {}
        }
    }
    rust::check_crate_roots(&files, &members, &mut found);
    Ok(found)
}

/// Prints the findings of the workspace at `root`.
///
/// # Errors
/// There are findings, or a file cannot be read.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let found = findings(root)?;
    for finding in &found {
        println!("{finding}");
    }
    match found.len() {
        0 => Ok(()),
        1 => bail!("1 finding"),
        n => bail!("{n} findings"),
    }
}

/// For the rules' own tests: what `check` finds in a file of this path and text, as `line: says`.
#[cfg(test)]
fn found_in(path: &str, text: &str, check: fn(&SourceFile, &mut Vec<Finding>)) -> Vec<String> {
    let mut found = Vec::new();
    check(&SourceFile { path: path.into(), text: text.into() }, &mut found);
    found.into_iter().map(|f| format!("{}: {}", f.line, f.says)).collect()
}
