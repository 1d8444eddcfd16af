//! Disks that are full, or will be.

use serde_json::Value;

use crate::bench::{Bench, Done, Mock};

#[test]
fn e5_what_the_journal_will_take_is_said_before_the_start() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = ["--rate", "200", "--requests", "20", "--no-stream"];
    let done = bench.run(&mock.url(), &args).exits(0);
    // 200 a second of 12 + 32 bytes and 1,000 bytes a second besides, 3,600 seconds.
    done.says("journal: about 35 MB an hour at 200 requests a second, about 880 B in all");
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let args = ["--concurrency", "2", "--requests", "20", "--set", "journal=off"];
    let done = bench.run(&mock.url(), &args).exits(0);
    assert!(!done.stderr.contains("an hour"), "{}", done.stderr);
}

/// `takt run` under a limit of so many KiB to each file.
fn limited(bench: &Bench, kib: u32, url: &str, rest: &str) -> Done {
    let takt = env!("CARGO_BIN_EXE_takt");
    let line = format!("ulimit -f {kib}; exec '{takt}' run --url {url} --model m --out out {rest}");
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &line]).current_dir(bench.path(""));
    Done::from(command.output().unwrap())
}

#[test]
fn e5_a_disk_that_fills_up_leaves_the_report_on_the_screen() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let rest = "--concurrency 16 --requests 1500 --format json";
    let done =
        limited(&bench, 64, &mock.url(), rest).exits(1).says("the journal stops before its end");
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&result["state"], &result["phases"][0]["succeeded"]),
        (&"complete".into(), &1500.into())
    );
    assert!(result["journal"]["stopped"].is_string(), "{}", result["journal"]);
    // The run's own result, which found room, is a better witness than half a journal.
    let again = bench.takt(&["report", "out", "--format", "json"]).exits(0);
    assert_eq!(again.stdout, done.stdout);
    std::fs::remove_file(bench.path("out/result.json")).unwrap();
    let half = bench.takt(&["report", "out", "--format", "json"]).exits(0);
    let half: Value = serde_json::from_str(&half.stdout).unwrap();
    assert_eq!(half["state"], "killed");
    assert!(half["phases"][0]["issued"].as_u64() < Some(1500));
}

#[test]
fn e5_a_disk_without_room_is_known_before_anything_is_sent() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "1ms", "--truth", "truth.jsonl"]);
    let done = limited(&bench, 0, &mock.url(), "--concurrency 1 --requests 5").exits(3);
    done.says("config.yaml");
    assert_eq!(mock.stop(), 0);
    assert_eq!(bench.read("truth.jsonl"), "", "nothing was sent");
}

#[test]
fn e5_a_screen_that_is_full_is_a_fault_and_the_files_are_there() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let takt = env!("CARGO_BIN_EXE_takt");
    let url = mock.url();
    let run = format!("'{takt}' run --url {url} --model m --out out --concurrency 1 --requests 3");
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &format!("{run} > /dev/full")]).current_dir(bench.path(""));
    Done::from(command.output().unwrap()).exits(1).says("stdout cannot be written to");
    assert_eq!(bench.result()["state"], "complete");
}
