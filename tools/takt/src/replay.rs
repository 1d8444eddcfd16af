//! Recordings as samples: requests of recorded lengths, made one at a time.
//!
//! An hour of a busy service is gigabytes of prompts. They are not on disk and need not be in memory: a
//! prompt is put together from words at hand in about the time that it takes to write it to a socket. What
//! that costs is spent before the send is stamped, and so shows in the lateness.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Map, Value};
use takt_dataset::{Limits, Recording, Texts, read_times};
use takt_time::Span;
use takt_wire::{BodyBuilder, BodyError, PreparedRequest, Prompt, RequestBuilder};

use crate::config::{Config, Load, RecordingSource};
use crate::plan::Times;

/// Makes the requests of a recording.
#[derive(Debug)]
pub(crate) struct Replay {
    recording: Recording,
    texts: Texts,
    builders: Vec<RequestBuilder>,
    body: BodyBuilder,
    prompt: String,
    request: PreparedRequest,
    /// The call and the endpoint that `request` was made for: a rehearsal makes it, and the send finds it made.
    made: (usize, usize),
}

impl Replay {
    /// Requests for `recording`, with texts of `seed`.
    ///
    /// # Errors
    /// When the body of a request cannot be made; the first one stands for all.
    pub(crate) fn new(
        recording: Recording,
        seed: u64,
        builders: Vec<RequestBuilder>,
        body: BodyBuilder,
    ) -> anyhow::Result<Self> {
        let texts = Texts::new(&recording, seed);
        let first = builders.first().context("an endpoint is needed")?.build(b"");
        let mut replay = Self {
            recording,
            texts,
            builders,
            body,
            prompt: String::new(),
            request: first,
            made: (0, 0),
        };
        replay.make(0, 0)?;
        Ok(replay)
    }

    /// How many calls were recorded.
    pub(crate) fn len(&self) -> usize {
        self.recording.len()
    }

    /// The request of the call at `index` for endpoint number `endpoint`.
    pub(crate) fn request(&mut self, index: usize, endpoint: usize) -> &mut PreparedRequest {
        if self.made != (index, endpoint) {
            self.make(index, endpoint)
                .expect("requests differ in text and a number from the first one");
        }
        &mut self.request
    }

    fn make(&mut self, index: usize, endpoint: usize) -> Result<(), BodyError> {
        self.texts.write(&self.recording, index, &mut self.prompt);
        let output_tokens = self.recording.calls()[index].output_tokens;
        let limit = self.body.tokens_max_key();
        let row = Map::from_iter(limit.map(|key| (key.to_owned(), Value::from(output_tokens))));
        let prompt = Prompt::Text { text: &self.prompt, system: None };
        let body = self.body.build(&prompt, Some(&row))?;
        self.request = self.builders[endpoint].build(&body);
        self.made = (index, endpoint);
        Ok(())
    }
}

/// Reads a recording.
pub(crate) fn read(source: &RecordingSource) -> anyhow::Result<Recording> {
    let shown = source.path.display().to_string();
    Ok(Recording::read(open(&source.path)?, &shown, source.format, &Limits::default())?)
}

/// About how many bytes the prompts of a recording have.
pub(crate) fn bytes_about(recording: &Recording) -> u64 {
    let words: u64 = recording.calls().iter().map(|call| u64::from(call.input_tokens)).sum();
    words.saturating_mul(WORD_BYTES)
}

/// The times of the phases that replay some: from a file of their own, or of the rows in `recorded`.
pub(crate) fn times(
    config: &Config,
    recorded: impl Iterator<Item = Option<Arc<[Span]>>>,
) -> anyhow::Result<Box<Times>> {
    let of = |(phase, recorded): (&crate::config::Phase, Option<Arc<[Span]>>)| match &phase.load {
        Load::Trace { times: Some(file), .. } => {
            let shown = file.path.display().to_string();
            let limits = Limits::default();
            Ok(Some(read_times(open(&file.path)?, &shown, file.format, &limits)?))
        }
        Load::Trace { times: None, .. } => Ok(recorded),
        _ => Ok(None),
    };
    config.phases.iter().zip(recorded).map(of).collect()
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("{}: cannot be opened", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// A made-up word and the space behind it, rounded up.
const WORD_BYTES: u64 = 6;
