//! Facts about bodies.

use serde_json::json;

use super::*;

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn text(text: &str) -> Prompt<'_> {
    Prompt::Text { text, system: None }
}

fn built(builder: &BodyBuilder, prompt: &Prompt<'_>, row: Value) -> String {
    let body = builder.build(prompt, Some(&map(row))).expect("body");
    serde_json::from_slice::<Value>(&body).expect("JSON");
    String::from_utf8(body).expect("UTF-8")
}

#[test]
fn keys_come_in_a_fixed_order() {
    let params = map(json!({"zeta": 1, "top_p": 0.5, "alpha": [1], "temperature": 0}));
    let builder = BodyBuilder::new(Api::OpenaiChat, "m", true).params(params).expect("params");
    assert_eq!(
        built(&builder, &Prompt::Text { text: "a\"b", system: Some("s") }, json!({})),
        concat!(
            r#"{"model":"m","messages":[{"role":"system","content":"s"},"#,
            r#"{"role":"user","content":"a\"b"}],"temperature":0,"stream":true,"#,
            r#""stream_options":{"include_usage":true},"top_p":0.5,"alpha":[1],"zeta":1}"#
        )
    );
}

#[test]
fn body_without_stream_names_no_stream() {
    let builder = BodyBuilder::new(Api::OpenaiChat, "", false);
    let expect = r#"{"messages":[{"role":"user","content":"x"}]}"#;
    assert_eq!(built(&builder, &text("x"), json!({})), expect);
}

#[test]
fn row_overrides_endpoint_and_extra_overrides_both() {
    let builder = BodyBuilder::new(Api::OpenaiCompletions, "m", false)
        .params(map(json!({"max_tokens": 1, "seed": 1, "stop": "x", "top_k": 1})))
        .and_then(|b| b.extra(map(json!({"seed": 3, "model": "other", "top_k": null}))))
        .expect("builder");
    assert_eq!(
        built(&builder, &text("p"), json!({"max_tokens": 2, "seed": 2, "stop": null})),
        r#"{"model":"other","prompt":"p","max_tokens":2,"seed":3}"#
    );
}

#[test]
fn messages_are_sent_byte_for_byte() {
    let builder = BodyBuilder::new(Api::OpenaiChat, "", false);
    let json = "\n[ {\"role\":\"user\", \"content\":\"\\u00e9\"} ] ";
    assert_eq!(
        built(&builder, &Prompt::Messages { json, system: None }, json!({})),
        "{\"messages\":[{\"role\":\"user\", \"content\":\"\\u00e9\"}]}"
    );
    let system = Some("s");
    assert_eq!(
        built(&builder, &Prompt::Messages { json: "[]", system }, json!({})),
        r#"{"messages":[{"role":"system","content":"s"}]}"#
    );
    for bad in ["{}", "[1]", "[", "\"x\""] {
        let prompt = Prompt::Messages { json: bad, system: None };
        assert!(matches!(builder.build(&prompt, None), Err(BodyError::Messages(_))), "{bad}");
    }
}

