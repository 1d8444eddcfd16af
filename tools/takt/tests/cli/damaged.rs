//! Journals in which a bit has flipped, and journals of which a file is gone: the report is of what is left,
//! and says in bytes what is not.

use std::fs::File;
use std::path::PathBuf;

use serde_json::{Value, json};
use takt_recorder::{journal_path, open_journal};

use crate::bench::{Bench, Mock, Running};

/// The folder `out` of a run of this many reactors that was killed in the middle.
fn killed(reactors: u32) -> Bench {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let (url, reactors_set) = (mock.url(), format!("engine.reactors={reactors}"));
    let args =
        ["run", "--url", &url, "--model", "m", "--concurrency", "8", "--requests", "9999999"];
    let more = ["--set", &reactors_set, "--out", "out", "--quiet"];
    let running = Running::start(&bench, &[&args[..], &more].concat());
    let written = |number| std::fs::metadata(file(&bench, number)).map_or(0, |file| file.len());
    while (0..reactors).any(|number| written(number) < 200_000) {
        std::thread::yield_now();
    }
    running.kill();
    // A block that the kill has cut is another damage, and not the one that is looked for.
    for number in 0..reactors {
        let whole = *starts(&bench, number).last().unwrap();
        File::options().write(true).open(file(&bench, number)).unwrap().set_len(whole).unwrap();
    }
    bench
}

fn file(bench: &Bench, number: u32) -> PathBuf {
    journal_path(&bench.path("out"), number)
}

/// Where the blocks of a file begin, and, last, where they end.
fn starts(bench: &Bench, number: u32) -> Vec<u64> {
    let mut reader = open_journal(&file(bench, number)).unwrap();
    let mut starts = vec![reader.summary().read.bytes];
    while reader.next_block().unwrap().is_some() {
        starts.push(reader.summary().read.bytes);
    }
    starts
}

/// Flips a bit at byte `at`; a second time it is as before.
fn flip(bench: &Bench, number: u32, at: u64) {
    let mut bytes = std::fs::read(file(bench, number)).unwrap();
    bytes[at as usize] ^= 4;
    std::fs::write(file(bench, number), bytes).unwrap();
}

/// The report as a document and as text.
fn report(bench: &Bench) -> (Value, String) {
    let json = bench.takt(&["report", "out", "--format", "json"]).exits(0).stdout;
    (serde_json::from_str(&json).unwrap(), bench.takt(&["report", "out"]).exits(0).stdout)
}

/// Holds what the report leaves out against (file, offset from which, bytes).
#[track_caller]
fn leaves_out(bench: &Bench, expected: &[(u32, u64, Option<u64>)]) -> Value {
    let (result, text) = report(bench);
    let left_out = result["journal"]["left_out"].as_array().unwrap();
    let of = |(number, at, bytes): &(u32, u64, Option<u64>)| json!({"file": format!("journal/{number:06}.takt"), "at": at, "bytes": bytes});
    let mut found = left_out.clone();
    for entry in &mut found {
        assert!(entry.as_object_mut().unwrap().remove("why").is_some_and(|why| why != ""));
    }
    assert_eq!(found, expected.iter().map(of).collect::<Vec<_>>());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (entry, (_, at, bytes)) in left_out.iter().zip(expected) {
        let why =
            format!("{}: {}", entry["file"].as_str().unwrap(), entry["why"].as_str().unwrap());
        let behind =
            bytes.map_or(String::new(), |n| format!(", at byte {at}; {n} bytes are left out"));
        assert!(words.contains(&format!("journal: {why}{behind}")), "{why}{behind}:\n{text}");
    }
    result
}

