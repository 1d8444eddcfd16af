//! `takt mock --mode scheduler`: its configuration, and the files of its records and traces.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use takt_mock::{GraphPolicy, ProfiledWindow, ProfilerConfig, SchedulerConfig, SchedulerSink};
use takt_net::affinity;
use takt_opprof_recorder::{FileName, Recorder, RecorderConfig, Written};
use takt_record::StepRecord;

use crate::cli::{GraphsArg, MockArgs, SchedulerArgs};

/// What the flags say, beside the answers' own.
pub(super) fn config(args: &MockArgs) -> anyhow::Result<SchedulerConfig> {
    let timed = [
        ("--ttft", args.ttft.is_some()),
        ("--tpot", args.tpot.is_some()),
        ("--tokens-per-event", args.tokens_per_event.is_some()),
        ("--slots", args.slots.is_some()),
    ];
    if let Some((flag, _)) = timed.iter().find(|(_, given)| *given) {
        bail!("{flag}: has no effect with --mode scheduler, where batches decide; see --cost");
    }
    let flags = &args.scheduler;
    let mut config = SchedulerConfig {
        answers: super::timed(args),
        engine_id: file_name().engine_id(),
        ..SchedulerConfig::default()
    };
    set(&mut config.batch.tokens, flags.batch_tokens);
    set(&mut config.batch.requests, flags.batch_requests);
    set(&mut config.cache.blocks, flags.kv_blocks);
    set(&mut config.cache.block_tokens, flags.block_tokens);
    config.cache.prefixes = !flags.no_prefix_cache;
    let cached = config.cache.blocks.saturating_mul(config.cache.block_tokens);
    config.context_max = flags.context_max.unwrap_or(config.context_max.min(cached));
    config.speculative.tokens = flags.guess.unwrap_or(0);
    config.speculative.accepted = flags.guess_right.unwrap_or(config.speculative.accepted);
    config.grammar = flags.grammar.unwrap_or(config.grammar);
    config.graphs = match flags.graphs {
        None | Some(GraphsArg::Full) => GraphPolicy::Full,
        Some(GraphsArg::Piecewise) => GraphPolicy::Piecewise,
        Some(GraphsArg::Eager) => GraphPolicy::Eager,
    };
    set(&mut config.cost.ranks, flags.ranks);
    set(&mut config.cost.layers, flags.layers);
    flags.cost.iter().for_each(|part| part.set(&mut config.cost));
    config.profiler = flags.profile_dir.as_ref().map(|_| ProfilerConfig {
        delay: flags.profile_delay.unwrap_or(0),
        steps_max: flags.profile_steps.unwrap_or(PROFILE_STEPS),
        warmup: flags.profile_warmup.unwrap_or(0),
    });
    Ok(config)
}

/// Of this process.
fn file_name() -> FileName {
    FileName { dp_rank: 0, pid: std::process::id() }
}

fn set(place: &mut NonZeroU32, flag: Option<NonZeroU32>) {
    *place = flag.unwrap_or(*place);
}

/// Where records and traces go.
pub(super) struct SchedulerFiles {
    recorder: Option<Recorder>,
    windows: Option<SyncSender<ProfiledWindow>>,
    ended: Sender<io::Result<Written>>,
}

/// What is heard of the files once the server has stopped.
pub(super) struct Outcome {
    recorder: Receiver<io::Result<Written>>,
    windows: Option<JoinHandle<io::Result<()>>>,
}

impl SchedulerFiles {
    /// Opens what the flags ask for; `None` when that is nothing.
    pub(super) fn open(args: &SchedulerArgs) -> anyhow::Result<Option<(Self, Outcome)>> {
        if args.opprof_dir.is_none() && args.profile_dir.is_none() {
            return Ok(None);
        }
        let recorder = args.opprof_dir.as_ref().map(|folder| {
            let config = RecorderConfig {
                folder: folder.clone(),
                name: file_name(),
                queue: RecorderConfig::QUEUE,
                bytes_max: None,
                compress: false,
            };
            Recorder::open(&config).context("--opprof-dir")
        });
        let (windows, writer) = match &args.profile_dir {
            None => (None, None),
            Some(folder) => {
                let cannot = || format!("--profile-dir {}", folder.display());
                fs::create_dir_all(folder).with_context(cannot)?;
                let (windows, source) = sync_channel(WINDOWS);
                let folder = folder.clone();
                let write = move || write_windows(&folder, &source);
                let writer = thread::Builder::new().name("takt-traces".to_owned()).spawn(write)?;
                (Some(windows), Some(writer))
            }
        };
        let (ended, heard) = channel();
        let files = Self { recorder: recorder.transpose()?, windows, ended };
        Ok(Some((files, Outcome { recorder: heard, windows: writer })))
    }
}

impl SchedulerSink for SchedulerFiles {
    fn step(&mut self, record: StepRecord<'static>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.put(record);
        }
    }

    fn window(&mut self, window: ProfiledWindow) {
        if let Some(windows) = &self.windows {
            // A writer that is gone has an error to tell at the end.
            drop(windows.send(window));
        }
    }

    fn end(&mut self, unfinalized: u64) {
        if let Some(recorder) = self.recorder.take() {
            drop(self.ended.send(recorder.close(unfinalized)));
        }
    }
}

impl Outcome {
    /// Waits until all is written. The server must be gone.
    pub(super) fn wait(self) -> anyhow::Result<()> {
        if let Ok(written) = self.recorder.try_recv() {
            written.context("--opprof-dir")?;
        }
        let joined = self
            .windows
            .map(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.transpose().context("--profile-dir")?;
        Ok(())
    }
}

fn write_windows(folder: &Path, windows: &Receiver<ProfiledWindow>) -> io::Result<()> {
    drop(affinity::unpinned());
    for window in windows {
        for rank in 0..window.ranks() {
            let done = folder.join(format!("{}.gz", window.file_name(rank)));
            // Whoever looks at the folder finds whole files only.
            let mut part = done.clone().into_os_string();
            part.push(".part");
            let part = PathBuf::from(part);
            let gzip = GzEncoder::new(File::create(&part)?, Compression::fast());
            let mut out = BufWriter::new(gzip);
            window.write(rank, &mut out)?;
            out.flush()?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?;
            fs::rename(&part, &done)?;
        }
    }
    Ok(())
}

/// Steps of a window, as the profiler's configuration that works has them.
const PROFILE_STEPS: u32 = 8;
/// Windows that wait for their writer; further ones hold the server up, as a real profiler does.
const WINDOWS: usize = 4;
