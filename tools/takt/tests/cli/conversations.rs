//! Conversations by flags: every format is sent turn by turn, and who wants first turns alone is told what is
//! left out.

use serde_json::{Value, json};

use crate::bench::{Bench, Mock};

/// A file of two conversations with five turns, in each format.
fn files() -> [(&'static str, &'static str, String); 4] {
    let talk = |from: &str, to: &str, role: &str, text: &str, turns: usize| {
        let one = |who: &str| json!({role: who, text: "x"});
        let pair = (0..turns).flat_map(|_| [one(from), one(to)]);
        Value::from_iter(pair)
    };
    let mut agentic = String::new();
    for (name, turns) in [("a", 2), ("b", 3)] {
        for turn in 1..=2 * turns {
            let role = if turn % 2 == 1 { "user" } else { "assistant" };
            let row = json!({"conversation_id": name, "turn": turn, "role": role, "content": "x"});
            agentic.push_str(&format!("{row}\n"));
        }
    }
    let messages = |turns| talk("user", "assistant", "role", "content", turns);
    let pieces = |turns| talk("human", "gpt", "from", "value", turns);
    let rows = |rows: [Value; 2]| format!("{}\n{}\n", rows[0], rows[1]);
    let sharegpt =
        [2, 3].map(|turns| json!({"id": turns.to_string(), "conversations": pieces(turns)}));
    let user = |turns| vec!["x"; turns];
    [
        ("agentic", "a.jsonl", agentic),
        ("messages", "m.jsonl", rows([2, 3].map(|n| json!({"id": n, "messages": messages(n)})))),
        ("sharegpt", "s.json", json!(sharegpt).to_string()),
        ("mt-bench", "t.jsonl", rows([2, 3].map(|n| json!({"question_id": n, "turns": user(n)})))),
    ]
}

#[test]
fn a_dataset_of_conversations_is_sent_as_conversations_whatever_its_format_and_the_load_flag() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    for (format, name, text) in files() {
        bench.file(name, &text);
        let by_flag = ["--dataset", name, "--dataset-format", format];
        let file = format!("dataset: {{path: {name}, format: {format}}}\n");
        bench.file("dataset.yaml", &file);
        for (dataset, load) in [
            (&by_flag[..], ["--concurrency", "2"]),
            (&by_flag[..], ["--rate", "200"]),
            (&["dataset.yaml"][..], ["--concurrency", "2"]),
        ] {
            let _ = std::fs::remove_dir_all(bench.path("out"));
            let done = bench.run(&mock.url(), &[dataset, &load].concat()).exits(0);
            let phase = &bench.result()["phases"][0];
            assert_eq!(phase["succeeded"], 5, "{format} {load:?}: {}", done.stderr);
            assert_eq!(phase["conversations"]["completed"], 2, "{format} {load:?}: {phase}");
        }
    }
}

#[test]
fn results_of_tools_do_not_follow_a_live_answer_whatever_follows_them() {
    let bench = Bench::new();
    let call = json!({"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    for role in ["tool", "function"] {
        let messages = json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": role, "tool_call_id": "k", "name": "f", "content": "r"},
            {"role": "user", "content": "and?"},
        ]);
        bench.file("m.jsonl", &json!({ "messages": messages }).to_string());
        let dataset = ["--dataset", "m.jsonl", "--dataset-format", "messages"];
        let live = ["--concurrency", "1", "--set", "phases.performance.load.history=live"];
        let done = bench.run("http://127.0.0.1:9", &[&dataset[..], &live].concat()).exits(2);
        done.says("m.jsonl:1: results of tools cannot follow what the model says");
    }
}

#[test]
fn first_turns_alone_are_sent_when_that_is_asked_for_and_the_run_says_what_it_leaves_out() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    for (format, name, text) in
        files().into_iter().filter(|(f, ..)| ["sharegpt", "mt-bench"].contains(f))
    {
        bench.file(name, &text);
        let _ = std::fs::remove_dir_all(bench.path("out"));
        let dataset = ["--dataset", name, "--dataset-format", format, "--rate", "200"];
        let set = ["--set", "phases.performance.load.pattern=poisson"];
        let done = bench.run(&mock.url(), &[&dataset[..], &set].concat()).exits(0);
        done.says("3 turns after the first of their conversation are not sent");
        assert_eq!(bench.result()["phases"][0]["succeeded"], 2);
    }
}
