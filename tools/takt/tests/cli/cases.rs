//! Configuration cases that only show in what a server gets: prompts, bodies, objectives.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::bench::{Bench, answer, serve};

/// A server of whole chat answers, and the bodies that it got.
fn listener() -> (String, Arc<Mutex<Vec<Value>>>) {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let keep = seen.clone();
    let url = serve(move |request| {
        let body = request.split("\r\n\r\n").nth(1).unwrap();
        keep.lock().unwrap().push(serde_json::from_str(body).unwrap());
        let message = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"x\"},\
                       \"finish_reason\":\"stop\"}]}";
        answer("200 OK", "Content-Type: application/json\r\n", message)
    });
    (url, seen)
}

/// The prompts of a run with these arguments, in the order in which they came.
fn prompts(bench: &Bench, args: &[&str]) -> Vec<Value> {
    let (url, seen) = listener();
    let _ = std::fs::remove_dir_all(bench.path("out"));
    let all = [&["--no-stream", "--concurrency", "1"], args].concat();
    bench.run(&url, &all).exits(0);
    let seen = seen.lock().unwrap();
    seen.iter().map(|body| body["messages"][0]["content"].clone()).collect()
}

#[test]
fn k4_digits_with_a_mark_and_crlf_go_out_as_the_text_they_are() {
    let bench = Bench::new();
    bench.file("q.csv", "\u{feff}prompt,answer\r\n00123,1\r\n7,2\r\n");
    let sent = prompts(&bench, &["--dataset", "q.csv", "--order", "sequential"]);
    assert_eq!(sent, ["00123", "7"]);
}

#[test]
fn k5_made_up_prompts_all_differ_from_their_first_word_and_come_from_the_seed() {
    let bench = Bench::new();
    let sent = |seed: &str| prompts(&bench, &["--requests", "30", "--seed", seed]);
    let (one, again, other) = (sent("1"), sent("1"), sent("2"));
    let text = |prompt: &Value| prompt.as_str().unwrap().to_owned();
    let firsts: BTreeSet<_> =
        one.iter().map(|p| text(p).split(' ').take(3).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(firsts.len(), 30, "no common beginning: {firsts:?}");
    assert_eq!(one, again);
    assert!(one.iter().all(|prompt| !other.contains(prompt)));
}

#[test]
fn k6_rows_are_used_evenly_whether_there_are_more_or_fewer_than_requests() {
    let bench = Bench::new();
    bench.file("q.txt", "a\nb\nc\n");
    for (args, counts) in [
        (&[][..], vec![1, 1, 1]),
        (&["--requests", "2"], vec![1, 1]),
        (&["--requests", "7"], vec![2, 2, 3]),
    ] {
        let sent = prompts(&bench, &[&["--dataset", "q.txt"], args].concat());
        let times = |row: &str| sent.iter().filter(|prompt| *prompt == row).count();
        let mut times: Vec<_> = ["a", "b", "c"].map(times).into_iter().filter(|n| *n > 0).collect();
        times.sort_unstable();
        assert_eq!(times, counts, "{args:?}: {sent:?}");
    }
}

#[test]
fn k6_an_empty_dataset_is_an_error_before_anything_is_sent() {
    let bench = Bench::new();
    let (url, seen) = listener();
    for (file, text) in [("e.txt", "\n"), ("e.csv", "prompt\n"), ("e.jsonl", ""), ("e.json", "[]")]
    {
        bench.file(file, text);
        bench.run(&url, &["--concurrency", "1", "--dataset", file]).exits(2).says(file);
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[test]
fn prompts_of_every_source_are_found_again_as_they_were_sent_whatever_was_hidden() {
    let bench = Bench::new();
    bench.file(
        "q.jsonl",
        "{\"prompt\": \"Who?\"}\n{\"prompt\": \"What?\\n\"}\n{\"prompt\": \"\u{e9}\"}\n",
    );
    let row = |n: u64| {
        let (ms, input) = (n * 1_000, 5 + n);
        format!(
            "{{\"timestamp\": {ms}, \"input_length\": {input}, \"output_length\": 2, \"hash_ids\": [{n}]}}\n"
        )
    };
    bench.file("calls.jsonl", &(0..4).map(row).collect::<String>());
    let recording = ["--dataset", "calls.jsonl", "--dataset-format", "mooncake"];
    for (source, requests) in [(&[][..], 5), (&["--dataset", "q.jsonl"], 3), (&recording, 4)] {
        let (url, seen) = listener();
        let _ = std::fs::remove_dir_all(bench.path("out"));
        let (url, count) = (format!("{url}?key=sk-0123456789"), requests.to_string());
        let secrets =
            ["--extra-body", "{\"api_key\": \"sk-9876543210\"}", "--header", "X-Api-Key: sk-1"];
        let load = ["--no-stream", "--concurrency", "1", "--requests", &count, "--seed", "7"];
        bench.run(&url, &[&load[..], &secrets, source].concat()).exits(0);
        let seen = seen.lock().unwrap();
        let sent: Vec<_> = seen.iter().map(|body| &body["messages"][0]["content"]).collect();
        let args = ["events", "out", "--with-prompts", "--type", "sample.issued"];
        let lines = bench.takt(&args).exits(0).stdout;
        let events: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let found: Vec<_> = events.iter().map(|event| &event["data"][1]).collect();
        assert_eq!((found, sent.len()), (sent.clone(), requests), "{source:?}");
        assert!(sent.iter().all(|prompt| prompt.is_string()));
    }
}
