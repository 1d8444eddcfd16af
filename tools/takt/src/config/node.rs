//! A configuration as it was written: a tree in which every key and value knows where it came from.
//!
//! File, flags and `--set` all become one such tree, and only then is it read for meaning. So an error
//! about a value can name the line or the flag that brought it, whichever it was.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::Spanned;

use super::error::ConfigError;
use super::secret::Secret;

/// A value and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: Origin,
    /// What was filled in from variables whose names say that they hold secrets.
    pub(crate) secrets: Vec<Secret>,
}

/// What a value can be.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    /// Text into which a variable was filled: it may stand for a number or a switch as well.
    Filled(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) at: Origin,
}

/// Where something was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nowhere: takt put it there.
    #[default]
    Implied,
    /// In a file, at a line from 1.
    File(Arc<str>, u64),
    /// By a flag such as `--rate`.
    Flag(&'static str),
    /// By `--set` of a path.
    Set(Arc<str>),
}

impl Node {
    /// Reads a YAML document that is the contents of `file`.
    pub(crate) fn from_yaml(text: &str, file: &str) -> Result<Self, ConfigError> {
        let file: Arc<str> = file.into();
        let read = parse(text)
            .map_err(|(line, says)| ConfigError::new(Origin::File(file.clone(), line), "", says))?;
        Ok(read.into_node(&|line| Origin::File(file.clone(), line)))
    }

    /// Reads a value given on the command line, as YAML has it.
    pub(crate) fn from_argument(text: &str, at: &Origin) -> Result<Self, ConfigError> {
        let read = parse(text).map_err(|(_, says)| ConfigError::new(at.clone(), "", says))?;
        Ok(read.into_node(&|_| at.clone()))
    }

    pub(crate) fn new(value: Value, at: Origin) -> Self {
        Self { value, at, secrets: Vec::new() }
    }

    pub(crate) fn text(text: impl Into<String>, at: Origin) -> Self {
        Self::new(Value::Text(text.into()), at)
    }

    pub(crate) fn map() -> Self {
        Self::new(Value::Map(Vec::new()), Origin::Implied)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The value under `name`, when this is a map that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// All secrets that were filled in, here and below.
    pub(crate) fn all_secrets(&self) -> Vec<Secret> {
        let mut found = self.secrets.clone();
        match &self.value {
            Value::List(items) => found.extend(items.iter().flat_map(Self::all_secrets)),
            Value::Map(entries) => found.extend(entries.iter().flat_map(|(_, v)| v.all_secrets())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Filled(_) => {
            }
        }
        found
    }

    /// What this is, for an error text. Never shows the value.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) | Value::Filled(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The value as JSON; text that was filled in is what it reads as.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::Filled(text) => match serde_json::from_str(text) {
                Ok(scalar @ (Json::Null | Json::Bool(_) | Json::Number(_))) => scalar,
                _ => Json::String(text.clone()),
            },
            Value::List(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(entries) => {
                Json::Object(entries.iter().map(|(k, v)| (k.name.clone(), v.to_json())).collect())
            }
        }
    }

    /// The tree of a JSON value, all of one origin.
    pub(crate) fn from_json(json: serde_json::Value, at: &Origin) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(flag),
            Json::Number(number) => Value::Number(number),
            Json::String(text) => Value::Text(text),
            Json::Array(items) => {
                Value::List(items.into_iter().map(|item| Self::from_json(item, at)).collect())
            }
            Json::Object(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(name, v)| (Key { name, at: at.clone() }, Self::from_json(v, at)))
                    .collect(),
            ),
        };
        Self::new(value, at.clone())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Implied => Ok(()),
            Self::File(file, line) => write!(f, "{file}:{line}: "),
            Self::Flag(flag) => write!(f, "{flag}: "),
            Self::Set(path) => write!(f, "--set {path}: "),
        }
    }
}

/// What the parser yields, before origins are known. Line numbers are from 1.
struct Read(Spanned<ReadValue>);

enum ReadValue {
    Scalar(Value),
    List(Vec<Read>),
    Map(Vec<(Spanned<String>, Read)>),
}

