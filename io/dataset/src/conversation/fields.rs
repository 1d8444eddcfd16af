//! What a row says by name, or an object within it: each value of the kind that it must have, or a fault with
//! its place.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::fault::ConversationFault as Bad;
use crate::error::{At, Fault};
use crate::params;
use crate::place::Place;
use crate::row::{Cell, Row, parse_object};

/// The columns of a row, none of them twice.
pub(super) struct Fields<'r, 'a> {
    row: Cow<'r, Row<'a>>,
    place: Place<'a>,
    /// What they are the keys of, if not the row: `message 2`.
    within: String,
}

impl<'r, 'a> Fields<'r, 'a> {
    pub(super) fn of_row(row: &'r Row<'a>, place: Place<'a>) -> Result<Self, At> {
        let fields = Self { row: Cow::Borrowed(row), place, within: String::new() };
        fields.once()
    }

    /// The keys of `value`, which the fields hold and which is called `name`.
    pub(super) fn of_object(&self, value: &'a RawValue, name: String) -> Result<Self, At> {
        if !value.get().starts_with('{') {
            let kind = Cell::Json(value).kind();
            return Err(self.list_fault(value, format!("{name} must be an object, not {kind}")));
        }
        let row = parse_object(value.get(), (self.place.line(), 1), "correct the row");
        let row = row.map_err(|at| self.place.part(value.get(), at.fault))?;
        Self { row: Cow::Owned(row), place: self.place, within: name }.once()
    }

    fn once(self) -> Result<Self, At> {
        let mut by_name: Vec<_> = self.row.iter().collect();
        by_name.sort_by_key(|(name, _)| name);
        match by_name.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some([_, (name, cell)]) => {
                let fault = Fault::DuplicateColumn { column: self.called(name) };
                Err(self.fault(*cell, fault))
            }
            _ => Ok(self),
        }
    }

    pub(super) fn line(&self) -> u64 {
        self.place.line()
    }

    /// The value under `name`, null or not.
    pub(super) fn cell(&self, name: &str) -> Option<Cell<'a>> {
        self.row.iter().find(|(column, _)| column == name).map(|(_, cell)| *cell)
    }

    /// The value under `name`; `None` when it is not there or null.
    pub(super) fn get(&self, name: &str) -> Option<Cell<'a>> {
        self.cell(name).filter(|cell| !cell.is_null())
    }

    pub(super) fn need(&self, name: &'static str) -> Result<Cell<'a>, At> {
        self.cell(name).ok_or_else(|| self.row_fault(Bad::Missing(name)))
    }

    /// Text, or nothing.
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, At> {
        let Some(cell) = self.get(name) else { return Ok(None) };
        match cell.text().map_err(|fault| self.fault(cell, fault))? {
            Some(text) => Ok(Some(text)),
            None => Err(self.wrong_kind(cell, name, "text")),
        }
    }

    /// The values of a list, or nothing.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<&'a RawValue>>, At> {
        let Some(cell) = self.get(name) else { return Ok(None) };
        match cell {
            Cell::Json(raw) if raw.get().starts_with('[') => {
                // It is known to parse, so there is nothing to be said of it.
                Ok(Some(serde_json::from_str(raw.get()).unwrap_or_default()))
            }
            _ => Err(self.wrong_kind(cell, name, "a list")),
        }
    }

    /// JSON text as it stands in the file.
    pub(super) fn json(&self, name: &str) -> Option<&'a str> {
        self.get(name)?.json()
    }

    /// What a message says: its JSON, which is text or a list of parts, if that is more than white space.
    pub(super) fn content(&self) -> Result<Option<&'a str>, At> {
        let (Some(cell), Some(json)) = (self.get("content"), self.json("content")) else {
            return Ok(None);
        };
        if let Some(text) = cell.text().map_err(|fault| self.fault(cell, fault))? {
            return Ok(Some(json).filter(|_| !text.trim().is_empty()));
        }
        if !json.starts_with('[') {
            return Err(self.wrong_kind(cell, "content", "text"));
        }
        let parts = self.list("content")?.unwrap_or_default();
        if let Some(part) = parts.iter().find(|part| !part.get().starts_with('{')) {
            let kind = Cell::Json(part).kind();
            let says =
                format!("a part of {} must be an object, not {kind}", self.quoted("content"));
            return Err(self.list_fault(part, says));
        }
        Ok(Some(json).filter(|_| !parts.is_empty()))
    }

    /// What it says about how to sample.
    pub(super) fn params(&self) -> Result<Vec<(&'static str, serde_json::Value)>, At> {
        let mut list = Vec::new();
        for (name, cell) in &*self.row {
            if let Some((param, kind)) = params::find(name)
                && let Some(value) = kind.read(param, *cell).map_err(|f| self.fault(*cell, f))?
            {
                list.push((param, value));
            }
        }
        Ok(list)
    }

    /// A fault of the value in `cell`.
    pub(super) fn fault(&self, cell: Cell<'_>, fault: impl Into<Fault>) -> At {
        match cell {
            Cell::Json(raw) => self.place.part(raw.get(), fault.into()),
            Cell::Text(_) => self.place.row(fault.into()),
        }
    }

    /// A fault of the whole.
    pub(super) fn row_fault(&self, fault: impl Into<Fault>) -> At {
        self.place.row(fault.into())
    }

    /// A fault of `value`, which is a piece of the row.
    pub(super) fn list_fault(&self, value: &RawValue, says: String) -> At {
        self.place.part(value.get(), Bad::List(says).into())
    }

    pub(super) fn wrong_kind(&self, cell: Cell<'_>, name: &str, want: &'static str) -> At {
        let fault = cell.wrong_kind(&self.called(name), want);
        self.fault(cell, fault)
    }

    fn called(&self, name: &str) -> String {
        if self.within.is_empty() { name.to_owned() } else { format!("{name} of {}", self.within) }
    }

    fn quoted(&self, name: &str) -> String {
        format!("`{}`", self.called(name))
    }
}
