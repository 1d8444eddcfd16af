//! The manifest of a folder of traces: which files belong to which window, and what the window was.
//!
//! A server answers 200 to a start and to a stop whether it writes anything or not, so nothing is believed
//! but new traces with steps in them, one a rank.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use takt_opprof::{Composition, Regime};

/// The version of the manifest.
pub(crate) const MANIFEST_SCHEMA: &str = "takt-opprof-windows-1";

/// All windows of a folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub(crate) schema: String,
    /// In the order in which they were taken.
    pub(crate) windows: Vec<WindowEntry>,
}

/// One window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WindowEntry {
    /// What it is good for.
    pub(crate) kind: WindowKind,
    /// What was asked for.
    pub(crate) asked: WindowAsked,
    /// Wall clock when the start was sent.
    pub(crate) started_wall_ns: u64,
    /// Wall clock when the stop was answered; latencies in between are of a profiled server.
    pub(crate) stopped_wall_ns: u64,
    /// What the steps in its traces were; `None` when there are none.
    pub(crate) seen: Option<Seen>,
    /// Its traces.
    pub(crate) files: Vec<TraceFile>,
    /// Why it does not count; empty for one that does.
    pub(crate) problems: Vec<String>,
    /// What could be better.
    pub(crate) remarks: Vec<String>,
    /// What the server said of itself, by route; null where it did not.
    pub(crate) server: Value,
}

/// What a window is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WindowKind {
    /// Names and times of kernels.
    Timing,
    /// Names alone: the server was started without graphs to learn them. Its times are no baseline.
    Taxonomy,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WindowAsked {
    /// Requests that generate, from and to.
    pub(crate) decode: Option<(u64, u64)>,
    /// `any`, `none` or `some`.
    pub(crate) prompts: String,
    /// In so many steps in a row before the start.
    pub(crate) steady: u32,
    /// How many steps.
    pub(crate) steps: u64,
}

/// What the steps of a window were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// Steps, on the rank that has the fewest.
    pub(crate) steps: u64,
    /// The least and the most requests that generate.
    pub(crate) decode: (u64, u64),
    /// Steps with prompts.
    pub(crate) prompt_steps: u64,
    /// Their tokens.
    pub(crate) prompt_tokens: u64,
    /// Steps of the kind that was asked for.
    pub(crate) in_regime: u64,
}

/// One rank's trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TraceFile {
    /// Its name in the folder.
    pub(crate) name: String,
    /// The rank that wrote it.
    pub(crate) rank: u64,
    /// Steps that it marks.
    pub(crate) steps: u64,
    /// Its size.
    pub(crate) bytes: u64,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { schema: MANIFEST_SCHEMA.to_owned(), windows: Vec::new() }
    }
}

impl Manifest {
    /// Ranks that the windows so far have written, at most.
    pub(crate) fn ranks(&self) -> usize {
        let sound = self.windows.iter().filter(|window| window.problems.is_empty());
        sound.map(|window| window.files.len()).max().unwrap_or(0)
    }

    /// The window that a trace belongs to, by the file's name.
    pub(crate) fn window_of(&self, name: &str) -> Option<&WindowEntry> {
        self.windows.iter().find(|window| window.files.iter().any(|file| file.name == name))
    }
}

impl WindowAsked {
    pub(crate) fn new(regime: &Regime, steady: u32, steps: u64) -> Self {
        Self { decode: regime.decode, prompts: regime.prompts.name().to_owned(), steady, steps }
    }
}

impl Seen {
    /// Of the marks of one rank; `None` of none.
    pub(crate) fn of(marks: &[Composition], regime: &Regime) -> Option<Self> {
        let decodes = || marks.iter().map(|mark| mark.generation_requests);
        let with_prompts = || marks.iter().filter(|mark| mark.context_requests > 0);
        Some(Self {
            steps: marks.len() as u64,
            decode: (decodes().min()?, decodes().max()?),
            prompt_steps: with_prompts().count() as u64,
            prompt_tokens: with_prompts().map(|mark| mark.context_tokens).sum(),
            in_regime: marks.iter().filter(|mark| regime.fits(mark)).count() as u64,
        })
    }
}

