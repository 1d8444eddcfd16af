//! The scheduler's side.

use std::io;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use crossbeam::channel::{Sender, bounded};
use takt_record::StepRecord;

use crate::file::{FileName, Files, check_folder};
use crate::writer::{EncodedLine, ToWriter, write_all};

/// How records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderConfig {
    /// Where: an absolute path.
    pub folder: PathBuf,
    /// Whose.
    pub name: FileName,
    /// Records that may wait for the writer.
    pub queue: usize,
    /// Size from which on a file is closed and another begun; `None` for one file.
    pub bytes_max: Option<u64>,
    /// Compress closed files.
    pub compress: bool,
}

impl RecorderConfig {
    /// The queue's length when nothing else is asked for.
    pub const QUEUE: usize = 8192;
}

/// What became of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records made.
    pub encoded: u64,
    /// Records in the files.
    pub written: u64,
    /// Records that found the queue full.
    pub dropped: u64,
    /// The most that waited at once.
    pub queue_high_watermark: u64,
}

/// Takes records and never waits.
#[derive(Debug)]
pub struct Recorder {
    engine_id: String,
    queue: Sender<ToWriter>,
    writer: Option<JoinHandle<(u64, io::Result<()>)>>,
    encoded: u64,
    dropped: u64,
    queue_high_watermark: u64,
    /// Dropped since the last record that fitted.
    dropped_before: u64,
}

/// What the last footer says, as far as the writer does not know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closing {
    pub(crate) dropped_since: u64,
    pub(crate) queue_high_watermark: u64,
    pub(crate) unfinalized: u64,
}

impl Recorder {
    /// Opens the first file and starts the writer.
    ///
    /// # Errors
    /// The folder cannot be used (see [`check_folder`]), or the thread cannot be started.
    pub fn open(config: &RecorderConfig) -> io::Result<Self> {
        check_folder(&config.folder)?;
        let files = Files::open(&config.folder, config.name, config.bytes_max, config.compress)?;
        let engine_id = config.name.engine_id();
        let (queue, lines) = bounded(config.queue.max(1));
        let writer = thread::Builder::new()
            .name("opprof-writer".into())
            .spawn(move || write_all(&lines, files))?;
        Ok(Self {
            engine_id,
            queue,
            writer: Some(writer),
            encoded: 0,
            dropped: 0,
            queue_high_watermark: 0,
            dropped_before: 0,
        })
    }

    /// The id that records carry.
    #[must_use]
    pub fn engine_id(&self) -> &str {
        &self.engine_id
    }

    /// Encodes a record and queues it, or drops it when the queue is full. The record's own
    /// `dropped_records_before` is set here.
    pub fn put(&mut self, mut record: StepRecord<'_>) {
        record.dropped_records_before = self.dropped_before;
        let mut bytes = Vec::with_capacity(LINE_BYTES);
        record.write_line(&mut bytes);
        self.encoded += 1;
        let (dropped_before, queue_high_watermark) =
            (self.dropped_before, self.queue_high_watermark);
        let line = EncodedLine { bytes, dropped_before, queue_high_watermark };
        if self.queue.try_send(ToWriter::Line(line)).is_ok() {
            self.dropped_before = 0;
            // The writer may have taken it already; it waited all the same.
            let waiting = (self.queue.len() as u64).max(1);
            self.queue_high_watermark = self.queue_high_watermark.max(waiting);
        } else {
            self.dropped_before += 1;
            self.dropped += 1;
        }
    }

    /// Waits until all is written, the footer too. `unfinalized` steps were begun and never completed.
    ///
    /// # Errors
    /// A file could not be written: the records up to there are in it.
    pub fn close(mut self, unfinalized: u64) -> io::Result<Written> {
        self.end(unfinalized)
    }

    fn end(&mut self, unfinalized: u64) -> io::Result<Written> {
        let Some(writer) = self.writer.take() else { return Ok(Written::default()) };
        let queue_high_watermark = self.queue_high_watermark;
        let closing =
            Closing { dropped_since: self.dropped_before, queue_high_watermark, unfinalized };
        // The one place that waits: the end. A writer that is gone takes nothing more.
        drop(self.queue.send(ToWriter::Close(closing)));
        let (written, done) =
            writer.join().unwrap_or_else(|_| (0, Err(io::Error::other("the writer stopped"))));
        done?;
        let (encoded, dropped) = (self.encoded, self.dropped);
        Ok(Written { encoded, written, dropped, queue_high_watermark })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Whoever wants to know of faults closes.
        drop(self.end(0));
    }
}

/// A record has about a thousand bytes.
const LINE_BYTES: usize = 1024;