fn reasons(result: &Value) -> Vec<&str> {
    let reasons = result["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().map(|reason| reason["name"].as_str().unwrap()).collect()
}

#[test]
fn e4_a_killed_run_says_how_much_is_behind_a_flipped_bit() {
    let bench = killed(1);
    let whole = leaves_out(&bench, &[]);
    assert!(!reasons(&whole).contains(&"records_left_out"));
    let starts = starts(&bench, 0);
    let (blocks, size) = (starts.len() - 1, starts[starts.len() - 1]);
    // In a block's head its magic, length, number and checksum; behind that its records.
    for block in [0, 1, blocks / 2, blocks - 1] {
        for within in [0, 5, 10, 33, 38] {
            flip(&bench, 0, starts[block] + within);
            let lost = size - starts[block];
            let result = leaves_out(&bench, &[(0, starts[block], Some(lost))]);
            let reason = result["verdict"]["reasons"].as_array().unwrap().iter();
            let reason = reason.filter(|reason| reason["name"] == "records_left_out");
            assert_eq!(reason.map(|reason| &reason["value"]).collect::<Vec<_>>(), [lost as f64]);
            assert_eq!(
                (&result["state"], &result["journal"]["bytes"]),
                (&"killed".into(), &starts[block].into())
            );
            assert!(
                result["phases"][0]["issued"].as_u64() <= whole["phases"][0]["issued"].as_u64()
            );
            flip(&bench, 0, starts[block] + within);
        }
    }
    // Of one file whose head is damaged nothing is left.
    flip(&bench, 0, 60);
    let says = format!("cut or damaged, at byte 0; {size} bytes are left out");
    bench.takt(&["report", "out"]).exits(2).says(&says);
}

#[test]
fn e4_a_damaged_or_missing_journal_of_one_reactor_leaves_the_other_ones() {
    let bench = killed(2);
    let whole = leaves_out(&bench, &[]);
    let issued = |result: &Value| result["phases"][0]["issued"].as_u64().unwrap();
    let starts = [starts(&bench, 0), starts(&bench, 1)];
    let size = |number: u32| std::fs::metadata(file(&bench, number)).unwrap().len();
    let sizes = [size(0), size(1)];
    let mut parts = 0;
    for damaged in [0, 1] {
        // Its head, its plan, its first block.
        let first = starts[damaged as usize][0];
        for (at, from) in [(3, 0), (60, 0), (first + 38, first)] {
            flip(&bench, damaged, at);
            let lost = sizes[damaged as usize] - from;
            let result = leaves_out(&bench, &[(damaged, from, Some(lost))]);
            assert_eq!(result["state"], "killed");
            assert!(reasons(&result).contains(&"records_left_out"), "{result}");
            assert!(reasons(&result).contains(&"partial_records"), "{result}");
            assert!(result["phases"][0]["successful_per_s"].is_null());
            if at == 3 {
                parts += issued(&result);
            }
            let events = bench.takt(&["events", "out", "--type", "sample.issued"]).exits(0);
            assert_eq!(events.stdout.lines().count() as u64, issued(&result));
            assert!(events.says("bytes are left out").code == 0);
            flip(&bench, damaged, at);
        }
    }
    assert_eq!(parts, issued(&whole), "each is reported without the other");
    for number in [0, 1] {
        flip(&bench, number, starts[number as usize][1] + 38);
    }
    let behind =
        |number: usize| (number as u32, starts[number][1], Some(sizes[number] - starts[number][1]));
    leaves_out(&bench, &[behind(0), behind(1)]);
    std::fs::remove_file(file(&bench, 0)).unwrap();
    leaves_out(&bench, &[(0, 0, None), behind(1)]);
    flip(&bench, 1, 3);
    bench.takt(&["report", "out"]).exits(2).says("out/journal/000001.takt: not a journal");
}

#[test]
fn a_run_that_ended_well_keeps_its_figures_and_says_what_its_journal_has_lost() {
    for reactors in [1, 2] {
        let bench = Bench::new();
        let mock = Mock::start(&bench, &["--mode", "instant"]);
        let set = format!("engine.reactors={reactors}");
        let args = ["--concurrency", "4", "--requests", "500", "--set", &set];
        bench.run(&mock.url(), &args).exits(0);
        let wrote = bench.result();
        assert_eq!(leaves_out(&bench, &[]), wrote);
        let last = reactors - 1;
        let starts = starts(&bench, last);
        let size = std::fs::metadata(file(&bench, last)).unwrap().len();
        for (at, from) in [(3, 0), (60, 0), (starts[0] + 2, starts[0]), (starts[1] + 38, starts[1])]
        {
            flip(&bench, last, at);
            let mut result = leaves_out(&bench, &[(last, from, Some(size - from))]);
            let (_, text) = report(&bench);
            assert!(text.contains("the figures are those that the run wrote at its end"), "{text}");
            result["journal"]["left_out"] = json!([]);
            assert_eq!(result, wrote);
            // Made again from what is left, the figures are not all, and how the run ended is known.
            if at >= starts[0] {
                let again = bench.takt(&["report", "out", "--exact", "--format", "json"]).exits(0);
                let again: Value = serde_json::from_str(&again.stdout).unwrap();
                assert_eq!(
                    (&again["state"], &again["complete"]),
                    (&json!("complete"), &json!(true))
                );
                let reasons = reasons(&again);
                assert!(reasons.contains(&"records_left_out") && !reasons.contains(&"incomplete"));
            }
            flip(&bench, last, at);
        }
        // Without the result nobody knows that the session ended.
        std::fs::remove_file(bench.path("out/result.json")).unwrap();
        flip(&bench, last, starts[0] + 2);
        let result = leaves_out(&bench, &[(last, starts[0], Some(size - starts[0]))]);
        assert_eq!(result["state"], "killed");
        assert_ne!(result["verdict"]["status"], "valid");
    }
}

#[test]
fn why_a_run_failed_is_known_though_the_records_of_its_end_are_lost() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    let idle = "limits.endpoint_response_idle_timeout=300ms";
    bench.run(&mock.url(), &["--concurrency", "2", "--requests", "10", "--set", idle]).exits(4);
    // Only the head and the first block are left.
    let starts = starts(&bench, 0);
    File::options().write(true).open(file(&bench, 0)).unwrap().set_len(starts[1]).unwrap();
    let again = bench.takt(&["report", "out", "--exact", "--format", "json"]).exits(0).stdout;
    let again: Value = serde_json::from_str(&again).unwrap();
    let ended = (&again["state"], &again["failed_by"], &again["complete"]);
    assert_eq!(ended, (&"failed".into(), &"endpoint_idle".into(), &false.into()));
    let verdict = &again["verdict"];
    assert_eq!(verdict["status"], "invalid");
    assert!(verdict.to_string().contains("nothing came from the endpoint"), "{verdict}");
}

