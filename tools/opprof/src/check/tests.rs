use std::io::{BufReader, Read as _};

use flate2::bufread::GzDecoder;

use super::*;

const REAL: &[u8] = include_bytes!("../../tests/fixtures/vllm_cpu_310_steps.jsonl.gz");

/// Step 0 of the real records: one piece of 128 tokens of a prompt.
fn real() -> String {
    let mut text = String::new();
    GzDecoder::new(REAL).read_to_string(&mut text).unwrap();
    text
}

/// The first `n` real records.
fn steps(n: usize) -> String {
    real().split_inclusive('\n').take(n).collect()
}

fn check(text: &str) -> FileReport {
    check_file(text.as_bytes(), None).unwrap()
}

/// The findings after `from` became `to` at its first place in a file of three records.
#[track_caller]
fn broken(from: &str, to: &str) -> Vec<String> {
    let text = steps(3);
    assert!(text.contains(from), "{from} is not there");
    let report = check(&text.replacen(from, to, 1));
    assert_eq!(report.failed, report.findings.len() as u64);
    report.findings.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn breaks(from: &str, to: &str, says: &[&str]) {
    assert_eq!(broken(from, to), says);
}

#[test]
fn the_real_steps_pass() {
    let report = check(&real());
    assert_eq!((report.findings.clone(), report.records), (vec![], 310));
    assert_eq!((report.ending, report.dropped), (Ending::Footer, 0));
    assert_eq!((report.executed, report.with_graph), (309, 309));
    let (first, last) = report.wall_ns.unwrap();
    assert_eq!((first, last), (1_795_983_440_909_921_570, 1_795_983_441_818_349_947));
    assert!(report.stream.ended && report.stream.records == 310);
}

#[test]
fn each_rule_within_a_record_has_a_file_that_breaks_it() {
    breaks(
        "\"schema\":1",
        "\"schema\":2",
        &["line 1: schema: 2, expected 1 (the version this program reads)"],
    );
    breaks(
        "\"prefill_tokens\":128",
        "\"prefill_tokens\":127",
        &[
            "line 1: cudagraph.unpadded_tokens: 128, expected 127 = prefill_tokens 127 + decode_tokens 0",
            "line 1: chunked_prefill.tokens: 128, expected 127 (prefill_tokens)",
        ],
    );
    breaks(
        "\"dropped_records_before\":0",
        "\"dropped_records_before\":0,\"scheduled_tokens\":9",
        &["line 1: scheduled_tokens: 9, expected 128 = prefill_tokens 128 + decode_tokens 0"],
    );
    breaks(
        "\"context_length_hist\":[1,",
        "\"context_length_hist\":[2,",
        &["line 1: context_length_hist: 2, expected 1 (sum of bins: scheduled_requests)"],
    );
    breaks(
        "\"chunk_size_hist\":[0,0,0,1,",
        "\"chunk_size_hist\":[0,0,0,0,",
        &["line 1: chunked_prefill.chunk_size_hist: 0, expected 1 (sum of bins: prefill_requests)"],
    );
    breaks(
        "\"first\":1",
        "\"first\":0",
        &[
            "line 1: chunked_prefill: 0, expected 1 (first + middle + final + unsplit: prefill_requests)",
        ],
    );
    breaks(
        "\"decode_batch_size\":0",
        "\"decode_batch_size\":3",
        &["line 1: scheduled_requests: 1, expected 4 (decode_batch_size + prefill_requests)"],
    );
    breaks(
        "\"used_blocks\":1",
        "\"used_blocks\":2",
        &["line 1: kv.used_blocks: 2, expected 1 (total_blocks - free_blocks)"],
    );
    breaks(
        "\"free_blocks\":18",
        "\"free_blocks\":20",
        &["line 1: kv.free_blocks: 20, expected at most total_blocks = 19"],
    );
    breaks(
        "\"usage\":0.05263157894736842",
        "\"usage\":1.05",
        &["line 1: kv.usage: 1.05, expected within 0 and 1"],
    );
    breaks(
        "\"waiting\":0",
        "\"waiting\":-1",
        &[
            "line 1: queues.waiting: -1, expected a whole number, not negative",
            "line 2: step_index: 1, expected 0 (after the start, where the files before are missing, \
         0 dropped)",
        ],
    );
    breaks(
        "\"bucket_tokens\":128",
        "\"bucket_tokens\":64",
        &["line 1: cudagraph.bucket_tokens: 64, expected at least unpadded_tokens = 128"],
    );
    breaks(
        "\"padding_tokens\":0",
        "\"padding_tokens\":1",
        &["line 1: cudagraph.padding_tokens: 1, expected 0 (bucket_tokens - unpadded_tokens)"],
    );
    breaks(
        "\"hit\":false",
        "\"hit\":true",
        &["line 1: cudagraph.hit: true, expected false, since runtime_mode is NONE"],
    );
    breaks(
        "\"runtime_mode\":\"NONE\"",
        "\"runtime_mode\":\"FULL\"",
        &["line 1: cudagraph.hit: false, expected true, since runtime_mode is FULL"],
    );
    breaks(
        "\"complete_mono_ns\":1233201950339",
        "\"complete_mono_ns\":1233194809479",
        &[
            "line 1: complete_mono_ns: 1233194809479, expected at least submit_mono_ns = 1233194809480",
        ],
    );
    breaks(
        "\"hits\":0",
        "\"hits\":663",
        &["line 1: prefix.local.hits: 663, expected at most queries = 662"],
    );
    breaks(
        "\"preempted_hits\":0",
        "\"preempted_hits\":1",
        &["line 1: prefix.local.preempted_hits: 1, expected at most preempted_queries = 0"],
    );
    let external = "\"external\":{\"requests\":1,\"queries\":5,\"hits\":6,\"preempted_requests\":0,\
                    \"preempted_queries\":0,\"preempted_hits\":0}";
    breaks(
        "\"external\":null",
        external,
        &["line 1: prefix.external.hits: 6, expected at most queries = 5"],
    );
    let resumed = "\"dropped_records_before\":0,\"resumed_requests\":2,\"resumed_tokens\":129";
    breaks(
        "\"dropped_records_before\":0",
        resumed,
        &[
            "line 1: resumed_tokens: 129, expected at most the step's tokens, 128",
            "line 1: resumed_requests: 2, expected at most 1 requests",
        ],
    );
    breaks(
        "\"moe_expert_load\":null",
        "\"moe_expert_load\":[]",
        &[
            "line 1: moe_expert_load: [], expected null",
            "line 2: step_index: 1, expected 0 (after the start, where the files before are missing, \
         0 dropped)",
        ],
    );
}

#[test]
fn each_rule_between_records_has_a_file_that_breaks_it() {
    breaks(
        "\"step_index\":1,",
        "\"step_index\":5,",
        &[
            "line 2: step_index: 5, expected 1 (after step 0, 0 dropped)",
            "line 3: step_index: 2, expected 6 (after step 5, 0 dropped)",
        ],
    );
    breaks(
        "\"submit_mono_ns\":1233202259480",
        "\"submit_mono_ns\":1233194809479",
        &[
            "line 2: submit_mono_ns: 1233194809479, expected at least 1233194809480, that of the step \
         before",
        ],
    );
    breaks(
        "\"engine_id\":\"dp0-pid13833\"",
        "\"engine_id\":\"dp1-pid1\"",
        &[
            "line 2: engine_id: dp0-pid13833, expected dp1-pid1, as before: one stream, one scheduler",
            "line 3: engine_id: dp0-pid13833, expected dp1-pid1, as before: one stream, one scheduler",
        ],
    );
    let two = steps(2);
    let reported = two.lines().last().unwrap().replace("\"step_index\":1,", "\"step_index\":4,");
    let reported = reported.replace("\"dropped_records_before\":0", "\"dropped_records_before\":3");
    let report = check(&format!("{}{reported}\n", steps(1)));
    assert_eq!((report.failed, report.dropped), (0, 3), "a gap that is reported is none");
}

#[test]
fn each_rule_of_the_footer_has_a_file_that_breaks_it() {
    let footer = |text: &str| {
        let report = check(&format!("{}{text}\n", steps(2)));
        report.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let good = r#"{"schema":1,"footer":true,"engine_id":"dp0-pid13833","encoded":3,"written":2,"dropped":1,"queue_high_watermark":1,"unfinalized":1}"#;
    assert_eq!(footer(good), [""; 0]);
    for (from, to, says) in [
        ("\"written\":2", "\"written\":3", "line 3: written: 3, expected 2 (records in the file)"),
        ("\"encoded\":3", "\"encoded\":4", "line 3: encoded: 4, expected 3 (written + dropped)"),
        (
            "pid13833",
            "pid2",
            "line 3: engine_id: dp0-pid2, expected dp0-pid13833, as before: one stream, one scheduler",
        ),
        (
            "\"schema\":1",
            "\"schema\":7",
            "line 3: schema: 7, expected 1 (the version this program reads)",
        ),
        ("true", "false", "line 3: footer: false, expected true"),
        (
            "\"unfinalized\":1",
            "\"unfinalized\":-1",
            "line 3: unfinalized: -1, expected a whole number, not negative",
        ),
    ] {
        assert!(footer(&good.replacen(from, to, 1)).contains(&says.to_owned()), "{says}");
    }
    let lost = steps(1).replace("\"dropped_records_before\":0", "\"dropped_records_before\":2");
    let lost = lost.replace("\"step_index\":0", "\"step_index\":2");
    let few =
        good.replace("\"written\":2", "\"written\":1").replace("\"encoded\":3", "\"encoded\":2");
    let report = check(&format!("{lost}{few}\n"));
    assert_eq!(
        report.findings[0].to_string(),
        "line 2: dropped: 1, expected at least 2, what the records report"
    );
    let after = check(&format!("{}{good}\n{good}\n", steps(2)));
    assert_eq!(
        after.findings[0].to_string(),
        "line 4: line: a second footer, expected the end of the file"
    );
}

#[test]
fn a_cut_file_is_read_as_far_as_it_is_whole() {
    let text = steps(3);
    for cut in 1..text.len() {
        let report = check(&text[..cut]);
        let whole = text[..cut].matches('\n').count() as u64;
        assert_eq!((report.records, report.failed), (whole, 0), "cut at {cut}");
        match report.ending {
            Ending::Torn(bytes) => {
                assert_eq!(bytes as usize, cut - text[..cut].rfind('\n').map_or(0, |at| at + 1));
            }
            ending => assert!(ending == Ending::NoFooter && text[..cut].ends_with('\n')),
        }
    }
    let half = BufReader::new(GzDecoder::new(&REAL[..REAL.len() / 2]));
    let report = check_file(half, None).unwrap();
    assert!(report.records > 50 && report.failed == 0, "{report:?}");
    assert!(matches!(report.ending, Ending::Torn(_)));
}

#[test]
fn a_stream_goes_on_in_the_next_file() {
    // Each footer speaks of its own file.
    let of_100 = real().lines().last().unwrap().replace("310", "100");
    let text = format!("{}{of_100}\n", steps(100)) + &real()[steps(100).len()..];
    let text =
        text.replacen("\"encoded\":310,\"written\":310", "\"encoded\":210,\"written\":210", 1);
    let cut = steps(100).len() + of_100.len() + 1;
    let first = check(&text[..cut]);
    let second = check_file(&text.as_bytes()[cut..], Some(&first.stream)).unwrap();
    assert_eq!((second.failed, second.continues, second.records), (0, true, 210));
    assert_eq!((second.stream.records, second.ending), (310, Ending::Footer));
    let alone = check(&text[cut..]);
    assert_eq!(alone.findings[0].field, "step_index");
    assert_eq!(first.ending, Ending::Footer);
    let again = check_file(real().as_bytes(), Some(&first.stream)).unwrap();
    assert_eq!((again.failed, again.continues), (0, false), "step 0 begins a stream of its own");
    let footer = of_100.replace("100", "0");
    let end = check_file(format!("{footer}\n").as_bytes(), Some(&first.stream)).unwrap();
    assert_eq!((end.failed, end.continues), (0, true));
}

#[test]
fn files_are_put_in_order_by_their_first_step() {
    let first = heading(real().as_bytes()).unwrap().unwrap();
    assert_eq!(
        (first.engine_id.as_str(), first.submit_wall_ns),
        ("dp0-pid13833", 1_795_983_440_909_921_570)
    );
    assert_eq!(heading(&b"{}\n"[..]).unwrap(), None);
    assert_eq!(heading(&b""[..]).unwrap(), None);
}

#[test]
fn a_file_full_of_faults_is_counted_and_not_kept() {
    let text = "x\n".repeat(FINDINGS_MAX + 5);
    let report = check(&text);
    assert_eq!((report.findings.len(), report.failed), (FINDINGS_MAX, FINDINGS_MAX as u64 + 5));
}
