//! `takt report`, and that all ways to a report lead to the same one.

use crate::bench::{Bench, Mock};

#[test]
fn journal_result_and_screen_hold_the_same_report() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = ["--rate", "200", "--requests", "60", "--warmup-requests", "5"];
    let run = bench.run(&mock.url(), &args).exits(0);
    assert_eq!(run.stdout, bench.read("out/report.txt"));
    assert!(
        run.stdout.contains("performance: 60 different made-up prompts of 64 words"),
        "{}",
        run.stdout
    );
    assert_eq!(bench.takt(&["report", "out"]).exits(0).stdout, run.stdout);
    let json = bench.takt(&["report", "out", "--format", "json"]).exits(0).stdout;
    assert!(json == bench.read("out/result.json"), "{json}");
    let snapshot: serde_json::Value =
        serde_json::from_str(&bench.read("out/metrics/final_snapshot.json")).unwrap();
    assert_eq!(
        (&snapshot["schema"], &snapshot["state"]),
        (&"takt-snapshot-1".into(), &"complete".into())
    );
    assert_eq!(snapshot["metrics"][0]["value"], 65, "the warm-up's, too");
    assert_eq!(snapshot["metrics"][4]["value"], 60, "the measured phase's");
    // Without its journal it still has its result, and the report says what is gone.
    std::fs::remove_dir_all(bench.path("out/journal")).unwrap();
    let told = bench.takt(&["report", "out"]).exits(0).stdout;
    let lines = told.lines().filter(|line| !line.starts_with("journal: ")).collect::<Vec<_>>();
    assert_eq!(lines.join("\n").replace("\n\n\n", "\n\n"), run.stdout.trim_end());
}

#[test]
fn json_on_stdout_is_the_document_and_nothing_else() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let args = [
        "--concurrency",
        "2",
        "--requests",
        "9",
        "--format",
        "json",
        "--quiet",
        "--set",
        "journal=off",
    ];
    let done = bench.run(&mock.url(), &args).exits(0);
    assert!(done.stdout == bench.read("out/result.json"), "{}", done.stdout);
    assert_eq!(done.stderr, "", "quiet says nothing when nothing is wrong");
    assert!(!bench.path("out/journal").exists());
    let again = bench.takt(&["report", "out", "--format", "json"]).exits(0);
    assert!(again.stdout == done.stdout, "{}", again.stdout);
    bench.takt(&["report", "out", "--exact"]).exits(2).says("kept none");
}

#[test]
fn a_folder_that_holds_no_run_is_wrong_input() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("empty")).unwrap();
    std::fs::create_dir_all(bench.path("junk/journal")).unwrap();
    bench.file("junk/journal/000000.takt", "no journal");
    std::fs::create_dir(bench.path("other")).unwrap();
    bench.file("other/result.json", "{\"schema\": \"x\"}");
    bench.takt(&["report", "none"]).exits(2).says("none: is no folder");
    bench.takt(&["report", "empty"]).exits(2).says("holds no run");
    bench.takt(&["report", "junk"]).exits(2).says("not a journal");
    bench.takt(&["report", "other"]).exits(2).says("is no result of takt");
}
