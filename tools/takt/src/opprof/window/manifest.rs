//! The manifest's file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::super::files;
use super::entry::{MANIFEST_SCHEMA, Manifest, WindowKind};

/// The manifest at `path`; an empty one when there is none.
pub(crate) fn read(path: &Path) -> anyhow::Result<Manifest> {
    if !path.exists() {
        return Ok(Manifest::default());
    }
    let bytes = files::read(path, BYTES_MAX)?;
    let no_manifest =
        || format!("{}: is no manifest of windows; name another with --manifest", path.display());
    let manifest: Manifest = serde_json::from_slice(&bytes).with_context(no_manifest)?;
    ensure!(manifest.schema == MANIFEST_SCHEMA, no_manifest());
    Ok(manifest)
}

/// Writes it, whole or not at all.
pub(crate) fn write(path: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let mut part = path.to_owned().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut text = serde_json::to_string_pretty(manifest)?;
    text.push('\n');
    let cannot = || format!("{}: cannot be written", path.display());
    fs::write(&part, text).with_context(cannot)?;
    fs::rename(&part, path).with_context(cannot)
}

/// What the manifest beside a trace says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing bad.
    Counts,
    /// Its times are no baseline.
    Taxonomy,
    /// Its window does not count.
    Void,
}

/// Manifests of the folders that traces are in, one after another.
#[derive(Debug, Default)]
pub(crate) struct Standings {
    /// The last one read.
    last: Option<(PathBuf, Manifest)>,
}

impl Standings {
    /// Looks a trace up in the manifest beside it.
    pub(crate) fn of(&mut self, trace: &Path) -> anyhow::Result<Standing> {
        let path = trace.with_file_name(NAME);
        let (_, manifest) = match self.last.take() {
            Some((at, manifest)) if at == path => self.last.insert((at, manifest)),
            _ => {
                let manifest = read(&path)?;
                self.last.insert((path, manifest))
            }
        };
        let name = trace.file_name().unwrap_or_default().to_string_lossy();
        Ok(match manifest.window_of(&name) {
            Some(window) if !window.problems.is_empty() => Standing::Void,
            Some(window) if window.kind == WindowKind::Taxonomy => Standing::Taxonomy,
            _ => Standing::Counts,
        })
    }
}

/// Its name in the folder of the traces.
pub(crate) const NAME: &str = "windows.json";

const BYTES_MAX: u64 = 256 << 20;