/// A run of two reactors that ended well.
fn ended(mock: &Mock) -> Bench {
    let bench = Bench::new();
    let args = ["--concurrency", "4", "--requests", "500", "--set", "engine.reactors=2"];
    bench.run(&mock.url(), &args).exits(0);
    bench
}

#[test]
fn what_is_not_of_the_run_is_in_no_figure_and_is_told() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let (run, other) = (ended(&mock), ended(&mock));
    let wrote = run.result();
    let size = |bench: &Bench, number| std::fs::metadata(file(bench, number)).unwrap().len();
    let own = std::fs::read(file(&run, 1)).unwrap();
    let check = |expected: (u32, Option<u64>), why: &str| {
        let mut result = leaves_out(&run, &[(expected.0, 0, expected.1)]);
        let says = result["journal"]["left_out"][0]["why"].as_str().unwrap().to_owned();
        assert!(says.contains(why), "{says}");
        result["journal"]["left_out"] = json!([]);
        assert_eq!(result, wrote, "{why}");
    };
    // A file beside those of the run takes nothing from it, also where no result is left to go by.
    let result = std::fs::read(run.path("out/result.json")).unwrap();
    for (of, why) in [(&run, "no such reactor"), (&other, "another session")] {
        std::fs::copy(file(of, 1), file(&run, 2)).unwrap();
        for without in [false, true] {
            if without {
                std::fs::remove_file(run.path("out/result.json")).unwrap();
            }
            let mut result = leaves_out(&run, &[]);
            let beside = &result["journal"]["foreign"];
            assert!(beside[0]["why"].as_str().unwrap().contains(why), "{beside}");
            assert_eq!((&beside[0]["bytes"], &beside[1]), (&size(of, 1).into(), &Value::Null));
            result["journal"]["foreign"] = json!([]);
            assert_eq!(result, wrote);
            run.takt(&["report", "out"]).exits(0).says(why);
        }
        std::fs::write(run.path("out/result.json"), &result).unwrap();
        std::fs::remove_file(file(&run, 2)).unwrap();
    }
    std::fs::copy(file(&other, 1), file(&run, 1)).unwrap();
    check((1, Some(size(&other, 1))), "another session");
    std::fs::write(file(&run, 1), "").unwrap();
    check((1, Some(0)), "empty");
    std::fs::remove_file(file(&run, 1)).unwrap();
    check((1, None), "missing");
    std::fs::create_dir(file(&run, 1)).unwrap();
    check((1, None), "not a file");
    std::fs::remove_dir(file(&run, 1)).unwrap();
    std::os::unix::fs::symlink("/nowhere", file(&run, 1)).unwrap();
    check((1, None), "No such file");
    std::fs::remove_file(file(&run, 1)).unwrap();
    std::fs::write(file(&run, 1), own).unwrap();
    assert_eq!(leaves_out(&run, &[]), wrote);
}