#[test]
fn what_stands_around_messages_makes_the_same_body() {
    let builder = BodyBuilder::new(Api::OpenaiChat, "m", true);
    let (row, json) =
        (map(json!({"tools": [[]], "seed": 1})), r#"[{"role":"user","content":"x"}]"#);
    let whole = builder.build(&Prompt::Messages { json, system: None }, Some(&row)).unwrap();
    let (before, after) = builder.around_messages(Some(&row)).unwrap();
    let inside = json.as_bytes()[1..json.len() - 1].to_vec();
    assert_eq!([before, inside, after].concat(), whole);
    let completions = BodyBuilder::new(Api::OpenaiCompletions, "m", true);
    assert!(matches!(completions.around_messages(None), Err(BodyError::Unfit { .. })));
}

#[test]
fn usage_can_be_turned_off_and_options_are_kept() {
    let builder = BodyBuilder::new(Api::OpenaiChat, "", true).include_usage(false);
    assert!(!built(&builder, &text("x"), json!({})).contains("stream_options"));
    let row = json!({"stream_options": {"continuous_usage_stats": true}});
    let builder = builder.include_usage(true);
    assert!(
        built(&builder, &text("x"), row)
            .contains(r#""stream_options":{"continuous_usage_stats":true,"include_usage":true}"#)
    );
}

#[test]
fn what_contradicts_the_run_is_refused() {
    let new = || BodyBuilder::new(Api::OpenaiChat, "m", true);
    let stream = new().extra(map(json!({"stream": false}))).expect_err("stream");
    assert_eq!(stream, BodyError::Stream(Source::Extra));
    assert!(new().extra(map(json!({"stream": true}))).is_ok());
    let messages = new().params(map(json!({"messages": []}))).expect_err("messages");
    assert!(messages.to_string().contains("`messages` in endpoint.body"), "{messages}");
    let row = map(json!({"prompt": "x"}));
    assert!(matches!(new().build(&text("x"), Some(&row)), Err(BodyError::Prompt { .. })));
    let options = map(json!({"stream_options": {}}));
    let error = BodyBuilder::new(Api::OpenaiChat, "m", false).params(options);
    assert_eq!(error.expect_err("no stream"), BodyError::StreamOptions(Source::Endpoint));
    let prompt = Prompt::Messages { json: "[]", system: None };
    let unfit = BodyBuilder::new(Api::OpenaiCompletions, "m", true).build(&prompt, None);
    assert!(matches!(unfit, Err(BodyError::Unfit { .. })));
}

#[test]
fn k4_prompt_of_digits_stays_text() {
    let builder = BodyBuilder::new(Api::OpenaiCompletions, "", false);
    assert_eq!(built(&builder, &text("00123"), json!({})), r#"{"prompt":"00123"}"#);
}

#[test]
fn responses_have_names_of_their_own() {
    let builder = BodyBuilder::new(Api::OpenaiResponses, "m", true);
    let system = Prompt::Text { text: "x", system: Some("s") };
    assert_eq!(
        built(&builder, &system, json!({"max_tokens": 7, "temperature": 0, "tools": []})),
        concat!(
            r#"{"model":"m","instructions":"s","input":"x","temperature":0,"#,
            r#""max_output_tokens":7,"stream":true,"tools":[]}"#
        )
    );
    let messages = Prompt::Messages { json: r#"[{"role":"user","content":"x"}]"#, system: None };
    let builder = builder.extra(map(json!({"max_output_tokens": 3, "instructions": "i"})));
    assert_eq!(
        built(&builder.expect("extra"), &messages, json!({"max_tokens": 7})),
        concat!(
            r#"{"model":"m","instructions":"i","input":[{"role":"user","content":"x"}],"#,
            r#""max_output_tokens":3,"stream":true}"#
        )
    );
}

#[test]
fn embeddings_take_a_text_and_have_no_stream() {
    let new = || BodyBuilder::new(Api::OpenaiEmbeddings, "m", true);
    assert_eq!(
        built(&new(), &text("x"), json!({"dimensions": 8})),
        r#"{"model":"m","input":"x","dimensions":8}"#
    );
    for (extra, says) in [
        (json!({"stream": true}), "answers of openai-embeddings are never streamed"),
        (json!({"max_tokens": 5}), "has no output whose length could be limited"),
        (json!({"input": "y"}), "would replace the prompt"),
    ] {
        let error = new().extra(map(extra)).expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(new().extra(map(json!({"stream": false}))).is_ok());
}

#[test]
fn sglang_has_its_parameters_in_an_object_and_under_its_names() {
    let params = map(json!({"temperature": 0, "sampling_params": {"top_k": 1, "min_p": 0.5}}));
    let new = || BodyBuilder::new(Api::SglangGenerate, "", true);
    let builder = new()
        .params(params)
        .and_then(|b| b.extra(map(json!({"return_logprob": true, "top_k": 2, "min_p": null}))))
        .expect("builder");
    assert_eq!(
        built(&builder, &text("x"), json!({"max_tokens": 7, "seed": 1, "temperature": 1})),
        concat!(
            r#"{"text":"x","sampling_params":{"max_new_tokens":7,"sampling_seed":1,"#,
            r#""temperature":1,"top_k":2},"stream":true,"return_logprob":true}"#
        )
    );
    assert_eq!(built(&new(), &text("x"), json!({})), r#"{"text":"x","stream":true}"#);
    // Of several names for one thing the one that is nearest counts, whatever the alphabet says.
    let mut names = json!({"max_tokens": 1, "max_completion_tokens": 2, "max_new_tokens": 3});
    for (most, left_out) in [(3, "max_new_tokens"), (2, "max_completion_tokens"), (1, "max_tokens")]
    {
        let expect = format!("{{\"max_new_tokens\":{most}}}");
        let body = built(&new(), &text("x"), names.clone());
        assert!(body.contains(&expect), "{body}");
        names.as_object_mut().expect("an object").remove(left_out);
    }
    for (extra, says) in [
        (json!({"n": 2}), "answers several samples with a list"),
        (json!({"sampling_params": {"n": 2}}), "answers several samples with a list"),
        (json!({"sampling_params": 3}), "takes an object there"),
        (json!({"stream_options": {}}), "each frame counts its tokens"),
        (json!({"model": "m"}), "names no model"),
        (json!({"input_ids": [1]}), "would replace the prompt"),
    ] {
        let error = new().extra(map(extra)).expect_err(says).to_string();
        assert!(error.contains(says), "{error}");
    }
}
