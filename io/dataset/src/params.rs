//! Sampling parameters that a row may bring along.
//!
//! They are known by name, the names that servers use, and go out under the same name. The type of
//! each is checked here, before the run, rather than by the server in the middle of it. A CSV cell
//! is turned into the type that its column must have; an empty one, like a JSON `null`, is absent.
//!
//! Not taken from rows: `n`, `name`, `user`, `model` and `stream`. Data sets use the first three
//! for other things, and the last two would change what the run says it measures.

use std::slice;

use serde_json::Value;

use crate::error::Fault;
use crate::row::{Cell, message_of};

/// The parameters of one row: a short list, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(Box<[(&'static str, Value)]>);

impl Params {
    pub(crate) fn new(list: Vec<(&'static str, Value)>) -> Params {
        Params(list.into_boxed_slice())
    }

    /// The value of a parameter, if the row brings it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the row brings none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Params {
    type Item = &'a (&'static str, Value);
    type IntoIter = slice::Iter<'a, (&'static str, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// The parameter that a column is, by its name.
pub(crate) fn find(column: &str) -> Option<(&'static str, Kind)> {
    TABLE.iter().find(|(name, _)| *name == column).copied()
}

/// What a parameter must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Count,
    Integer,
    Number,
    Switch,
    Text,
    /// Text, unless it starts as a JSON array or object.
    TextOrJson,
    List,
    Object,
    /// A switch in one API, a count in another.
    SwitchOrCount,
}

impl Kind {
    /// The value in `cell`; `None` when it is absent.
    pub(crate) fn read(self, column: &str, cell: Cell<'_>) -> Result<Option<Value>, Fault> {
        let value = match cell {
            Cell::Json(raw) => Some(parse(raw.get())?),
            Cell::Text(text) => self.text_value(text)?,
        };
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(value) if self.admits(&value) => Ok(Some(value)),
            Some(_) => Err(cell.wrong_kind(column, self.want())),
        }
    }

    fn text_value(self, cell: &str) -> Result<Option<Value>, Fault> {
        if cell.is_empty() {
            return Ok(None);
        }
        let trimmed = cell.trim();
        match self {
            // Text is what it is: a line feed alone is a fine thing to stop at.
            Kind::Text => Ok(Some(cell.into())),
            Kind::TextOrJson if !trimmed.starts_with(['[', '{']) => Ok(Some(cell.into())),
            _ if trimmed.is_empty() => Ok(None),
            // Spreadsheets and data frames write TRUE and True.
            Kind::Switch | Kind::SwitchOrCount if trimmed.eq_ignore_ascii_case("true") => {
                Ok(Some(true.into()))
            }
            Kind::Switch | Kind::SwitchOrCount if trimmed.eq_ignore_ascii_case("false") => {
                Ok(Some(false.into()))
            }
            Kind::Switch => Ok(Some(cell.into())),
            // What is no JSON stays text, which is then refused as the wrong kind.
            Kind::Count | Kind::Integer | Kind::Number | Kind::SwitchOrCount => {
                Ok(Some(serde_json::from_str(trimmed).unwrap_or_else(|_| cell.into())))
            }
            Kind::TextOrJson | Kind::List | Kind::Object => parse(trimmed).map(Some),
        }
    }

    fn admits(self, value: &Value) -> bool {
        match self {
            Kind::Count => value.is_u64(),
            Kind::Integer => value.is_u64() || value.is_i64(),
            Kind::Number => value.is_number(),
            Kind::Switch => value.is_boolean(),
            Kind::Text => value.is_string(),
            Kind::TextOrJson => value.is_string() || value.is_array() || value.is_object(),
            Kind::List => value.is_array(),
            Kind::Object => value.is_object(),
            Kind::SwitchOrCount => value.is_boolean() || value.is_u64(),
        }
    }

    fn want(self) -> &'static str {
        match self {
            Kind::Count => "a whole number, not negative",
            Kind::Integer => "a whole number",
            Kind::Number => "a number",
            Kind::Switch => "true or false",
            Kind::Text => "a string",
            Kind::TextOrJson => "a string, an array or an object",
            Kind::List => "a list",
            Kind::Object => "an object",
            Kind::SwitchOrCount => "true, false or a whole number",
        }
    }
}

fn parse(text: &str) -> Result<Value, Fault> {
    serde_json::from_str(text).map_err(|e| Fault::Json {
        message: message_of(&e),
        column: None,
        remedy: "correct the value",
    })
}

const TABLE: [(&str, Kind); 25] = [
    ("max_tokens", Kind::Count),
    ("max_completion_tokens", Kind::Count),
    ("max_new_tokens", Kind::Count),
    ("min_tokens", Kind::Count),
    ("min_new_tokens", Kind::Count),
    ("temperature", Kind::Number),
    ("top_p", Kind::Number),
    ("min_p", Kind::Number),
    ("top_k", Kind::Integer),
    ("seed", Kind::Integer),
    ("presence_penalty", Kind::Number),
    ("frequency_penalty", Kind::Number),
    ("repetition_penalty", Kind::Number),
    ("ignore_eos", Kind::Switch),
    ("skip_special_tokens", Kind::Switch),
    ("reasoning_effort", Kind::Text),
    ("chat_template", Kind::Text),
    ("stop", Kind::TextOrJson),
    ("tool_choice", Kind::TextOrJson),
    ("stop_token_ids", Kind::List),
    ("logit_bias", Kind::Object),
    ("logprobs", Kind::SwitchOrCount),
    ("tools", Kind::List),
    ("response_format", Kind::Object),
    ("chat_template_kwargs", Kind::Object),
];
