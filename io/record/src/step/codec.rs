//! Lines to step records and back.

use serde_json::Value;

use super::{StepFooter, StepRecord};

/// One line of a stream.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "lives on the stack of one loop, never in a list")]
pub enum StepLine<'a> {
    /// A step.
    Record(StepRecord<'a>),
    /// The end of the stream.
    Footer(StepFooter<'a>),
}

/// Why a line is neither a record nor a footer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {found}, expected {expected}")]
pub struct StepError {
    /// Path of the field, such as `kv.free_blocks`; `line` for the line as a whole.
    pub field: String,
    /// What stands there.
    pub found: String,
    /// What must.
    pub expected: String,
}

/// Reads one line, without its end. Unknown fields are for later readers and are passed over.
///
/// # Errors
/// The first field that is missing or of another type, or that the line is no JSON.
pub fn step_line(line: &[u8]) -> Result<StepLine<'_>, StepError> {
    match serde_json::from_slice(line) {
        Ok(record) => Ok(StepLine::Record(record)),
        Err(_) => footer_or_error(line),
    }
}

/// The way of the last line and of broken ones: slow, and exact in what it says.
fn footer_or_error(line: &[u8]) -> Result<StepLine<'_>, StepError> {
    let whole: Value = serde_json::from_slice(line).map_err(|error| StepError {
        field: "line".to_owned(),
        found: format!("{error}"),
        expected: "one JSON object".to_owned(),
    })?;
    let deserializer = &mut serde_json::Deserializer::from_slice(line);
    let error = if whole.get("footer").is_some() {
        match serde_path_to_error::deserialize(deserializer) {
            Ok(footer) => return Ok(StepLine::Footer(footer)),
            Err(error) => error,
        }
    } else {
        match serde_path_to_error::deserialize(deserializer) {
            Ok(record) => return Ok(StepLine::Record(record)),
            Err(error) => error,
        }
    };
    Err(explain(&whole, &error))
}

/// serde's words, in the form of a failed check.
fn explain(whole: &Value, error: &serde_path_to_error::Error<serde_json::Error>) -> StepError {
    let path = error.path().to_string();
    let says = error.inner().to_string();
    let says = says.split(" at line ").next().unwrap_or_default();
    let below = |name: &str| if path == "." { name.to_owned() } else { format!("{path}.{name}") };
    if let Some(rest) = says.strip_prefix("missing field `") {
        return StepError {
            field: below(rest.trim_end_matches('`')),
            found: "missing".to_owned(),
            expected: "a value".to_owned(),
        };
    }
    let pointer: String = error.path().iter().fold(String::new(), |mut at, segment| {
        at.push('/');
        at.push_str(segment.to_string().trim_matches(['[', ']']));
        at
    });
    let found = whole.pointer(&pointer).map_or_else(|| says.to_owned(), short);
    let expected = says.split_once(", expected ").map_or(says, |(_, expected)| expected);
    StepError { field: path, found, expected: in_plain_words(expected) }
}

fn in_plain_words(expected: &str) -> String {
    match expected {
        "u64" => "a whole number, not negative".to_owned(),
        "f64" => "a number".to_owned(),
        "unit" => "null".to_owned(),
        other => other.strip_prefix("struct ").map_or(other, |_| "an object").to_owned(),
    }
}

/// A value, cut when it is long.
fn short(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((cut, _)) = text.char_indices().nth(VALUE_CHARS_MAX) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// As much of a wrong value as is shown.
const VALUE_CHARS_MAX: usize = 60;

impl StepRecord<'_> {
    /// Appends the record as a line, with its end.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        write_line(self, out);
    }
}

impl StepFooter<'_> {
    /// Appends the footer as a line, with its end.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        write_line(self, out);
    }
}

fn write_line(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    let done = serde_json::to_writer(&mut *out, value);
    debug_assert!(done.is_ok(), "plain fields into memory cannot fail");
    out.push(b'\n');
}
