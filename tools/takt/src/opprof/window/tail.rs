//! Step records while they are written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use takt_opprof::{StepFacts, read_steps};

/// The files of one scheduler in a folder, from where they end on.
#[derive(Debug)]
pub(super) struct Tail {
    folder: PathBuf,
    engine: Option<String>,
    files: BTreeMap<PathBuf, At>,
}

/// How far a file is read.
#[derive(Debug, Default)]
struct At {
    bytes: u64,
    /// The beginning of a line whose end was not there.
    rest: Vec<u8>,
}

impl Tail {
    /// Watches a folder, for one scheduler if it is named.
    pub(super) fn new(folder: &Path, engine: Option<&str>) -> anyhow::Result<Self> {
        let mut tail = Self {
            folder: folder.to_owned(),
            engine: engine.map(str::to_owned),
            files: BTreeMap::new(),
        };
        tail.skip()?;
        Ok(tail)
    }

    /// Passes over what is there.
    pub(super) fn skip(&mut self) -> anyhow::Result<()> {
        for path in self.list()? {
            let cannot = || format!("{}: cannot be read", path.display());
            let mut file = File::open(&path).with_context(cannot)?;
            let bytes = file.seek(SeekFrom::End(0)).with_context(cannot)?;
            let mut last = [b'\n'];
            if bytes > 0 {
                file.seek(SeekFrom::Start(bytes - 1)).with_context(cannot)?;
                file.read_exact(&mut last).with_context(cannot)?;
            }
            // A line that is cut here is made none, so that its rest is passed over when it comes.
            let rest = if last == [b'\n'] { Vec::new() } else { vec![b'#'] };
            self.files.insert(path, At { bytes, rest });
        }
        Ok(())
    }

    /// Appends the steps that have come since.
    pub(super) fn read(&mut self, steps: &mut Vec<StepFacts>) -> anyhow::Result<()> {
        for path in self.list()? {
            let at = self.files.entry(path.clone()).or_default();
            let cannot = || format!("{}: cannot be read", path.display());
            let length = fs::metadata(&path).with_context(cannot)?.len();
            if length <= at.bytes {
                continue;
            }
            let mut file = File::open(&path).with_context(cannot)?;
            file.seek(SeekFrom::Start(at.bytes)).with_context(cannot)?;
            let before = at.rest.len();
            file.take(length - at.bytes).read_to_end(&mut at.rest).with_context(cannot)?;
            at.bytes += (at.rest.len() - before) as u64;
            let Some(end) = at.rest.iter().rposition(|byte| *byte == b'\n') else { continue };
            let unread = at.rest.split_off(end + 1);
            let lines = std::mem::replace(&mut at.rest, unread);
            read_steps(lines.as_slice(), steps).with_context(cannot)?;
        }
        Ok(())
    }

    /// The open files of the scheduler; compressed ones are closed.
    fn list(&self) -> anyhow::Result<Vec<PathBuf>> {
        let cannot = || format!("--records {}: cannot be read", self.folder.display());
        let mut found = Vec::new();
        let mut engines: Vec<String> = Vec::new();
        for entry in fs::read_dir(&self.folder).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(engine) = engine_of(&name) else { continue };
            if self.engine.as_deref().is_some_and(|wanted| wanted != engine) {
                continue;
            }
            // Files of servers that have gone do not grow.
            if self
                .files
                .get(&path)
                .is_none_or(|at| fs::metadata(&path).is_ok_and(|m| m.len() > at.bytes))
            {
                engines.push(engine.to_owned());
            }
            found.push(path);
        }
        // Files of one scheduler are named by their beginning.
        found.sort();
        engines.sort();
        engines.dedup();
        ensure!(
            self.files.is_empty() || engines.len() <= 1,
            "{}: several schedulers write records: {}; name one with --engine",
            self.folder.display(),
            engines.join(", ")
        );
        Ok(found)
    }
}

/// `dp0-pid1` of `opprof-v1-dp0-pid1-17900.jsonl`.
fn engine_of(name: &str) -> Option<&str> {
    let rest = name.strip_suffix(".jsonl")?.strip_prefix("opprof-v")?;
    let (_, rest) = rest.split_once('-')?;
    Some(rest.rsplit_once('-')?.0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use takt_opprof::StepCounter;
    use takt_time::{Anchor, Nanos};

    use super::*;

    fn line(index: u64) -> Vec<u8> {
        let mut counter = StepCounter::new("dp0-pid1");
        let draft = (0..=index).map(|_| counter.begin(Anchor::default())).last().unwrap();
        let mut out = Vec::new();
        draft.complete(Nanos::ZERO, None).write_line(&mut out);
        out
    }

    fn read(tail: &mut Tail) -> Vec<u64> {
        let mut steps = Vec::new();
        tail.read(&mut steps).unwrap();
        steps.iter().map(|step| step.index).collect()
    }

    #[test]
    fn only_whole_lines_that_come_later_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut file = File::create(path("opprof-v1-dp0-pid1-5.jsonl")).unwrap();
        fs::write(path("opprof-v1-dp0-pid7-5.jsonl"), line(9)).unwrap();
        fs::write(path("windows.json"), "{}").unwrap();
        file.write_all(&line(0)).unwrap();
        let (half, rest) = (&line(1)[..40], &line(1)[40..]);
        file.write_all(half).unwrap();
        let mut tail = Tail::new(folder.path(), None).unwrap();
        assert!(read(&mut tail).is_empty());
        // The line that was cut when it began is passed over.
        file.write_all(rest).unwrap();
        file.write_all(&line(2)).unwrap();
        file.write_all(&line(3)[..40]).unwrap();
        assert_eq!(read(&mut tail), [2]);
        file.write_all(&line(3)[40..]).unwrap();
        // The next file of the same scheduler.
        fs::write(path("opprof-v1-dp0-pid1-6.jsonl"), line(4)).unwrap();
        assert_eq!(read(&mut tail), [3, 4]);
        let mut other =
            File::options().append(true).open(path("opprof-v1-dp0-pid7-5.jsonl")).unwrap();
        other.write_all(&line(10)).unwrap();
        file.write_all(&line(5)).unwrap();
        let error = tail.read(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("dp0-pid1, dp0-pid7; name one with --engine"), "{error}");
        let mut one = Tail::new(folder.path(), Some("dp0-pid7")).unwrap();
        other.write_all(&line(11)).unwrap();
        assert_eq!(read(&mut one), [11]);
    }
}
