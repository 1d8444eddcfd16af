//! A row before its columns have a meaning: names and cells, borrowed from the reader's buffer.
//!
//! Cells that nobody asks for are skipped over, not built: a file whose rows carry long answers
//! beside the prompts costs the answers no allocation.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{At, Fault};
use crate::place::Place;
use crate::sample::Prompt;

/// Columns in the order of the file.
pub(crate) type Row<'a> = [(Cow<'a, str>, Cell<'a>)];

/// Whoever takes the rows of a file, each with its place.
pub(crate) type TakeRow<'t> = &'t mut dyn for<'a> FnMut(&Row<'a>, Place<'a>) -> Result<(), At>;

/// What stands in a column.
#[derive(Clone, Copy)]
pub(crate) enum Cell<'a> {
    /// A CSV field: text, whatever it looks like.
    Text(&'a str),
    /// A JSON value that is known to parse.
    Json(&'a RawValue),
}

impl<'a> Cell<'a> {
    pub(crate) fn is_null(self) -> bool {
        matches!(self, Cell::Json(raw) if raw.get() == "null")
    }

    /// What it is, for a message.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Cell::Text(_) => "a string",
            Cell::Json(raw) => kind_of(raw.get().as_bytes().first().copied()),
        }
    }

    /// The text of a CSV field or of a JSON string; `None` for any other value.
    ///
    /// # Errors
    ///
    /// A JSON string that is no text, such as half a surrogate pair.
    pub(crate) fn text(self) -> Result<Option<Cow<'a, str>>, Fault> {
        match self {
            Cell::Text(text) => Ok(Some(Cow::Borrowed(text))),
            Cell::Json(raw) if raw.get().starts_with('"') => {
                let text: Text<'a> = serde_json::from_str(raw.get()).map_err(|e| json(&e))?;
                Ok(Some(text.0))
            }
            Cell::Json(_) => Ok(None),
        }
    }

    /// As a prompt: text, or messages where the value is an array or the column is `messages`.
    pub(crate) fn prompt(self, column: &str) -> Result<Prompt, Fault> {
        if let Some(text) = self.text()? {
            if text.trim().is_empty() {
                return Err(Fault::EmptyPrompt { column: column.to_owned() });
            }
            if column == "messages" {
                return messages(column, text.trim());
            }
            return Ok(Prompt::Text(text.into_owned().into_boxed_str()));
        }
        match self {
            Cell::Json(raw) if raw.get().starts_with('[') => messages(column, raw.get()),
            _ => Err(self.wrong_kind(column, "text or messages")),
        }
    }

    pub(crate) fn wrong_kind(self, column: &str, want: &'static str) -> Fault {
        let value = match self {
            Cell::Text(text) => text,
            Cell::Json(raw) => raw.get(),
        };
        // What a message shows of it is shorter.
        let value = value.chars().take(VALUE_CHARS_MAX).collect();
        Fault::WrongKind { column: column.to_owned(), want, found: self.kind(), value }
    }

    /// JSON text as it stands in the file.
    pub(crate) fn json(self) -> Option<&'a str> {
        match self {
            Cell::Json(raw) => Some(raw.get()),
            Cell::Text(_) => None,
        }
    }
}

/// Whether messages hold a system prompt of their own.
pub(crate) fn has_system(messages: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
    }
    // They were checked when they were read; a failure here would only say that once more.
    serde_json::from_str::<Vec<Message<'_>>>(messages.get())
        .is_ok_and(|all| all.iter().any(|m| m.role == "system" || m.role == "developer"))
}

/// Parses one JSON object, which starts on `line` at its byte `column` (from 1), into its columns.
///
/// # Errors
///
/// Anything else, JSON or not.
pub(crate) fn parse_object<'a>(
    text: &'a str,
    (line, column): (u64, u64),
    remedy: &'static str,
) -> Result<Vec<(Cow<'a, str>, Cell<'a>)>, At> {
    let error = match serde_json::from_str::<Object<'a>>(text) {
        Ok(object) => return Ok(object.0),
        Err(error) => error,
    };
    let first = text.trim_start().bytes().next();
    if first != Some(b'{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Err(At::line(line, Fault::NotAnObject { found: kind_of(first) }));
    }
    let before = if error.line() == 1 { column - 1 } else { 0 };
    let column = Some(before + error.column() as u64);
    let message = message_of(&error);
    let line = line + error.line().saturating_sub(1) as u64;
    Err(At::line(line, Fault::Json { message, column, remedy }))
}

/// What a JSON value is, from its first byte.
pub(crate) fn kind_of(first: Option<u8>) -> &'static str {
    match first {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b'-' | b'0'..=b'9') => "a number",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(_) => "not JSON",
        None => "nothing",
    }
}

/// The parser's message without its own idea of the place, which is relative to the row.
pub(crate) fn message_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn json(error: &serde_json::Error) -> Fault {
    Fault::Json { message: message_of(error), column: None, remedy: "correct the row" }
}

fn messages(column: &str, text: &str) -> Result<Prompt, Fault> {
    let refuse = |reason: String| Fault::Messages { column: column.to_owned(), reason };
    let parsed: Value = serde_json::from_str(text).map_err(|e| refuse(message_of(&e)))?;
    let Value::Array(list) = parsed else {
        return Err(refuse("they must be an array".to_owned()));
    };
    if list.is_empty() {
        return Err(refuse("the array is empty".to_owned()));
    }
    let mut says_something = false;
    for (i, message) in list.iter().enumerate() {
        let i = i + 1;
        let Value::Object(message) = message else {
            return Err(refuse(format!("message {i} is no object")));
        };
        if !matches!(message.get("role"), Some(Value::String(role)) if !role.is_empty()) {
            return Err(refuse(format!("message {i} has no `role`")));
        }
        says_something |= match message.get("content") {
            None | Some(Value::Null) => false,
            Some(Value::String(content)) => !content.trim().is_empty(),
            Some(Value::Array(parts)) => !parts.is_empty(),
            Some(_) => return Err(refuse(format!("the content of message {i} is no text"))),
        };
    }
    if !says_something {
        return Err(Fault::EmptyPrompt { column: column.to_owned() });
    }
    let raw = RawValue::from_string(text.to_owned()).map_err(|e| refuse(message_of(&e)))?;
    Ok(Prompt::Messages(raw))
}

/// A string that borrows where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Object<'a>(Vec<(Cow<'a, str>, Cell<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut columns = Vec::new();
        while let Some((name, raw)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
            columns.push((name.0, Cell::Json(raw)));
        }
        Ok(Object(columns))
    }
}

/// Characters of a wrong value that are kept.
const VALUE_CHARS_MAX: usize = 100;
