//! The files of a run's journal, as far as they can be read.
//!
//! A file that cannot be read takes nothing from the others: what is missing is told beside what is there.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;

use anyhow::anyhow;
use serde_json::Value;
use takt_record::{JournalEnd, JournalReader, LeftOut};
use takt_recorder::{JOURNAL_FOLDER, journal_files, journal_path, open_journal};

use crate::console::Console;

/// The journal of a run.
#[derive(Debug)]
pub(crate) struct Journals {
    /// Those whose heads are whole, in order.
    pub(crate) files: Vec<Journal>,
    /// Those whose heads are not, and those that are not there.
    pub(crate) left_out: Vec<LeftOut>,
}

/// One file, to be read.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Below the run folder.
    pub(crate) file: String,
    pub(crate) reader: JournalReader<BufReader<File>>,
}

impl Journals {
    /// Opens all files of the run in `folder`.
    ///
    /// # Errors
    /// The folder's.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        for path in journal_files(folder)? {
            let file = below(&path);
            match open_journal(&path) {
                Ok(reader) => files.push(Journal { file, reader }),
                Err(error) => {
                    let bytes = fs::metadata(&path).ok().map(|file| file.len());
                    left_out.push(LeftOut { file, at: 0, bytes, why: error.to_string() });
                }
            }
        }
        let reactors = files.first().and_then(|first| {
            first.reader.plan().config.pointer("/engine/reactors").and_then(Value::as_u64)
        });
        for number in 0..reactors.map_or(0, |number| number.min(FILES_MAX) as u32) {
            let path = journal_path(folder, number);
            if !path.exists() {
                let why = "the file is missing".to_owned();
                left_out.push(LeftOut { file: below(&path), at: 0, bytes: None, why });
            }
        }
        left_out.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(Self { files, left_out })
    }

    /// There is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.left_out.is_empty()
    }

    /// Of a journal of which no file can be read: why.
    pub(crate) fn refused(&self, folder: &Path) -> anyhow::Error {
        let shown = folder.display();
        match self.left_out.first() {
            Some(left_out) => anyhow!("{shown}/{left_out}"),
            None => anyhow!("{shown}: holds no journal"),
        }
    }
}

/// What of `file` is behind the damage, if it has one.
pub(crate) fn torn(file: &str, end: JournalEnd) -> Option<LeftOut> {
    let JournalEnd::Torn { at, lost, reason } = end else { return None };
    Some(LeftOut { file: file.to_owned(), at, bytes: Some(lost), why: reason.to_string() })
}

/// Says what of the run in `folder` is not read.
pub(crate) fn warn(folder: &Path, left_out: &[LeftOut], console: &Console) {
    for left_out in left_out {
        console.warn(format!("{}/{left_out}", folder.display()));
    }
}

/// The path of a journal's file below its run folder.
fn below(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{JOURNAL_FOLDER}/{name}")
}

/// No run has as many reactors.
const FILES_MAX: u64 = 256;
