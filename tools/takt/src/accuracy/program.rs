//! Scoring by a program from outside: rows on its stdin, a mark a line on its stdout.
//!
//! Both are files, so neither side can block the other and nothing is held in memory. All marks are checked
//! before any is used: a program that fails, gives too few or too many, or is too slow, scores nothing.

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use takt_record::{FinishReason, RequestId, RequestKey, SessionPlan};
use takt_score::{Response, Sink, joined_tool_calls};

use super::Kept;
use super::questions::Questions;
use crate::config::Program;

/// What goes to and fro; gone when it is dropped.
pub(super) struct Files {
    rows: PathBuf,
    marks: PathBuf,
    said: PathBuf,
}

/// One answer, as the program gets it.
#[derive(Serialize)]
struct Row<'a> {
    id: String,
    phase: &'a str,
    sample: u32,
    repeat: u32,
    system: Option<&'a str>,
    prompt: &'a Value,
    truth: Option<&'a str>,
    text: &'a str,
    reasoning: &'a str,
    tool_calls: Vec<Value>,
    finish_reason: Option<&'static str>,
}

/// Writes the rows of one phase.
pub(super) struct Rows<'k> {
    out: BufWriter<File>,
    questions: Questions,
    phase: &'k Kept,
    session: u64,
    count: u64,
    error: Option<anyhow::Error>,
}

/// A mark and what it is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) score: f64,
    pub(super) extracted: Option<String>,
}

impl Files {
    /// Those of the phase at `place`.
    pub(super) fn in_folder(folder: &Path, place: usize) -> Self {
        let file = |what: &str| folder.join(format!(".score-{place}.{what}"));
        Self { rows: file("rows"), marks: file("marks"), said: file("said") }
    }

    /// The marks, checked by [`run`].
    pub(super) fn marks(&self) -> std::io::Result<BufReader<File>> {
        File::open(&self.marks).map(BufReader::new)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in [&self.rows, &self.marks, &self.said] {
            // One that was never made is gone, too.
            drop(std::fs::remove_file(file));
        }
    }
}

impl<'k> Rows<'k> {
    pub(super) fn create(
        files: &Files,
        folder: &Path,
        plan: &SessionPlan,
        phase: &'k Kept,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            out: BufWriter::new(File::create(&files.rows)?),
            questions: Questions::open(folder, std::slice::from_ref(phase))?,
            phase,
            session: plan.session_key(),
            count: 0,
            error: None,
        })
    }

    /// How many there are, all of them in the file.
    pub(super) fn finish(mut self) -> anyhow::Result<u64> {
        match self.error {
            Some(error) => Err(error),
            None => {
                self.out.flush()?;
                Ok(self.count)
            }
        }
    }

    fn row(&mut self, response: &Response) -> anyhow::Result<()> {
        let question = self.questions.get(0, response.sample)?;
        let row = Row {
            id: RequestId::new(self.session, response.key).to_string(),
            phase: &self.phase.name,
            sample: response.sample,
            repeat: response.repeat,
            system: question.system.as_deref(),
            prompt: &question.prompt,
            truth: question.truth.as_deref(),
            text: &response.content,
            reasoning: &response.reasoning,
            tool_calls: joined_tool_calls(&response.tool_calls),
            finish_reason: response.completed.and_then(|c| c.finish).map(FinishReason::as_str),
        };
        serde_json::to_writer(&mut self.out, &row)?;
        self.out.write_all(b"\n")?;
        self.count += 1;
        Ok(())
    }
}

impl Sink for Rows<'_> {
    fn issued(&mut self, _: RequestKey, _: u32) {}

    fn response(&mut self, response: Response) {
        if self.error.is_none() && is_asked_for(&response) {
            self.error = self.row(&response).err();
        }
    }
}

/// Whether a program is asked for a mark of this response. One that has nothing to say scores 0 without it.
pub(super) fn is_asked_for(response: &Response) -> bool {
    response.is_ok() && !response.is_empty()
}

