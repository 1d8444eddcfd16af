//! Salted conversations through the command: phases with the same salts, and prompts that events cannot show.

use serde_json::Value;

use crate::bench::{Bench, Mock};

/// Two phases over the same conversation, salted as told.
fn phases(server: &str, salts: [bool; 2]) -> String {
    let phase = |name: &str, salt: bool| {
        format!(
            "{{name: {name}, load: {{pattern: agentic, target_concurrency: 1, enable_salt: {salt}}}}}"
        )
    };
    format!(
        "endpoint: {{url: '{server}', model: m}}\n\
         dataset: {{path: t.jsonl, format: messages}}\nphases: [{}, {}]\n",
        phase("one", salts[0]),
        phase("two", salts[1])
    )
}

const TALK: &str =
    r#"{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "q"}]}"#;

#[test]
fn phases_that_send_the_same_salts_are_named_and_salted_prompts_are_not_shown() {
    for (salts, remark, shown) in [
        ([true, true], true, [false, false]),
        ([true, false], false, [false, true]),
        ([false, false], false, [true, true]),
    ] {
        let bench = Bench::new();
        let mock = Mock::quick(&bench);
        bench.file("t.jsonl", TALK);
        bench.file("run.yaml", &phases(&mock.url(), salts));
        let done = bench.takt(&["run", "run.yaml", "--out", "out"]).exits(0);
        let says = "phase `two`: its salts are those of `one`";
        assert_eq!(done.stderr.contains(says), remark, "{salts:?}: {}", done.stderr);
        let done = bench.takt(&["events", "out", "--with-prompts", "--type", "sample.issued"]);
        let prompts = done.exits(0).stdout.lines().map(has_prompt).collect::<Vec<_>>();
        assert_eq!(prompts, shown, "{salts:?}");
    }
}

fn has_prompt(event: &str) -> bool {
    let event: Value = serde_json::from_str(event).unwrap();
    event["data"].as_array().unwrap()[1..].iter().any(|part| !part.is_null())
}
