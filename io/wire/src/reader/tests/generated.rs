//! Generated JSON: the three ways of reading say the same.

use proptest::prelude::*;

use super::*;

/// Any JSON, leaning towards what a scan could trip over.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9f64..1e9).prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((keys(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,12}",
        any::<String>(),
        Just(r#"","finish_reason":"stop"#.to_owned()),
        Just(r#"{"error":{"message":"x"}}"#.to_owned()),
        Just("\\u0000\u{1f600}\t\u{7f}".to_owned()),
        Just("stop".to_owned()),
    ]
}

fn keys() -> impl Strategy<Value = String> {
    let known = [
        "choices",
        "usage",
        "error",
        "object",
        "index",
        "delta",
        "message",
        "text",
        "content",
        "role",
        "reasoning",
        "reasoning_content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "finish_reason",
        "prompt_tokens",
        "completion_tokens",
        "refusal",
        "token_ids",
        "type",
        "response",
        "item",
        "output",
        "status",
        "sequence_number",
        "summary",
        "meta_info",
        "output_ids",
        "data",
        "x",
    ];
    prop_oneof![9 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => texts()]
}

/// Events that are mostly well formed, with any value in any place.
fn events() -> impl Strategy<Value = String> {
    let or = |usual: BoxedStrategy<Value>| prop_oneof![4 => usual, 1 => values()].boxed();
    let text = or(prop_oneof![texts().prop_map(Value::from), Just(Value::Null)].boxed());
    let call = or((text.clone(), text.clone())
        .prop_map(|(name, args)| json!([{"index": 0, "id": "i", "function": {"name": name, "arguments": args}}]))
        .boxed());
    let delta = or((text.clone(), text.clone(), text.clone(), proptest::option::of(call))
        .prop_map(|(role, content, reasoning, call)| {
            let mut delta = json!({"role": role, "content": content, "reasoning": reasoning});
            if let Some(call) = call {
                delta["tool_calls"] = call;
            }
            delta
        })
        .boxed());
    let choice =
        (delta, text, 0u64..2, any::<bool>()).prop_map(|(delta, reason, index, message)| {
            let key = if message { "message" } else { "delta" };
            json!({"index": index, key: delta, "finish_reason": reason, "text": "t",
                "token_ids": [index, 5]})
        });
    let choices = or(proptest::collection::vec(choice, 0..3).prop_map(Value::from).boxed());
    let count = (any::<u64>(), 0u32..64).prop_map(|(n, by)| Value::from(n >> by));
    let count = or(count.boxed());
    let usage = or((count.clone(), count)
        .prop_map(|(p, c)| json!({"prompt_tokens": p, "completion_tokens": c}))
        .boxed());
    (choices, proptest::option::of(usage), proptest::option::of(values()), any::<bool>()).prop_map(
        |(choices, usage, error, pretty)| {
            let mut event = json!({"id": "x", "choices": choices});
            if let Some(usage) = usage {
                event["usage"] = usage;
            }
            if let Some(error) = error {
                event["error"] = error;
            }
            if pretty {
                serde_json::to_string_pretty(&event).expect("JSON")
            } else {
                event.to_string()
            }
        },
    )
}

/// JSON text with what a tree cannot hold: repeated keys, escapes in keys and names, blanks anywhere.
fn raw_objects() -> impl Strategy<Value = String> {
    let leaves = vec![
        "null",
        "\"\"",
        "\"a\"",
        "7",
        "-0",
        "0.5e1",
        "[]",
        "{}",
        "true",
        "\"stop\"",
        "\"st\\u006fp\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "\"error\"",
        "[{\"delta\":{}}]",
        "\"response.output_text.delta\"",
        "\"response.completed\"",
        "\"response.output_item.added\"",
        "\"completed\"",
        "\"incomplete\"",
        "\"max_output_tokens\"",
        "\"message\"",
        "\"reasoning\"",
        "\"function_call\"",
        "\"abort\"",
        "1e-05",
    ];
    let keys = vec![
        "choices",
        "usage",
        "error",
        "object",
        "index",
        "delta",
        "content",
        "c\\u006fntent",
        "role",
        "reasoning",
        "reasoning_content",
        "tool_calls",
        "function",
        "name",
        "finish_reason",
        "completion_tokens",
        "prompt_tokens_details",
        "cached_tokens",
        "token_ids",
        "type",
        "response",
        "item",
        "output",
        "status",
        "incomplete_details",
        "reason",
        "sequence_number",
        "summary",
        "text",
        "meta_info",
        "output_ids",
        "data",
    ];
    let blank = proptest::sample::select(vec!["", "", "", " ", "\n\t"]);
    let leaf = proptest::sample::select(leaves).prop_map(str::to_owned);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let key = proptest::sample::select(keys.clone());
        let pair = (key, blank.clone(), inner.clone()).prop_map(|(key, blank, value)| {
            // What usually stands at this key, so that the scan gets somewhere.
            match key {
                "choices" | "tool_calls" | "output" | "data" | "summary" | "token_ids" => {
                    format!("{blank}\"{key}\":[{value}]")
                }
                _ => format!("\"{key}\"{blank}:{blank}{value}{blank}"),
            }
        });
        proptest::collection::vec(pair, 0..5).prop_map(|pairs| format!("{{{}}}", pairs.join(",")))
    })
}

