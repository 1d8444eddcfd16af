//! Facts about chat answers, and the property that all ways of reading agree.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::delta::{FinishReason, Kinds, Usage};

/// A delta and the text handed on.
type Seen = Result<(Delta, Vec<String>), String>;

fn by(read: impl FnOnce(Option<TextSink<'_>>) -> Result<Delta, BadJson>, keep: bool) -> Seen {
    let mut texts = Vec::new();
    let mut sink = |text: Text<'_>| texts.push(format!("{text:?}"));
    let delta = read(if keep { Some(&mut sink) } else { None }).map_err(|e| e.to_string())?;
    Ok((delta, texts))
}

/// Reads `data` by all ways, with and without text; they must agree.
#[track_caller]
fn check(data: &[u8], shape: Shape) -> Seen {
    let mut seen = None;
    for keep in [false, true] {
        let reference = by(|text| reference::read(data, shape, text), keep);
        assert_eq!(by(|text| read(data, shape, text), keep), reference, "scan");
        let mut learned = Learned::default();
        for turn in 0..3 {
            let again = by(|text| learned.read(data, shape, text), keep);
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

#[test]
fn f4_f5_role_empty_and_usage_only_events_hold_no_text() {
    for delta in [
        json!({"role": "assistant", "content": ""}),
        json!({"content": ""}),
        json!({"content": null}),
        json!({}),
        json!({"reasoning_content": "", "reasoning": null, "tool_calls": []}),
        Value::Null,
    ] {
        assert_eq!(event(&delta_event(&delta)).kinds, Kinds::default(), "{delta}");
    }
    assert!(event(&delta_event(&json!({"role": "assistant"}))).role);
    let usage_only = event(&json!({"choices": [], "usage": {"completion_tokens": 3}}));
    assert_eq!((usage_only.kinds.any(), usage_only.choice), (false, false));
}

#[test]
fn f6_f7_all_kinds_of_text_in_a_delta_are_seen() {
    let call = json!([{"index": 0, "id": "x", "function": {"name": "f", "arguments": ""}}]);
    for (delta, expect) in [
        (json!({"content": "a"}), kinds(true, false, false)),
        (json!({"reasoning_content": "r"}), kinds(false, true, false)),
        (json!({"reasoning": "r"}), kinds(false, true, false)),
        (json!({"content": "a", "reasoning": "r"}), kinds(true, true, false)),
        (json!({"content": "a", "tool_calls": call}), kinds(true, false, true)),
        (json!({"tool_calls": [{"function": {"arguments": "{"}}]}), kinds(false, false, true)),
        (json!({"tool_calls": [{"id": "x", "function": {"arguments": ""}}]}), Kinds::default()),
        (json!({"function_call": {"name": "f"}}), kinds(false, false, true)),
        (json!({"content": [{"type": "text", "text": "a"}]}), kinds(true, false, false)),
        (json!({"refusal": "no"}), kinds(true, false, false)),
    ] {
        assert_eq!(event(&delta_event(&delta)).kinds, expect, "{delta}");
    }
}

#[test]
fn f11_null_missing_and_odd_fields_never_fail() {
    for value in [
        json!({"choices": []}),
        json!({"choices": null}),
        json!({"choices": {}}),
        json!({"choices": [null]}),
        json!({"choices": [{}]}),
        json!({"choices": [{"delta": 3, "finish_reason": {}, "index": "x"}], "usage": []}),
        json!({"choices": [{"delta": {"content": 7, "tool_calls": [1, null, {"function": 2}]}}]}),
        json!({}),
    ] {
        assert_eq!(event(&value).kinds, Kinds::default(), "{value}");
    }
}

#[test]
fn f12_usage_is_used_as_far_as_it_goes() {
    let full = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 12}});
    let expect =
        Usage { prompt: Some(5), completion: Some(7), cached: Some(4), reasoning: Some(2) };
    assert_eq!(event(&full).usage, Some(expect));
    let odd = json!({"usage": {"prompt_tokens": 5, "completion_tokens": null,
        "prompt_tokens_details": null, "completion_tokens_details": {"reasoning_tokens": -1}}});
    assert_eq!(event(&odd).usage, Some(Usage { prompt: Some(5), ..Usage::default() }));
    assert_eq!(event(&json!({"usage": null})).usage, None);
    let both = json!({"choices": [{"delta": {}, "finish_reason": "length"}],
        "usage": {"completion_tokens": 7}});
    let both = event(&both);
    assert_eq!(both.finish, Some(FinishReason::Length));
    assert_eq!(both.usage.and_then(|u| u.completion), Some(7));
}

#[test]
fn finish_reasons_are_read_by_their_names() {
    for (name, reason) in [
        ("stop", Some(FinishReason::Stop)),
        ("length", Some(FinishReason::Length)),
        ("tool_calls", Some(FinishReason::ToolCalls)),
        ("content_filter", Some(FinishReason::ContentFilter)),
        ("function_call", Some(FinishReason::FunctionCall)),
        ("abort", Some(FinishReason::Other)),
        ("", None),
    ] {
        let value = json!({"choices": [{"delta": {}, "finish_reason": name}]});
        assert_eq!(event(&value).finish, reason, "{name}");
    }
}

#[test]
fn f8_errors_are_found_in_all_their_forms() {
    for (value, expect) in [
        (json!({"error": {"message": "out of memory", "code": 500}}), "out of memory"),
        (json!({"error": "plain"}), "plain"),
        (json!({"error": {"code": 429}}), "429"),
        (json!({"error": {}}), "{}"),
        (json!({"object": "error", "message": "vLLM says so"}), "vLLM says so"),
    ] {
        assert_eq!(event(&value).error.as_deref(), Some(expect), "{value}");
    }
    for value in [json!({"error": null}), json!({"error": false}), json!({"object": "chat"})] {
        assert_eq!(event(&value).error, None, "{value}");
    }
    assert_eq!(&*error_message(b"{\"detail\": \"not found\"}"), "not found");
    assert_eq!(&*error_message(b" boom "), "boom");
}

#[test]
fn text_that_looks_like_json_fools_nobody() {
    let hostile =
        r#"","finish_reason":"stop"}],"usage":{"completion_tokens":99},"error":{"x":"\u0041"#;
    let delta = event(&delta_event(&json!({"content": hostile})));
    assert_eq!((delta.finish, delta.usage, delta.error), (None, None, None));
    let data = delta_event(&json!({"content": hostile})).to_string();
    let (_, texts) = check(data.as_bytes(), Shape::ChatEvent).expect("JSON");
    assert_eq!(texts, [format!("{:?}", Text::Content(hostile))]);
}

#[test]
fn last_of_repeated_keys_holds_as_in_serde_json() {
    let data = br#"{"choices":[{"delta":{"content":"a","content":""}}],"usage":{"completion_tokens":1},"usage":null}"#;
    let (delta, _) = check(data, Shape::ChatEvent).expect("JSON");
    assert_eq!((delta.kinds.content, delta.usage), (false, None));
}

#[test]
fn repeated_and_escaped_keys_are_read_as_serde_json_reads_them() {
    let finish = br#"{"choices":[{"delta":{},"finish_reason":"stop","finish_reason":null}]}"#;
    assert_eq!(check(finish, Shape::ChatEvent).expect("JSON").0.finish, None);
    let escaped = br#"{"choices":[{"delta":{"c\u006fntent":"a"},"finish_reason":"st\u006fp"}]}"#;
    let (delta, _) = check(escaped, Shape::ChatEvent).expect("JSON");
    assert_eq!((delta.kinds.content, delta.finish), (true, Some(FinishReason::Stop)));
    let twice = br#"{"choices":[{"delta":{"content":"a"}}],"choices":[]}"#;
    assert!(!check(twice, Shape::ChatEvent).expect("JSON").0.choice);
}

/// Reads events in turn with one learned shape; each must be as serde_json has it.
#[track_caller]
fn in_turn(events: &[(&str, Shape)]) {
    let mut learned = Learned::default();
    for (data, shape) in events {
        let expect = by(|text| reference::read(data.as_bytes(), *shape, text), true);
        let seen = by(|text| learned.read(data.as_bytes(), *shape, text), true);
        assert_eq!(seen, expect, "{data}");
    }
}

#[test]
fn learned_shape_is_of_one_text_and_one_place() {
    let both =
        |a: &str| delta_event(&json!({"reasoning_content": a, "reasoning": "b"})).to_string();
    in_turn(&[(&both("a"), Shape::ChatEvent), (&both(""), Shape::ChatEvent)]);
    let event = delta_event(&json!({"content": "a"})).to_string();
    in_turn(&[(&event, Shape::ChatEvent), (&event, Shape::Completion), (&event, Shape::ChatEvent)]);
}

#[test]
fn only_the_first_choice_gives_text_and_all_count() {
    let data = json!({"choices": [{"index": 1, "delta": {"content": "b"}}]}).to_string();
    let (delta, texts) = check(data.as_bytes(), Shape::ChatEvent).expect("JSON");
    assert_eq!((delta.kinds.content, texts.len()), (true, 0));
}

#[test]
fn whole_answers_and_completions() {
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "é\n", "tool_calls":
        [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "stop"}]});
    let (delta, texts) = check(whole.to_string().as_bytes(), Shape::ChatWhole).expect("JSON");
    assert_eq!((delta.kinds, delta.finish), (kinds(true, false, true), Some(FinishReason::Stop)));
    assert_eq!(texts.len(), 2);
    let completion = json!({"choices": [{"text": "a", "logprobs": {"x": [-0.25, true]}}]});
    let (delta, texts) = check(completion.to_string().as_bytes(), Shape::Completion).expect("JSON");
    assert_eq!((delta.kinds.content, texts), (true, vec![format!("{:?}", Text::Content("a"))]));
}

