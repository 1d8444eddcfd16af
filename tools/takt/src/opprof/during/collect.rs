//! The step records of a run: what the server wrote from the run's beginning to its end, and no more.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use takt_opprof::check_part;

use super::super::{check, files};

/// The records of a server, from where they ended when the run began.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
    /// Bytes that were there, by the file's name without `.gz`.
    before: BTreeMap<String, u64>,
}

impl Records {
    /// Looks where they end.
    pub(super) fn begin(folder: &Path) -> anyhow::Result<Self> {
        let mut before = BTreeMap::new();
        for (name, path) in list(folder)? {
            // Of a file that is closed and compressed nothing is of this run.
            let whole = path.extension().is_some_and(|end| end == "gz");
            let bytes = if whole { u64::MAX } else { fs::metadata(&path)?.len() };
            before.insert(name, bytes);
        }
        Ok(Self { folder: folder.to_owned(), before })
    }

    /// Copies what has come since into `into`, whole lines; says what is wrong with it.
    pub(super) fn collect(self, into: &Path, engine: Option<&str>) -> Vec<String> {
        match self.copy(into) {
            Ok(copied) if copied.is_empty() => {
                let shown = self.folder.display();
                vec![format!("records: the server wrote none into {shown} during the run")]
            }
            Ok(copied) => {
                checked(&copied, engine).unwrap_or_else(|error| vec![format!("records: {error:#}")])
            }
            Err(error) => vec![format!("records: {error:#}")],
        }
    }

    fn copy(&self, into: &Path) -> anyhow::Result<Vec<PathBuf>> {
        self.settle();
        let mut copied = Vec::new();
        let mut found = list(&self.folder)?;
        // While a file is being compressed it is there twice.
        found.dedup_by(|later, first| later.0 == first.0);
        for (name, path) in found {
            let skip = self.before.get(&name).copied().unwrap_or(0);
            if skip == u64::MAX {
                continue;
            }
            let cannot = || format!("{}: cannot be copied", path.display());
            let target = into.join(&name);
            if copy_from(&path, skip, &target).with_context(cannot)? {
                copied.push(target);
            }
        }
        Ok(copied)
    }

    /// Waits until the files grow no more: a writer may be a second behind.
    fn settle(&self) {
        let size = || -> u64 {
            let found = list(&self.folder).unwrap_or_default();
            found.iter().filter_map(|(_, path)| Some(fs::metadata(path).ok()?.len())).sum()
        };
        let mut before = size();
        for _ in 0..LOOKS {
            std::thread::sleep(LOOK_EVERY);
            let now = size();
            if now == before {
                return;
            }
            before = now;
        }
    }
}