impl Read {
    fn into_node(self, origin: &dyn Fn(u64) -> Origin) -> Node {
        let at = origin(self.0.referenced.line());
        let value = match self.0.value {
            ReadValue::Scalar(value) => value,
            ReadValue::List(items) => {
                Value::List(items.into_iter().map(|item| item.into_node(origin)).collect())
            }
            ReadValue::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let at = origin(key.referenced.line());
                        (Key { name: key.value, at }, value.into_node(origin))
                    })
                    .collect(),
            ),
        };
        Node::new(value, at)
    }
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for ReadValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = ReadValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<ReadValue, E> {
        Ok(ReadValue::Scalar(Value::Bool(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<ReadValue, E> {
        Ok(ReadValue::Scalar(Value::Number(number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<ReadValue, E> {
        Ok(ReadValue::Scalar(Value::Number(number.into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<ReadValue, E> {
        // Infinity and NaN are no JSON numbers; they stay text, which no numeric key takes.
        Ok(ReadValue::Scalar(match Number::from_f64(number) {
            Some(number) => Value::Number(number),
            None => Value::Text(number.to_string()),
        }))
    }

    fn visit_str<E>(self, text: &str) -> Result<ReadValue, E> {
        Ok(ReadValue::Scalar(Value::Text(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<ReadValue, E> {
        Ok(ReadValue::Scalar(Value::Text(text)))
    }

    fn visit_unit<E>(self) -> Result<ReadValue, E> {
        Ok(ReadValue::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<ReadValue, E> {
        Ok(ReadValue::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ReadValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(ReadValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReadValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(ReadValue::Map(entries))
    }
}

fn parse(text: &str) -> Result<Read, (u64, String)> {
    // `yes`, `no`, `on` and `off` are words, as in YAML 1.2.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        // Without its snippet: the text around may hold a secret.
        let says = error.without_snippet().to_string();
        let says = says.lines().next().unwrap_or("is no YAML");
        // The parser talks to programmers about its own settings here and there.
        let says = says.split(", set DuplicateKeyPolicy").next().unwrap_or(says);
        (line, says.replace(" rejected by the configured policy", " is no number to work with"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> Node {
        Node::from_yaml(text, "f.yaml").unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn what_is_no_yaml_is_said_in_words_of_the_user() {
        for (text, expected) in [
            ("a: 1\na: 2\n", "f.yaml:2: duplicate mapping key: a"),
            ("a: .nan\n", "f.yaml:1: non-finite float `.nan` is no number to work with at line 1"),
        ] {
            let says = Node::from_yaml(text, "f.yaml").unwrap_err().to_string();
            assert!(says.starts_with(expected), "{says}");
            assert!(!says.contains("olicy"), "{says}");
        }
    }

    #[test]
    fn scalars_are_what_yaml_1_2_says_and_text_in_quotes_stays_text() {
        let text = "{a: 1, b: 1.5, c: '1', d: true, e: yes, f: ~, g: 60s, h: 007, i: 1_000, j: -3}";
        let json = serde_json::json!({"a": 1, "b": 1.5, "c": "1", "d": true, "e": "yes", "f": null,
            "g": "60s", "h": "007", "i": "1_000", "j": -3});
        assert_eq!(yaml(text).to_json(), json);
    }

    #[test]
    fn every_key_and_value_knows_its_line() {
        let tree = yaml("a: 1\nb:\n  - x\n  - {c: d}\n");
        let Value::Map(entries) = &tree.value else { panic!() };
        assert_eq!(entries[1].0.at, Origin::File("f.yaml".into(), 2));
        let Value::List(items) = &entries[1].1.value else { panic!() };
        assert_eq!(items[1].get("c").unwrap().at, Origin::File("f.yaml".into(), 4));
    }

    #[test]
    fn broken_yaml_and_a_key_given_twice_name_the_line_and_show_no_value() {
        for (text, line) in [("a: 1\nb: [hunter2\n", 2), ("a: hunter2\nb: 2\na: hunter2\n", 3)] {
            let error = Node::from_yaml(text, "f.yaml").unwrap_err().to_string();
            assert!(error.starts_with(&format!("f.yaml:{line}: ")), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
