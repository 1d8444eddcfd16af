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

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;
use takt_time::Span;

use super::Conversations;
use super::fault::ConversationFault as Bad;
use super::fields::Fields;
use super::talk::{Beside, Talk, message};
use crate::error::{At, Fault};
use crate::jsonl;
use crate::params::Params;
use crate::place::Place;
use crate::row::{Cell, Row};
use crate::source::Source;

/// Reads the whole file.
pub(super) fn read(source: &mut Source<'_>, out: &mut Conversations, max: usize) -> Result<(), At> {
    let mut reader = Reader { out, max, rows: 0, seen: BTreeSet::new(), current: None };
    jsonl::each(source, &mut |row, place| reader.take(row, place))?;
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

impl Reader<'_> {
    fn take<'a>(&mut self, row: &Row<'a>, place: Place<'a>) -> Result<(), At> {
        let line = Fields::of_row(row, place)?;
        // A mark of any other kind marks nothing.
        let mark = line.get("_type").and_then(|cell| cell.text().ok().flatten());
        if mark.as_deref() == Some("dataset_metadata") {
            return Ok(());
        }
        self.rows += 1;
        if self.rows > self.max {
            return Err(line.row_fault(Fault::TooManyRows { max: self.max }));
        }
        let cell = line.need("conversation_id")?;
        let id = cell.text().map_err(|fault| line.fault(cell, fault))?;
        let id = id.filter(|id| is_name(id)).ok_or_else(|| {
            let found = cell.json().unwrap_or_default();
            line.fault(cell, Bad::Id(format!("`{found:.CHARS_MAX$}`")))
        })?;
        if self.current.as_ref().is_none_or(|current| *current.talk.id != *id) {
            self.finish();
            if !self.seen.insert(id.as_ref().into()) {
                return Err(line.fault(cell, Bad::Interleaved(id.into_owned().into())));
            }
            let talk = Talk::new(&id, place.line());
            self.current = Some(Current { talk, number: 0, last: Last::Answer, first: Vec::new() });
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        current.take(&line)
    }

    fn finish(&mut self) {
        let Some(current) = self.current.take() else { return };
        self.out.list.extend(current.talk.finish());
    }
}

impl Current {
    fn take(&mut self, line: &Fields<'_, '_>) -> Result<(), At> {
        let number = line.need("turn")?;
        self.number += 1;
        let found = number.json().unwrap_or_default();
        if found.parse() != Ok(self.number) {
            let found = found.chars().take(CHARS_MAX).collect();
            return Err(line.fault(number, Bad::Number { want: self.number, found }));
        }
        let role = line.need("role")?;
        line.need("content")?;
        // The whole conversation has one system message, whichever row says it first.
        let system = line.text("system")?.filter(|text| !text.is_empty());
        if let Some(system) = system.filter(|_| !self.talk.has_system()) {
            self.talk.system(&message("system", &system));
        }
        let delay = delay(line)?;
        let order = |found, before, want| Err(line.fault(role, Bad::Order { found, before, want }));
        let first = !self.talk.has_turns();
        let said = role.text().map_err(|fault| line.fault(role, fault))?;
        match said.as_deref() {
            Some("user") if self.last == Last::Calls => {
                order("a user", AFTER_CALLS, "only the results of tools")
            }
            Some("user") if self.last == Last::User => order("a user", "a user", "an assistant"),
            Some("user") => self.user(line, delay, first),
            Some("assistant") if first => order("an assistant", "nothing", "only a user"),
            Some("assistant") if matches!(self.last, Last::Answer | Last::Calls) => {
                order("an assistant", "an assistant", "a user or the results of tools")
            }
            Some("assistant") => self.assistant(line),
            Some("tool") if first => order("a tool", "nothing", "only a user"),
            Some("tool") if self.last != Last::Calls => {
                let before = match self.last {
                    Last::User => "a user",
                    Last::Tool => "a tool",
                    Last::Answer | Last::Calls => "an answer without tool calls",
                };
                order("a tool", before, "a tool only after an answer with tool calls")
            }
            Some("tool") => self.tool(line, delay),
            other => {
                let said = other.map_or_else(|| role.kind().to_owned(), |role| format!("`{role}`"));
                let said = said.chars().take(CHARS_MAX).collect();
                Err(line.fault(role, Bad::Role(said)))
            }
        }
    }

    fn user(&mut self, line: &Fields<'_, '_>, delay: Option<Span>, first: bool) -> Result<(), At> {
        let content = line.content()?.ok_or_else(|| line.row_fault(Bad::Silent("a user", "")))?;
        let params = self.params(line, first)?;
        let said = said("user", Some(content), line, &["name"])?;
        let beside = Beside { delay, is_tool: false, params: params.into() };
        self.talk.turn(&said, self.number, line.line(), beside);
        self.last = Last::User;
        Ok(())
    }

