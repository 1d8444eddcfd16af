//! The records of each request, gathered.

use std::collections::BTreeMap;

use takt_record::{Completed, Failure, Issued, Record, RequestKey, Token};

/// The records by request.
#[derive(Default)]
pub(super) struct Lives {
    pub(super) by_key: BTreeMap<RequestKey, Life>,
}

/// The records of one request, each with its place among all.
#[derive(Default)]
pub(super) struct Life {
    pub(super) issued: Vec<(usize, Issued)>,
    pub(super) tokens: Vec<(usize, Token)>,
    pub(super) texts: Vec<usize>,
    pub(super) errors: Vec<(usize, Failure)>,
    pub(super) completed: Vec<(usize, Completed)>,
}

impl Lives {
    pub(super) fn of(records: &[Record<'_>]) -> Self {
        let mut lives = Self::default();
        for (place, record) in records.iter().enumerate() {
            match *record {
                Record::Issued(r) => lives.at(r.key).issued.push((place, r)),
                Record::Token(r) => lives.at(r.key).tokens.push((place, r)),
                Record::Error { key, failure, .. } => {
                    lives.at(key).errors.push((place, failure));
                }
                Record::Completed(r) => lives.at(r.key).completed.push((place, r)),
                Record::Text(r) => lives.at(r.key).texts.push(place),
                Record::Session(_)
                | Record::Phase(_)
                | Record::Conversation(_)
                | Record::Clock(_)
                | Record::Health(_) => {}
            }
        }
        lives
    }

    /// Each request that began and ended once, as it must.
    pub(super) fn whole(&self) -> impl Iterator<Item = (&Life, &Issued, &Completed)> {
        self.by_key.values().filter_map(|life| match (&life.issued[..], &life.completed[..]) {
            ([(_, issued)], [(_, completed)]) => Some((life, issued, completed)),
            _ => None,
        })
    }

    fn at(&mut self, key: RequestKey) -> &mut Life {
        self.by_key.entry(key).or_default()
    }
}
