//! From responses to marks, counts and the two files of an accuracy phase.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use takt_record::{FinishReason, Outcome, RequestId, RequestKey, SessionPlan};
use takt_recorder::WITHHELD;
use takt_score::{Answer, Response, Sink, Tally, joined_tool_calls};

use super::program::{Files, Mark, is_asked_for, next_mark};
use super::questions::{Question, Questions};
use super::{Kept, Scoring};
use crate::folder::Replacement;

/// Where the marks of a phase come from when a program gives them.
pub(super) enum Sheet {
    /// From no program.
    Unused,
    /// From this one.
    Marked(BufReader<File>),
    /// From the responses as they were written.
    Recorded(BufReader<File>),
    /// There are none.
    None(String),
}

/// One line of `responses.jsonl`.
#[derive(Serialize)]
struct Line<'a> {
    id: String,
    phase: &'a str,
    sample: u32,
    repeat: u32,
    outcome: Option<&'static str>,
    error: Option<&'static str>,
    finish_reason: Option<&'static str>,
    text: Option<&'a str>,
    reasoning: Option<&'a str>,
    tool_calls: Option<Vec<Value>>,
    truth: Option<&'a str>,
    extracted: Option<&'a str>,
    score: Option<f64>,
}

/// What is read of a line again.
#[derive(Deserialize)]
struct Written {
    id: String,
    #[serde(default)]
    extracted: Option<String>,
    #[serde(default)]
    score: Option<f64>,
}

/// Scores responses and writes them down.
pub(super) struct Writer<'k> {
    phases: Vec<Scored<'k>>,
    questions: Questions,
    session: u64,
    responses: Option<Replacement>,
    map: Option<Map>,
    error: Option<anyhow::Error>,
}

struct Scored<'k> {
    phase: &'k Kept,
    sheet: Sheet,
    tally: Tally,
}

/// `sample_idx_map.json`, as it grows. Requests come phase after phase.
struct Map {
    out: Replacement,
    /// Phases whose object is closed, and requests in the open one.
    closed: usize,
    entries: u64,
}

impl Sheet {
    /// What a program has given.
    pub(super) fn marked(files: &Files) -> Self {
        // Open, they can still be read when their names are gone.
        match files.marks() {
            Ok(marks) => Self::Marked(marks),
            Err(error) => Self::None(format!("its marks cannot be read: {error}")),
        }
    }