#[test]
fn a_result_says_whose_folder_it_is_whatever_journal_lies_in_it() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let (run, other) = (ended(&mock), ended(&mock));
    let wrote = run.result();
    let mut lost = Vec::new();
    for number in [0, 1] {
        std::fs::copy(file(&other, number), file(&run, number)).unwrap();
        lost.push((number, 0, Some(std::fs::metadata(file(&run, number)).unwrap().len())));
    }
    let mut result = leaves_out(&run, &lost);
    result["journal"]["left_out"] = json!([]);
    assert_eq!(result, wrote);
    run.takt(&["report", "out", "--exact"]).exits(2).says("another session");
    std::fs::remove_file(run.path("out/result.json")).unwrap();
    assert_eq!(leaves_out(&run, &[])["session_id"], other.result()["session_id"]);
}

#[test]
fn a_journal_that_is_cut_between_two_blocks_is_told() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    bench.run(&mock.url(), &["--concurrency", "4", "--requests", "500"]).exits(0);
    let starts = starts(&bench, 0);
    let (cut, size) = (starts[starts.len() - 2], starts[starts.len() - 1]);
    File::options().write(true).open(file(&bench, 0)).unwrap().set_len(cut).unwrap();
    let (result, text) = report(&bench);
    let left_out = &result["journal"]["left_out"][0];
    assert_eq!((&left_out["at"], &left_out["bytes"]), (&cut.into(), &(size - cut).into()));
    assert!(text.contains("journal: journal: shorter than the run left it"), "{text}");
    // Made again from what is left, the figures say so too.
    for at in [cut, starts[0]] {
        File::options().write(true).open(file(&bench, 0)).unwrap().set_len(at).unwrap();
        let exact = ["report", "out", "--exact", "--format", "json"];
        let again = bench.takt(&exact).exits(0).says("shorter than the run left it").stdout;
        let again: Value = serde_json::from_str(&again).unwrap();
        assert_eq!(again["journal"]["left_out"][0]["at"], at);
        assert_ne!(again["verdict"]["status"], "valid");
        assert!(reasons(&again).contains(&"records_left_out"), "{:?}", reasons(&again));
    }
}

#[test]
fn a_journal_that_is_gone_is_told() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let run = ended(&mock);
    std::fs::remove_dir_all(run.path("out/journal")).unwrap();
    leaves_out(&run, &[(0, 0, None), (1, 0, None)]);
    run.takt(&["events", "out"]).exits(2).says("journal/000000.takt: the file is missing");
}

#[test]
fn a_copy_of_another_reactors_file_is_not_counted_twice() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let run = ended(&mock);
    std::fs::copy(file(&run, 0), file(&run, 1)).unwrap();
    let size = std::fs::metadata(file(&run, 0)).unwrap().len();
    let expected = [(1, 0, Some(size))];
    let says = |result: &Value| result["journal"]["left_out"][0]["why"].clone();
    assert_eq!(says(&leaves_out(&run, &expected)), "it is a copy of journal/000000.takt");
    // Without the result the figures are those of the one file.
    std::fs::remove_file(run.path("out/result.json")).unwrap();
    let of_copied = leaves_out(&run, &expected);
    std::fs::remove_file(file(&run, 1)).unwrap();
    let of_one = leaves_out(&run, &[(1, 0, None)]);
    assert_eq!(of_copied["phases"], of_one["phases"]);
    let reason = |result: &Value| {
        let reasons = result["verdict"]["reasons"].as_array().unwrap();
        let reason = reasons.iter().find(|reason| reason["name"] == "records_left_out").unwrap();
        reason["says"].as_str().unwrap().to_owned()
    };
    assert!(reason(&of_copied).contains(&format!(": {size} bytes of the files")));
    // Of a file that is gone nobody knows the bytes.
    assert!(!reason(&of_one).contains("bytes"), "{}", reason(&of_one));
    std::os::unix::fs::symlink("/dev/zero", file(&run, 1)).unwrap();
    leaves_out(&run, &[(1, 0, None)]);
}
