//! Agentic JSONL: a message a line, the lines of a conversation together.
//!
//! ```text
//! start ─> user ─> assistant ─┬─> user
//!                     ^       └─> tool (only after calls) ─┬─> assistant
//!                     └────────────────────────────────────┘  └─> user
//! ```
//!
//! After an answer with tool calls their results must come. User and tool lines are turns; what is
//! recorded between them is the history of the later ones. Token limit and tools of the first user line hold
//! for the turns that have none.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use takt_time::Span;

use super::Conversations;
use super::fault::ConversationFault as Bad;
use super::talk::{Beside, Talk, message};
use crate::error::{At, Fault};
use crate::jsonl;
use crate::params::{self, Params};
use crate::row::{Cell, Row};
use crate::source::Source;

/// Reads the whole file.
pub(super) fn read(source: &mut Source<'_>, out: &mut Conversations, max: usize) -> Result<(), At> {
    let mut reader = Reader { out, max, rows: 0, seen: BTreeSet::new(), current: None };
    jsonl::each(source, &mut |row, line| {
        reader.take(row, line).map_err(|fault| At::line(line, fault))
    })?;
    reader.finish();
    Ok(())
}

struct Reader<'o> {
    out: &'o mut Conversations,
    max: usize,
    rows: usize,
    /// Names of the conversations so far.
    seen: BTreeSet<Box<str>>,
    current: Option<Current>,
}

/// The conversation that is being read.
struct Current {
    talk: Talk,
    number: u32,
    last: Last,
    /// Token limit and tools of the first user line.
    first: Vec<(&'static str, Value)>,
}

/// Who spoke last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    User,
    Tool,
    Answer,
    Calls,
}

/// The columns of a line that mean something here.
struct Line<'a> {
    row: &'a Row<'a>,
}

impl<'a> Line<'a> {
    /// The value of a column; `None` when it is not there or null.
    fn get(&self, name: &str) -> Option<Cell<'a>> {
        self.cell(name).filter(|cell| !cell.is_null())
    }

    fn cell(&self, name: &str) -> Option<Cell<'a>> {
        self.row.iter().find(|(column, _)| column == name).map(|(_, cell)| *cell)
    }

    fn need(&self, name: &'static str) -> Result<Cell<'a>, Fault> {
        self.cell(name).ok_or(Fault::Conversation(Bad::Missing(name)))
    }

    fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, Fault> {
        self.get(name).map_or(Ok(None), Cell::text)
    }

    /// JSON text as it stands in the file.
    fn json(&self, name: &str) -> Option<&'a str> {
        match self.get(name)? {
            Cell::Json(raw) => Some(raw.get()),
            Cell::Text(_) => None,
        }
    }
}

impl Reader<'_> {
    fn take(&mut self, row: &Row<'_>, line: u64) -> Result<(), Fault> {
        let cells = Line { row };
        if cells.text("_type")?.as_deref() == Some("dataset_metadata") {
            return Ok(());
        }
        self.rows += 1;
        if self.rows > self.max {
            return Err(Fault::TooManyRows { max: self.max });
        }
        for (place, (name, _)) in row.iter().enumerate() {
            if row[..place].iter().any(|(other, _)| other == name) {
                return Err(Fault::DuplicateColumn { column: name.to_string() });
            }
        }
        let id = cells.need("conversation_id")?.text()?.filter(|id| is_name(id));
        let id = id.ok_or(Bad::Id)?;
        if self.current.as_ref().is_none_or(|current| *current.talk.id != *id) {
            self.finish();
            if !self.seen.insert(id.as_ref().into()) {
                return Err(Bad::Interleaved(id.into_owned().into()).into());
            }
            let talk = Talk::new(&id, line);
            self.current = Some(Current { talk, number: 0, last: Last::Answer, first: Vec::new() });
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        current.take(&cells, line)
    }

    fn finish(&mut self) {
        let Some(current) = self.current.take() else { return };
        self.out.list.extend(current.talk.finish());
    }
}