/// Files of records in a folder: their names without `.gz`, and where they are.
fn list(folder: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let cannot = || format!("opprof.records: {}: cannot be read", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        if plain.starts_with("opprof-v") && plain.ends_with(".jsonl") {
            found.push((plain.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// Copies whole lines behind the first `skip` bytes; whether there were any.
fn copy_from(path: &Path, skip: u64, target: &Path) -> anyhow::Result<bool> {
    let mut input = files::open(path)?;
    let (mut left, mut last) = (skip, b'\n');
    while left > 0 {
        let buffer = input.fill_buf()?;
        let Some(end) = buffer.len().checked_sub(1) else { return Ok(false) };
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(end + 1);
        last = buffer[taken - 1];
        input.consume(taken);
        left -= taken as u64;
    }
    if last != b'\n' {
        // The line was begun before the run.
        input.read_until(b'\n', &mut Vec::new())?;
    }
    let mut out: Option<BufWriter<File>> = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        let got = input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        // A file that is being compressed ends early.
        if got.is_err() || !line.ends_with(b"\n") {
            break;
        }
        if skip > 0 && is_footer(&line) {
            // It speaks of the file as a whole.
            continue;
        }
        let out = match &mut out {
            Some(out) => out,
            None => out.insert(BufWriter::new(File::create(target)?)),
        };
        out.write_all(&line)?;
    }
    if let Some(out) = &mut out {
        out.flush()?;
    }
    Ok(out.is_some())
}

fn is_footer(line: &[u8]) -> bool {
    line.len() < FOOTER_MAX && String::from_utf8_lossy(line).contains("\"footer\":")
}

/// What does not hold in the copied files.
fn checked(copied: &[PathBuf], engine: Option<&str>) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut engines: Vec<String> = Vec::new();
    let mut before = None;
    for (head, path) in check::in_order(copied)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        engines.extend(head.map(|head| head.engine_id));
        let report = check_part(files::open(&path)?, before.as_ref())?;
        if report.failed > 0 {
            let failed = report.failed;
            problems.push(format!(
                "records: {failed} checks of {name} fail; `takt opprof check --part` on the run's {} names them",
                super::OWN
            ));
        }
        if report.dropped > 0 {
            problems.push(format!("records: the server dropped {} of {name}", report.dropped));
        }
        before = Some(report.stream);
    }
    engines.sort();
    engines.dedup();
    if engines.len() > 1 && engine.is_none() {
        let all = engines.join(", ");
        problems
            .push(format!("records: of several schedulers: {all}; name one with opprof.engine"));
    }
    Ok(problems)
}

/// Records are longer.
const FOOTER_MAX: usize = 512;
const LOOKS: u32 = 20;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A record has a thousand bytes.
const LINE_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn copied(contents: &[u8], skip: u64, gzip: bool) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (path, target) = (folder.path().join("from"), folder.path().join("to"));
        if gzip {
            let mut out = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
            out.write_all(contents).unwrap();
            out.finish().unwrap();
        } else {
            fs::write(&path, contents).unwrap();
        }
        let any = copy_from(&path, skip, &target).unwrap();
        assert_eq!(any, target.exists());
        any.then(|| fs::read_to_string(target).unwrap())
    }

    #[test]
    fn whole_lines_of_the_run_are_copied_from_plain_and_from_compressed_files() {
        let text = b"one\ntwo\nthree\nfo";
        for gzip in [false, true] {
            for (skip, want) in [
                (0, Some("one\ntwo\nthree\n")),
                (4, Some("two\nthree\n")),
                // Begun before the run.
                (5, Some("three\n")),
                (14, None),
                (15, None),
                (900, None),
            ] {
                assert_eq!(copied(text, skip, gzip).as_deref(), want, "{skip} {gzip}");
            }
        }
    }

    #[test]
    fn a_footer_goes_with_its_whole_file_alone() {
        let text = b"one\ntwo\n{\"schema\":1,\"footer\":true}\n";
        assert_eq!(copied(text, 4, false).as_deref(), Some("two\n"));
        assert_eq!(copied(text, 0, false).unwrap().lines().count(), 3);
    }

    #[test]
    fn what_was_there_before_is_left_out_and_a_file_that_was_rotated_is_found_again() {
        let (folder, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| folder.path().join(name);
        fs::write(path("opprof-v1-dp0-pid1-5.jsonl"), "old\n").unwrap();
        fs::write(path("opprof-v1-dp0-pid1-4.jsonl.gz"), "closed long ago").unwrap();
        fs::write(path("windows.json"), "{}").unwrap();
        let records = Records::begin(folder.path()).unwrap();
        // Rotated: the file is compressed, another one goes on.
        fs::remove_file(path("opprof-v1-dp0-pid1-5.jsonl")).unwrap();
        let file = File::create(path("opprof-v1-dp0-pid1-5.jsonl.gz")).unwrap();
        let mut out = GzEncoder::new(file, Compression::fast());
        out.write_all(b"old\nnew\n").unwrap();
        out.finish().unwrap();
        fs::write(path("opprof-v1-dp0-pid1-6.jsonl"), "newer\n").unwrap();
        let mut copied = records.copy(into.path()).unwrap();
        copied.sort();
        let texts: Vec<_> = copied.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!(texts, ["new\n", "newer\n"]);
        let problems = Records::begin(folder.path()).unwrap().collect(into.path(), None);
        assert!(problems[0].contains("the server wrote none"), "{problems:?}");
    }
}
