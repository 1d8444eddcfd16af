//! Files of conversations: what each turn says, and every way in which a file is refused, with its line.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};
use takt_dataset::{ConversationFormat, Conversations, DatasetError, Limits};
use takt_time::Span;

use ConversationFormat::{Agentic, Messages, MtBench, ShareGpt};

fn read(format: ConversationFormat, input: &str) -> Result<Conversations, DatasetError> {
    Conversations::read(input.as_bytes(), "f", format, false, &Limits::default())
}

fn reads(format: ConversationFormat, input: &str) -> Conversations {
    read(format, input).unwrap_or_else(|e| panic!("refused: {e}"))
}

/// A message a line, each with what is given beside conversation, turn and content.
fn rows(lines: &[(&str, Value)]) -> String {
    let mut out = String::new();
    for (place, (role, beside)) in lines.iter().enumerate() {
        let mut row =
            json!({"conversation_id": "c", "turn": place + 1, "role": role, "content": "x"});
        for (key, value) in beside.as_object().expect("an object") {
            row[key] = value.clone();
        }
        writeln!(out, "{row}").expect("a string takes it");
    }
    out
}

/// Expects to be refused at `line` with a message that says `what`.
#[track_caller]
fn refuses(format: ConversationFormat, input: &str, line: u64, what: &str) {
    match read(format, input) {
        Ok(set) => panic!("accepted: {:?}", set.list()),
        Err(error) => {
            let says = error.to_string();
            assert_eq!(error.line, Some(line), "{says}");
            assert!(says.starts_with(&format!("f:{line}: ")) && says.contains(what), "{says}");
            assert!(says.contains(';'), "no remedy: {says}");
        }
    }
}

fn texts(json: &str) -> Vec<Value> {
    serde_json::from_str(&format!("[{json}]")).expect("messages are JSON")
}