impl WindowEntry {
    /// Finds what does not hold: a trace of each of `ranks`, with steps in it. Given the remedies, since the
    /// server says nothing.
    pub(crate) fn judge(&mut self, ranks: usize) {
        let asked = self.asked.steps;
        if self.files.is_empty() {
            self.problems.push(NOTHING.to_owned());
            return;
        }
        for file in self.files.iter().filter(|file| file.steps == 0) {
            self.problems.push(format!(
                "{} marks no step: nothing ran between start and stop; keep the load on until the window is \
                 over",
                file.name
            ));
        }
        if self.files.len() < ranks {
            let found: Vec<String> = self.files.iter().map(|file| file.rank.to_string()).collect();
            self.problems.push(format!(
                "{} of {ranks} ranks wrote a trace ({}): give the others more time (--written-within), or say \
                 how many there are (--ranks)",
                self.files.len(),
                found.join(", ")
            ));
        }
        let Some(seen) = self.seen else { return };
        if seen.steps < asked {
            self.remarks.push(format!(
                "{} of {asked} steps are in the trace: the server's max_iterations is smaller, or the load ended",
                seen.steps
            ));
        }
        if seen.in_regime < seen.steps {
            let (other, all) = (seen.steps - seen.in_regime, seen.steps);
            self.remarks
                .push(format!("{other} of {all} steps are not of the kind that was asked for"));
        }
    }
}

const NOTHING: &str = "the window wrote no trace, although the server answered 200. On vLLM: use \
    warmup_iterations 0 and wait_iterations 0 (with a warm-up all windows but the first write nothing), set \
    torch_profiler_dir to the folder given by --traces, on this machine, and restart a server whose profiler was \
    left on";

#[cfg(test)]
mod tests {
    use takt_opprof::Prompts;

    use super::*;

    fn entry(files: &[(u64, u64)], marks: &[(u64, u64)]) -> WindowEntry {
        let regime = Regime { decode: Some((1, 4)), prompts: Prompts::None };
        let marks: Vec<Composition> = marks
            .iter()
            .map(|&(prompts, decodes)| Composition {
                context_requests: prompts,
                context_tokens: prompts * 10,
                generation_requests: decodes,
                generation_tokens: decodes,
            })
            .collect();
        let file = |&(rank, steps)| TraceFile { name: format!("r{rank}"), rank, steps, bytes: 1 };
        WindowEntry {
            kind: WindowKind::Timing,
            asked: WindowAsked::new(&regime, 3, 3),
            started_wall_ns: 1,
            stopped_wall_ns: 2,
            seen: Seen::of(&marks, &regime),
            files: files.iter().map(file).collect(),
            problems: Vec::new(),
            remarks: Vec::new(),
            server: Value::Null,
        }
    }

    fn judged(mut entry: WindowEntry, ranks: usize) -> (Vec<String>, Vec<String>) {
        entry.judge(ranks);
        (entry.problems, entry.remarks)
    }

    #[test]
    fn a_window_counts_when_every_rank_wrote_steps() {
        let whole = entry(&[(0, 3), (1, 3)], &[(0, 4), (0, 4), (0, 3)]);
        assert_eq!(judged(whole, 2), (vec![], vec![]));
        let (problems, remarks) = judged(entry(&[(0, 2)], &[(1, 4), (0, 4)]), 2);
        assert!(problems[0].starts_with("1 of 2 ranks wrote a trace (0)"), "{problems:?}");
        assert!(remarks[0].starts_with("2 of 3 steps are in the trace"), "{remarks:?}");
        assert!(remarks[1].starts_with("1 of 2 steps are not of the kind"), "{remarks:?}");
        let (problems, _) = judged(entry(&[(0, 0)], &[]), 1);
        assert!(problems[0].starts_with("r0 marks no step"), "{problems:?}");
        let (problems, _) = judged(entry(&[], &[]), 1);
        assert!(problems[0].contains("warmup_iterations 0"), "{problems:?}");
    }

    #[test]
    fn a_manifest_is_read_back_and_tells_files_apart() {
        let mut manifest = Manifest::default();
        manifest.windows.push(entry(&[(0, 3), (1, 3)], &[(0, 4), (2, 9)]));
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), manifest);
        assert!(
            text.contains(r#""asked":{"decode":[1,4],"prompts":"none","steady":3,"steps":3}"#),
            "{text}"
        );
        assert_eq!((manifest.ranks(), manifest.window_of("r1").is_some()), (2, true));
        assert_eq!(manifest.window_of("r2"), None);
        let seen = manifest.windows[0].seen.unwrap();
        assert_eq!(
            (seen.decode, seen.prompt_steps, seen.prompt_tokens, seen.in_regime),
            ((4, 9), 1, 20, 1)
        );
    }
}
