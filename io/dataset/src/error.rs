//! What can be wrong with a data set. Every message says what, where, and how to mend it.

use std::fmt;
use std::io;
use std::num::NonZeroU64;

use crate::columns::Role;
use crate::conversation::ConversationFault;

/// A data set that cannot be used: `file:line: reason; how to mend it`, before the reason `at byte N: ` (of the
/// line) where that is known.
#[derive(Debug)]
pub struct DatasetError {
    /// The name the caller gave for the input.
    pub file: Box<str>,
    /// The physical line, from 1, where there is one to blame.
    pub line: Option<u64>,
    /// The byte of that line, from 1, where it is known and the fault does not say it itself.
    pub column: Option<NonZeroU64>,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, fault, .. } = self;
        match (self.line, self.column) {
            (Some(line), Some(byte)) => write!(f, "{file}:{line}: at byte {byte}: {fault}"),
            (Some(line), None) => write!(f, "{file}:{line}: {fault}"),
            (None, _) => write!(f, "{file}: {fault}"),
        }
    }
}

impl std::error::Error for DatasetError {}

/// The kinds of fault. The text of each is reason, semicolon, remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The input could not be read.
    #[error("cannot be read: {0}; check the file and its permissions")]
    Read(io::Error),
    /// No rows.
    #[error("the data set is empty; give it at least one row")]
    Empty,
    /// More rows than [`Limits::rows_max`](crate::Limits::rows_max).
    #[error("more than {max} rows; use a part of the file or raise the limit on rows")]
    TooManyRows {
        /// The limit.
        max: usize,
    },
    /// A longer row than [`Limits::row_bytes_max`](crate::Limits::row_bytes_max).
    #[error(
        "a row of more than {max} bytes; check that rows end where they should, or raise the limit \
         on the bytes of a row"
    )]
    RowTooLong {
        /// The limit, bytes.
        max: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("not UTF-8 at byte {byte} of the line; save the file as UTF-8")]
    NotUtf8 {
        /// The first such byte of its line, from 1.
        byte: usize,
    },
    /// A file that starts with the byte order mark of UTF-16.
    #[error("this is UTF-16; save the file as UTF-8")]
    Utf16,
    /// Text that is not JSON.
    #[error("not JSON{}: {message}; {remedy}", Column(*.column))]
    Json {
        /// What the parser says.
        message: String,
        /// The byte of the line, from 1, where it is known.
        column: Option<u64>,
        /// What to do, which depends on the format.
        remedy: &'static str,
    },
    /// A row that is JSON but no object.
    #[error("a row must be an object, this one is {found}; write {{\"prompt\": …}}")]
    NotAnObject {
        /// What stands there.
        found: &'static str,
    },
    /// A JSON file whose outermost value is no array.
    #[error(
        "a JSON file must hold an array of rows, this one holds {found}; put the rows in [ ], or \
         set `dataset.format: jsonl` if each line is a row"
    )]
    NotAnArray {
        /// What stands there.
        found: &'static str,
    },
    /// Two columns could play the same role.
    #[error(
        "both `{first}` and `{second}` could be the {role}; say which one with `{}: {first}` or \
         `{}: {second}`",
        .role.key(), .role.key()
    )]
    Ambiguous {
        /// The role.
        role: Role,
        /// A candidate.
        first: &'static str,
        /// Another one.
        second: &'static str,
    },
    /// No column is known to hold prompts.
    #[error(
        "no column is known to hold the prompt, there {}; name one with `dataset.prompt: COLUMN`{}",
        List(.present), separator_hint(.present)
    )]
    NoPromptColumn {
        /// The columns of the row.
        present: Vec<String>,
    },
    /// A column that was named, or chosen from the first row, is not in this one.
    #[error(
        "no column `{column}` for the {role}, there {}; {}",
        List(.present), remedy_for_missing(*.role, .nearest.as_deref())
    )]
    MissingColumn {
        /// The role it was to play.
        role: Role,
        /// The name looked for.
        column: String,
        /// The columns of the row.
        present: Vec<String>,
        /// The column whose name is most like it, if any is.
        nearest: Option<Box<str>>,
    },
    /// The column chosen from the first row is `null` in this one.
    #[error("column `{column}` for the {role} is null here; give it text or remove the row")]
    NullColumn {
        /// The role it was to play.
        role: Role,
        /// Its name.
        column: String,
    },
    /// A column that is needed stands twice in the row or header.
    #[error("column `{column}` stands here twice; rename or remove one of them")]
    DuplicateColumn {
        /// Its name.
        column: String,
    },
    /// A cell of the wrong type.
    #[error(
        "column `{column}` must hold {want}, not {found}{}; {}",
        Beside(.value), remedy_for_kind(.want, .found)
    )]
    WrongKind {
        /// The column.
        column: String,
        /// What it must hold.
        want: &'static str,
        /// What it holds.
        found: &'static str,
        /// The same as it stands in the file.
        value: Box<str>,
    },
    /// A prompt of nothing but white space.
    #[error("the prompt in column `{column}` is empty; give it text or remove the row")]
    EmptyPrompt {
        /// The column.
        column: String,
    },
    /// A row without the truth that was asked for.
    #[error(
        "no truth in column `{column}`; give it a value, remove the row, or take away \
         `dataset.truth`"
    )]
    EmptyTruth {
        /// The column.
        column: String,
    },
    /// Messages that no chat endpoint would take.
    #[error(
        "column `{column}` holds no chat messages: {reason}; write \
         [{{\"role\": \"user\", \"content\": \"…\"}}]"
    )]
    Messages {
        /// The column.
        column: String,
        /// What is wrong with them.
        reason: String,
    },
    /// A system column beside messages that hold a system prompt.
    #[error("a system prompt both in column `{column}` and among the messages; remove one of them")]
    TwoSystems {
        /// The column.
        column: String,
    },
    /// A CSV quote that nothing closes.
    #[error(
        "the quote that opens here is never closed; close it, and double each quote inside the \
         field"
    )]
    QuoteLeftOpen,
    /// Text between a closing quote and the next comma.
    #[error(
        "text after the quote that closes the field opened on line {opened}; double each quote \
         inside a field, and check that the quote on line {opened} is meant"
    )]
    TextAfterQuote {
        /// The line where the field's quote opened.
        opened: u64,
    },
    /// A quote inside a field that does not start with one.
    #[error("a quote inside a field without quotes; put the field in quotes and double this one")]
    StrayQuote,
    /// A carriage return on its own outside quotes.
    #[error(
        "a carriage return without a line feed; save the file with LF or CRLF line ends, or put \
         the field in quotes"
    )]
    BareCarriageReturn,
    /// A CSV row with more or fewer fields than the header.
    #[error(
        "{got} fields where the header has {want}; put fields that hold a comma in quotes, and \
         fill missing ones with nothing between commas"
    )]
    FieldCount {
        /// Fields of the header.
        want: usize,
        /// Fields of the row.
        got: usize,
    },
    /// An empty line between rows.
    #[error(
        "an empty line between rows; remove it (a prompt of several lines needs quotes in CSV, or \
         JSONL)"
    )]
    BlankLine,
    /// A column was named for a format that has none.
    #[error("a text file has no columns; remove `{}` or use another format", .role.key())]
    NoColumns {
        /// The role that was mapped.
        role: Role,
    },
    /// A row of a recording without something that every row has.
    #[error(
        "no column `{column}`, there {}; a {format} trace has one, set `dataset.format` to what the \
         file is",
        List(.present)
    )]
    MissingField {
        /// Its name.
        column: &'static str,
        /// What the file was read as.
        format: &'static str,
        /// The columns of the row.
        present: Vec<String>,
    },
    /// A value of a recording that is none.
    #[error("`{column}` must be {want}, not {}; correct the row or remove it", Shown(.found))]
    BadField {
        /// The column.
        column: &'static str,
        /// What it must hold.
        want: &'static str,
        /// What it holds.
        found: String,
    },
    /// A recording whose rows are not in the order of time.
    #[error("its time is before that of the row above; sort the rows by time")]
    BackInTime,
    /// More or fewer prefix blocks than the input has tokens for.
    #[error(
        "{blocks} `hash_ids` for {tokens} tokens of input, which are {want} blocks of {block_tokens}; \
         correct the row or remove it"
    )]
    BlockCount {
        /// Blocks that are named.
        blocks: usize,
        /// Tokens of input.
        tokens: u32,
        /// Blocks that these tokens are.
        want: usize,
        /// Tokens of a block.
        block_tokens: u32,
    },
    /// A synthetic data set that could not be of distinct prompts.
    #[error(
        "prompts of {words} words cannot be {samples} different ones; ask for at least {needed} \
         words"
    )]
    TooFewWords {
        /// The shortest length asked for.
        words: u32,
        /// How many prompts were asked for.
        samples: usize,
        /// The shortest length that is enough.
        needed: u32,
    },
    /// A message that fits no conversation.
    #[error(transparent)]
    Conversation(#[from] ConversationFault),
    /// A range of lengths whose end is before its start.
    #[error("lengths from {min} to {max} words hold nothing; swap them")]
    EmptyRange {
        /// The start, words.
        min: u32,
        /// The end, words.
        max: u32,
    },
}

