//! Reading a tree for meaning: tables that know their keys, fields that know their types.
//!
//! A [`Table`] refuses at once every key that it does not know, and says which one was probably meant:
//! the nearest name here, the level where that key belongs, or that this version does not have it yet.

use std::path::PathBuf;

use takt_time::{Span, SpanError};

use super::error::{ConfigError, nearest};
use super::keys::{self, Level};
use super::node::{Node, Origin, Value};

/// A map with known keys.
#[derive(Clone, Debug)]
pub(crate) struct Table<'a> {
    node: &'a Node,
    path: String,
    level: &'static Level,
}

/// A value under a key.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) node: &'a Node,
    pub(crate) path: String,
}

impl<'a> Table<'a> {
    /// The map at `path`, all of whose keys are among those of `level`.
    pub(crate) fn open(
        node: &'a Node,
        path: impl Into<String>,
        level: &'static Level,
    ) -> Result<Self, ConfigError> {
        let path = path.into();
        let Value::Map(entries) = &node.value else {
            let want = format!("must be a map of keys, not {}", node.kind());
            return Err(ConfigError::new(node.at.clone(), path, want));
        };
        for (key, _) in entries {
            if !level.has(&key.name) {
                let says = unknown(&key.name, level);
                return Err(ConfigError::new(key.at.clone(), below(&path, &key.name), says));
            }
        }
        Ok(Self { node, path, level })
    }

    /// Refuses the keys that have no effect with this `word` of the level's selector.
    pub(crate) fn only_for(&self, word: &str) -> Result<(), ConfigError> {
        let Level { selector, keys, .. } = self.level;
        let idle = |key: &&keys::Key| !key.with.is_empty() && !key.with.contains(&word);
        keys.iter().filter(idle).try_for_each(|key| {
            let with = or_list(key.with.iter().copied());
            self.refuse(key.name, &format!("{selector} `{word}` does not use it, {with} does"))
        })
    }

    /// The value under `key`; `None` when it is not there or null.
    pub(crate) fn get(&self, key: &str) -> Option<Field<'a>> {
        let node = self.node.get(key).filter(|node| !node.is_null())?;
        Some(Field { node, path: below(&self.path, key) })
    }

    /// The value under `key`, which must be there.
    pub(crate) fn need(&self, key: &str, why: &str) -> Result<Field<'a>, ConfigError> {
        self.get(key).ok_or_else(|| self.error(format!("`{key}` is missing: {why}")))
    }

    /// Refuses `key` when it is there: in this place it would do nothing.
    pub(crate) fn refuse(&self, key: &str, why: &str) -> Result<(), ConfigError> {
        match self.get(key) {
            Some(field) => Err(field.error(format!("has no effect: {why}"))),
            None => Ok(()),
        }
    }

    pub(crate) fn error(&self, says: impl Into<String>) -> ConfigError {
        ConfigError::new(self.node.at.clone(), self.path.clone(), says)
    }
}

impl<'a> Field<'a> {
    pub(crate) fn error(&self, says: impl Into<String>) -> ConfigError {
        ConfigError::new(self.node.at.clone(), self.path.clone(), says)
    }