/// Has `program` mark `count` rows.
pub(super) fn run(program: &Program, files: &Files, count: u64) -> anyhow::Result<()> {
    if count == 0 {
        File::create(&files.marks)?;
        return Ok(());
    }
    let name = &program.command[0];
    let mut child = Command::new(name)
        .args(&program.command[1..])
        .current_dir(&program.folder)
        .stdin(Stdio::from(File::open(&files.rows)?))
        .stdout(Stdio::from(File::create(&files.marks)?))
        .stderr(Stdio::from(File::create(&files.said)?))
        .spawn()
        .with_context(|| format!("`{name}` cannot be started in {}", program.folder.display()))?;
    let deadline = Instant::now() + Duration::from_nanos(program.timeout.as_nanos());
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= deadline {
            // It may have ended this very moment.
            drop(child.kill());
            child.wait()?;
            anyhow::bail!("`{name}` took longer than {}", program.timeout.exact());
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if !status.success() {
        anyhow::bail!("`{name}` failed ({status}){}", last_words(&files.said));
    }
    check(files, count).with_context(|| format!("`{name}`"))
}

/// Whether there is a mark for each row.
fn check(files: &Files, count: u64) -> anyhow::Result<()> {
    let mut given = 0;
    let mut marks = files.marks()?;
    while next_mark(&mut marks).with_context(|| format!("line {}", given + 1))?.is_some() {
        given += 1;
        anyhow::ensure!(given <= count, "gave more than a mark for each of {count} rows");
    }
    anyhow::ensure!(given == count, "gave {given} marks for {count} rows");
    Ok(())
}

/// The next mark; `None` at the end.
pub(super) fn next_mark(marks: &mut BufReader<File>) -> anyhow::Result<Option<Mark>> {
    let mut line = Vec::new();
    let read = marks.by_ref().take(MARK_BYTES_MAX).read_until(b'\n', &mut line)?;
    anyhow::ensure!((read as u64) < MARK_BYTES_MAX, "is longer than {MARK_BYTES_MAX} bytes");
    if read == 0 {
        return Ok(None);
    }
    mark(line.trim_ascii()).map(Some)
}

/// A number, true or false, or an object with a `score` of that kind.
fn mark(line: &[u8]) -> anyhow::Result<Mark> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Bool(bool),
        Number(f64),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Line {
        Plain(Given),
        Told {
            score: Given,
            #[serde(default)]
            extracted: Option<String>,
        },
    }
    let text = String::from_utf8_lossy(line);
    let what = || {
        let shown: String = text.chars().take(SHOWN).collect();
        format!("`{shown}` is no mark; print a number or {{\"score\": 1}}")
    };
    let (score, extracted) = match serde_json::from_slice(line).with_context(what)? {
        Line::Plain(score) => (score, None),
        Line::Told { score, extracted } => (score, extracted),
    };
    let score = match score {
        Given::Bool(right) => f64::from(u8::from(right)),
        Given::Number(score) => score,
    };
    Ok(Mark { score, extracted })
}

/// What a program said last, for an error.
fn last_words(said: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(said)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(SAID_BYTES)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        Ok(end)
    };
    let end = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&end);
    match text.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!(": {}", line.trim()),
        None => String::new(),
    }
}

/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A longer line is no mark.
const MARK_BYTES_MAX: u64 = 1 << 20;
/// Of what a program says, this much is read.
const SAID_BYTES: u64 = 2_048;
/// Characters of a wrong mark in an error.
const SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use takt_time::Span;

    use super::*;

    #[test]
    fn a_mark_is_a_number_or_an_object_with_one() {
        let plain = |score| Mark { score, extracted: None };
        for (line, expected) in [
            ("1", plain(1.0)),
            ("0.25", plain(0.25)),
            ("true", plain(1.0)),
            ("false", plain(0.0)),
            ("{\"score\": 0.5, \"why\": \"half\"}", plain(0.5)),
            (
                "{\"score\": true, \"extracted\": \"B\"}",
                Mark { score: 1.0, extracted: Some("B".into()) },
            ),
        ] {
            assert_eq!(mark(line.as_bytes()).unwrap(), expected, "{line}");
        }
        for line in ["", "right", "null", "\"1\"", "{}", "{\"score\": null}", "NaN", "1e999"] {
            assert!(mark(line.as_bytes()).is_err(), "{line}");
        }
    }

    /// What a shell makes of two rows.
    fn check(script: &str, timeout: Span) -> Result<Vec<f64>, String> {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::in_folder(folder.path(), 0);
        std::fs::write(&files.rows, "{\"a\":1}\n{\"a\":2}\n").unwrap();
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let program = Program { command, folder: folder.path().to_owned(), timeout };
        run(&program, &files, 2).map_err(|error| format!("{error:#}"))?;
        let mut marks = files.marks().unwrap();
        let mut scores = Vec::new();
        while let Some(mark) = next_mark(&mut marks).unwrap() {
            scores.push(mark.score);
        }
        drop(files);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        Ok(scores)
    }

    #[test]
    fn a_program_gets_the_rows_and_gives_a_mark_for_each() {
        let minute = Span::from_secs(60);
        assert_eq!(check("sed 's/.*\\([12]\\).*/\\1/'", minute), Ok(vec![1.0, 2.0]));
        for (script, says) in [
            ("cat > /dev/null; echo 1", "`sh`: gave 1 marks for 2 rows"),
            ("echo 1; echo 2; echo 3", "`sh`: gave more than a mark for each of 2 rows"),
            ("echo 1; echo right", "`sh`: line 2: `right` is no mark"),
            ("echo no model >&2; echo >&2; exit 3", "`sh` failed (exit status: 3): no model"),
        ] {
            let error = check(script, minute).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
        let slow = check("exec sleep 600", Span::from_millis(50)).unwrap_err();
        assert_eq!(slow, "`sh` took longer than 50ms");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::in_folder(folder.path(), 0);
        std::fs::write(&files.rows, "{}\n").unwrap();
        let program = Program {
            command: vec!["no-such-judge".into()],
            folder: folder.path().to_owned(),
            timeout: Span::from_secs(1),
        };
        let error = format!("{:#}", run(&program, &files, 1).unwrap_err());
        assert!(error.starts_with("`no-such-judge` cannot be started"), "{error}");
    }
}
