//! Facts about what is read of each API, and the property that all ways of reading agree.

mod chat;
mod generated;
mod responses;
mod sglang;

use serde_json::{Value, json};

use super::*;
use crate::delta::{FinishReason, Kinds, Usage};

/// A delta and the text handed on.
type Seen = Result<(Delta, Vec<String>), String>;

fn by(read: impl FnOnce(Option<TextSink<'_>>) -> Result<Delta, BadJson>, keep: bool) -> Seen {
    let mut texts = Vec::new();
    let mut sink = |text: Text<'_>| texts.push(format!("{text:?}"));
    let delta = read(if keep { Some(&mut sink) } else { None }).map_err(|e| e.to_string())?;
    assert!(delta.error.is_none() || texts.is_empty(), "nothing is told of an error: {texts:?}");
    Ok((delta, texts))
}

/// Reads `data` by all ways, with and without text; they must agree.
#[track_caller]
fn check(data: &[u8], shape: Shape) -> Seen {
    let mut seen = None;
    for keep in [false, true] {
        let reference = by(|text| reference::read(data, shape, text), keep);
        assert_eq!(by(|text| read(data, shape, text), keep), reference, "scan");
        let mut reader = Reader::default();
        let turns = if shape == Shape::Sglang { 1 } else { 3 };
        for turn in 0..turns {
            let again = by(|text| reader.read(data, shape, text), keep);
            assert_eq!(again, reference, "learned, turn {turn}");
        }
        seen = Some(reference);
    }
    seen.expect("read twice")
}

#[track_caller]
fn event(value: &Value) -> Delta {
    check(value.to_string().as_bytes(), Shape::ChatEvent).expect("JSON").0
}

fn delta_event(delta: &Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn kinds(content: bool, reasoning: bool, tool_call: bool) -> Kinds {
    Kinds { content, reasoning, tool_call }
}

/// Reads events in turn, as those of one answer; each must be as serde_json has it, text kept or not. Gives what is
/// seen with text.
#[track_caller]
fn in_turn(events: &[(&[u8], Shape)]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for keep in [false, true] {
        let (mut reader, mut grown) = (Reader::default(), Grown::default());
        for &(data, shape) in events {
            let expect = match shape {
                Shape::Sglang => by(|text| grown.read_slowly(data, text), keep),
                _ => by(|text| reference::read(data, shape, text), keep),
            };
            let read = by(|text| reader.read(data, shape, text), keep);
            assert_eq!(read, expect, "{}", String::from_utf8_lossy(data));
            if keep {
                seen.push(read);
            }
        }
    }
    seen
}

/// The same shape for all.
#[track_caller]
fn in_turn_of(shape: Shape, events: &[Value]) -> Vec<(Delta, Vec<String>)> {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    let events: Vec<_> = events.iter().map(|event| (event.as_bytes(), shape)).collect();
    let seen = in_turn(&events);
    seen.into_iter().map(|seen| seen.expect("JSON")).collect()
}