    fn assistant(&mut self, line: &Fields<'_, '_>) -> Result<(), At> {
        let content = line.content()?;
        let calls = calls(line)?;
        if content.is_none() && !calls {
            return Err(line.row_fault(Bad::Silent("an assistant", ", or tool calls")));
        }
        let said =
            said("assistant", content.or(Some("null")), line, &["name", "reasoning_content"])?;
        let said = match line.json("tool_calls").filter(|_| calls) {
            Some(list) => format!("{},\"tool_calls\":{list}}}", &said[..said.len() - 1]),
            None => said,
        };
        self.talk.answer(&said, intents(line)?.map(Into::into));
        self.last = if calls { Last::Calls } else { Last::Answer };
        Ok(())
    }

    fn tool(&mut self, line: &Fields<'_, '_>, delay: Option<Span>) -> Result<(), At> {
        let params = self.params(line, false)?;
        let results = results(line)?;
        let beside = Beside { delay, is_tool: true, params: params.into() };
        self.talk.turn(&results, self.number, line.line(), beside);
        self.last = Last::Tool;
        Ok(())
    }

    /// Its own parameters, and those of the first user line that it has none of.
    fn params(&mut self, line: &Fields<'_, '_>, first: bool) -> Result<Params, At> {
        let mut list = line.params()?;
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
        Ok(Params::new(list))
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

/// The message, with its columns of text as they stand in the file.
fn said(
    role: &str,
    content: Option<&str>,
    line: &Fields<'_, '_>,
    texts: &[&str],
) -> Result<String, At> {
    let mut out = format!("{{\"role\":\"{role}\"");
    if let Some(content) = content {
        // Writing to a string does not fail.
        let _ = write!(out, ",\"content\":{content}");
    }
    for name in texts {
        if let (Some(_), Some(json)) = (line.text(name)?, line.json(name)) {
            let _ = write!(out, ",\"{name}\":{json}");
        }
    }
    out.push('}');
    Ok(out)
}

/// Checks the tool calls of a message; whether there are any.
pub(super) fn calls(line: &Fields<'_, '_>) -> Result<bool, At> {
    let Some(cell) = line.get("tool_calls") else { return Ok(false) };
    let bad = |says: String| line.fault(cell, Bad::Calls(says));
    let calls = line.list("tool_calls").map_err(|_| bad("it must be a list".to_owned()))?;
    let calls = calls.unwrap_or_default();
    for (place, call) in calls.iter().enumerate() {
        let place = place + 1;
        let call: Value = parse(line, call)?;
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
fn results(line: &Fields<'_, '_>) -> Result<String, At> {
    let bad = |says: String| match line.get("tool_results") {
        Some(cell) => line.fault(cell, Bad::Results(says)),
        None => line.row_fault(Bad::Results(says)),
    };
    let Ok(Some(results)) = line.list("tool_results") else {
        return Err(bad("a tool row needs a list of them".to_owned()));
    };
    let mut out = String::new();
    for (place, result) in results.into_iter().enumerate() {
        let place = place + 1;
        let result: Value = parse(line, result)?;
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

/// The intents that an answer should name, as JSON.
fn intents<'a>(line: &Fields<'_, 'a>) -> Result<Option<&'a str>, At> {
    let intents = line.list("intent_codes")?.unwrap_or_default();
    if let Some(other) = intents.iter().find(|intent| !intent.get().starts_with('"')) {
        let says = format!("an intent of `intent_codes` must be text, not {}", other.get());
        return Err(line.list_fault(other, says));
    }
    Ok(line.json("intent_codes"))
}

/// A number of seconds; nothing and 0 are no delay.
fn delay(line: &Fields<'_, '_>) -> Result<Option<Span>, At> {
    let Some(cell) = line.get("delay_seconds") else { return Ok(None) };
    let found = cell.json().unwrap_or_default();
    // What parses as one and is JSON is a number.
    let seconds = found.parse::<f64>().ok().filter(|seconds| (0.0..SECONDS_MAX).contains(seconds));
    let wrong = || line.fault(cell, Bad::Delay(format!("`{found:.CHARS_MAX$}`")));
    let seconds = seconds.ok_or_else(wrong)?;
    Ok((seconds > 0.0).then(|| Span::from_secs_f64(seconds)))
}

fn parse(line: &Fields<'_, '_>, raw: &RawValue) -> Result<Value, At> {
    serde_json::from_str(raw.get()).map_err(|e| {
        let (message, remedy) = (crate::row::message_of(&e), "correct the value");
        line.fault(Cell::Json(raw), Fault::Json { message, column: None, remedy })
    })
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
