//! Files of conversations: the same turns or the same message however the bytes arrive, names that differ, and
//! the messages that serde_json finds in the rows.
//!
//! takt is stricter than serde_json, but for strings and depths that nobody looks at: what serde_json cannot
//! read is not compared.

use std::collections::BTreeSet;
use std::io::BufReader;

use serde_json::{Map, Value, json};
use takt_dataset::{Conversation, ConversationFormat, Conversations, DatasetError, Limits};

use super::dataset::Trickle;
use super::pieces::pieces;

/// Reads `file` whole and in pieces. `array`: of `messages`, one JSON array of rows.
pub(super) fn conversations(
    file: &[u8],
    format: ConversationFormat,
    array: bool,
    limits: &Limits,
    how: u8,
) {
    let whole = Conversations::read(file, "f", format, array, limits);
    for (how, room) in [(b'1', 1), (how, 7)] {
        let trickle = BufReader::with_capacity(room, Trickle::new(pieces(file, how)));
        let split = Conversations::read(trickle, "f", format, array, limits);
        assert_eq!(told(&split), told(&whole), "split {how}");
    }
    match whole {
        Ok(set) => {
            accepted(&set);
            if let Some(rows) = rows(file, format, array) {
                let found: Vec<_> =
                    set.list().iter().map(|talk| json_of(talk.messages())).collect();
                assert_eq!(found, expected(&rows, format));
            }
        }
        Err(error) => {
            let says = error.to_string();
            assert!(says.starts_with('f') && says.contains(';'), "no file or no remedy: {says}");
            assert!(error.column.is_none() || error.line.is_some());
        }
    }
}

fn told(read: &Result<Conversations, DatasetError>) -> String {
    match read {
        Ok(set) => format!("{set:?}"),
        Err(error) => error.to_string(),
    }
}

fn accepted(set: &Conversations) {
    assert!(!set.list().is_empty());
    let mut names = BTreeSet::new();
    let mut turns = 0;
    for talk in set.list() {
        assert!(names.insert(&talk.id), "{} twice", talk.id);
        let printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        assert!(!talk.id.trim().is_empty() && talk.id.bytes().all(printable));
        consistent(talk);
        turns += talk.turns().len();
    }
    assert_eq!(turns, set.turns());
    assert!(set.list().is_sorted_by(|a, b| a.row <= b.row));
}

/// A turn's prompt is all that was said up to it, and its own words are the end of that.
fn consistent(talk: &Conversation) {
    assert!(!talk.turns().is_empty());
    let mut before = talk.system().len();
    for turn in talk.turns() {
        let prompt = talk.prompt(turn);
        assert!(prompt.starts_with(talk.system()) && prompt.ends_with(talk.asked(turn)));
        assert!(prompt.len() > before && talk.messages().starts_with(prompt));
        before = prompt.len() + talk.answer(turn).len();
        assert!(talk.row <= turn.row);
    }
    assert!(talk.turns().is_sorted_by(|a, b| a.number < b.number));
}

fn json_of(messages: &str) -> Option<Vec<Value>> {
    serde_json::from_str(&format!("[{messages}]")).ok()
}

/// The rows as serde_json has them, if it has them all.
fn rows(file: &[u8], format: ConversationFormat, array: bool) -> Option<Vec<Map<String, Value>>> {
    let text = std::str::from_utf8(file).expect("only UTF-8 is accepted");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let array = array && format == ConversationFormat::Messages;
    if array || format == ConversationFormat::ShareGpt {
        return serde_json::from_str(text).ok();
    }
    let lines = text.split('\n').filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).ok()).collect()
}

/// The messages of each conversation.
fn expected(rows: &[Map<String, Value>], format: ConversationFormat) -> Vec<Option<Vec<Value>>> {
    let of_row = |row: &Map<String, Value>| match format {
        ConversationFormat::MtBench => {
            let turns = row["turns"].as_array().expect("a list").iter();
            turns.map(|turn| json!({"role": "user", "content": turn})).collect()
        }
        ConversationFormat::ShareGpt => {
            let pieces = row["conversations"].as_array().expect("a list").iter();
            asked(pieces.map(|piece| {
                let role = match piece["from"].as_str().expect("text") {
                    "human" | "user" => "user",
                    "system" => "system",
                    _ => "assistant",
                };
                json!({"role": role, "content": piece["value"]})
            }))
        }
        _ => asked(row["messages"].as_array().expect("a list").iter().cloned()),
    };
    if format == ConversationFormat::Agentic {
        return agentic(rows);
    }
    let all = rows.iter().map(of_row);
    let asks = |list: &Vec<Value>| list.iter().enumerate().any(|(at, m)| !leads(at, m));
    all.filter(asks).map(Some).collect()
}

/// The system message of a conversation, which asks nothing.
fn leads(place: usize, message: &Value) -> bool {
    place == 0 && matches!(message["role"].as_str(), Some("system" | "developer"))
}

/// Without the answers before the first question.
fn asked(messages: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut begun = false;
    let kept = messages.enumerate().filter(|(place, message)| {
        begun |= message["role"] != "assistant" && !leads(*place, message);
        begun || leads(*place, message)
    });
    kept.map(|(_, message)| message).collect()
}

fn agentic(rows: &[Map<String, Value>]) -> Vec<Option<Vec<Value>>> {
    let mut talks: Vec<(&Value, bool, Vec<Value>)> = Vec::new();
    for row in rows.iter().filter(|row| row.get("_type") != Some(&json!("dataset_metadata"))) {
        let id = &row["conversation_id"];
        if talks.last().is_none_or(|(last, ..)| *last != id) {
            talks.push((id, false, Vec::new()));
        }
        let (_, has_system, said) = talks.last_mut().expect("one was pushed");
        if let Some(system) = row.get("system").filter(|text| !text.is_null() && *text != "")
            && !*has_system
        {
            *has_system = true;
            said.insert(0, json!({"role": "system", "content": system}));
        }
        if row["role"] == "tool" {
            let results = row["tool_results"].as_array().expect("a list").iter();
            said.extend(results.map(|result| {
                let (id, content) = (&result["tool_call_id"], &result["content"]);
                json!({"role": "tool", "tool_call_id": id, "content": content})
            }));
        } else {
            let mut message = json!({"role": row["role"], "content": row["content"]});
            let answers = row["role"] == "assistant";
            if answers && is_silent(&row["content"]) {
                message["content"] = Value::Null;
            }
            let of_answers = ["reasoning_content", "tool_calls"].into_iter().filter(|_| answers);
            for key in ["name"].into_iter().chain(of_answers) {
                let value = row.get(key).filter(|value| !value.is_null() && **value != json!([]));
                if let Some(value) = value {
                    message[key] = value.clone();
                }
            }
            said.push(message);
        }
    }
    talks.into_iter().map(|(_, _, said)| Some(said)).collect()
}

fn is_silent(content: &Value) -> bool {
    match content {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => true,
    }
}