    /// The value under `key` of this one, whatever keys may stand there.
    pub(crate) fn below(&self, key: &str) -> Option<Field<'a>> {
        let node = self.node.get(key).filter(|node| !node.is_null())?;
        Some(Field { node, path: below(&self.path, key) })
    }

    fn must_be(&self, what: &str) -> ConfigError {
        self.error(format!("must be {what}, not {}", self.node.kind()))
    }

    /// Where the value was said.
    pub(crate) fn origin(&self) -> &Origin {
        &self.node.at
    }

    pub(crate) fn table(&self, level: &'static Level) -> Result<Table<'a>, ConfigError> {
        Table::open(self.node, self.path.clone(), level)
    }

    /// Text that is not empty, without white space around it.
    pub(crate) fn text(&self) -> Result<&'a str, ConfigError> {
        match &self.node.value {
            Value::Text(text) | Value::Filled(text) if text.trim().is_empty() => {
                Err(self.error("is empty; give it a value or leave it out"))
            }
            Value::Text(text) | Value::Filled(text) => Ok(text.trim()),
            Value::Number(_) | Value::Bool(_) => Err(self
                .error(format!("must be text, not {}; put the value in quotes", self.node.kind()))),
            _ => Err(self.must_be("text")),
        }
    }

    pub(crate) fn flag(&self) -> Result<bool, ConfigError> {
        match &self.node.value {
            Value::Bool(flag) => Ok(*flag),
            Value::Filled(text) if text == "true" => Ok(true),
            Value::Filled(text) if text == "false" => Ok(false),
            _ => Err(self.must_be("true or false")),
        }
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn count(&self, least: u64, most: u64) -> Result<u64, ConfigError> {
        let number = match &self.node.value {
            Value::Number(number) => number.as_u64(),
            Value::Filled(text) => text.trim().parse().ok(),
            _ => return Err(self.must_be("a whole number")),
        };
        number.filter(|n| (least..=most).contains(n)).ok_or_else(|| {
            self.error(if most == u64::MAX {
                format!("must be a whole number, {least} or more")
            } else {
                format!("must be a whole number from {least} to {most}")
            })
        })
    }

    /// A number of bytes, at least `least`: a whole number, or one with a unit such as `500MB` or `2GiB`.
    pub(crate) fn bytes(&self, least: u64) -> Result<u64, ConfigError> {
        let bytes = match &self.node.value {
            Value::Number(number) => number.as_u64(),
            Value::Text(text) | Value::Filled(text) => super::size::parse_bytes(text),
            _ => None,
        };
        let bytes = bytes.ok_or_else(|| self.error("must be a size such as 500MB or 2GB"))?;
        if bytes < least {
            return Err(self.error(format!("must be {least} bytes at least")));
        }
        Ok(bytes)
    }

    /// Whether it is the number 0.
    pub(crate) fn is_zero(&self) -> bool {
        match &self.node.value {
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Filled(text) => text.trim().parse() == Ok(0.0),
            _ => false,
        }
    }

    /// A number above zero.
    pub(crate) fn positive(&self) -> Result<f64, ConfigError> {
        let number = match &self.node.value {
            Value::Number(number) => number.as_f64(),
            Value::Filled(text) => text.trim().parse().ok(),
            _ => return Err(self.must_be("a number")),
        };
        number
            .filter(|n| n.is_finite() && *n > 0.0)
            .ok_or_else(|| self.error("must be a number above 0"))
    }

    /// A duration such as `60s`, `500ms` or `1m 30s`.
    pub(crate) fn span(&self) -> Result<Span, ConfigError> {
        let (Value::Text(text) | Value::Filled(text)) = &self.node.value else {
            return Err(match self.node.value {
                Value::Number(_) => self.error("needs a unit: write 60s, 500ms or 2m"),
                _ => self.must_be("a duration such as 60s, 500ms or 2m"),
            });
        };
        let span: Span = text.parse().map_err(|e: SpanError| self.error(e.to_string()))?;
        if span == Span::ZERO {
            return Err(self.error("must be longer than nothing"));
        }
        Ok(span)
    }

    /// One of some words; `later` are words of the documented format that this version does not have.
    pub(crate) fn choice<T: Copy>(
        &self,
        words: &[(&'static str, T)],
        later: &[&str],
    ) -> Result<T, ConfigError> {
        let (Value::Text(text) | Value::Filled(text)) = &self.node.value else {
            return Err(self.error(format!("must be {}", or_list(words.iter().map(|(w, _)| *w)))));
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| word == text) {
            return Ok(*value);
        }
        if later.contains(&text.as_str()) {
            return Err(self.error(format!("`{text}` is not supported by this version of takt")));
        }
        Err(self.error(match nearest(text, words.iter().map(|(word, _)| *word)) {
            Some(word) => format!("`{text}` is not known; did you mean `{word}`?"),
            None => {
                let known = or_list(words.iter().map(|(word, _)| *word));
                format!("`{text}` is not known; use {known}")
            }
        }))
    }

    /// The items of a list, or the one value that stands for a list of one.
    pub(crate) fn items(&self) -> Vec<Field<'a>> {
        match &self.node.value {
            Value::List(items) => items
                .iter()
                .enumerate()
                .map(|(place, node)| Field { node, path: format!("{}[{place}]", self.path) })
                .collect(),
            _ => vec![self.clone()],
        }
    }

    /// The entries of a map whose keys are the user's own.
    pub(crate) fn entries(&self) -> Result<Vec<(&'a str, Field<'a>)>, ConfigError> {
        let Value::Map(entries) = &self.node.value else { return Err(self.must_be("a map")) };
        Ok(entries
            .iter()
            .map(|(key, node)| {
                (key.name.as_str(), Field { node, path: below(&self.path, &key.name) })
            })
            .collect())
    }

    /// A path; a relative one is relative to the file that names it.
    pub(crate) fn path(&self) -> Result<PathBuf, ConfigError> {
        let path = PathBuf::from(self.text()?);
        Ok(match self.origin() {
            Origin::File(file, _) => {
                let folder = std::path::Path::new(&**file).parent();
                folder.map_or_else(|| path.clone(), |folder| folder.join(&path))
            }
            _ => path,
        })
    }
}

/// The path of `key` below `path`.
pub(crate) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The word of `value` among the words of a [`Field::choice`].
pub(super) fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

/// `a, b or c`, each in backticks.
fn or_list<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}

fn unknown(key: &str, level: &'static Level) -> String {
    if level.later.contains(&key) {
        return "is not supported by this version of takt".to_owned();
    }
    let elsewhere = || {
        let places: Vec<_> =
            keys::LEVELS.iter().filter(|other| other.has(key)).map(|other| other.place).collect();
        (!places.is_empty())
            .then(|| format!("is not known here; it belongs {}", places.join(" or ")))
    };
    if let Some(says) = elsewhere() {
        return says;
    }
    match nearest(key, level.names()) {
        Some(near) => format!("is not known; did you mean `{near}`?"),
        None => {
            format!("is not known; known here: {}", level.names().collect::<Vec<_>>().join(", "))
        }
    }
}