impl Current {
    fn take(&mut self, line: &Line<'_>, row: u64) -> Result<(), Fault> {
        let number = line.need("turn")?;
        self.number += 1;
        let found = match number {
            Cell::Json(raw) => raw.get(),
            Cell::Text(text) => text,
        };
        if found.parse() != Ok(self.number) {
            let found = found.chars().take(CHARS_MAX).collect();
            return Err(Bad::Number { want: self.number, found }.into());
        }
        let role = line.need("role")?;
        line.need("content")?;
        let first = !self.talk.has_turns();
        // The whole conversation has one system message, whichever row says it first.
        if !self.talk.has_system()
            && let Some(system) = line.text("system")?.filter(|text| !text.is_empty())
        {
            self.talk.system(&message("system", &system));
        }
        match role.text()?.as_deref() {
            Some("user") if self.last == Last::Calls => {
                Err(order("a user", AFTER_CALLS, "only the results of tools"))
            }
            Some("user") if self.last == Last::User => {
                Err(order("a user", "a user", "an assistant"))
            }
            Some("user") => self.user(line, row, first),
            Some("assistant") if first => Err(order("an assistant", "nothing", "only a user")),
            Some("assistant") if matches!(self.last, Last::Answer | Last::Calls) => {
                Err(order("an assistant", "an assistant", "a user or the results of tools"))
            }
            Some("assistant") => self.assistant(line),
            Some("tool") if first => Err(order("a tool", "nothing", "only a user")),
            Some("tool") if self.last != Last::Calls => {
                let before = match self.last {
                    Last::User => "a user",
                    Last::Tool => "a tool",
                    Last::Answer | Last::Calls => "an answer without tool calls",
                };
                Err(order("a tool", before, "a tool only after an answer with tool calls"))
            }
            Some("tool") => self.tool(line, row),
            other => {
                let said = other.map_or_else(|| role.kind().to_owned(), |role| format!("`{role}`"));
                Err(Bad::Role(said.chars().take(CHARS_MAX).collect()).into())
            }
        }
    }

    fn user(&mut self, line: &Line<'_>, row: u64, first: bool) -> Result<(), Fault> {
        let content = content(line)?.ok_or(Bad::Silent("a user", ""))?;
        let beside = self.beside(line, first, false)?;
        let said = said("user", Some(content), line, &["name"]);
        self.talk.turn(&said, self.number, row, beside);
        self.last = Last::User;
        Ok(())
    }

    fn assistant(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let content = content(line)?;
        let calls = line.get("tool_calls").map(|_| calls(line)).transpose()?.unwrap_or(false);
        if content.is_none() && !calls {
            return Err(Bad::Silent("an assistant", ", or tool calls").into());
        }
        let keys: &[&str] = if calls {
            &["name", "tool_calls", "reasoning_content"]
        } else {
            &["name", "reasoning_content"]
        };
        let said = said("assistant", content.or(Some("null")), line, keys);
        self.talk.answer(&said, line.json("intent_codes").map(Into::into));
        self.last = if calls { Last::Calls } else { Last::Answer };
        Ok(())
    }

    fn tool(&mut self, line: &Line<'_>, row: u64) -> Result<(), Fault> {
        let beside = self.beside(line, false, true)?;
        let results = results(line)?;
        self.talk.turn(&results, self.number, row, beside);
        self.last = Last::Tool;
        Ok(())
    }

    /// Delay and parameters.
    fn beside(&mut self, line: &Line<'_>, first: bool, is_tool: bool) -> Result<Beside, Fault> {
        let mut list: Vec<(&'static str, Value)> = Vec::new();
        for (name, cell) in line.row {
            if let Some((param, kind)) = params::find(name)
                && let Some(value) = kind.read(param, *cell)?
            {
                list.push((param, value));
            }
        }
        limit(&mut list);
        if first {
            let inherits = |name: &&str| INHERITED.contains(name);
            self.first = list.iter().filter(|(name, _)| inherits(name)).cloned().collect();
        }
        for (name, value) in &self.first {
            let is_limit = |name: &str| INHERITED[..2].contains(&name);
            let has =
                |(known, _): &(&str, Value)| known == name || (is_limit(known) && is_limit(name));
            if !list.iter().any(has) {
                list.push((name, value.clone()));
            }
        }
        Ok(Beside { delay: delay(line)?, is_tool, params: Params::new(list) })
    }
}

/// `max_new_tokens` under the name that chat servers know.
fn limit(list: &mut Vec<(&'static str, Value)>) {
    let Some(place) = list.iter().position(|(name, _)| *name == "max_new_tokens") else { return };
    if list.iter().any(|(name, _)| INHERITED[..2].contains(name)) {
        list.remove(place);
    } else {
        list[place].0 = INHERITED[0];
    }
}

/// The message with its columns as they stand in the file.
fn said(role: &str, content: Option<&str>, line: &Line<'_>, keys: &[&str]) -> String {
    let mut out = format!("{{\"role\":\"{role}\"");
    if let Some(content) = content {
        // Writing to a string does not fail.
        let _ = write!(out, ",\"content\":{content}");
    }
    for key in keys {
        if let Some(json) = line.json(key) {
            let _ = write!(out, ",\"{key}\":{json}");
        }
    }
    out.push('}');
    out
}

/// The content as JSON, if it says anything: text, or a list of parts.
fn content<'a>(line: &Line<'a>) -> Result<Option<&'a str>, Fault> {
    let Some(cell) = line.get("content") else { return Ok(None) };
    let Some(json) = line.json("content") else { return Ok(None) };
    if let Some(text) = cell.text()? {
        return Ok(Some(json).filter(|_| !text.trim().is_empty()));
    }
    match json.as_bytes().first() {
        Some(b'[') => {
            let parts: Vec<Value> = parse(json)?;
            Ok(Some(json).filter(|_| !parts.is_empty()))
        }
        _ => Err(cell.wrong_kind("content", "text")),
    }
}

