//! The journal as a file of the run folder.
//!
//! The folder `journal/` of a run holds files that are named by number, `000000.takt` first. A run
//! writes one; the numbers leave room for more.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use takt_record::{
    Block, JournalError, JournalReader, JournalStats, JournalWriter, SessionPlan, Stretch,
};

use crate::keep::{Kept, Thinner};
use crate::recorder::JournalConfig;

/// The folder of the journal within a run folder.
pub const JOURNAL_FOLDER: &str = "journal";

/// The path of the journal's file `number` in the run folder `run`.
#[must_use]
pub fn journal_path(run: &Path, number: u32) -> PathBuf {
    run.join(JOURNAL_FOLDER).join(format!("{number:06}.takt"))
}

/// The journal's files in the run folder `run`, in order; none when it kept no journal.
///
/// # Errors
/// The folder is there and cannot be read.
pub fn journal_files(run: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = run.join(JOURNAL_FOLDER);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|error| at(&folder, &error))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|suffix| suffix == "takt") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Opens one file of a journal for reading.
///
/// # Errors
/// The file cannot be read or is no journal.
pub fn open_journal(path: &Path) -> Result<JournalReader<BufReader<File>>, JournalError> {
    let file = File::open(path).map_err(|error| at(path, &error))?;
    JournalReader::open(BufReader::with_capacity(READ_BYTES, file))
}

/// The file that is being written. After an error nothing more is written and the error is kept.
#[derive(Debug)]
pub(crate) struct JournalFile {
    path: PathBuf,
    writer: JournalWriter<File>,
    kept: Kept,
    thinner: Option<Thinner>,
    size_cap: Option<u64>,
    sampled: bool,
    error: Option<io::Error>,
}

impl JournalFile {
    /// Makes the file, which must not be there yet, and writes its head.
    pub(crate) fn create(config: &JournalConfig, plan: &SessionPlan) -> io::Result<Self> {
        let path = journal_path(&config.run, config.number);
        let create = || {
            fs::create_dir_all(config.run.join(JOURNAL_FOLDER))?;
            JournalWriter::begin(File::create_new(&path)?, plan)
        };
        let writer = create().map_err(|error| at(&path, &error))?;
        let kept = Kept::Requests(config.keep);
        let thinner = (!kept.everything()).then(Thinner::new);
        let (size_cap, sampled) = (config.size_cap, !kept.everything());
        Ok(Self { path, writer, kept, thinner, size_cap, sampled, error: None })
    }

    /// Appends `block`, or what is kept of it.
    pub(crate) fn append(&mut self, block: &Block) {
        if self.error.is_some() {
            return;
        }
        let after = self.writer.stats().bytes.saturating_add(block.bytes().len() as u64);
        if self.size_cap.is_some_and(|cap| after > cap) && self.kept != Kept::Frame {
            // What was gathered before is a stretch of its own.
            self.flush();
            self.kept = Kept::Frame;
            self.thinner.get_or_insert_with(Thinner::new);
        }
        let writer = &mut self.writer;
        let done = match &mut self.thinner {
            None => writer.append(block, Stretch::Whole),
            Some(thinner) => {
                let stretch = self.kept.stretch();
                thinner.take(block, self.kept, |kept| writer.append(kept, stretch))
            }
        };
        self.remember(done);
    }

    /// Writes what was gathered. Only a thinned journal holds anything back.
    pub(crate) fn flush(&mut self) {
        if self.error.is_none()
            && let Some(thinner) = &mut self.thinner
        {
            let stretch = self.kept.stretch();
            let done = thinner.flush(|block| self.writer.append(block, stretch));
            self.remember(done);
        }
    }

    pub(crate) fn stats(&self) -> JournalStats {
        self.writer.stats()
    }

    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// A sample of the requests is kept, or was up to the size cap.
    pub(crate) fn sampled(&self) -> bool {
        self.sampled
    }

    /// The size cap was reached.
    pub(crate) fn capped(&self) -> bool {
        self.kept == Kept::Frame
    }

    /// Flushes, and waits for the disk. Gives the first error of the file's whole life.
    pub(crate) fn close(mut self) -> Option<io::Error> {
        self.flush();
        if self.error.is_none() {
            let done = self.writer.into_inner().sync_all().and_then(|()| {
                // The file's name is on the disk only when its folder is.
                self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
            });
            self.error = done.err().map(|error| at(&self.path, &error));
        }
        self.error
    }

    fn remember(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.error = Some(at(&self.path, &error));
            // A part of a block may have been written: take it off, if the disk allows.
            let whole = self.writer.stats().bytes;
            let _ = self.writer.get_ref().set_len(whole);
        }
    }
}

/// `error` with the path it is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

const READ_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use takt_record::{BlockWriter, Record, SessionEvent, SessionRecord};
    use takt_time::Nanos;

    #[test]
    fn the_first_failed_write_is_kept_with_its_path_and_the_last() {
        let plan = SessionPlan::default();
        let mut block = BlockWriter::new(Block::with_capacity(0));
        let record = SessionRecord { at: Nanos::ZERO, event: SessionEvent::Started };
        block.push(&Record::Session(record)).expect("there is room");

        // A pipe takes the head and one block; when its reader is gone it takes no more.
        let (reader, writer) = io::pipe().expect("two descriptors");
        let out = File::from(OwnedFd::from(writer));
        let mut journal = JournalFile {
            path: "run/journal/000000.takt".into(),
            writer: JournalWriter::begin(out, &plan).expect("the pipe is open"),
            kept: Kept::Requests(crate::Keep::All),
            thinner: None,
            size_cap: None,
            sampled: false,
            error: None,
        };
        journal.append(block.block());
        let whole = journal.stats();
        assert_eq!((whole.records, journal.error().is_none()), (1, true));
        drop(reader);
        for _ in 0..2 {
            journal.append(block.block());
            assert_eq!(journal.stats(), whole);
        }
        let error = journal.close().expect("the second block did not go out");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(error.to_string().starts_with("run/journal/000000.takt: "), "{error}");
    }
}
