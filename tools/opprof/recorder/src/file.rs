//! The files of one scheduler: their names, and how one follows another.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use takt_record::{STEP_SCHEMA, StepFooter};

use crate::recorder::Closing;
use crate::writer::EncodedLine;

/// What the names of one scheduler's files have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileName {
    /// Data-parallel rank.
    pub dp_rank: u32,
    /// The process.
    pub pid: u32,
}

impl FileName {
    /// The name of a file begun at this wall time.
    #[must_use]
    pub fn at(&self, start_wall_ns: u64) -> String {
        let Self { dp_rank, pid } = self;
        format!("opprof-v{STEP_SCHEMA}-dp{dp_rank}-pid{pid}-{start_wall_ns}.jsonl")
    }

    /// The scheduler's id in its records.
    #[must_use]
    pub fn engine_id(&self) -> String {
        format!("dp{}-pid{}", self.dp_rank, self.pid)
    }
}

/// Refuses a folder that records cannot be written to, before a server starts to serve.
///
/// # Errors
/// The path is relative, is no folder, or cannot be written to.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let shown = folder.display();
    if !folder.is_absolute() {
        let says =
            format!("{shown}: is relative; give an absolute path, servers change their folder");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, says));
    }
    let cannot = |error: &io::Error| io::Error::new(error.kind(), format!("{shown}: {error}"));
    fs::create_dir_all(folder).map_err(|error| cannot(&error))?;
    let probe = folder.join(format!(".opprof-probe-{}", std::process::id()));
    File::create(&probe).map_err(|error| cannot(&error))?;
    fs::remove_file(&probe).map_err(|error| cannot(&error))
}

/// The open file, and compressions of closed ones that are under way.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    name: FileName,
    bytes_max: Option<u64>,
    compress: bool,
    open: Open,
    written: u64,
    compressing: Vec<JoinHandle<io::Result<()>>>,
}

/// A file, what waits to be handed to the system, and what its footer will say.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    waiting: Vec<u8>,
    bytes: u64,
    records: u64,
    dropped: u64,
    queue_high_watermark: u64,
}

impl Files {
    /// Opens the first.
    pub(crate) fn open(
        folder: &Path,
        name: FileName,
        bytes_max: Option<u64>,
        compress: bool,
    ) -> io::Result<Self> {
        let open = Open::new(folder, name)?;
        let (folder, compressing) = (folder.to_owned(), Vec::new());
        Ok(Self { folder, name, bytes_max, compress, open, written: 0, compressing })
    }

    /// Takes a record in. A file that would outgrow its size is closed before, and another begun.
    pub(crate) fn line(&mut self, line: &EncodedLine) -> io::Result<()> {
        let grown = self.open.bytes + line.bytes.len() as u64 + FOOTER_BYTES_MAX;
        if self.open.records > 0 && self.bytes_max.is_some_and(|most| grown > most) {
            self.rotate()?;
        }
        let open = &mut self.open;
        open.waiting.extend_from_slice(&line.bytes);
        open.bytes += line.bytes.len() as u64;
        open.records += 1;
        open.dropped += line.dropped_before;
        open.queue_high_watermark = open.queue_high_watermark.max(line.queue_high_watermark);
        self.written += 1;
        Ok(())
    }

    /// Bytes that were not handed to the system yet.
    pub(crate) fn waiting(&self) -> usize {
        self.open.waiting.len()
    }

    /// Records of all files.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Hands what waits to the system.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.open.flush()
    }

    /// Ends the last file, and waits for compressions.
    pub(crate) fn close(mut self, closing: Closing) -> io::Result<()> {
        let open = &mut self.open;
        open.dropped += closing.dropped_since;
        open.queue_high_watermark = open.queue_high_watermark.max(closing.queue_high_watermark);
        open.finish(self.name, closing.unfinalized)?;
        for job in self.compressing {
            job.join().unwrap_or_else(|_| Err(io::Error::other("compression stopped")))?;
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.open.finish(self.name, 0)?;
        let next = Open::new(&self.folder, self.name)?;
        let full = std::mem::replace(&mut self.open, next);
        drop(full.file);
        if self.compress {
            // On a thread of its own: the queue must go on being emptied meanwhile.
            let path = full.path;
            let job = thread::Builder::new().name("opprof-gzip".into());
            self.compressing.push(job.spawn(move || compress(&path))?);
        }
        Ok(())
    }
}

impl Open {
    fn new(folder: &Path, name: FileName) -> io::Result<Self> {
        // A second file within a nanosecond is not to be expected, and would be refused.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let path = folder.join(name.at(u64::try_from(now).unwrap_or(u64::MAX)));
        let file = File::create_new(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        Ok(Self {
            path,
            file,
            waiting: Vec::new(),
            bytes: 0,
            records: 0,
            dropped: 0,
            queue_high_watermark: 0,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the footer, which speaks of this file alone.
    fn finish(&mut self, name: FileName, unfinalized: u64) -> io::Result<()> {
        let footer = StepFooter {
            schema: STEP_SCHEMA,
            footer: true,
            engine_id: name.engine_id().into(),
            encoded: self.records + self.dropped,
            written: self.records,
            dropped: self.dropped,
            queue_high_watermark: self.queue_high_watermark,
            unfinalized,
        };
        footer.write_line(&mut self.waiting);
        self.flush()
    }
}

/// A footer's length with counts of twenty digits.
const FOOTER_BYTES_MAX: u64 = 256;

/// Replaces a file by its compressed form. A reader finds the one or the other, whole.
fn compress(path: &Path) -> io::Result<()> {
    let with = |ending: &str| {
        let mut name = path.to_owned().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    let (part, done) = (with(".gz.part"), with(".gz"));
    let mut encoder = GzEncoder::new(File::create(&part)?, Compression::fast());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?;
    fs::rename(&part, &done)?;
    fs::remove_file(path)
}