#[test]
fn f13_what_is_no_json_is_refused() {
    for data in [
        &b"hello"[..],
        b"",
        b"{",
        b"{\"a\":1}}",
        b"{\"a\":01}",
        b"{\"a\":\"\x01\"}",
        b"[1]",
        b"{\"a\":\"\\u00zz\"}",
        b"{\"a\":\"\\x\"}",
        b"3",
    ] {
        assert!(check(data, Shape::ChatEvent).is_err(), "{}", String::from_utf8_lossy(data));
    }
}

#[test]
fn wrong_utf8_is_replaced_not_refused() {
    let data = b"{\"choices\":[{\"delta\":{\"content\":\"a\xFFb\"}}]}";
    let (_, texts) = check(data, Shape::ChatEvent).expect("JSON");
    assert_eq!(texts, [format!("{:?}", Text::Content("a\u{fffd}b"))]);
}

#[test]
fn usual_events_are_read_without_serde_json() {
    for data in [
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" is"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
        r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"H\n\"\u00e9"}}],"created":1,"id":"x","model":"m","system_fingerprint":"b","object":"chat.completion.chunk"}"#,
        r#"{"id":"1","choices":[{"index":0,"delta":{"role":null,"content":"x","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}},"timings":{"prompt_ms":1.25}}"#,
    ] {
        assert!(scan::scan(data.as_bytes(), Shape::ChatEvent, false).is_some(), "{data}");
        check(data.as_bytes(), Shape::ChatEvent).expect("JSON");
    }
}

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
            json!({"index": index, key: delta, "finish_reason": reason, "text": "t"})
        });
    let choices = or(proptest::collection::vec(choice, 0..3).prop_map(Value::from).boxed());
    let count = or(any::<u32>().prop_map(Value::from).boxed());
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
    ];
    let blank = proptest::sample::select(vec!["", "", "", " ", "\n\t"]);
    let leaf = proptest::sample::select(leaves).prop_map(str::to_owned);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let key = proptest::sample::select(keys.clone());
        let pair = (key, blank.clone(), inner.clone()).prop_map(|(key, blank, value)| {
            // What usually stands at this key, so that the scan gets somewhere.
            match key {
                "choices" | "tool_calls" => format!("{blank}\"{key}\":[{value}]"),
                _ => format!("\"{key}\"{blank}:{blank}{value}{blank}"),
            }
        });
        proptest::collection::vec(pair, 0..5).prop_map(|pairs| format!("{{{}}}", pairs.join(",")))
    })
}

