//! Signals in every state of a run: once and twice, and however the process came by them.

use takt_record::{Fold, Record, SessionEvent, fold_journal};

use crate::bench::{Bench, Mock, Running, full};

/// The session's events in the journal.
#[derive(Default)]
struct Events(Vec<SessionEvent>);

impl Fold for Events {
    fn fold(&mut self, record: &Record<'_>) {
        if let Record::Session(session) = record {
            self.0.push(session.event);
        }
    }
}

/// What a run that was stopped leaves behind, in any state.
#[track_caller]
fn interrupted(bench: &Bench, running: Running) -> serde_json::Value {
    let done = running.done().exits(130);
    assert!(done.stdout.contains("INCOMPLETE: interrupted"), "{}", done.stdout);
    for file in ["config.yaml", "report.txt", "metrics/final_snapshot.json"] {
        assert!(bench.path("out").join(file).exists(), "{file}");
    }
    let mut events = Events::default();
    let journal = bench.path("out/journal/000000.takt");
    fold_journal(&mut takt_recorder::open_journal(&journal).unwrap(), &mut events).unwrap();
    assert_eq!(events.0, [SessionEvent::Started, SessionEvent::Interrupted, SessionEvent::Ended]);
    let result = bench.result();
    assert_eq!((&result["state"], &result["complete"]), (&"interrupted".into(), &false.into()));
    for phase in result["phases"].as_array().unwrap() {
        let count = |key: &str| phase[key].as_u64().unwrap();
        let ended = count("succeeded") + count("failed") + count("unanswered") + count("late");
        assert_eq!(count("issued"), ended, "{phase}");
    }
    result
}

/// A warm-up and a phase behind it, against a server that never answers.
fn phases(bench: &Bench, warm_requests: u32) -> (Mock, Running) {
    let mock = Mock::start(bench, &["--ttft", "600s"]);
    let url = mock.url();
    bench.file(
        "run.yaml",
        &format!(
            "endpoint: {{url: '{url}', model: m}}\nphases:\n  - {{name: warm, type: warmup, \
             requests: {warm_requests}, load: {{pattern: concurrency, target_concurrency: 2}}}}\n  \
             - {{name: perf, requests: 1000, load: {{pattern: concurrency, target_concurrency: \
             5}}}}\n"
        ),
    );
    (mock, Running::start(bench, &["run", "run.yaml", "--out", "out"]))
}

#[test]
fn e1_in_a_warm_up_phase() {
    let bench = Bench::new();
    let (_mock, mut running) = phases(&bench, 100);
    running.wait_for("phase warm");
    running.signal("INT");
    running.wait_for("stopping");
    running.signal("TERM");
    let result = interrupted(&bench, running);
    let [warm, perf] = [&result["phases"][0], &result["phases"][1]];
    assert_eq!((&warm["state"], &warm["ended_by"]), (&"interrupted".into(), &"stop".into()));
    assert_eq!((&warm["unanswered"], &perf["issued"]), (&2.into(), &0.into()));
    assert!(perf["state"].is_null(), "it never began");
    assert!(perf["start_time_ns"].is_null());
}

#[test]
fn e1_in_the_phase_after_an_undrained_warm_up_gives_up_what_both_have_in_flight() {
    let bench = Bench::new();
    let (_mock, mut running) = phases(&bench, 2);
    running.wait_for("phase perf");
    running.signal("INT");
    running.wait_for("stopping");
    running.signal("INT");
    let result = interrupted(&bench, running);
    let [warm, perf] = [&result["phases"][0], &result["phases"][1]];
    assert_eq!((&warm["state"], &warm["late"]), (&"complete".into(), &2.into()));
    assert_eq!((&perf["state"], &perf["inherited"]), (&"interrupted".into(), &2.into()));
    assert!(perf["unanswered"].as_u64().unwrap() <= 3, "the cap holds for the sum: {perf}");
}

#[test]
fn e1_what_the_user_gave_up_while_draining_is_no_casualty_of_the_server() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "3", "--requests", "3", "--out", "out"];
    let mut running = Running::start(&bench, &args);
    running.wait_for("phase performance");
    running.signal("INT");
    running.wait_for("stopping");
    running.signal("INT");
    let result = interrupted(&bench, running);
    assert_eq!(result["phases"][0]["unanswered"], 3);
    let reasons = result["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(|reason| reason["name"] != "survivors"), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason["name"] == "incomplete"), "{reasons:?}");
}

#[test]
fn e1_with_nothing_in_flight_once_is_enough() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let url = mock.url();
    // The first arrival is due after a thousand seconds.
    let load = ["--rate", "0.001", "--arrivals", "constant", "--requests", "5", "--out", "out"];
    // Under `nohup` the run inherits that it ignores SIGHUP, and keeps to it.
    let names = if hang_up_is_ignored() { &["INT", "TERM"][..] } else { &["INT", "TERM", "HUP"] };
    for name in names {
        let mut running =
            Running::start(&bench, &[&["run", "--url", &url][..], &load[..]].concat());
        running.wait_for("phase performance");
        running.signal(name);
        let result = interrupted(&bench, running);
        assert_eq!(result["phases"][0]["issued"], 0);
        std::fs::remove_dir_all(bench.path("out")).unwrap();
    }
}

#[test]
fn e1_while_the_first_connections_hang() {
    for twice in [false, true] {
        let bench = Bench::new();
        // One connection to see that somebody is there; those of the run hang.
        let (url, _held, _listener) = full(1);
        let args = ["run", "--url", &url, "--concurrency", "4", "--requests", "9", "--out", "out"];
        let running = Running::start(&bench, &args);
        while !bench.path("out/journal/000000.takt").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        running.signal("INT");
        if twice {
            running.signal("INT");
        }
        let result = interrupted(&bench, running);
        assert_eq!(result["phases"][0]["issued"], 0);
    }
}

#[test]
fn e1_before_anything_is_made_nothing_is_left() {
    let bench = Bench::new();
    let (url, _held, _listener) = full(0);
    let args = ["run", "--url", &url, "--concurrency", "4", "--requests", "9", "--out", "out"];
    let running = Running::start(&bench, &args);
    running.wait_until_it_listens();
    running.signal("INT");
    running.done().exits(130).says("nothing was sent yet");
    assert!(!bench.path("out").exists());
}

#[test]
fn e1_signals_are_heard_when_they_were_inherited_as_ignored() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--ttft", "600s"]);
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "3", "--requests", "9", "--out", "out"];
    for name in ["INT", "TERM"] {
        let mut running = Running::start_after(&bench, "trap '' INT TERM HUP", &args);
        running.wait_for("phase performance");
        // `nohup` means it.
        running.signal("HUP");
        running.signal(name);
        running.wait_for(&format!("SIG{name}: stopping"));
        running.signal(name);
        interrupted(&bench, running);
        std::fs::remove_dir_all(bench.path("out")).unwrap();
    }
}

#[test]
fn e5_a_limit_of_file_sizes_is_an_error_that_is_reported() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let url = mock.url();
    let args = ["run", "--url", &url, "--concurrency", "8", "--requests", "3000", "--out", "out"];
    // Blocks of 512 bytes: 128 KiB, which the journal does not fit in.
    let done = Running::start_after(&bench, "ulimit -f 256", &args).done();
    let done = done.exits(1).says("the journal stops before its end");
    assert!(done.stdout.contains("succeeded 3000"), "{}", done.stdout);
    assert_eq!(bench.result()["state"], "complete");
}

/// Whether this process ignores SIGHUP, the first signal of the mask.
fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1
}