/// A fault and its line, before the file's name is known.
#[derive(Debug)]
pub(crate) struct At {
    pub(crate) line: Option<u64>,
    pub(crate) column: Option<NonZeroU64>,
    pub(crate) fault: Fault,
}

impl At {
    pub(crate) fn line(line: u64, fault: Fault) -> At {
        At { line: Some(line), column: None, fault }
    }

    pub(crate) fn nowhere(fault: Fault) -> At {
        At { line: None, column: None, fault }
    }

    pub(crate) fn in_file(self, file: &str) -> DatasetError {
        let At { line, column, fault } = self;
        DatasetError { file: file.into(), line, column, fault }
    }
}

struct Column(Option<u64>);

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |column| write!(f, " at byte {column} of the line"))
    }
}

/// A value as it stands in the file, cut when it is long.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.0.chars().nth(CHARS_MAX).is_some() { "…" } else { "" };
        write!(f, "`{:.CHARS_MAX$}{more}`", self.0)
    }
}

/// The value in brackets, unless its kind has said it.
struct Beside<'a>(&'a str);

impl fmt::Display for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" | "null" | "{}" | "[]" => Ok(()),
            value => write!(f, " ({})", Shown(value)),
        }
    }
}

/// `are \`a\`, \`b\``; a wrong file can have very many and very long names, so both are cut.
struct List<'a>(&'a [String]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => return f.write_str("are none"),
            1 => f.write_str("is only ")?,
            _ => f.write_str("are ")?,
        }
        for (i, name) in self.0.iter().take(NAMES_MAX).enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}`{name:.CHARS_MAX$}`")?;
        }
        match self.0.len().saturating_sub(NAMES_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn separator_hint(present: &[String]) -> &'static str {
    match present {
        [only] if only.contains([';', '\t']) => ", and separate fields with commas",
        _ => "",
    }
}

fn remedy_for_missing(role: Role, nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("did you mean `{}: {name}`?", role.key()),
        None => format!("add it to this row or name another with `{}`", role.key()),
    }
}

fn remedy_for_kind(want: &str, found: &str) -> &'static str {
    match (want, found) {
        ("text" | "text or messages", "a number" | "a boolean") => "put the value in quotes",
        ("text" | "text or messages" | "a string", _) => "give it a string or remove the row",
        ("a list", _) => "write a list in [ ]",
        (_, "a string") => "write the value without quotes",
        _ => "correct the value or leave it out",
    }
}

/// Names shown in a message.
const NAMES_MAX: usize = 12;
/// Characters shown of each.
const CHARS_MAX: usize = 40;