fn shapes() -> impl Strategy<Value = Shape> {
    proptest::sample::select(vec![Shape::ChatEvent, Shape::ChatWhole, Shape::Completion])
}

proptest! {
    #[test]
    fn scan_agrees_with_serde_json(event in events(), shape in shapes()) {
        check(event.as_bytes(), shape).expect("JSON");
    }

    #[test]
    fn scan_agrees_with_serde_json_on_broken_events(
        event in events(),
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
        form in 0usize..4,
        shape in shapes(),
    ) {
        let event = match form {
            0 => object,
            1 => format!("{{\"choices\":[{choice}],\"usage\":{usage}}}"),
            2 => format!("{{\"choices\":[{{\"delta\":{delta},\"finish_reason\":null}}]}}"),
            _ => format!(
                "{{\"choices\":[{{\"message\":{delta},\"finish_reason\":\"stop\",\"finish_reason\":null}}]}}"
            ),
        };
        check(event.as_bytes(), shape).ok();
    }

    #[test]
    fn learned_shape_agrees_with_serde_json(
        texts in proptest::collection::vec((texts(), 0usize..6), 1..12),
        noise in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..2),
    ) {
        let mut learned = Learned::default();
        for (i, (text, form)) in texts.iter().enumerate() {
            let value = match form {
                0..3 => delta_event(&json!({"content": text})),
                3 => delta_event(&json!({"reasoning": text})),
                4 => delta_event(&json!({"reasoning": text, "reasoning_content": "", "content": ""})),
                _ => delta_event(&json!({"role": "assistant", "content": text})),
            };
            let mut data = value.to_string().into_bytes();
            if i > 1 {
                for (place, byte) in &noise {
                    let at = place.index(data.len());
                    data[at] = *byte;
                }
            }
            for keep in [false, true] {
                let expect = by(|t| reference::read(&data, Shape::ChatEvent, t), keep);
                prop_assert_eq!(by(|t| learned.read(&data, Shape::ChatEvent, t), keep), expect);
            }
        }
    }
}
