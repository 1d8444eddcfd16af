//! Where the samples of a phase come from.

use std::path::PathBuf;

use takt_dataset::{Columns, ConversationFormat, Format, Lengths, RecordingFormat};
use takt_wire::Api;

use super::error::ConfigError;
use super::keys;
use super::node::Node;
use super::phase::Stop;
use super::reader::{Field, Table};

/// Where samples come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file of prompts, or of bodies.
    File(FileSource),
    /// A recording of a service: prompts made up in its lengths, with what they shared.
    Recording(RecordingSource),
    /// Conversations.
    Conversations(ConversationSource),
    /// Prompts made up from the phase's seed, all different.
    Synthetic {
        /// How many.
        prompts: usize,
        /// How long.
        words: Lengths,
    },
    /// One request over and over, for services that want no prompts.
    Fixed,
}

/// A file and how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSource {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) columns: Columns,
}

/// A recording and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingSource {
    pub(crate) path: PathBuf,
    pub(crate) format: RecordingFormat,
}

/// A file of conversations and how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConversationSource {
    pub(crate) path: PathBuf,
    pub(crate) format: ConversationFormat,
    /// The whole file is one JSON array.
    pub(crate) array: bool,
}

/// What `format` can say.
#[derive(Clone, Copy)]
enum Form {
    File(Format),
    Recording(RecordingFormat),
    Conversations(ConversationFormat),
    Synthetic,
}

impl Source {
    /// The source of a phase: its own `dataset`, else that of the session, else made up for `api`.
    pub(super) fn read(
        own: Option<&Field<'_>>,
        session: Option<&Field<'_>>,
        api: Api,
        phase: &Table<'_>,
        stop: &Stop,
    ) -> Result<Self, ConfigError> {
        let Some(field) = own.or(session) else { return Self::made_up(api, phase, stop) };
        let table = field.table(&keys::DATASET)?;
        let format = table.get("format").map(|f| f.choice(&FORMATS, &FORMATS_LATER)).transpose()?;
        match format {
            Some(Form::Synthetic) => synthetic_from(&table, api, phase, stop),
            Some(Form::Recording(format)) => recording_from(&table, api, format),
            Some(Form::Conversations(format)) => conversations_from(&table, api, format),
            Some(Form::File(format)) => file_from(&table, api, Some(format)),
            None => file_from(&table, api, None),
        }
    }

    fn made_up(api: Api, phase: &Table<'_>, stop: &Stop) -> Result<Self, ConfigError> {
        if api == Api::Raw {
            stop.must_end(phase, "without a dataset one request is sent over and over")?;
            return Ok(Self::Fixed);
        }
        stop.must_end(phase, "without a dataset there are no rows to run out of")?;
        Ok(Self::Synthetic { prompts: stop.prompts(), words: Lengths::Fixed(DEFAULT_WORDS) })
    }
}

fn synthetic_from(
    table: &Table<'_>,
    api: Api,
    phase: &Table<'_>,
    stop: &Stop,
) -> Result<Source, ConfigError> {
    table.only_for(SYNTHETIC)?;
    if api == Api::Raw {
        return Err(table.error(
            "api `raw` sends bodies, and synthetic prompts are none; give a file, or no dataset",
        ));
    }
    let words = match table.get("words") {
        None => Lengths::Fixed(DEFAULT_WORDS),
        Some(field) if matches!(field.node, Node { value: super::Value::Map(_), .. }) => {
            let table = field.table(&keys::WORDS)?;
            let of = |key| {
                table.need(key, "give {min: 32, max: 256}")?.count(1, WORDS_MAX).map(|n| n as u32)
            };
            Lengths::Uniform { min: of("min")?, max: of("max")? }
        }
        Some(field) => Lengths::Fixed(field.count(1, WORDS_MAX)? as u32),
    };
    let prompts = match table.get("prompts") {
        Some(field) => field.count(1, u64::from(u32::MAX))? as usize,
        None => {
            stop.must_end(phase, "without `prompts` there are no rows to run out of")?;
            stop.prompts()
        }
    };
    Ok(Source::Synthetic { prompts, words })
}

fn recording_from(
    table: &Table<'_>,
    api: Api,
    format: RecordingFormat,
) -> Result<Source, ConfigError> {
    table.only_for(format.name())?;
    if api == Api::Raw {
        let says = "api `raw` sends bodies, and a recording has none; `load.path` takes its times";
        return Err(table.error(says));
    }
    let path = table.need("path", "name the file of the recording")?.path()?;
    Ok(Source::Recording(RecordingSource { path, format }))
}

fn conversations_from(
    table: &Table<'_>,
    api: Api,
    format: ConversationFormat,
) -> Result<Source, ConfigError> {
    table.only_for(format.name())?;
    if api != Api::OpenaiChat {
        let says = format!("conversations are sent with api `openai-chat`, not `{}`", api.as_str());
        return Err(table.error(says));
    }
    let path = table.need("path", "name the file of the conversations")?.path()?;
    let array = path.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"));
    Ok(Source::Conversations(ConversationSource { path, format, array }))
}

fn file_from(table: &Table<'_>, api: Api, format: Option<Format>) -> Result<Source, ConfigError> {
    let field = table.need("path", "name a file, or set `format: synthetic`")?;
    let path = field.path()?;
    let format = match format {
        Some(format) => format,
        None => Format::from_path(&path).map_err(|e| field.error(e.to_string()))?,
    };
    table.only_for(format.name())?;
    let column = |key| table.get(key).map(|f| f.text().map(str::to_owned)).transpose();
    if api == Api::Raw {
        table.refuse("system", "api `raw` sends one column as the body")?;
    }
    let columns = Columns { prompt: column("prompt")?, system: column("system")?, truth: None };
    Ok(Source::File(FileSource { path, format, columns }))
}

pub(super) const SYNTHETIC: &str = "synthetic";
const FORMATS: [(&str, Form); 11] = [
    ("jsonl", Form::File(Format::Jsonl)),
    ("json", Form::File(Format::Json)),
    ("csv", Form::File(Format::Csv)),
    ("text", Form::File(Format::Text)),
    ("azure", Form::Recording(RecordingFormat::Azure)),
    ("mooncake", Form::Recording(RecordingFormat::Mooncake)),
    ("agentic", Form::Conversations(ConversationFormat::Agentic)),
    ("messages", Form::Conversations(ConversationFormat::Messages)),
    ("sharegpt", Form::Conversations(ConversationFormat::ShareGpt)),
    ("mt-bench", Form::Conversations(ConversationFormat::MtBench)),
    (SYNTHETIC, Form::Synthetic),
];
const FORMATS_LATER: [&str; 1] = ["parquet"];
/// About a short question.
const DEFAULT_WORDS: u32 = 64;
/// Some ten million tokens.
const WORDS_MAX: u64 = 10_000_000;
