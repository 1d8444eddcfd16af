//! Opening what other programs wrote: plain or gzip, one file or a folder of them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::bufread::MultiGzDecoder;

/// Opens a file; one that begins like gzip is read as what it holds.
pub(super) fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    let cannot = || format!("{}: cannot be read", path.display());
    let file = File::open(path).with_context(cannot)?;
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    if input.fill_buf().with_context(cannot)?.starts_with(&GZIP_MAGIC) {
        let plain = MultiGzDecoder::new(input);
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, plain)));
    }
    Ok(Box::new(input))
}

/// All of a file that is small, at most `bytes_max`.
pub(super) fn read(path: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let cannot = || format!("{}: cannot be read", path.display());
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes).with_context(cannot)?;
    anyhow::ensure!(
        bytes.len() as u64 <= bytes_max,
        "{}: has more than {bytes_max} bytes",
        path.display()
    );
    Ok(bytes)
}

/// The files that `paths` name: a file itself, of a folder those directly in it that end in one of
/// `endings`, with or without `.gz`, by name.
pub(super) fn list(paths: &[PathBuf], endings: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let cannot = || format!("{}: cannot be read", path.display());
        if !fs::metadata(path).with_context(cannot)?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        for entry in fs::read_dir(path).with_context(cannot)? {
            let entry = entry.with_context(cannot)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let name = name.strip_suffix(".gz").unwrap_or(&name);
            if endings.iter().any(|ending| name.ends_with(ending)) && entry.path().is_file() {
                files.push(entry.path());
            }
        }
        let wanted = endings.join(" or ");
        anyhow::ensure!(
            files.len() > before,
            "{}: holds no file that ends in {wanted}, with or without .gz",
            path.display()
        );
        files[before..].sort();
    }
    Ok(files)
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Large enough that reading is not what takes the time.
const BUFFER_BYTES: usize = 1 << 18;
