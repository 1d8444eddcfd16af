//! Chat, completions and embeddings.

use super::*;

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
    for no_count in [json!(1u64 << 32), json!(u64::MAX), json!(-1), json!(1.5), json!(1e20)] {
        let usage =
            event(&json!({"usage": {"prompt_tokens": no_count, "completion_tokens": u32::MAX}}))
                .usage;
        assert_eq!(usage, Some(Usage { completion: Some(u32::MAX), ..Usage::default() }));
    }
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
    let with_text = br#"{"error":"e","choices":[{"delta":{"content":"a"}}]}"#;
    assert!(
        check(with_text, Shape::ChatEvent).expect("JSON").1.is_empty(),
        "nothing is told of it"
    );
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

#[test]
fn learned_shape_is_of_one_text_and_one_place() {
    let both =
        |a: &str| delta_event(&json!({"reasoning_content": a, "reasoning": "b"})).to_string();
    let pair = [both("a"), both("")];
    in_turn(&pair.each_ref().map(|event| (event.as_bytes(), Shape::ChatEvent)));
    let event = delta_event(&json!({"content": "a"})).to_string();
    let shapes = [Shape::ChatEvent, Shape::Completion, Shape::ChatEvent];
    in_turn(&shapes.map(|shape| (event.as_bytes(), shape)));
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

/// Whether events after the first are known by its shape.
#[track_caller]
fn are_learned(shape: Shape, events: &[Value]) {
    let mut reader = Reader::default();
    for (n, event) in events.iter().map(Value::to_string).enumerate() {
        let known = reader.learned.matches(event.as_bytes(), shape, false).is_some();
        assert_eq!(known, n > 0, "{event}");
        reader.read(event.as_bytes(), shape, None).expect("JSON");
    }
}

#[test]
fn running_counts_ids_and_call_arguments_are_learned() {
    let counted = |n: u64, text: &str, ids: &[u64]| {
        json!({"choices": [{"delta": {"content": text}, "finish_reason": null, "token_ids": ids}],
            "usage": {"prompt_tokens": 9, "completion_tokens": n, "total_tokens": 9 + n}})
    };
    let events = [counted(1, " a", &[7]), counted(3, "\n\"", &[8, 900]), counted(3, "", &[])];
    are_learned(Shape::ChatEvent, &events);
    let seen = in_turn_of(Shape::ChatEvent, &events);
    let told: Vec<_> = seen
        .iter()
        .map(|(delta, _)| (delta.kinds.any(), delta.ids, delta.usage.and_then(|u| u.completion)))
        .collect();
    assert_eq!(
        told,
        [(true, Some(1), Some(1)), (true, Some(2), Some(3)), (false, Some(0), Some(3))]
    );
    let call = |arguments: &str| {
        delta_event(&json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}))
    };
    are_learned(Shape::ChatEvent, &[call("{\"a"), call("\":1}")]);
    in_turn_of(Shape::ChatEvent, &[call("{\"a"), call("\":1}"), call("")]);
    let piece = |n: u64| {
        json!({"type": "response.output_text.delta", "sequence_number": n, "item_id": "msg",
            "output_index": 0, "content_index": 0, "delta": "x", "logprobs": [], "obfuscation": "q"})
    };
    are_learned(Shape::ResponsesEvent, &[piece(9), piece(10), piece(11)]);
}

#[test]
fn token_ids_of_all_choices_count() {
    let two = json!({"choices": [{"text": "a", "token_ids": [1, 2]},
        {"index": 1, "text": "b", "token_ids": [3]}, {"index": 2, "token_ids": null}]});
    let (delta, _) = check(two.to_string().as_bytes(), Shape::Completion).expect("JSON");
    assert_eq!(delta.ids, Some(3));
    for none in [json!({"choices": [{"token_ids": null}]}), json!({"choices": [{"token_ids": 3}]})]
    {
        assert_eq!(event(&none).ids, None);
    }
}

#[test]
fn embeddings_are_an_answer_without_text() {
    let answer = br#"{"object":"list","data":[{"object":"embedding","index":0,
        "embedding":[-0.5,1e-05,2.25E+3,0]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}"#;
    let (delta, texts) = check(answer, Shape::Embeddings).expect("JSON");
    assert!(delta.choice && !delta.kinds.any() && texts.is_empty());
    assert_eq!(delta.usage, Some(Usage { prompt: Some(8), ..Usage::default() }));
    assert!(scan::scan(answer, Shape::Embeddings, true).is_some(), "no tree is made of it");
    for empty in [r#"{"data":[]}"#, r#"{"data":null}"#, "{}"] {
        assert!(!check(empty.as_bytes(), Shape::Embeddings).expect("JSON").0.choice, "{empty}");
    }
    let too_large = r#"{"data":[1e999]}"#;
    assert!(check(too_large.as_bytes(), Shape::Embeddings).is_err());
}
