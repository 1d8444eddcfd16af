//! What of a run the journal keeps: `journal: full | sampled N | off`, and `journal_size_cap`.

use std::num::NonZeroU32;

use super::error::ConfigError;
use super::reader::{Field, Table};

/// What the journal keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Journal {
    /// One request in so many, 1 for all; `None`: there is no journal.
    pub(crate) one_in: Option<NonZeroU32>,
    /// The size in bytes from which on requests are no longer kept.
    pub(crate) size_cap: Option<u64>,
}

impl Journal {
    /// Reads both keys of the top level.
    pub(super) fn read(root: &Table<'_>) -> Result<Self, ConfigError> {
        let one_in = root.get("journal").map_or(Ok(ALL), |field| one_in(&field))?;
        if one_in.is_none() {
            root.refuse("journal_size_cap", "`journal: off` keeps no journal")?;
        }
        let size_cap = root.get("journal_size_cap").map(|field| field.bytes(LEAST_CAP)).transpose();
        Ok(Self { one_in, size_cap: size_cap? })
    }

    /// Refuses whatever would lose what `who` keeps in the journal and nowhere else.
    pub(super) fn must_keep_all(self, root: &Table<'_>, who: &str) -> Result<(), ConfigError> {
        let less = ["journal", "journal_size_cap"].into_iter().filter(|key| match *key {
            "journal" => self.one_in != ALL,
            _ => self.size_cap.is_some(),
        });
        match less.filter_map(|key| root.get(key)).next() {
            None => Ok(()),
            Some(field) => Err(field.error(format!("{who} in the journal; leave this key out"))),
        }
    }

    /// The policy as it is written.
    pub(crate) fn word(self) -> String {
        match self.one_in {
            ALL => "full".to_owned(),
            Some(number) => format!("{SAMPLED} {number}"),
            None => "off".to_owned(),
        }
    }
}

fn one_in(field: &Field<'_>) -> Result<Option<NonZeroU32>, ConfigError> {
    let sampled = field.text().ok().and_then(|text| text.strip_prefix(SAMPLED));
    let Some(number) = sampled else {
        return field.choice(&[("full", ALL), ("off", None), (SAMPLED, None)], &[]);
    };
    let number: Option<NonZeroU32> = number.trim().parse().ok();
    number
        .map(Some)
        .ok_or_else(|| field.error("write `sampled 100` to keep one request in a hundred, whole"))
}

const ALL: Option<NonZeroU32> = NonZeroU32::new(1);
const SAMPLED: &str = "sampled";
/// Room for the head of a journal and a minute of the records that are always kept.
const LEAST_CAP: u64 = 64 << 10;
