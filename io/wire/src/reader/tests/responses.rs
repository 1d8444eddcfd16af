//! The responses API.

use super::*;

#[track_caller]
fn responses(value: &Value) -> (Delta, Vec<String>) {
    check(value.to_string().as_bytes(), Shape::ResponsesEvent).expect("JSON")
}

#[track_caller]
fn whole(value: &Value) -> (Delta, Vec<String>) {
    check(value.to_string().as_bytes(), Shape::ResponsesWhole).expect("JSON")
}

fn of(kind: &str, delta: &str) -> Value {
    json!({"type": kind, "sequence_number": 4, "item_id": "i", "output_index": 2, "delta": delta})
}

#[test]
fn f6_f7_each_kind_of_delta_is_told_by_its_type() {
    for (kind, expect, text) in [
        ("response.output_text.delta", kinds(true, false, false), Text::Content("x")),
        ("response.refusal.delta", kinds(true, false, false), Text::Content("x")),
        ("response.reasoning_text.delta", kinds(false, true, false), Text::Reasoning("x")),
        ("response.reasoning_summary_text.delta", kinds(false, true, false), Text::Reasoning("x")),
        (
            "response.function_call_arguments.delta",
            kinds(false, false, true),
            Text::ToolCall { index: 2, id: None, name: None, arguments: Some("x") },
        ),
    ] {
        let (delta, texts) = responses(&of(kind, "x"));
        assert_eq!((delta.kinds, texts), (expect, vec![format!("{text:?}")]), "{kind}");
        let (empty, texts) = responses(&of(kind, ""));
        assert!(!empty.kinds.any() && texts.is_empty(), "{kind}");
    }
}

#[test]
fn f4_f5_events_that_frame_a_response_hold_no_text() {
    for value in [
        json!({"type": "response.created", "response": {"status": "in_progress", "output": [],
            "usage": null, "error": null}}),
        json!({"type": "response.output_item.added", "item": {"type": "message", "content": []}}),
        json!({"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}}),
        json!({"type": "response.output_text.done", "text": "all of it again"}),
        json!({"type": "response.output_item.done", "item": {"type": "function_call", "name": "f"}}),
        of("response.audio.delta", "UklGRg=="),
        json!({"delta": "no type"}),
        json!({"type": null, "delta": "x"}),
        json!({}),
    ] {
        let (delta, texts) = responses(&value);
        assert!(!delta.kinds.any() && texts.is_empty(), "{value}");
        assert_eq!((delta.finish, delta.error), (None, None), "{value}");
    }
}

#[test]
fn a_call_that_is_added_has_its_name() {
    let added = json!({"type": "response.output_item.added", "output_index": 1,
        "item": {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}});
    let (delta, texts) = responses(&added);
    let call = Text::ToolCall { index: 1, id: Some("c"), name: Some("f"), arguments: None };
    assert_eq!((delta.kinds, texts), (kinds(false, false, true), vec![format!("{call:?}")]));
}

#[test]
fn f12_the_end_tells_why_and_how_much() {
    let end = |kind: &str, more: Value| {
        let mut response = json!({"status": kind, "error": null, "output": [],
            "usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 4},
                "output_tokens": 7, "output_tokens_details": {"reasoning_tokens": 2}}});
        for (key, value) in more.as_object().expect("fields") {
            response[key] = value.clone();
        }
        json!({"type": format!("response.{kind}"), "response": response})
    };
    let reason = |reason: &str| json!({"incomplete_details": {"reason": reason}});
    let call = json!({"output": [{"type": "reasoning"}, {"type": "function_call", "name": "f"}]});
    let usage = Usage { prompt: Some(5), completion: Some(7), cached: Some(4), reasoning: Some(2) };
    for (value, finish) in [
        (end("completed", json!({})), FinishReason::Stop),
        (end("completed", call), FinishReason::ToolCalls),
        (end("incomplete", reason("max_output_tokens")), FinishReason::Length),
        (end("incomplete", reason("content_filter")), FinishReason::ContentFilter),
        (end("incomplete", json!({})), FinishReason::Other),
    ] {
        let (delta, _) = responses(&value);
        assert_eq!((delta.finish, delta.usage), (Some(finish), Some(usage)), "{value}");
        assert_eq!(delta.error, None);
        assert_eq!(whole(&value["response"]).0.finish, Some(finish), "{value}");
    }
}

#[test]
fn f8_errors_are_found_in_all_their_forms() {
    let failed = json!({"status": "failed", "error": {"code": "server_error", "message": "oom"}});
    for (value, says) in [
        (json!({"type": "error", "code": "c", "message": "overloaded"}), "overloaded"),
        (json!({"type": "error", "error": {"message": "inner"}}), "inner"),
        (json!({"type": "response.failed", "response": failed}), "oom"),
        (json!({"type": "response.failed", "response": {"error": null}}), "the response is failed"),
        (json!({"type": "response.cancelled", "response": {}}), "the response is cancelled"),
        (json!({"error": {"message": "plain"}}), "plain"),
    ] {
        assert_eq!(responses(&value).0.error.as_deref(), Some(says), "{value}");
    }
    assert_eq!(whole(&failed).0.error.as_deref(), Some("oom"));
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "half"}]});
    let (queued, texts) = whole(&json!({"status": "queued", "output": [message]}));
    assert_eq!(queued.error.as_deref(), Some("the response is queued"));
    assert_eq!(texts, Vec::<String>::new(), "its state stands behind its text");
}

#[test]
fn whole_answers_have_all_kinds_of_text() {
    let answer = json!({"object": "response", "status": "completed", "error": null, "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"},
            {"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]});
    let (delta, texts) = whole(&answer);
    assert!(delta.choice);
    assert_eq!(
        (delta.kinds, delta.finish),
        (kinds(true, true, true), Some(FinishReason::ToolCalls))
    );
    let expect = [
        Text::Reasoning("hm"),
        Text::Content("a"),
        Text::Content("no"),
        Text::ToolCall { index: 2, id: Some("c"), name: Some("f"), arguments: Some("{}") },
    ];
    assert_eq!(texts, expect.map(|text| format!("{text:?}")));
    assert!(!whole(&json!({"status": "completed"})).0.choice);
}

#[test]
fn usual_events_are_read_without_serde_json() {
    for data in [
        r#"{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","created_at":1,"status":"in_progress","background":false,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"output":[],"parallel_tool_calls":true,"reasoning":{"effort":null},"temperature":1.0,"text":{"format":{"type":"text"}},"tools":[],"usage":null,"metadata":{}}}"#,
        r#"{"content_index":0,"delta":" is","item_id":"msg_1","logprobs":[],"output_index":0,"sequence_number":6,"type":"response.output_text.delta"}"#,
        r#"{"type":"response.completed","sequence_number":9,"response":{"id":"r","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","id":"m","content":[{"type":"output_text","text":"a\nb","annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}"#,
    ] {
        assert!(scan::scan(data.as_bytes(), Shape::ResponsesEvent, true).is_some(), "{data}");
    }
}