/// Checks tool calls; whether there are any.
fn calls(line: &Line<'_>) -> Result<bool, Fault> {
    let bad = |says: String| Fault::from(Bad::Calls(says));
    let Some(Value::Array(calls)) = line.json("tool_calls").map(parse).transpose()? else {
        return Err(bad("it must be a list".to_owned()));
    };
    for (place, call) in calls.iter().enumerate() {
        let place = place + 1;
        let is_text = |value: Option<&Value>| {
            value.and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
        };
        if !is_text(call.get("id")) {
            return Err(bad(format!("call {place} has no `id`")));
        }
        if call.get("type").and_then(Value::as_str) != Some("function") {
            return Err(bad(format!("`type` of call {place} is not `function`")));
        }
        let function = call.get("function");
        if !is_text(function.and_then(|f| f.get("name"))) {
            return Err(bad(format!("call {place} names no function")));
        }
        let arguments = function.and_then(|f| f.get("arguments"));
        if !arguments.is_some_and(|value| value.is_string() || value.is_object()) {
            return Err(bad(format!("`arguments` of call {place} are neither text nor an object")));
        }
    }
    Ok(!calls.is_empty())
}

/// One message for each result.
fn results(line: &Line<'_>) -> Result<String, Fault> {
    let bad = |says: String| Fault::from(Bad::Results(says));
    let Some(Value::Array(results)) = line.json("tool_results").map(parse).transpose()? else {
        return Err(bad("a tool row needs a list of them".to_owned()));
    };
    let mut out = String::new();
    for (place, result) in results.iter().enumerate() {
        let place = place + 1;
        let id = result.get("tool_call_id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let Some(id) = id else {
            return Err(bad(format!("result {place} has no `tool_call_id`")));
        };
        let content = result.get("content").filter(|content| !content.is_null());
        let Some(content) = content else {
            return Err(bad(format!("result {place} has no `content`")));
        };
        let comma = if out.is_empty() { "" } else { "," };
        let id = Value::from(id);
        let _ =
            write!(out, "{comma}{{\"role\":\"tool\",\"tool_call_id\":{id},\"content\":{content}}}");
    }
    if out.is_empty() { Err(bad("the list is empty".to_owned())) } else { Ok(out) }
}

/// Nothing, or what is not above 0, is no delay.
fn delay(line: &Line<'_>) -> Result<Option<Span>, Fault> {
    let Some(cell) = line.get("delay_seconds") else { return Ok(None) };
    let text = match cell.text()? {
        Some(text) => text,
        None => Cow::Borrowed(line.json("delay_seconds").unwrap_or_default()),
    };
    let seconds = text
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|seconds| seconds.is_finite() && *seconds < SECONDS_MAX);
    let seconds = seconds.ok_or_else(|| Bad::Delay(format!("`{text:.CHARS_MAX$}`")))?;
    Ok((seconds > 0.0).then(|| Span::from_secs_f64(seconds)))
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, Fault> {
    serde_json::from_str(json).map_err(|e| {
        let (message, remedy) = (crate::row::message_of(&e), "correct the value");
        Fault::Json { message, column: None, remedy }
    })
}

fn order(found: &'static str, before: &'static str, want: &'static str) -> Fault {
    Bad::Order { found, before, want }.into()
}

/// Whether it can stand in a header.
pub(super) fn is_name(id: &str) -> bool {
    !id.trim().is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

const AFTER_CALLS: &str = "an answer with tool calls";
/// What a turn takes over from the first user line: one of the two limits, and the tools.
const INHERITED: [&str; 3] = ["max_completion_tokens", "max_tokens", "tools"];
/// Characters of a wrong value that are shown.
const CHARS_MAX: usize = 40;
/// A century.
const SECONDS_MAX: f64 = 3.2e9;
