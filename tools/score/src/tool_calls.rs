//! Tool calls, put together from the pieces that a stream brought.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The calls in `kept`, which holds one piece of a call a line, as a journal keeps them: a piece names its
/// call by `index`; an id and a name overwrite, arguments go on. In order of `index`.
#[must_use]
pub fn joined(kept: &str) -> Vec<Value> {
    #[derive(Default)]
    struct Call {
        id: Value,
        name: Value,
        arguments: String,
    }
    let mut calls: BTreeMap<u64, Call> = BTreeMap::new();
    for line in kept.lines() {
        // A line that was cut short says nothing.
        let Ok(piece) = serde_json::from_str::<Value>(line) else { continue };
        let call = calls.entry(piece["index"].as_u64().unwrap_or(0)).or_default();
        for (field, value) in [(&mut call.id, &piece["id"]), (&mut call.name, &piece["name"])] {
            if value.as_str().is_some_and(|text| !text.is_empty()) {
                field.clone_from(value);
            }
        }
        call.arguments.push_str(piece["arguments"].as_str().unwrap_or_default());
    }
    let call = |(index, call): (u64, Call)| json!({"index": index, "id": call.id, "name": call.name, "arguments": call.arguments});
    calls.into_iter().map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_call_are_joined_by_its_index() {
        let kept = concat!(
            "{\"index\":1,\"id\":\"b\",\"name\":\"g\",\"arguments\":null}\n",
            "{\"index\":0,\"id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}\n",
            "{\"index\":0,\"id\":null,\"name\":\"\",\"arguments\":\":1}\"}\n",
            "{\"index\":0,\"argu",
        );
        let expected = [
            json!({"index": 0, "id": "a", "name": "f", "arguments": "{\"x\":1}"}),
            json!({"index": 1, "id": "b", "name": "g", "arguments": ""}),
        ];
        assert_eq!(joined(kept), expected);
        assert_eq!(joined(""), Vec::<Value>::new());
    }
}
