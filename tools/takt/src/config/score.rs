//! How the answers of a phase are scored.
//!
//! The same reader serves the configuration of a run and the one in a journal's head, so that a run is
//! scored again by what it was scored by.

use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};
use takt_score::{CHOICES_MAX, Of, Rule, Scorer, Take};
use takt_time::Span;

use super::error::ConfigError;
use super::keys;
use super::node::{Node, Origin};
use super::reader::{Field, Table};
use super::resolved::{absolute, span};

/// How answers are scored, checked.
#[derive(Clone, Debug)]
pub(crate) struct Scoring {
    pub(crate) by: By,
    /// The column of the truth; there for every rule.
    pub(crate) truth: Option<String>,
    after: Option<String>,
    of: Of,
}

/// What scores.
#[derive(Clone, Debug)]
pub(crate) enum By {
    /// takt itself, answer by answer.
    Rule(Rule),
    /// A program, which gets all answers at once.
    Command(Program),
}

/// A program that scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its name and its arguments; at least one.
    pub(crate) command: Vec<String>,
    /// The folder that it runs in.
    pub(crate) folder: PathBuf,
    /// How long it may take.
    pub(crate) timeout: Span,
}

impl Scoring {
    pub(super) fn read(field: &Field<'_>) -> Result<Self, ConfigError> {
        let table = field.table(&keys::SCORE)?;
        let words = WORDS.map(|word| (word, word));
        let by = table.need("by", &WORDS.join(", "))?.choice(&words, &[])?;
        table.only_for(by)?;
        let ignore_case = || table.get("ignore_case").map_or(Ok(false), |field| field.flag());
        let rule = match by {
            "exact" => Rule::Exact { ignore_case: ignore_case()? },
            "contains" => Rule::Contains { ignore_case: ignore_case()? },
            "regex" => {
                let pattern = table.need("pattern", "what to find in the answer")?;
                let take =
                    table.get("take").map_or(Ok(Take::Last), |f| f.choice(&Take::WORDS, &[]))?;
                let pattern = regex(&pattern)?;
                Rule::Regex { pattern, take, ignore_case: ignore_case()? }
            }
            "multiple_choice" => {
                let choices =
                    table.get("choices").map(|f| f.count(2, CHOICES_MAX.into())).transpose()?;
                Rule::MultipleChoice { choices: choices.map_or(CHOICES, |n| n as u8) }
            }
            "numeric" => Rule::Numeric,
            "agentic_inline" => {
                table.refuse("truth", "the recorded answers of the conversations are the truth")?;
                let (truth, after) = (None, None);
                return Ok(Self { by: By::Rule(Rule::Inline), truth, after, of: Of::All });
            }
            _ => return Self::command(&table),
        };
        let truth = table.need("truth", "name the column of the dataset with the right answers")?;
        let of = table.get("of").map_or(Ok(Of::Content), |f| f.choice(&Of::WORDS, &[]))?;
        let after = table.get("after").map(|f| f.text().map(str::to_owned)).transpose()?;
        // Whatever else could be wrong with it.
        Scorer::new(rule.clone(), of, after.as_deref()).map_err(|e| table.error(e.to_string()))?;
        Ok(Self { by: By::Rule(rule), truth: Some(truth.text()?.to_owned()), after, of })
    }

    fn command(table: &Table<'_>) -> Result<Self, ConfigError> {
        let command =
            table.need("command", "the program and its arguments: [python3, judge.py]")?;
        let words: Result<Vec<_>, _> =
            command.items().iter().map(|word| word.text().map(str::to_owned)).collect();
        let words = words?;
        if words.is_empty() {
            return Err(command.error("is empty; name a program"));
        }
        let folder = match (table.get("folder"), command.origin()) {
            (Some(folder), _) => folder.path()?,
            // Where the file is, so that `judge.py` beside it is found.
            (None, Origin::File(file, _)) => {
                let folder = std::path::Path::new(&**file).parent().map(PathBuf::from);
                folder.filter(|f| !f.as_os_str().is_empty()).unwrap_or_else(|| ".".into())
            }
            (None, _) => ".".into(),
        };
        let timeout = table.get("timeout").map_or(Ok(TIMEOUT), |field| field.span())?;
        let truth = table.get("truth").map(|f| f.text().map(str::to_owned)).transpose()?;
        let program = Program { command: words, folder, timeout };
        Ok(Self { by: By::Command(program), truth, after: None, of: Of::All })
    }

