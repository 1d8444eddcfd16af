//! What was asked: prompt and truth of each sample, in the run folder before anything is sent.
//!
//! A score can then be made again when the dataset is gone or was changed. The file is looked up by place,
//! never held: eight bytes a sample are in memory.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use takt_dataset::{Conversations, Prompt, Sample};
use takt_score::InlineTruth;

use super::Kept;
use crate::config::{Config, Phase, Scoring};
use crate::folder::RunFolder;
use crate::samples::Prepared;

/// One line of the file.
#[derive(Serialize)]
struct Line<'a> {
    phase: &'a str,
    sample: u32,
    row: u64,
    /// Of a turn: its conversation and number. The prompt is what it says itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u32>,
    system: Option<&'a str>,
    prompt: Asked<'a>,
    truth: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Asked<'a> {
    Text(&'a str),
    Messages(&'a RawValue),
    Turn(Box<RawValue>),
}

/// What was asked of one sample.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Question {
    #[serde(default)]
    pub(super) system: Option<String>,
    #[serde(default)]
    pub(super) prompt: Value,
    #[serde(default)]
    pub(super) truth: Option<String>,
}

/// The file, open to be looked up in.
pub(super) struct Questions {
    file: BufReader<File>,
    /// Of each kept phase, where the lines of its samples begin.
    places: Vec<Vec<u64>>,
    line: String,
}

/// Writes down what the phases that keep their answers will ask; the datasets are needed no longer.
pub(crate) fn write(
    folder: &RunFolder,
    config: &Config,
    prepared: &[Rc<RefCell<Prepared>>],
) -> io::Result<()> {
    let kept = || config.phases.iter().zip(prepared).filter(|(phase, _)| phase.keeps_text());
    if kept().next().is_none() {
        return Ok(());
    }
    folder.write_with(FILE, |out| {
        for (phase, prepared) in kept() {
            let prepared = prepared.borrow();
            if let Some(talks) = prepared.talks() {
                write_turns(out, phase, &talks.all)?;
                continue;
            }
            let samples = prepared.dataset().map_or(&[][..], |dataset| dataset.samples());
            for (place, sample) in samples.iter().enumerate() {
                serde_json::to_writer(&mut *out, &line(&phase.name, place, sample))?;
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    })?;
    for (_, prepared) in kept() {
        prepared.borrow_mut().forget_dataset();
    }
    Ok(())
}

/// The turns of conversations, each with its own words: their histories would make the file long.
fn write_turns(out: &mut impl io::Write, phase: &Phase, talks: &Conversations) -> io::Result<()> {
    let inline = phase.score.as_ref().is_some_and(Scoring::is_inline);
    let turns =
        talks.list().iter().flat_map(|talk| talk.turns().iter().map(move |turn| (talk, turn)));
    for (sample, (talk, turn)) in turns.enumerate() {
        let truth = || InlineTruth::of(&talk.id, talk.answer(turn), turn.intents.as_deref());
        let truth = inline.then(truth).flatten();
        let said = format!("[{}]", talk.asked(turn));
        let line = Line {
            phase: &phase.name,
            sample: sample as u32,
            row: turn.row,
            conversation: Some(&talk.id),
            turn: Some(turn.number),
            system: None,
            prompt: Asked::Turn(RawValue::from_string(said)?),
            truth: truth.map(|truth| Cow::Owned(truth.to_text())),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn line<'a>(phase: &'a str, place: usize, sample: &'a Sample) -> Line<'a> {
    Line {
        phase,
        // No dataset has more samples than 32 bits can count.
        sample: place as u32,
        row: sample.row,
        conversation: None,
        turn: None,
        system: sample.system.as_deref(),
        prompt: match &sample.prompt {
            Prompt::Text(text) => Asked::Text(text),
            Prompt::Messages(json) => Asked::Messages(json),
        },
        truth: sample.truth.as_deref().map(Cow::Borrowed),
    }
}

impl Questions {
    /// Opens the file of the run folder for these phases.
    pub(super) fn open(folder: &Path, kept: &[Kept]) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Place {
            phase: String,
            sample: u32,
        }
        let path = folder.join(FILE);
        let shown = || path.display().to_string();
        let mut file = BufReader::new(File::open(&path).with_context(shown)?);
        let (mut places, mut at, mut line) = (vec![Vec::new(); kept.len()], 0, String::new());
        loop {
            line.clear();
            let read = file.read_line(&mut line).with_context(shown)?;
            if read == 0 {
                break;
            }
            let here: Place = serde_json::from_str(&line).with_context(shown)?;
            if let Some(phase) = kept.iter().position(|phase| phase.name == here.phase) {
                let places: &mut Vec<u64> = &mut places[phase];
                anyhow::ensure!(here.sample as usize == places.len(), "{}: out of order", shown());
                places.push(at);
            }
            at += read as u64;
        }
        Ok(Self { file, places, line })
    }

    /// What was asked of a sample of the `phase`-th kept phase. Of a sample that came from no dataset nothing
    /// is known.
    pub(super) fn get(&mut self, phase: usize, sample: u32) -> anyhow::Result<Question> {
        let Some(&at) = self.places[phase].get(sample as usize) else {
            return Ok(Question::default());
        };
        self.file.seek(SeekFrom::Start(at))?;
        self.line.clear();
        self.file.read_line(&mut self.line)?;
        serde_json::from_str(&self.line).context(FILE)
    }
}

/// Its name in the run folder.
const FILE: &str = "questions.jsonl";