/// Events of the responses API, whole responses, frames of SGLang: well formed for the most part.
fn other_events() -> impl Strategy<Value = String> {
    let or = |usual: BoxedStrategy<Value>| prop_oneof![4 => usual, 1 => values()].boxed();
    let pick = |words: &'static [&'static str]| {
        or(proptest::sample::select(words).prop_map(Value::from).boxed())
    };
    let text = || or(texts().prop_map(Value::from).boxed());
    let count = || or(any::<u32>().prop_map(Value::from).boxed());
    let part = (text(), text(), any::<bool>()).prop_map(|(text, refusal, both)| {
        if both { json!({"text": text, "refusal": refusal}) } else { json!({"text": text}) }
    });
    let parts = or(proptest::collection::vec(part, 0..3).prop_map(Value::from).boxed());
    let item = (
        pick(&[
            "message",
            "reasoning",
            "function_call",
            "custom_tool_call",
            "web_search_call",
            "x",
        ]),
        (parts.clone(), parts),
        (text(), text(), text()),
        0u8..8,
    )
        .prop_map(|(kind, (content, summary), (name, arguments, input), given)| {
            let mut item = json!({"type": kind, "id": "i", "content": content});
            for (bit, key, value) in [
                (1, "summary", summary),
                (2, "name", name),
                (2, "arguments", arguments),
                (4, "input", input),
            ] {
                if given & bit != 0 {
                    item[key] = value;
                }
            }
            item
        })
        .boxed();
    let response = (
        pick(&["completed", "incomplete", "failed", "in_progress", ""]),
        or(Just(Value::Null).boxed()),
        pick(&["max_output_tokens", "content_filter"]),
        (count(), count(), count()),
        or(proptest::collection::vec(item.clone(), 0..3).prop_map(Value::from).boxed()),
        any::<bool>(),
    )
        .prop_map(|(status, error, reason, (input, output, cached), items, details)| {
            let details = if details { json!({"reason": reason}) } else { Value::Null };
            json!({"id": "r", "object": "response", "status": status, "error": error,
                "incomplete_details": details, "output": items, "usage": {"input_tokens": input,
                "output_tokens": output, "input_tokens_details": {"cached_tokens": cached}}})
        })
        .boxed();
    let kinds: &[&str] = &[
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.audio.delta",
        "response.output_item.added",
        "response.output_item.done",
        "response.created",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
    ];
    let event = (pick(kinds), text(), count(), or(item), or(response.clone()), 0u8..8).prop_map(
        |(kind, delta, number, item, response, given)| {
            let mut event = json!({"type": kind, "sequence_number": number, "output_index": 1});
            for (bit, key, value) in
                [(1, "delta", delta), (2, "item", item), (4, "response", response)]
            {
                if given & bit != 0 {
                    event[key] = value;
                }
            }
            event
        },
    );
    let ids = or(proptest::collection::vec(0u32..9, 0..5).prop_map(Value::from).boxed());
    let frame = (text(), ids, count(), count(), pick(&["stop", "length", "abort"]), 0u8..16)
        .prop_map(|(text, ids, prompt, completion, reason, given)| {
            let reason = match given & 12 {
                0 => Value::Null,
                4 => json!({"type": reason, "message": "m"}),
                _ => reason,
            };
            let mut frame = json!({"meta_info": {"finish_reason": reason, "prompt_tokens": prompt,
                "completion_tokens": completion, "cached_tokens": 0}});
            for (bit, key, value) in [(1, "text", text), (2, "output_ids", ids)] {
                if given & bit != 0 {
                    frame[key] = value;
                }
            }
            frame
        });
    prop_oneof![3 => event, 1 => response, 2 => frame].prop_map(|event| event.to_string())
}

fn any_events() -> impl Strategy<Value = String> {
    prop_oneof![events(), other_events()]
}

