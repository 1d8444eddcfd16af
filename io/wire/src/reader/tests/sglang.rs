//! SGLang's own route: frames that hold all of the text, or each their own.

use super::*;

fn frame(text: Option<&str>, ids: Option<usize>, tokens: Option<u64>) -> Value {
    let mut frame = json!({"meta_info": {"id": "x", "finish_reason": null, "prompt_tokens": 5,
        "completion_tokens": tokens, "cached_tokens": 1, "e2e_latency": 0.25}});
    if let Some(text) = text {
        frame["text"] = json!(text);
    }
    if let Some(ids) = ids {
        frame["output_ids"] = json!(vec![7; ids]);
    }
    frame
}

/// The texts of frames read in turn, and what each says of ids.
#[track_caller]
fn told(frames: &[Value]) -> Vec<(bool, String, Option<u64>)> {
    let seen = in_turn_of(Shape::Sglang, frames);
    seen.into_iter()
        .map(|(delta, texts)| (delta.kinds.content, texts.concat(), delta.ids))
        .collect()
}

fn content(text: &str) -> String {
    format!("{:?}", Text::Content(text))
}

#[test]
fn of_a_text_that_grows_only_what_is_new_counts() {
    let frames = [
        frame(Some(""), Some(1), Some(1)),
        frame(Some("Hi"), Some(2), Some(2)),
        frame(Some("Hi"), Some(3), Some(3)),
        frame(Some("Hi \"é\"\n"), Some(5), Some(5)),
    ];
    assert_eq!(
        told(&frames),
        [
            (false, String::new(), None),
            (true, content("Hi"), None),
            (false, String::new(), None),
            (true, content(" \"é\"\n"), None),
        ]
    );
}

#[test]
fn pieces_that_stand_alone_are_known_by_their_ids_or_by_their_text() {
    for ids in [Some(1), None] {
        let frames: Vec<Value> = [("a", 1), ("b", 2), ("b", 3), ("ba", 4)]
            .map(|(text, tokens)| frame(Some(text), ids, Some(tokens)))
            .into();
        let texts: Vec<String> = told(&frames).into_iter().map(|(_, text, _)| text).collect();
        assert_eq!(texts, ["a", "b", "b", "ba"].map(content), "{ids:?}");
    }
    // The same piece twice: only ids tell.
    let twice = [frame(Some("a"), Some(1), Some(1)), frame(Some("a"), Some(1), Some(2))];
    assert_eq!(told(&twice)[1], (true, content("a"), None));
}

#[test]
fn without_text_or_counts_ids_are_what_there_is() {
    let frames =
        [frame(None, Some(2), None), frame(None, Some(2), None), frame(None, Some(5), None)];
    let none = String::new;
    assert_eq!(
        told(&frames),
        [(true, none(), Some(2)), (false, none(), Some(0)), (true, none(), Some(3))]
    );
}

#[test]
fn f12_the_last_frame_tells_why_and_all_frames_how_much() {
    let mut last = frame(Some("a"), None, Some(9));
    for (reason, finish) in [
        (json!({"type": "stop", "matched": 2}), FinishReason::Stop),
        (json!({"type": "length", "length": 9}), FinishReason::Length),
        (json!("stop"), FinishReason::Stop),
    ] {
        last["meta_info"]["finish_reason"] = reason;
        let (delta, _) = check(last.to_string().as_bytes(), Shape::Sglang).expect("JSON");
        let usage =
            Usage { prompt: Some(5), completion: Some(9), cached: Some(1), reasoning: None };
        assert_eq!((delta.finish, delta.usage), (Some(finish), Some(usage)));
    }
}

#[test]
fn f8_an_abort_is_an_error_with_its_message() {
    let mut last = frame(Some("a"), None, Some(1));
    for (reason, says) in [
        (json!({"type": "abort", "message": "too long", "status_code": 400}), "too long"),
        (json!({"type": "abort"}), "the server aborted the request"),
        (json!("abort"), "the server aborted the request"),
    ] {
        last["meta_info"]["finish_reason"] = reason;
        let (delta, _) = check(last.to_string().as_bytes(), Shape::Sglang).expect("JSON");
        assert_eq!((delta.error.as_deref(), delta.finish), (Some(says), None));
        let texts = in_turn_of(Shape::Sglang, &[last.clone()]).remove(0).1;
        assert!(texts.is_empty(), "nothing is told of it");
    }
    let error = json!({"error": {"message": "bad"}});
    let (delta, _) = check(error.to_string().as_bytes(), Shape::Sglang).expect("JSON");
    assert_eq!((delta.error.as_deref(), delta.choice), (Some("bad"), false));
}

#[test]
fn usual_frames_are_read_without_serde_json() {
    let data = r#"{"text":" a\nb","output_ids":[1,2],"meta_info":{"id":"x","finish_reason":{"type":"stop","matched":2},"prompt_tokens":5,"weight_version":"default","total_retractions":0,"completion_tokens":2,"cached_tokens":0,"e2e_latency":1.5e-05}}"#;
    assert!(scan::scan(data.as_bytes(), Shape::Sglang, true).is_some());
}
