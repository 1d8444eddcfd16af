//! Step records of takt's own reactor, written by the recorder that servers use.
//!
//! A step is a turn in which anything was called. A timer that fired stands as a prompt (work that began), a
//! socket's event or a message as a decode (work that went on), each of one token; submit and complete are
//! when the turn's work began and ended. There is no cache and no graph. So `takt opprof check` and `takt
//! opprof join` read the client as they read a server, and its turns can be laid beside the server's steps.
//!
//! Making a record takes some microseconds of each turn, so it is off unless asked for, and a run without
//! it does not look at it.

use std::path::Path;

use takt_engine::TurnStats;
use takt_opprof::{GraphRun, Part, Scheduled, StepCounter};
use takt_opprof_recorder::{FileName, Recorder, RecorderConfig, Written};
use takt_record::GraphUse;
use takt_time::{Anchor, Nanos};

/// Writes the turns of one system.
#[derive(Debug)]
pub(crate) struct TurnRecords {
    recorder: Recorder,
    counter: StepCounter,
    anchor: Anchor,
    before: TurnStats,
    /// When the last one ended.
    ended: Nanos,
}

impl TurnRecords {
    /// Begins a file in `folder`, an absolute path.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub(crate) fn open(folder: &Path) -> std::io::Result<Self> {
        let name = FileName { dp_rank: 0, pid: std::process::id() };
        let recorder = Recorder::open(&RecorderConfig {
            folder: folder.to_owned(),
            name,
            queue: RecorderConfig::QUEUE,
            bytes_max: None,
            compress: false,
        })?;
        let (anchor, before) = (takt_net::anchor(), TurnStats::default());
        let counter = StepCounter::new(name.engine_id());
        Ok(Self { recorder, counter, anchor, before, ended: anchor.mono })
    }

    /// A turn has ended `now`; `stats` count it. One that called nothing is no step.
    pub(crate) fn turn(&mut self, stats: &TurnStats, now: Nanos) {
        let begun = stats.timers - self.before.timers;
        let gone_on = stats.ready + stats.messages - self.before.ready - self.before.messages;
        let took = stats.busy.as_nanos() - self.before.busy.as_nanos();
        self.before = *stats;
        if begun + gone_on == 0 {
            return;
        }
        let mono = Nanos::from_nanos(now.as_nanos().saturating_sub(took)).max(self.ended);
        self.ended = now;
        let mut draft = self.counter.begin(Anchor { mono, wall_ns: self.anchor.wall_ns(mono) });
        for (part, calls) in [(Part::Unsplit, begun), (Part::Decode, gone_on)] {
            for _ in 0..calls {
                draft.schedule(Scheduled { tokens: 1, context_after: 1, part });
            }
        }
        let bucket_tokens = draft.tokens();
        self.recorder
            .put(draft.complete(now, Some(GraphRun { mode: GraphUse::MISS, bucket_tokens })));
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn close(self) -> std::io::Result<Written> {
        self.recorder.close(0)
    }
}

#[cfg(test)]
mod tests {
    use takt_opprof::read_steps;
    use takt_time::Span;

    use super::*;

    #[test]
    fn a_turn_that_called_anything_is_a_step() {
        let folder = tempfile::tempdir().unwrap();
        let mut turns = TurnRecords::open(folder.path()).unwrap();
        let start = turns.ended;
        let at = |us| start + Span::from_micros(us);
        let mut stats = TurnStats { timers: 2, ready: 3, messages: 1, ..TurnStats::default() };
        stats.busy = Span::from_micros(30);
        turns.turn(&stats, at(100));
        stats.busy += Span::from_micros(5);
        turns.turn(&stats, at(200));
        stats.ready += 1;
        stats.busy += Span::from_micros(500);
        turns.turn(&stats, at(210));
        assert_eq!(turns.close().unwrap().written, 2);
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let mut steps = Vec::new();
        read_steps(std::fs::read(file).unwrap().as_slice(), &mut steps).unwrap();
        let [first, second] = &steps[..] else { panic!("two steps") };
        let c = first.composition;
        assert_eq!((c.context_requests, c.generation_requests, first.executed), (2, 4, true));
        assert_eq!(first.span_ns(), 30_000);
        // Never before the one ahead of it.
        assert_eq!((second.submit_mono_ns, second.span_ns()), (at(100).as_nanos(), 110_000));
    }
}
