//! `tokenizer: PATH`: counts beside the server's, in their place, and in a report made again.

use serde_json::{Value, json};

use crate::bench::{Bench, Mock};

/// A byte-level BPE of three merges, as a tokenizer.json: "the", " t"; every other byte is a token.
fn tokenizer_json() -> String {
    // GPT-2's table: printable bytes stand for themselves, the others for characters from 256 on.
    let printable =
        |byte: &u32| (33..=126).contains(byte) || (161..=172).contains(byte) || *byte >= 174;
    let mut others = 256..;
    let letter = |byte: u32| {
        let code = if printable(&byte) { byte } else { others.next().unwrap() };
        char::from_u32(code).unwrap().to_string()
    };
    let words = (0..256u32).map(letter).chain(["th", "the", "\u{120}t"].map(str::to_owned));
    let vocab: serde_json::Map<String, Value> = words.zip((0u32..).map(Value::from)).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocab, "merges": ["t h", "th e", "\u{120} t"],
        },
    })
    .to_string()
}

/// the | _t i m e | _t o: seven, of three words, each a token to the server.
const ANSWER: [&str; 2] = ["--answer", "the time to"];

fn tokens(bench: &Bench, mock: &[&str], form: &str) -> (Value, Vec<String>) {
    let mock =
        Mock::start(bench, &[&["--ttft", "2ms", "--tpot", "1ms"], &ANSWER[..], mock].concat());
    bench.file("tokenizer.json", &tokenizer_json());
    let args =
        ["--concurrency", "4", "--requests", "100", form, "--set", "tokenizer=tokenizer.json"];
    bench.run(&mock.url(), &args).exits(0);
    let result = bench.result();
    let reasons = result["verdict"]["reasons"].as_array().unwrap();
    let names = reasons.iter().map(|reason| reason["name"].as_str().unwrap().to_owned()).collect();
    (result["phases"][0]["tokens"].clone(), names)
}

#[test]
fn t4_counts_that_differ_from_usage_are_in_the_verdict_and_in_a_report_made_again() {
    for form in ["--stream", "--no-stream"] {
        let bench = Bench::new();
        let (tokens, reasons) = tokens(&bench, &[], form);
        assert_eq!((&tokens["source"], &tokens["output_total"]), (&json!("usage"), &json!(300)));
        let expect = json!({"requests": 100, "uncounted": 0, "output_total": 700, "compared": 100,
            "stated_total": 300, "disagreeing": 100});
        assert_eq!(tokens["tokenizer"], expect, "{form}");
        assert!(reasons.contains(&"tokenizer".to_owned()), "{reasons:?}");
        let again = bench.takt(&["report", "out", "--format", "json"]).exits(0).stdout;
        let again: Value = serde_json::from_str(&again).unwrap();
        assert_eq!(again["phases"], bench.result()["phases"]);
    }
}

#[test]
fn where_the_server_does_not_count_the_tokenizer_does() {
    let bench = Bench::new();
    let partial = ["--mode", "hostile", "--fault", "usage-partial"];
    let (tokens, reasons) = tokens(&bench, &partial, "--no-stream");
    assert_eq!((&tokens["source"], &tokens["output_total"]), (&json!("tokenizer"), &json!(700)));
    assert!(!reasons.contains(&"tokenizer".to_owned()), "{reasons:?}");
}

#[test]
fn a_tokenizer_that_cannot_be_had_is_refused_before_anything_is_sent() {
    let bench = Bench::new();
    bench.file("broken.json", "{}");
    for (set, says) in [
        ("tokenizer=nowhere.json", "nowhere.json"),
        ("tokenizer=broken.json", "cannot be read as a tokenizer.json"),
    ] {
        let args = ["--concurrency", "1", "--requests", "1", "--set", set];
        bench.run("http://127.0.0.1:9", &args).exits(2).says(says);
    }
    bench.file("tokenizer.json", &tokenizer_json());
    let off = [
        "--set",
        "tokenizer=tokenizer.json",
        "--set",
        "journal=off",
        "--concurrency",
        "1",
        "--requests",
        "1",
    ];
    bench.run("http://127.0.0.1:9", &off).exits(2).says("keeps its answers in the journal");
}

#[test]
fn a_report_without_the_tokenizer_says_so_and_has_the_other_figures() {
    let bench = Bench::new();
    tokens(&bench, &[], "--stream");
    std::fs::remove_file(bench.path("tokenizer.json")).unwrap();
    let done =
        bench.takt(&["report", "out", "--format", "json"]).exits(0).says("tokens are not counted");
    let again: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(again["phases"][0]["tokens"]["output_total"], 300);
    assert_eq!(again["phases"][0]["tokens"]["tokenizer"], Value::Null);
}