    /// What is in the run folder.
    pub(super) fn recorded(folder: &Path) -> Self {
        match File::open(folder.join(RESPONSES)) {
            Ok(file) => Self::Recorded(BufReader::new(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Self::None(not_run()),
            Err(error) => Self::None(unreadable(&error)),
        }
    }

    /// The mark of the request with this id, which comes after all that were asked for before.
    fn next(&mut self, id: &str) -> Result<Mark, String> {
        match self {
            Self::Marked(marks) => match next_mark(marks) {
                Ok(Some(mark)) => Ok(mark),
                Ok(None) => Err("marks are missing".to_owned()),
                Err(error) => Err(format!("{error:#}")),
            },
            Self::Recorded(lines) => recorded(lines, id),
            Self::None(why) => Err(why.clone()),
            Self::Unused => Err(not_run()),
        }
    }
}

/// The mark of `id` in responses that were written.
fn recorded(lines: &mut BufReader<File>, id: &str) -> Result<Mark, String> {
    let mut line = String::new();
    loop {
        line.clear();
        match lines.read_line(&mut line) {
            Ok(0) => return Err(format!("{RESPONSES} has no line for {id}; {RUN_IT}")),
            Ok(_) => {}
            Err(error) => return Err(unreadable(&error)),
        }
        let Ok(written) = serde_json::from_str::<Written>(&line) else { continue };
        if written.id == id {
            let mark = written.score.map(|score| Mark { score, extracted: written.extracted });
            return mark.ok_or_else(|| format!("the program gave none; {RUN_IT}"));
        }
    }
}

impl<'k> Writer<'k> {
    /// Of these phases, with a sheet for each. Files are made if `write`.
    pub(super) fn new(
        folder: &Path,
        plan: &SessionPlan,
        kept: &'k [Kept],
        sheets: Vec<Sheet>,
        write: bool,
    ) -> anyhow::Result<Self> {
        let file = |name: &str| write.then(|| Replacement::create(&folder.join(name))).transpose();
        let phases = kept.iter().zip(sheets);
        Ok(Self {
            phases: phases
                .map(|(phase, sheet)| Scored { phase, sheet, tally: Tally::default() })
                .collect(),
            questions: Questions::open(folder, kept)?,
            session: plan.session_key(),
            responses: file(RESPONSES)?,
            map: file(SAMPLE_MAP)?.map(|out| Map { out, closed: 0, entries: 0 }),
            error: None,
        })
    }

    /// Puts the files in their places; gives the counts of each phase, and why it has no score.
    pub(super) fn finish(mut self) -> anyhow::Result<Vec<(Tally, Option<String>)>> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(mut map) = self.map {
            let names: Vec<&str> = self.phases.iter().map(|s| &*s.phase.name).collect();
            map.close_up_to(names.len(), &names)?;
            map.out.write_all(b"}\n")?;
            map.out.finish()?;
        }
        if let Some(responses) = self.responses.take() {
            responses.finish()?;
        }
        let failed = |scored: Scored<'_>| match scored.sheet {
            Sheet::None(why) => (scored.tally, Some(why)),
            _ => (scored.tally, None),
        };
        Ok(self.phases.into_iter().map(failed).collect())
    }

    fn place(&self, key: RequestKey) -> Option<usize> {
        self.phases.iter().position(|scored| scored.phase.place == usize::from(key.phase.0))
    }

    fn take(&mut self, response: &Response) -> anyhow::Result<()> {
        let Some(place) = self.place(response.key) else { return Ok(()) };
        let question = self.questions.get(place, response.sample)?;
        let id = RequestId::new(self.session, response.key).to_string();
        let scored = &mut self.phases[place];
        let (answer, extracted) = scored.judge(response, &question, &id)?;
        scored.tally.add(response.repeat, answer);
        let Some(out) = &mut self.responses else { return Ok(()) };
        let scorable = scored.phase.scoring.is_some() && !matches!(scored.sheet, Sheet::None(_));
        let outcome = response.completed.map(|completed| completed.outcome);
        let line = Line {
            id,
            phase: &scored.phase.name,
            sample: response.sample,
            repeat: response.repeat,
            outcome: outcome.map(Outcome::as_str),
            error: outcome.and_then(Outcome::failure).map(|failure| failure.kind.as_str()),
            finish_reason: response.completed.and_then(|c| c.finish).map(FinishReason::as_str),
            text: given(&response.content),
            reasoning: given(&response.reasoning),
            tool_calls: given(&response.tool_calls).map(joined_tool_calls),
            truth: question.truth.as_deref(),
            extracted: extracted.as_deref(),
            score: scorable
                .then_some(match answer {
                    Answer::Scored { score, .. } => score,
                    Answer::Empty | Answer::Failed | Answer::Missing | Answer::Excluded => 0.0,
                })
                .filter(|_| answer != Answer::Excluded),
        };
        serde_json::to_writer(&mut *out, &line)?;
        Ok(out.write_all(b"\n")?)
    }

    fn note(&mut self, key: RequestKey, sample: u32) -> anyhow::Result<()> {
        let (Some(place), Some(map)) = (self.place(key), &mut self.map) else { return Ok(()) };
        let names: Vec<&str> = self.phases.iter().map(|s| &*s.phase.name).collect();
        map.add(place, &names, RequestId::new(self.session, key), sample)
    }
}

