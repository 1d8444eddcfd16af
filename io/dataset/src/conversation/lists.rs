//! Formats with a conversation a row: OpenAI messages, ShareGPT, MT-bench.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Conversations;
use super::agentic::is_name;
use super::fault::ConversationFault as Bad;
use super::talk::{Beside, Talk, message};
use crate::error::Fault;
use crate::params::{self, Params};
use crate::row::{Cell, Row, message_of};

/// A row with OpenAI chat messages. What stands between two answers is one turn.
pub(super) fn messages(row: &Row<'_>, line: u64, out: &mut Conversations) -> Result<(), Fault> {
    #[derive(Deserialize)]
    struct Of {
        role: String,
        #[serde(default)]
        content: Value,
        #[serde(default)]
        tool_calls: Value,
    }
    let list = list(row, "messages")?;
    let list: Vec<&RawValue> = parse(list)?;
    let mut talk = begin(row, line, &["id", "conversation_id"])?;
    let params = params(row)?;
    let mut unasked = 0;
    for (place, raw) in list.iter().enumerate() {
        let place = place + 1;
        let of: Of = serde_json::from_str(raw.get())
            .map_err(|e| bad(format!("message {place}: {}", message_of(&e))))?;
        let silent = match &of.content {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Array(parts) => parts.is_empty(),
            _ => return Err(bad(format!("the content of message {place} is no text"))),
        };
        match of.role.as_str() {
            "system" | "developer" if place == 1 => talk.system(raw.get()),
            "user" | "tool" | "function" | "system" | "developer" if !silent => {
                talk.ask(raw.get(), line, beside(&params, of.role == "tool"));
            }
            "tool" => talk.ask(raw.get(), line, beside(&params, true)),
            "assistant" if silent && of.tool_calls.is_null() => {
                return Err(bad(format!("message {place}, of the assistant, says nothing")));
            }
            "assistant" if talk.has_turns() => talk.answer(raw.get(), None),
            "assistant" => unasked += 1,
            "user" | "function" | "system" | "developer" => {
                return Err(bad(format!("message {place} says nothing")));
            }
            role => {
                return Err(bad(format!(
                    "message {place} has the role `{role:.20}`, which is none"
                )));
            }
        }
    }
    end(talk, unasked, out);
    Ok(())
}

/// A row of ShareGPT: `id`, and `conversations` of `from` and `value`.
pub(super) fn sharegpt(row: &Row<'_>, line: u64, out: &mut Conversations) -> Result<(), Fault> {
    #[derive(Deserialize)]
    struct Piece {
        from: String,
        value: String,
    }
    let pieces: Vec<Piece> = parse(list(row, "conversations")?)?;
    let mut talk = begin(row, line, &["id"])?;
    let mut unasked = 0;
    for (place, Piece { from, value }) in pieces.iter().enumerate() {
        match from.as_str() {
            "system" if place == 0 => talk.system(&message("system", value)),
            "human" | "user" => {
                talk.ask(&message("user", value), line, Beside::default());
            }
            "system" => talk.ask(&message("system", value), line, Beside::default()),
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" if talk.has_turns() => {
                talk.answer(&message("assistant", value), None);
            }
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => unasked += 1,
            other => {
                let says = format!("piece {} is from `{other:.20}`, which is nobody", place + 1);
                return Err(bad(says));
            }
        }
    }
    end(talk, unasked, out);
    Ok(())
}

/// A row of MT-bench: `question_id`, and `turns` of a user.
pub(super) fn mt_bench(row: &Row<'_>, line: u64, out: &mut Conversations) -> Result<(), Fault> {
    let turns: Vec<String> = parse(list(row, "turns")?)?;
    if turns.is_empty() || turns.iter().any(|turn| turn.trim().is_empty()) {
        return Err(bad("a turn of `turns` says nothing".to_owned()));
    }
    let mut talk = begin(row, line, &["question_id", "id"])?;
    for (place, turn) in turns.iter().enumerate() {
        // Each of them had an answer, which is not recorded.
        let number = u32::try_from(2 * place + 1).unwrap_or(u32::MAX);
        talk.turn(&message("user", turn), number, line, Beside::default());
    }
    end(talk, 0, out);
    Ok(())
}

/// Takes in what has a turn; counts what has none.
fn end(talk: Talk, unasked: u64, out: &mut Conversations) {
    match talk.finish() {
        Some(talk) => {
            out.list.push(talk);
            out.unasked += unasked;
        }
        None => out.left_out += 1,
    }
}

/// A conversation under its own name if it has a usable one, else under its line.
fn begin(row: &Row<'_>, line: u64, names: &[&str]) -> Result<Talk, Fault> {
    let cell = names.iter().find_map(|name| find(row, name));
    let name = match cell {
        Some(Cell::Json(raw)) if raw.get().bytes().all(|b| b.is_ascii_digit()) => {
            Some(raw.get().to_owned())
        }
        Some(cell) => cell.text()?.map(Cow::into_owned),
        None => None,
    };
    let name = name.filter(|name| is_name(name)).unwrap_or_else(|| format!("line-{line}"));
    Ok(Talk::new(&name, line))
}

fn list<'a>(row: &Row<'a>, column: &'static str) -> Result<&'a str, Fault> {
    match find(row, column) {
        Some(Cell::Json(raw)) if raw.get().starts_with('[') => Ok(raw.get()),
        Some(cell) => Err(cell.wrong_kind(column, "a list")),
        None => Err(bad(format!("no column `{column}` with the conversation"))),
    }
}

/// Parameters of the row, which hold for each of its turns.
fn params(row: &Row<'_>) -> Result<Params, Fault> {
    let mut list = Vec::new();
    for (name, cell) in row {
        if let Some((param, kind)) = params::find(name)
            && let Some(value) = kind.read(param, *cell)?
        {
            list.push((param, value));
        }
    }
    Ok(Params::new(list))
}

fn beside(params: &Params, is_tool: bool) -> Beside {
    Beside { delay: None, is_tool, params: params.clone() }
}

fn find<'a>(row: &Row<'a>, name: &str) -> Option<Cell<'a>> {
    row.iter().find(|(column, _)| column == name).map(|(_, cell)| *cell).filter(|c| !c.is_null())
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|e| bad(message_of(&e)))
}

fn bad(says: String) -> Fault {
    Bad::List(says).into()
}
