//! Formats with a conversation a row: OpenAI messages, ShareGPT, MT-bench.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Conversations;
use super::agentic::{calls, is_name};
use super::fault::ConversationFault as Bad;
use super::fields::Fields;
use super::talk::{Beside, Talk, message};
use crate::error::{At, Fault};
use crate::params::Params;
use crate::place::Place;
use crate::row::{Cell, Row};

/// What the rows of a file have in common.
pub(super) struct Lists<'o> {
    out: &'o mut Conversations,
    max: usize,
    /// The names so far, each with its line.
    names: BTreeMap<Box<str>, u64>,
    /// The line of the last row without a name, and how many it had.
    unnamed: (u64, u32),
}

impl<'o> Lists<'o> {
    /// Takes at most `max` conversations.
    pub(super) fn new(out: &'o mut Conversations, max: usize) -> Self {
        Self { out, max, names: BTreeMap::new(), unnamed: (0, 0) }
    }

    /// A row with OpenAI chat messages. What stands between two answers is one turn.
    pub(super) fn messages<'a>(&mut self, row: &Row<'a>, place: Place<'a>) -> Result<(), At> {
        let row = Fields::of_row(row, place)?;
        let list = list(&row, "messages")?;
        let mut talk = self.begin(&row, &["id", "conversation_id"])?;
        let params = Arc::new(Params::new(row.params()?));
        let mut unasked = 0;
        for (nth, raw) in list.into_iter().enumerate() {
            let name = format!("message {}", nth + 1);
            let bad = |says: &str| row.list_fault(raw, format!("{name} {says}"));
            let message = row.of_object(raw, name.clone())?;
            let role = message.text("role")?.ok_or_else(|| bad("has no `role`"))?;
            let silent = message.content()?.is_none();
            for text in ["name", "reasoning_content", "reasoning", "tool_call_id"] {
                message.text(text)?;
            }
            let calls = calls(&message)?;
            let beside = |is_tool| Beside { delay: None, is_tool, params: params.clone() };
            match &*role {
                "system" | "developer" if nth == 0 => talk.system(raw.get()),
                "tool" => talk.ask(raw.get(), place.line(), beside(true)),
                "function" if !silent => talk.ask(raw.get(), place.line(), beside(true)),
                "user" | "system" | "developer" if !silent => {
                    talk.ask(raw.get(), place.line(), beside(false));
                }
                "assistant" if silent && !calls => {
                    return Err(bad("is the assistant's and says nothing"));
                }
                "assistant" if talk.has_turns() => talk.answer(raw.get(), None),
                "assistant" => unasked += 1,
                "user" | "function" | "system" | "developer" => return Err(bad("says nothing")),
                role => return Err(bad(&format!("has the role `{role:.20}`, which is none"))),
            }
        }
        self.end(talk, unasked);
        Ok(())
    }

    /// A row of ShareGPT: `id`, and `conversations` of `from` and `value`.
    pub(super) fn sharegpt<'a>(&mut self, row: &Row<'a>, place: Place<'a>) -> Result<(), At> {
        let row = Fields::of_row(row, place)?;
        let line = place.line();
        let pieces = list(&row, "conversations")?;
        let mut talk = self.begin(&row, &["id"])?;
        let (mut unasked, mut silent) = (0, 0);
        for (nth, raw) in pieces.into_iter().enumerate() {
            let name = format!("piece {}", nth + 1);
            let bad = |says: &str| row.list_fault(raw, format!("{name} {says}"));
            let piece = row.of_object(raw, name.clone())?;
            let from = piece.text("from")?.ok_or_else(|| bad("has no `from`"))?;
            let value = piece.text("value")?.ok_or_else(|| bad("has no `value`"))?;
            let says = !value.trim().is_empty();
            match &*from {
                "system" | "human" | "user" if !says => return Err(bad("says nothing")),
                "system" if nth == 0 => talk.system(&message("system", &value)),
                "human" | "user" => {
                    talk.ask(&message("user", &value), line, Beside::default());
                }
                "system" => talk.ask(&message("system", &value), line, Beside::default()),
                "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => {
                    if talk.has_turns() {
                        talk.answer(&message("assistant", &value), None);
                        silent += u64::from(!says);
                    } else {
                        unasked += 1;
                    }
                }
                other => return Err(bad(&format!("is from `{other:.20}`, which is nobody"))),
            }
        }
        self.end(talk, unasked);
        self.out.silent += silent;
        Ok(())
    }

    /// A row of MT-bench: `question_id`, and `turns` of a user.
    pub(super) fn mt_bench<'a>(&mut self, row: &Row<'a>, place: Place<'a>) -> Result<(), At> {
        let row = Fields::of_row(row, place)?;
        let turns = list(&row, "turns")?;
        if turns.is_empty() {
            return Err(row.row_fault(Bad::List("`turns` is empty".to_owned())));
        }
        let mut talk = self.begin(&row, &["question_id", "id"])?;
        for (nth, raw) in turns.into_iter().enumerate() {
            let bad =
                |says: &str| row.list_fault(raw, format!("turn {} of `turns` {says}", nth + 1));
            let cell = Cell::Json(raw);
            let text = cell.text().map_err(|fault| row.fault(cell, fault))?;
            let text = text.ok_or_else(|| bad(&format!("must be text, not {}", cell.kind())))?;
            if text.trim().is_empty() {
                return Err(bad("says nothing"));
            }
            // Each of them had an answer, which is not recorded.
            let number = u32::try_from(2 * nth + 1).unwrap_or(u32::MAX);
            talk.turn(&message("user", &text), number, place.line(), Beside::default());
        }
        self.end(talk, 0);
        Ok(())
    }

    /// A conversation under its own name if it has a usable one, else under its line.
    fn begin(&mut self, row: &Fields<'_, '_>, names: &[&str]) -> Result<Talk, At> {
        let line = row.line();
        if self.out.list.len() >= self.max {
            return Err(row.row_fault(Fault::TooManyRows { max: self.max }));
        }
        let found = names.iter().find_map(|name| Some((*name, row.get(name)?)));
        let own = found.map(|(name, cell)| name_in(row, name, cell)).transpose()?.flatten();
        let name = own.unwrap_or_else(|| self.line_name(line).into());
        if let Some(&line) = self.names.get(&*name) {
            let fault = Bad::Twice { name: name.into(), line };
            return Err(match found {
                Some((_, cell)) => row.fault(cell, fault),
                None => row.row_fault(fault),
            });
        }
        self.names.insert((&*name).into(), line);
        Ok(Talk::new(&name, line))
    }

    /// Rows of an array may share a line.
    fn line_name(&mut self, line: u64) -> String {
        let before = if self.unnamed.0 == line { self.unnamed.1 } else { 0 };
        self.unnamed = (line, before + 1);
        if before == 0 { format!("line-{line}") } else { format!("line-{line}.{}", before + 1) }
    }

    /// Takes in what has a turn; counts what has none.
    fn end(&mut self, talk: Talk, unasked: u64) {
        match talk.finish() {
            Some(talk) => {
                self.out.list.push(talk);
                self.out.unasked += unasked;
            }
            None => self.out.left_out += 1,
        }
    }
}

/// The name in `cell`: text that a header can hold, or a whole number. Other text names nothing.
fn name_in<'a>(
    row: &Fields<'_, 'a>,
    column: &str,
    cell: Cell<'a>,
) -> Result<Option<Cow<'a, str>>, At> {
    if let Some(text) = cell.text().map_err(|fault| row.fault(cell, fault))? {
        return Ok(Some(text).filter(|name| is_name(name)));
    }
    match cell.json() {
        Some(json) if json.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()) => {
            Ok(Some(json.into()))
        }
        _ => Err(row.wrong_kind(cell, column, "text or a whole number")),
    }
}

fn list<'a>(
    row: &Fields<'_, 'a>,
    column: &'static str,
) -> Result<Vec<&'a serde_json::value::RawValue>, At> {
    let none = || Bad::List(format!("no column `{column}` with the conversation"));
    row.list(column)?.ok_or_else(|| row.row_fault(none()))
}