impl Scored<'_> {
    /// What became of the request, and what was taken out of its answer.
    fn judge(
        &mut self,
        response: &Response,
        question: &Question,
        id: &str,
    ) -> anyhow::Result<(Answer, Option<String>)> {
        let inline = self.phase.scoring.as_ref().is_some_and(Scoring::is_inline);
        if inline && question.truth.is_none() {
            return Ok((Answer::Excluded, None));
        }
        match response.completed.map(|completed| completed.outcome) {
            None | Some(Outcome::Unanswered) => return Ok((Answer::Missing, None)),
            Some(Outcome::Failed(_)) => return Ok((Answer::Failed, None)),
            Some(Outcome::Ok) => {}
        }
        let nothing = Answer::Scored { score: 0.0, extracted: true };
        // An answer may have begun before.
        let texts = [&response.content, &response.reasoning, &response.tool_calls];
        if texts.iter().any(|text| text.ends_with(WITHHELD)) {
            self.sheet = Sheet::None("answers were withheld for fear of secrets".to_owned());
            return Ok((nothing, None));
        }
        if let Some(scorer) = &self.phase.scorer {
            let truth = scorer
                .truth(question.truth.as_deref().unwrap_or_default())
                .with_context(|| format!("sample {}", response.sample))?;
            let Some(judged) = scorer.judge_response(response, &truth) else {
                return Ok((Answer::Empty, None));
            };
            let extracted = judged.extracted.is_some() || !scorer.extracts();
            return Ok((Answer::Scored { score: judged.score, extracted }, judged.extracted));
        }
        if !is_asked_for(response) {
            return Ok((Answer::Empty, None));
        }
        if matches!(self.sheet, Sheet::Unused) {
            return Ok((nothing, None));
        }
        Ok(match self.sheet.next(id) {
            Ok(Mark { score, extracted }) => (Answer::Scored { score, extracted: true }, extracted),
            Err(why) => {
                // One mark that is not to be had, and there is no score.
                self.sheet = Sheet::None(why);
                (nothing, None)
            }
        })
    }
}

impl Sink for Writer<'_> {
    fn issued(&mut self, key: RequestKey, sample: u32) {
        if self.error.is_none() {
            self.error = self.note(key, sample).err();
        }
    }

    fn response(&mut self, response: Response) {
        if self.error.is_none() {
            self.error = self.take(&response).err();
        }
    }
}

impl Map {
    fn add(
        &mut self,
        place: usize,
        names: &[&str],
        id: RequestId,
        sample: u32,
    ) -> anyhow::Result<()> {
        self.close_up_to(place, names)?;
        self.open(place, names)?;
        let comma = if self.entries > 0 { "," } else { "" };
        self.entries += 1;
        Ok(write!(self.out, "{comma}\n\"{id}\":{sample}")?)
    }

    /// Writes whole all phases before `place`.
    fn close_up_to(&mut self, place: usize, names: &[&str]) -> anyhow::Result<()> {
        while self.closed < place {
            self.open(self.closed, names)?;
            self.out.write_all(b"}")?;
            (self.closed, self.entries) = (self.closed + 1, 0);
        }
        Ok(())
    }

    /// Begins the object of the phase at `place`, unless it has begun.
    fn open(&mut self, place: usize, names: &[&str]) -> anyhow::Result<()> {
        if self.entries > 0 {
            return Ok(());
        }
        let before = if place == 0 { "{" } else { "," };
        let name = serde_json::to_string(names[place])?;
        Ok(write!(self.out, "{before}\n{name}:{{")?)
    }
}

fn not_run() -> String {
    format!("the program has not run; {RUN_IT}")
}

/// Of a file that is there: what the program gave is in it, and cannot be had.
fn unreadable(error: &io::Error) -> String {
    format!("{RESPONSES} cannot be read: {error}")
}

/// Text that was given.
fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

pub(super) const RESPONSES: &str = "responses.jsonl";
const SAMPLE_MAP: &str = "sample_idx_map.json";
/// What to do about marks that are not there.
const RUN_IT: &str = "`takt report DIR --run-programs` runs it";