    /// Of the phase at `place` in a configuration that was written out.
    pub(crate) fn of_phase(config: &Json, place: usize) -> anyhow::Result<Option<Self>> {
        let Some(score) = config.pointer(&format!("/phases/{place}/score")) else {
            return Ok(None);
        };
        if score.is_null() {
            return Ok(None);
        }
        let node = Node::from_json(score.clone(), &Origin::Implied);
        Ok(Some(Self::read(&Field { node: &node, path: format!("phases[{place}].score") })?))
    }

    /// Whether turns are compared with what was recorded in their place.
    pub(crate) fn is_inline(&self) -> bool {
        matches!(self.by, By::Rule(Rule::Inline))
    }

    /// Its name in the configuration.
    pub(crate) fn word(&self) -> &'static str {
        match &self.by {
            By::Rule(Rule::Exact { .. }) => "exact",
            By::Rule(Rule::Contains { .. }) => "contains",
            By::Rule(Rule::Regex { .. }) => "regex",
            By::Rule(Rule::MultipleChoice { .. }) => "multiple_choice",
            By::Rule(Rule::Numeric) => "numeric",
            By::Rule(Rule::Inline) => "agentic_inline",
            By::Command(_) => "command",
        }
    }

    /// What of a response it looks at, where that is to be chosen.
    pub(crate) fn of(&self) -> Option<Of> {
        matches!(self.by, By::Rule(_)).then_some(self.of)
    }

    /// The scorer; none where a program scores.
    pub(crate) fn scorer(&self) -> Option<Scorer> {
        let By::Rule(rule) = &self.by else { return None };
        Scorer::new(rule.clone(), self.of, self.after.as_deref()).ok()
    }

    /// Written out, nothing implied.
    pub(super) fn to_json(&self) -> Json {
        let mut out = Map::new();
        out.insert("by".into(), self.word().into());
        out.insert("truth".into(), self.truth.clone().into());
        match &self.by {
            By::Rule(Rule::Inline) => {}
            By::Rule(rule) => {
                out.insert("after".into(), self.after.clone().into());
                out.insert("of".into(), self.of.as_str().into());
                match rule {
                    Rule::Exact { ignore_case } | Rule::Contains { ignore_case } => {
                        out.insert("ignore_case".into(), (*ignore_case).into());
                    }
                    Rule::Regex { pattern, take, ignore_case } => {
                        out.insert("pattern".into(), pattern.as_str().into());
                        out.insert("take".into(), take.as_str().into());
                        out.insert("ignore_case".into(), (*ignore_case).into());
                    }
                    Rule::MultipleChoice { choices } => {
                        out.insert("choices".into(), (*choices).into());
                    }
                    Rule::Numeric | Rule::Inline => {}
                }
            }
            By::Command(program) => {
                out.insert("command".into(), json!(program.command));
                out.insert("folder".into(), absolute(&program.folder).into());
                out.insert("timeout".into(), span(Some(program.timeout)).into());
            }
        }
        Json::Object(out)
    }
}

fn regex(field: &Field<'_>) -> Result<regex::Regex, ConfigError> {
    regex::Regex::new(field.text()?).map_err(|error| {
        // The last line of the parser's drawing says what is wrong.
        let text = error.to_string();
        let says = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        field.error(format!("is no regular expression: {says}"))
    })
}

const WORDS: [&str; 7] =
    ["exact", "contains", "regex", "multiple_choice", "numeric", "agentic_inline", "command"];
/// A to D.
const CHOICES: u8 = 4;
/// How long a program may take that says nothing else.
const TIMEOUT: Span = Span::from_secs(600);