fn calls() -> Value {
    json!([{"id": "k1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}])
}

#[test]
fn a_turn_says_what_came_before_it_and_its_answer_comes_after() {
    let file = rows(&[
        (
            "user",
            json!({"content": "list", "system": "S", "tools": [{"type": "function"}], "max_new_tokens": 7}),
        ),
        ("assistant", json!({"content": null, "tool_calls": calls(), "reasoning_content": "why"})),
        (
            "tool",
            json!({"content": null, "delay_seconds": 1.2,
            "tool_results": [{"tool_call_id": "k1", "content": "a"}, {"tool_call_id": "k2", "content": "b"}]}),
        ),
        ("assistant", json!({"content": "two", "intent_codes": ["I001"]})),
        ("user", json!({"content": "more", "temperature": 0.5, "max_completion_tokens": 9})),
    ]);
    let set = reads(Agentic, &file);
    let talk = &set.list()[0];
    assert_eq!((&*talk.id, talk.row, set.turns()), ("c", 1, 3));
    assert_eq!(texts(talk.system()), [json!({"role": "system", "content": "S"})]);
    let turns = talk.turns();
    let numbers: Vec<_> = turns.iter().map(|t| (t.number, t.row, t.is_tool, t.delay)).collect();
    let delay = Some(Span::from_millis(1200));
    assert_eq!(numbers, [(1, 1, false, None), (3, 3, true, delay), (5, 5, false, None)]);

    let call = json!({"role": "assistant", "content": null, "tool_calls": calls(), "reasoning_content": "why"});
    let told = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    let all = [
        json!({"role": "system", "content": "S"}),
        json!({"role": "user", "content": "list"}),
        call.clone(),
        told("k1", "a"),
        told("k2", "b"),
        json!({"role": "assistant", "content": "two"}),
        json!({"role": "user", "content": "more"}),
    ];
    for (turn, upto) in turns.iter().zip([2, 5, 7]) {
        assert_eq!(texts(talk.prompt(turn)), all[..upto]);
    }
    assert_eq!(texts(talk.asked(&turns[1])), all[3..5]);
    assert_eq!(texts(talk.answer(&turns[0])), [call]);
    assert_eq!(turns[1].intents.as_deref(), Some(r#"["I001"]"#));
    assert_eq!(talk.answer(&turns[2]), "");

    // Token limit and tools of the first line hold for those that have none, under names that servers know.
    let limit = |n: usize| turns[n].params.get("max_completion_tokens").and_then(Value::as_u64);
    assert_eq!([limit(0), limit(1), limit(2)], [Some(7), Some(7), Some(9)]);
    assert!(turns.iter().all(|t| t.params.get("tools").is_some()));
    assert_eq!(turns[2].params.get("temperature"), Some(&json!(0.5)));
    assert_eq!(turns[1].params.get("temperature"), None);
}

#[test]
fn a_user_may_speak_right_after_a_tool() {
    let told = json!({"tool_results": [{"tool_call_id": "k1", "content": "a"}]});
    let file = rows(&[
        ("user", json!({})),
        ("assistant", json!({"tool_calls": calls()})),
        ("tool", told),
        ("user", json!({"content": "and?"})),
    ]);
    let set = reads(Agentic, &file);
    let talk = &set.list()[0];
    assert_eq!(talk.turns().len(), 3);
    assert_eq!(texts(talk.prompt(&talk.turns()[2])).len(), 4);
}

#[test]
fn the_system_message_goes_first_whichever_row_has_it() {
    let file = rows(&[
        ("user", json!({"system": ""})),
        ("assistant", json!({})),
        ("user", json!({"system": "late"})),
    ]);
    let set = reads(Agentic, &file);
    let talk = &set.list()[0];
    let system = json!({"role": "system", "content": "late"});
    for turn in talk.turns() {
        assert_eq!(texts(talk.prompt(turn))[0], system);
    }
    assert_eq!(texts(talk.asked(&talk.turns()[0])), [json!({"role": "user", "content": "x"})]);
}

#[test]
fn rows_of_metadata_are_no_messages_and_a_delay_of_nothing_is_none() {
    let file = format!(
        "{}\n{}",
        json!({"_type": "dataset_metadata", "made_by": "x"}),
        rows(&[
            ("user", json!({"delay_seconds": 0})),
            ("assistant", json!({})),
            ("user", json!({"delay_seconds": 0.5}))
        ])
    );
    let set = reads(Agentic, &file);
    let delays: Vec<_> = set.list()[0].turns().iter().map(|turn| turn.delay).collect();
    assert_eq!(delays, [None, Some(Span::from_millis(500))]);
}

#[test]
fn history_takes_no_more_memory_than_its_messages() {
    let mut lines = vec![("user", json!({"content": "q".repeat(1_000)}))];
    for _ in 0..200 {
        lines.push(("assistant", json!({"content": "a".repeat(1_000)})));
        lines.push(("user", json!({"content": "q".repeat(1_000)})));
    }
    let set = reads(Agentic, &rows(&lines));
    let prompts: usize = set.list()[0].turns().iter().map(|t| set.list()[0].prompt(t).len()).sum();
    assert!(prompts > 40_000_000 && set.bytes() < 420_000, "{prompts} {}", set.bytes());
}

#[test]
fn every_fault_of_an_agentic_file_is_refused_with_its_line() {
    let a_user = ("user", json!({}));
    let an_answer = ("assistant", json!({}));
    let with = |role: &'static str, beside: Value| (role, beside);
    let second = |row: (&'static str, Value), what: &str| {
        refuses(Agentic, &rows(&[a_user.clone(), row]), 2, what);
    };
    for missing in ["conversation_id", "turn", "role", "content"] {
        let mut row = json!({"conversation_id": "c", "turn": 1, "role": "user", "content": "x"});
        row.as_object_mut().unwrap().remove(missing);
        refuses(Agentic, &row.to_string(), 1, &format!("no column `{missing}`"));
    }
    for id in [json!(""), json!(" "), json!(7), json!("é"), json!("a\nb"), json!(null)] {
        let beside = json!({"conversation_id": id});
        let says = format!("must be printable ASCII and not empty, not `{id}`");
        refuses(Agentic, &rows(&[with("user", beside)]), 1, &says);
    }
    // Numbers.
    refuses(Agentic, &rows(&[with("user", json!({"turn": 0}))]), 1, "must be 1 here, not 0");
    second(with("assistant", json!({"turn": 3})), "must be 2 here, not 3");
    second(with("assistant", json!({"turn": 1})), "must be 2 here, not 1");
    second(with("assistant", json!({"turn": "two"})), "must be 2 here");
    second(with("assistant", json!({"turn": 2.0})), "must be 2 here");
    // Conversations in pieces.
    let other = json!({"conversation_id": "d", "turn": 1});
    let pieces =
        rows(&[a_user.clone(), with("user", other), with("assistant", json!({"turn": 2}))]);
    refuses(Agentic, &pieces, 3, "conversation `c` goes on here");
    // Who may speak when.
    refuses(Agentic, &rows(std::slice::from_ref(&an_answer)), 1, "an assistant after nothing");
    let told = json!({"tool_results": [{"tool_call_id": "k1", "content": "a"}]});
    refuses(Agentic, &rows(&[with("tool", told.clone())]), 1, "a tool after nothing");
    second(with("user", json!({})), "a user after a user");
    second(with("tool", told.clone()), "a tool after a user");
    second(with("system", json!({})), "not `system`");
    second(with("assistant", json!({"role": 7})), "not a number");
    let third = |row: (&'static str, Value), what: &str| {
        refuses(Agentic, &rows(&[a_user.clone(), an_answer.clone(), row]), 3, what);
    };
    third(with("assistant", json!({})), "an assistant after an assistant");
    third(with("tool", told.clone()), "an answer without tool calls");
    let asks = with("assistant", json!({"content": null, "tool_calls": calls()}));
    let after = |row: (&'static str, Value), what: &str| {
        refuses(Agentic, &rows(&[a_user.clone(), asks.clone(), row]), 3, what);
    };
    after(with("user", json!({})), "a user after an answer with tool calls");
    // Words.
    for content in [json!(""), json!("  "), json!(null), json!([])] {
        let beside = json!({"content": content});
        refuses(Agentic, &rows(&[with("user", beside.clone())]), 1, "a user without content");
        second(with("assistant", beside), "an assistant without content");
    }
    second(with("assistant", json!({"content": null, "tool_calls": []})), "without content");
    refuses(Agentic, &rows(&[with("user", json!({"content": 7}))]), 1, "`content` must hold text");
    // Calls.
    let call = |change: &dyn Fn(&mut Value), what: &str| {
        let mut list = calls();
        change(&mut list[0]);
        second(with("assistant", json!({"tool_calls": list})), what);
    };
    call(&|c| c["id"] = json!(""), "call 1 has no `id`");
    call(&|c| c["type"] = json!("tool"), "`type` of call 1");
    call(&|c| c["function"]["name"] = json!(""), "call 1 names no function");
    call(&|c| c["function"]["arguments"] = json!(7), "`arguments` of call 1");
    second(with("assistant", json!({"tool_calls": "bash"})), "`tool_calls`: it must be a list");
    // Results.
    for (results, what) in [
        (json!(null), "needs a list"),
        (json!("a"), "needs a list"),
        (json!([]), "the list is empty"),
        (json!([{"content": "a"}]), "result 1 has no `tool_call_id`"),
        (
            json!([{"tool_call_id": "k1", "content": "a"}, {"tool_call_id": "k1"}]),
            "result 2 has no `content`",
        ),
    ] {
        after(with("tool", json!({"tool_results": results})), what);
    }
    // The rest.
    for delay in
        [json!("soon"), json!("1"), json!([1]), json!(true), json!(1e300), json!(-1), json!(-0.5)]
    {
        let says = format!("`delay_seconds` must be a number of seconds, 0 or more, not `{delay}`");
        let beside = json!({"delay_seconds": delay});
        refuses(Agentic, &rows(&[with("user", beside.clone())]), 1, &says);
        // It is read of every row, also where no turn begins.
        second(with("assistant", beside), &says);
    }
    refuses(Agentic, "{\"conversation_id\":\"c\",\"turn\":1,\n", 1, "not JSON");
    refuses(Agentic, "\n[1]", 2, "a row must be an object");
    assert!(read(Agentic, "").is_err_and(|e| e.to_string().contains("empty")));
}

#[test]
fn openai_messages_are_a_conversation_each() {
    let row = json!({"id": "a1", "max_tokens": 4, "messages": [
        {"role": "system", "content": "S"}, {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "q1"}, {"role": "user", "content": "q2"},
        {"role": "assistant", "content": null, "tool_calls": calls()},
        {"role": "tool", "tool_call_id": "k", "content": ""}, {"role": "assistant", "content": "done"}]});
    let set = reads(Messages, &row.to_string());
    let talk = &set.list()[0];
    let numbers: Vec<_> = talk.turns().iter().map(|turn| turn.number).collect();
    assert_eq!((&*talk.id, numbers), ("a1", vec![1, 3]));
    assert_eq!(texts(talk.prompt(&talk.turns()[0])).len(), 3, "what nobody asked for is left out");
    assert_eq!((set.unasked(), set.left_out()), (1, 0));
    assert!(talk.turns()[1].is_tool);
    assert_eq!(
        texts(talk.answer(&talk.turns()[1])),
        [json!({"role": "assistant", "content": "done"})]
    );
    assert_eq!(talk.turns()[1].params.get("max_tokens"), Some(&json!(4)));

    let other = row.to_string().replace("a1", "a2");
    let array = format!("[{row},\n{other}]");
    let set =
        Conversations::read(array.as_bytes(), "f", Messages, true, &Limits::default()).unwrap();
    assert_eq!(set.list().len(), 2);
    for (messages, what) in [
        (json!([{"role": "user", "content": " "}]), "message 1 says nothing"),
        (json!([{"role": "judge", "content": "x"}]), "role `judge`"),
        (json!([{"content": "x"}]), "message 1 has no `role`"),
        (json!([{"role": "assistant", "content": null, "tool_calls": []}]), "says nothing"),
        (json!("hi"), "must hold a list"),
    ] {
        refuses(Messages, &json!({"messages": messages}).to_string(), 1, what);
    }
    refuses(Messages, "{\"prompt\": \"x\"}", 1, "no column `messages`");
}

#[test]
fn sharegpt_leaves_out_what_nobody_asked_for() {
    let file = json!([
        {"id": "s1", "conversations": [{"from": "gpt", "value": "hi"}, {"from": "human", "value": "q"},
            {"from": "gpt", "value": "a"}, {"from": "human", "value": "r"}]},
        {"id": "s2", "conversations": [{"from": "gpt", "value": "alone"}]},
        {"conversations": [{"from": "system", "value": "S"}, {"from": "user", "value": "q"}]},
    ]);
    let set = reads(ShareGpt, &file.to_string());
    let ids: Vec<_> = set.list().iter().map(|talk| &*talk.id).collect();
    assert_eq!(ids, ["s1", "line-1"]);
    assert_eq!((set.unasked(), set.left_out()), (1, 1));
    let talk = &set.list()[0];
    let expect = [("user", "q"), ("assistant", "a"), ("user", "r")];
    let expect = expect.map(|(role, content)| json!({"role": role, "content": content}));
    assert_eq!(texts(talk.prompt(&talk.turns()[1])), expect);
    assert!(!set.list()[1].system().is_empty());
    let nobody = json!([{"conversations": [{"from": "cat", "value": "x"}]}]);
    refuses(ShareGpt, &nobody.to_string(), 1, "`cat`, which is nobody");
    refuses(
        ShareGpt,
        "[{\"conversations\": [{\"from\": \"human\"}]}]",
        1,
        "piece 1 has no `value`",
    );
}

#[test]
fn results_of_tools_are_known_whatever_else_their_turn_says() {
    let user = json!({"role": "user", "content": "q"});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": calls()});
    let tool = json!({"role": "tool", "tool_call_id": "k1", "content": "r"});
    let function = json!({"role": "function", "name": "f", "content": "r"});
    for (turn, is_tool, has_results) in [
        (vec![&user], false, false),
        (vec![&tool], true, true),
        (vec![&function], true, true),
        (vec![&tool, &user], false, true),
        (vec![&user, &tool], false, true),
        (vec![&function, &user], false, true),
        (vec![&tool, &function], true, true),
    ] {
        let messages: Vec<_> = [&user, &asks].into_iter().chain(turn).collect();
        let set = reads(Messages, &json!({ "messages": messages }).to_string());
        let last = &set.list()[0].turns()[1];
        assert_eq!((last.is_tool, last.has_results), (is_tool, has_results), "{messages:?}");
    }
}

#[test]
fn a_turn_is_found_by_its_index_over_all_conversations() {
    let lengths = [1, 3, 2, 1];
    let row = |turns: usize| json!({"turns": vec!["q"; turns]}).to_string();
    let set = reads(MtBench, &lengths.map(row).join("\n"));
    let all = set.list().iter().flat_map(|talk| talk.turns().iter().map(move |turn| (talk, turn)));
    for (index, expect) in all.enumerate() {
        let (talk, turn) = set.turn(index).expect("as many as there are");
        assert!(std::ptr::eq(talk, expect.0) && std::ptr::eq(turn, expect.1), "{index}");
    }
    assert_eq!((set.turns(), set.turn(7), set.turn(usize::MAX)), (7, None, None));
}

#[test]
fn people_say_something_in_sharegpt_and_models_may_say_nothing() {
    let file = |pieces: &[(&str, &str)]| {
        let piece = |(from, value): &(&str, &str)| json!({"from": from, "value": value});
        json!([{"conversations": pieces.iter().map(piece).collect::<Vec<_>>()}]).to_string()
    };
    for blank in ["", " ", "\n\t"] {
        for (pieces, what) in [
            ([("human", blank), ("gpt", "a")], "piece 1 says nothing"),
            ([("system", blank), ("user", "q")], "piece 1 says nothing"),
            ([("human", "q"), ("user", blank)], "piece 2 says nothing"),
            ([("human", "q"), ("system", blank)], "piece 2 says nothing"),
        ] {
            refuses(ShareGpt, &file(&pieces), 1, what);
        }
        let set = reads(ShareGpt, &file(&[("human", "q"), ("gpt", blank), ("human", "r")]));
        let said = texts(set.list()[0].answer(&set.list()[0].turns()[0]));
        assert_eq!(said, [json!({"role": "assistant", "content": blank})]);
        assert_eq!((set.silent(), set.unasked()), (1, 0));
    }
}

#[test]
fn mt_bench_has_turns_and_no_answers() {
    let file = "{\"question_id\": 81, \"category\": \"w\", \"turns\": [\"one\", \"two\"]}\n";
    let set = reads(MtBench, file);
    let talk = &set.list()[0];
    assert_eq!((&*talk.id, talk.turns().len()), ("81", 2));
    assert_eq!(talk.turns()[1].number, 3);
    assert_eq!(talk.answer(&talk.turns()[0]), "");
    assert_eq!(texts(talk.asked(&talk.turns()[1])), [json!({"role": "user", "content": "two"})]);
    refuses(MtBench, "{\"turns\": []}", 1, "`turns` is empty");
    refuses(MtBench, "{\"turns\": [\"a\", \" \"]}", 1, "turn 2 of `turns` says nothing");
}

/// A row of each format that is right.
fn good(format: ConversationFormat) -> Value {
    match format {
        Agentic => json!({"conversation_id": "c", "turn": 1, "role": "user", "content": "x"}),
        Messages => json!({"id": "c", "messages": [{"role": "user", "content": "x"}]}),
        ShareGpt => json!({"id": "c", "conversations": [{"from": "human", "value": "x"}]}),
        MtBench => json!({"question_id": 1, "turns": ["x"]}),
    }
}

/// A file of these rows, each on a line of its own.
fn file_of(format: ConversationFormat, rows: &[Value]) -> String {
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    match format {
        ShareGpt => format!("[\n{}\n]", rows.join(",\n")),
        _ => rows.join("\n"),
    }
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_in_every_format_with_its_place_and_itself() {
    let everywhere = [
        ("/max_tokens", json!("16")),
        ("/temperature", json!("hot")),
        ("/tools", json!("x")),
        ("/tools", json!({"type": "function"})),
        ("/logit_bias", json!([1])),
        ("/stop_token_ids", json!(2)),
        ("/logprobs", json!("yes")),
        ("/response_format", json!("json")),
        ("/chat_template_kwargs", json!(true)),
    ];
    let of_format = |format| -> Vec<(&str, Value)> {
        match format {
            Agentic => vec![
                ("/conversation_id", json!(7)),
                ("/turn", json!("1")),
                ("/role", json!(["user"])),
                ("/content", json!(3)),
                ("/content", json!(["x"])),
                ("/system", json!(7)),
                ("/name", json!(true)),
            ],
            Messages => vec![
                ("/id", json!({"a": 1})),
                ("/id", json!(1.5)),
                ("/messages", json!("hi")),
                ("/messages/0", json!("hi")),
                ("/messages/0/role", json!(7)),
                ("/messages/0/content", json!(3)),
                ("/messages/0/content", json!([7])),
                ("/messages/0/name", json!(1)),
                ("/messages/0/tool_calls", json!("bash")),
                ("/messages/0/tool_call_id", json!(1)),
                ("/messages/0/reasoning_content", json!([])),
            ],
            ShareGpt => vec![
                ("/id", json!([])),
                ("/conversations", json!({})),
                ("/conversations/0", json!(["human", "x"])),
                ("/conversations/0/from", json!(1)),
                ("/conversations/0/value", json!(1)),
            ],
            MtBench => vec![
                ("/question_id", json!(true)),
                ("/turns", json!("x")),
                ("/turns/0", json!(1)),
                ("/turns/0", json!({"text": "x"})),
            ],
        }
    };
    for format in ConversationFormat::ALL {
        let sampled = matches!(format, Agentic | Messages);
        let common = everywhere.iter().filter(|_| sampled).cloned();
        for (path, wrong) in common.chain(of_format(format)) {
            // Before it a row that is right, in a file that is right without the other.
            let mut before = good(format);
            for key in ["conversation_id", "id", "question_id"] {
                if let Some(name) = before.get_mut(key) {
                    *name = json!("before");
                }
            }
            let mut row = good(format);
            let (parent, key) = path.rsplit_once('/').expect("a path has a slash");
            match row.pointer_mut(parent).expect("the place is there") {
                Value::Array(list) => list[key.parse::<usize>().expect("a number")] = wrong.clone(),
                place => place[key] = wrong.clone(),
            }
            let file = file_of(format, &[before.clone(), row]);
            let error = read(format, &file).map(|set| format!("{:?}", set.list())).unwrap_err();
            let says = error.to_string();
            let line = if format == ShareGpt { 3 } else { 2 };
            assert_eq!(error.line, Some(line), "{format:?} {path}: {says}");
            // The byte is where the value begins.
            let text = file.lines().nth(line as usize - 1).expect("the line is there");
            let at = error.column.unwrap_or_else(|| panic!("{format:?} {path}: no byte: {says}"));
            let rest = &text[at.get() as usize - 1..];
            let inner = wrong.as_array().and_then(|list| list.first());
            let there = [Some(&wrong), inner];
            assert!(
                there.iter().flatten().any(|value| rest.starts_with(&value.to_string())),
                "{format:?} {path}: {says}: at {rest}"
            );
            assert!(says.contains("; "), "no remedy: {says}");
            assert!(read(format, &file_of(format, &[before, good(format)])).is_ok());
        }
    }
}

#[test]
fn the_place_is_that_of_the_value_in_rows_of_several_lines() {
    let row = "[{\"id\": 1,\n  \"messages\": [\n    {\"role\": \"user\", \"content\": 7}]}]";
    let error = Conversations::read(row.as_bytes(), "f", Messages, true, &Limits::default());
    let says = error.unwrap_err().to_string();
    let expect =
        "f:3: at byte 33: column `content of message 1` must hold text, not a number (`7`); ";
    assert!(says.starts_with(expect), "{says}");
}

#[test]
fn one_name_for_two_conversations_is_refused_with_both_lines_in_every_format() {
    for format in ConversationFormat::ALL {
        let mut other = good(format);
        for key in ["conversation_id", "id", "question_id"] {
            if let Some(name) = other.get_mut(key) {
                *name = json!("other");
            }
        }
        let twice = file_of(format, &[good(format), other, good(format)]);
        let (first, second) = if format == ShareGpt { (2, 4) } else { (1, 3) };
        let says = match format {
            Agentic => "goes on here after others began".to_owned(),
            _ => format!("stands on line {first}, too"),
        };
        refuses(format, &twice, second, &says);
    }
    // A number and the text of it are one name, and so are a line's name and a name like it.
    let rows =
        "{\"question_id\": 8, \"turns\": [\"x\"]}\n{\"question_id\": \"8\", \"turns\": [\"x\"]}";
    refuses(MtBench, rows, 2, "conversation `8` stands on line 1, too");
    let rows = "{\"id\": \"line-2\", \"turns\": [\"x\"]}\n{\"turns\": [\"x\"]}";
    refuses(MtBench, rows, 2, "conversation `line-2` stands on line 1, too");
}

#[test]
fn conversations_without_names_are_told_apart_on_one_line() {
    let row = json!({"conversations": [{"from": "human", "value": "x"}]});
    let set = reads(ShareGpt, &json!([row, row, row]).to_string());
    let ids: Vec<_> = set.list().iter().map(|talk| &*talk.id).collect();
    assert_eq!(ids, ["line-1", "line-1.2", "line-1.3"]);
}

/// Runs only where the folder of shared data is named.
#[test]
fn the_real_mt_bench_has_eighty_conversations_of_two_turns() {
    let Some(folder) = std::env::var_os("TAKT_SHARED_DATA") else {
        eprintln!(
            "skipped: TAKT_SHARED_DATA does not name the folder that has mt_bench_questions.jsonl"
        );
        return;
    };
    let file = std::path::Path::new(&folder).join("mt_bench_questions.jsonl");
    let set = reads(MtBench, &std::fs::read_to_string(file).expect("it is there"));
    assert_eq!((set.list().len(), set.turns()), (80, 160));
}

proptest! {
    /// Any lines: read or refused, never a panic, and what is read has turns whose prompts are JSON.
    #[test]
    fn any_rows_are_read_or_refused(lines in prop::collection::vec(any_row(), 0..8)) {
        let file: String = lines.iter().map(|row| format!("{row}\n")).collect();
        if let Ok(set) = read(Agentic, &file) {
            for talk in set.list() {
                prop_assert!(!talk.turns().is_empty());
                for turn in talk.turns() {
                    let said = texts(talk.prompt(turn));
                    prop_assert!(said.len() as u64 >= u64::from(turn.number));
                    prop_assert!(talk.prompt(turn).ends_with(talk.asked(turn)));
                }
            }
        }
    }
}

fn any_row() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(vec!["user", "assistant", "tool", "system"]);
    let id = prop::sample::select(vec!["c", "d"]);
    let content = prop_oneof![Just(json!(null)), Just(json!("x")), Just(json!([{"type": "text"}]))];
    let calls = prop_oneof![Just(json!(null)), Just(calls())];
    let results =
        prop_oneof![Just(json!(null)), Just(json!([{"tool_call_id": "k1", "content": "a"}])),];
    (role, id, 1..4u32, content, calls, results).prop_map(
        |(role, id, turn, content, calls, results)| {
            json!({"conversation_id": id, "turn": turn, "role": role, "content": content,
            "tool_calls": calls, "tool_results": results})
        },
    )
}