fn shapes() -> impl Strategy<Value = Shape> {
    proptest::sample::select(&Shape::ALL[..])
}

/// The events of one stream, with what goes on in it from one to the next.
fn stream_of(shape: usize, pieces: &[(String, usize)]) -> Vec<(Vec<u8>, Shape)> {
    let (mut sum, mut all) = (0, String::new());
    let ids: Vec<usize> = (0..40).collect();
    let each = pieces.iter().enumerate().map(|(n, (text, tokens))| {
        sum += tokens;
        all.push_str(text);
        let usage = json!({"prompt_tokens": 3, "completion_tokens": sum, "total_tokens": 3 + sum});
        let meta = json!({"completion_tokens": sum, "prompt_tokens": 3, "finish_reason": null});
        let (event, shape) = match shape {
            0 => (delta_event(&json!({"content": text})), Shape::ChatEvent),
            1 => (delta_event(&json!({"reasoning": text, "reasoning_content": "", "content": ""})), Shape::ChatEvent),
            2 => (delta_event(&json!({"role": "assistant", "content": text})), Shape::ChatEvent),
            3 => (json!({"choices": [{"delta": {"reasoning": text}, "token_ids": ids[..*tokens]}], "usage": usage}), Shape::ChatEvent),
            4 => (delta_event(&json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})), Shape::ChatEvent),
            5 => (json!({"choices": [{"index": 0, "text": text, "token_ids": ids[..*tokens]}]}), Shape::Completion),
            6 => (json!({"type": "response.output_text.delta", "delta": text, "sequence_number": n, "obfuscation": text}), Shape::ResponsesEvent),
            7 => (json!({"type": "response.reasoning_text.delta", "delta": text, "sequence_number": sum}), Shape::ResponsesEvent),
            8 => (json!({"type": "response.function_call_arguments.delta", "delta": text, "output_index": n / 3}), Shape::ResponsesEvent),
            9 => (json!({"text": all, "output_ids": vec![1; sum], "meta_info": meta}), Shape::Sglang),
            10 => (json!({"text": text, "output_ids": vec![1; *tokens], "meta_info": meta}), Shape::Sglang),
            11 => (json!({"text": all, "meta_info": meta}), Shape::Sglang),
            _ => (json!({"output_ids": vec![1; sum], "meta_info": {}}), Shape::Sglang),
        };
        (event.to_string().into_bytes(), shape)
    });
    each.collect()
}

proptest! {
    #[test]
    fn scan_agrees_with_serde_json(event in any_events(), shape in shapes()) {
        check(event.as_bytes(), shape).expect("JSON");
    }

    #[test]
    fn scan_agrees_with_serde_json_on_broken_events(
        event in any_events(),
        shape in shapes(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..3), 1..4),
    ) {
        let mut bytes = event.into_bytes();
        for (place, byte, edit) in edits {
            let at = place.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        check(&bytes, shape).ok();
    }

    #[test]
    fn scan_agrees_with_serde_json_on_raw_text(
        object in raw_objects(),
        (choice, delta, usage) in (raw_objects(), raw_objects(), raw_objects()),
        form in 0usize..7,
        shape in shapes(),
    ) {
        let event = match form {
            0 => object,
            1 => format!("{{\"choices\":[{choice}],\"usage\":{usage}}}"),
            2 => format!("{{\"type\":\"response.completed\",\"response\":{choice},\"item\":{delta}}}"),
            3 => format!("{{\"text\":\"a\",\"meta_info\":{usage},\"output_ids\":[1]}}"),
            4 => format!("{{\"output\":[{delta},{choice}],\"status\":\"completed\",\"usage\":{usage}}}"),
            5 => format!("{{\"choices\":[{{\"delta\":{delta},\"finish_reason\":null}}]}}"),
            _ => format!(
                "{{\"choices\":[{{\"message\":{delta},\"finish_reason\":\"stop\",\"finish_reason\":null}}]}}"
            ),
        };
        check(event.as_bytes(), shape).ok();
    }

    #[test]
    fn streams_read_in_turn_agree_with_serde_json(
        kind in 0usize..13,
        pieces in proptest::collection::vec((texts(), 0usize..4), 1..10),
        noise in proptest::collection::vec((0usize..10, any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut events = stream_of(kind, &pieces);
        for (event, place, byte) in noise {
            if let Some((data, _)) = events.get_mut(event) {
                let at = place.index(data.len());
                data[at] = byte;
            }
        }
        let events: Vec<_> = events.iter().map(|(data, shape)| (&data[..], *shape)).collect();
        in_turn(&events);
    }
}
