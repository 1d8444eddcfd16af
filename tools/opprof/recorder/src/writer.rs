//! The writer thread: lines from the queue to files.

use std::io;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, TryRecvError};

use crate::file::Files;
use crate::recorder::Closing;

/// What comes to the writer.
#[derive(Debug)]
pub(crate) enum ToWriter {
    /// A record.
    Line(EncodedLine),
    /// The last message.
    Close(Closing),
}

/// A record on its way.
#[derive(Debug)]
pub(crate) struct EncodedLine {
    /// With its end of line.
    pub(crate) bytes: Vec<u8>,
    /// Records lost before it.
    pub(crate) dropped_before: u64,
    /// The most that had waited when it was queued.
    pub(crate) queue_high_watermark: u64,
}

/// Writes until it is closed; says how many records were written, and what went wrong with the files.
pub(crate) fn write_all(queue: &Receiver<ToWriter>, mut files: Files) -> (u64, io::Result<()>) {
    let mut flushed = Instant::now();
    // After a fault of the disk the queue is still emptied, so that nothing waits for it.
    let mut fault: io::Result<()> = Ok(());
    let closing = loop {
        let message = match queue.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => {
                fault = fault.and_then(|()| files.flush());
                flushed = Instant::now();
                match queue.recv_timeout(FLUSH_EVERY) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => None,
                }
            }
            Err(TryRecvError::Disconnected) => None,
        };
        match message {
            Some(ToWriter::Line(line)) => {
                fault = fault.and_then(|()| files.line(&line));
                if files.waiting() >= FLUSH_BYTES || flushed.elapsed() >= FLUSH_EVERY {
                    fault = fault.and_then(|()| files.flush());
                    flushed = Instant::now();
                }
            }
            Some(ToWriter::Close(closing)) => break closing,
            None => break Closing::default(),
        }
    };
    let written = files.written();
    let done = fault.and_then(|()| files.close(closing));
    (written, done)
}

const FLUSH_BYTES: usize = 1 << 20;
const FLUSH_EVERY: Duration = Duration::from_secs(1);
