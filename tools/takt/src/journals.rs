//! The files of a run's journal, as far as they can be read.
//!
//! A file that cannot be read takes nothing from the others: what is missing is told beside what is there.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use anyhow::anyhow;
use serde_json::Value;
use takt_record::{JournalEnd, JournalReader, LeftOut, ResultDoc};
use takt_recorder::{JOURNAL_FOLDER, journal_files, journal_path, open_journal};

use crate::console::Console;

/// The journal of a run.
#[derive(Debug)]
pub(crate) struct Journals {
    /// Those whose heads are whole, in order.
    pub(crate) files: Vec<Journal>,
    /// What stands in their place of which nothing can be read, and those that are not there.
    pub(crate) left_out: Vec<LeftOut>,
    /// Files beside them that the run did not write: nothing of it is in them.
    pub(crate) foreign: Vec<LeftOut>,
}

/// One file, to be read.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Below the run folder.
    pub(crate) file: String,
    pub(crate) reader: JournalReader<BufReader<File>>,
}

impl Journals {
    /// Opens all files of the run in `folder`, which wrote that result if it lived to.
    ///
    /// # Errors
    /// The folder's.
    pub(crate) fn open(folder: &Path, wrote: Option<&ResultDoc>) -> io::Result<Self> {
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        for path in journal_files(folder)? {
            let file = below(&path);
            match regular(&path).and_then(|()| open_journal(&path).map_err(|e| e.to_string())) {
                Ok(reader) => files.push(Journal { file, reader }),
                Err(why) => left_out.push(LeftOut { bytes: size(&path), file, at: 0, why }),
            }
        }
        let session = |journal: &Journal| journal.reader.plan().session_id.clone();
        // A result says whose folder it is, whatever journal lies in it.
        let run =
            wrote.map(|wrote| wrote.session_id.clone()).or_else(|| files.first().map(session));
        let of_run = files.iter().find(|file| Some(session(file)) == run);
        let reactors = match of_run.map(|file| &file.reader.plan().config) {
            Some(config) => reactors(config),
            None => {
                wrote.filter(|wrote| wrote.journal.is_some()).map_or(0, |w| reactors(&w.config))
            }
        };
        let own: Vec<_> =
            (0..reactors).map(|number| below(&journal_path(folder, number))).collect();
        let mut firsts = Vec::<(String, Vec<u8>)>::new();
        files.retain(|journal| {
            let first =
                first_bytes(&folder.join(&journal.file), journal.reader.summary().read.bytes)
                    .unwrap_or_default();
            let copied = firsts.iter().find(|(_, known)| *known == first);
            let why = if Some(session(journal)) != run {
                "it is of another session".to_owned()
            } else if !own.contains(&journal.file) {
                "the run had no such reactor".to_owned()
            } else if let Some((other, _)) = copied {
                format!("it is a copy of {other}")
            } else {
                // Files in which there is little more than a head are all alike.
                if first.len() >= FIRST_LEAST {
                    firsts.push((journal.file.clone(), first));
                }
                return true;
            };
            let (file, bytes) = (journal.file.clone(), size(&folder.join(&journal.file)));
            left_out.push(LeftOut { file, at: 0, bytes, why });
            false
        });
        for file in &own {
            let told = |is: &LeftOut| is.file == *file;
            if !files.iter().any(|is| is.file == *file) && !left_out.iter().any(told) {
                let (file, why) = (file.clone(), "the file is missing".to_owned());
                left_out.push(LeftOut { file, at: 0, bytes: None, why });
            }
        }
        left_out.sort_by(|a, b| a.file.cmp(&b.file));
        // Where nothing says how many there were, each may have been the run's.
        let (left_out, foreign) =
            left_out.into_iter().partition(|is| own.is_empty() || own.contains(&is.file));
        Ok(Self { files, left_out, foreign })
    }

    /// There is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.left_out.is_empty() && self.foreign.is_empty()
    }

    /// Of a journal of which no file can be read: why.
    pub(crate) fn refused(&self, folder: &Path) -> anyhow::Error {
        let shown = folder.display();
        match self.left_out.iter().chain(&self.foreign).next() {
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

/// How many reactors the run of this configuration had, each with a file of its own.
fn reactors(config: &Value) -> u32 {
    let number = config.pointer("/engine/reactors").and_then(Value::as_u64);
    number.map_or(1, |number| number.min(FILES_MAX) as u32)
}

/// Opening anything but a file may wait for ever.
fn regular(path: &Path) -> Result<(), String> {
    match fs::metadata(path) {
        Ok(is) if !is.is_file() => Err("it is not a file".to_owned()),
        Ok(is) if is.len() == 0 => Err("the file is empty".to_owned()),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn size(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len())
}

/// The first bytes behind the head of a file.
fn first_bytes(path: &Path, head: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(head))?;
    let mut bytes = Vec::new();
    file.take(FIRST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path of a journal's file below its run folder.
fn below(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{JOURNAL_FOLDER}/{name}")
}

/// A block has a checksum and times in nanoseconds: no two begin alike.
const FIRST_BYTES: u64 = 4096;
/// So many of them hold the checksum.
const FIRST_LEAST: usize = 64;

/// No run has as many reactors.
const FILES_MAX: u64 = 256;
