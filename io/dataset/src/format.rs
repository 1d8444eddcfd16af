//! What a file of prompts can be.
//!
//! A format is a variant here, a line in [`SPELLINGS`], a file with its `read`, and an arm in
//! [`Dataset::read`](crate::Dataset::read).

use std::path::Path;
use std::str::FromStr;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A JSON object a line.
    Jsonl,
    /// One JSON array of objects.
    Json,
    /// Comma-separated fields with a header row, as RFC 4180 has them.
    Csv,
    /// A prompt a line.
    Text,
}

impl Format {
    /// The format by the file's suffix, in any case.
    ///
    /// # Errors
    ///
    /// A suffix that says nothing, or none.
    pub fn from_path(path: &Path) -> Result<Format, UnknownFormat> {
        let suffix = path.extension().map(|s| s.to_string_lossy().to_ascii_lowercase());
        match suffix {
            Some(suffix) => look_up(&suffix).ok_or_else(|| UnknownFormat::new(&suffix, true)),
            None => Err(UnknownFormat::new("", true)),
        }
    }

    /// The name that the configuration uses.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Text => "text",
        }
    }
}

/// By the name that a configuration gives: a suffix without its dot is one too.
impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        look_up(name).ok_or_else(|| UnknownFormat::new(name, false))
    }
}

/// A format name or a file suffix that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct UnknownFormat {
    /// What was given: a name, or a suffix in lower case without its dot.
    pub given: String,
    /// The known name most like it, if any is.
    pub nearest: Option<&'static str>,
    /// Whether `given` is a file's suffix.
    pub suffix: bool,
}

impl UnknownFormat {
    fn new(given: &str, suffix: bool) -> UnknownFormat {
        let spellings = SPELLINGS.iter().map(|(spelling, _)| *spelling);
        UnknownFormat { given: given.to_owned(), nearest: nearest(given, spellings), suffix }
    }

    fn message(&self) -> String {
        let given = &self.given;
        let what = match (self.suffix, given.is_empty()) {
            (true, true) => "a file without a suffix does not say its format".to_owned(),
            (true, false) => format!("the file suffix `.{given}` is no known format"),
            (false, _) => format!("`{given}` is no known dataset format"),
        };
        let set = if self.suffix { "set `dataset.format` to one" } else { "use one" };
        match self.nearest {
            Some(nearest) => format!("{what}; did you mean `{nearest}`?"),
            None => {
                let mut names: Vec<_> = SPELLINGS.iter().map(|(_, known)| known.name()).collect();
                names.dedup();
                format!("{what}; {set} of {}", names.join(", "))
            }
        }
    }
}

/// The candidate most like `given`, if it is like it at all: at least as near as a letter wrong in
/// three.
pub(crate) fn nearest<T: AsRef<str>>(given: &str, of: impl IntoIterator<Item = T>) -> Option<T> {
    let given = given.to_lowercase();
    of.into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.as_ref().to_lowercase()), name))
        .filter(|(wrong, name)| wrong * 3 <= given.len().max(name.as_ref().len()))
        .min_by_key(|(wrong, _)| *wrong)
        .map(|(_, name)| name)
}

fn look_up(spelling: &str) -> Option<Format> {
    SPELLINGS.iter().find(|(known, _)| *known == spelling).map(|(_, format)| *format)
}

const SPELLINGS: [(&str, Format); 6] = [
    ("jsonl", Format::Jsonl),
    ("ndjson", Format::Jsonl),
    ("json", Format::Json),
    ("csv", Format::Csv),
    ("text", Format::Text),
    ("txt", Format::Text),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffix_decides_in_any_case() {
        for (path, format) in [
            ("a/b.jsonl", Format::Jsonl),
            ("b.NDJSON", Format::Jsonl),
            ("b.json", Format::Json),
            ("b.Csv", Format::Csv),
            ("b.txt", Format::Text),
        ] {
            assert_eq!(Format::from_path(path.as_ref()), Ok(format), "{path}");
        }
    }

    #[test]
    fn every_format_is_found_by_its_own_name() {
        for (_, format) in SPELLINGS {
            assert_eq!(format.name().parse(), Ok(format));
        }
    }

    #[test]
    fn unknown_name_is_refused_with_the_nearest_known_one() {
        let refused = |name: &str| name.parse::<Format>().unwrap_err();
        assert_eq!(refused("jsnol").nearest, Some("jsonl"));
        assert_eq!(refused("CSV").nearest, Some("csv"));
        assert_eq!(refused("parquet").nearest, None);
        assert!(refused("parquet").to_string().contains("jsonl, json, csv, text"));
        let suffix = Format::from_path("x.jsonll".as_ref()).unwrap_err();
        assert_eq!((suffix.nearest, suffix.suffix), (Some("jsonl"), true));
        assert!(
            Format::from_path("x".as_ref()).unwrap_err().to_string().contains("dataset.format")
        );
    }
}
