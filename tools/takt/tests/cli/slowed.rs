//! A run that is slowed on purpose is never `valid`. Nothing here looks at a clock: the verdict does. That a
//! run left alone is valid holds in the simulation on any machine, and here when asked for on a quiet one.
//! The slow fold is in the reactor's own tests, where a fold can be put in.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::bench::{Bench, Mock};

/// Programs that do nothing but keep one core busy. Dropped, they end.
struct Busy(Vec<Child>);

impl Busy {
    fn on(core: &str, programs: usize) -> Self {
        let spin = |_| {
            let mut command = Command::new("taskset");
            command.args(["-c", core, "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..programs).map(spin).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended needs no killing.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The first core that this process may run on, as `taskset` writes it.
fn core() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = list.trim().split([',', '-']).next().unwrap();
    first.to_owned()
}

/// Status of the verdict, and the names of its reasons.
fn verdict(result: &Value) -> (String, Vec<String>) {
    let verdict = &result["verdict"];
    let reasons = verdict["reasons"].as_array().unwrap().iter();
    let names = reasons.map(|reason| reason["name"].as_str().unwrap().to_owned()).collect();
    (verdict["status"].as_str().unwrap().to_owned(), names)
}

/// A run on one core, which a program of equal rank keeps busy. No nice value helps it: `--core` is not
/// given, so it asks for none.
fn beside_busy_programs(load: &[&str]) -> Value {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let core = core();
    let _busy = Busy::on(&core, 4);
    let url = mock.url();
    let takt =
        bench.command(&[&["run", "--url", &url, "--api", "raw", "--out", "out"], load].concat());
    let mut command = Command::new("taskset");
    command.args(["-c", &core]).arg(takt.get_program()).args(takt.get_args());
    command.current_dir(bench.path("")).stdin(Stdio::null()).stdout(Stdio::null());
    let ended = command.stderr(Stdio::null()).status().unwrap();
    assert!(ended.success(), "{ended}");
    bench.result()
}

#[test]
fn an_open_loop_beside_busy_programs_on_its_core_is_not_valid() {
    let result = beside_busy_programs(&["--rate", "500", "--duration", "2s", "--wait", "spin"]);
    let (status, reasons) = verdict(&result);
    assert_eq!(status, "invalid", "{reasons:?}");
    // It spins, the others do: it has a fifth of the core, and says so.
    assert!(reasons.iter().any(|name| name == "runnable"), "{reasons:?}");
    let seen = &result["phases"][0]["instrument"];
    assert!(seen["involuntary"].as_u64().unwrap() > 0, "{seen}");
}

#[test]
fn a_closed_loop_beside_busy_programs_on_its_core_is_not_valid() {
    let load = ["--concurrency", "4", "--duration", "2s"];
    let (status, reasons) = verdict(&beside_busy_programs(&load));
    assert_ne!(status, "valid");
    assert!(reasons.iter().any(|name| name == "runnable"), "{reasons:?}");
}

#[test]
fn a_rate_beyond_the_machine_is_not_valid() {
    let bench = Bench::new();
    let mock = Mock::start(&bench, &["--mode", "instant"]);
    let url = mock.url();
    let load = ["--rate", "3000000", "--requests", "60000", "--max-connections", "8"];
    let args = [&["run", "--url", &url, "--api", "raw", "--out", "out"], &load[..]].concat();
    bench.takt(&args).exits(0);
    let (status, reasons) = verdict(&bench.result());
    assert_eq!(status, "invalid", "{reasons:?}");
    let late = ["lateness_p99_us", "off_schedule"];
    assert!(reasons.iter().any(|name| late.contains(&name.as_str())), "{reasons:?}");
}

#[test]
fn what_is_not_valid_ends_a_strict_run_in_5_and_a_limit_can_be_set() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    // Nobody sends within a picosecond; everybody within an hour.
    let load = ["--rate", "50", "--requests", "10", "--strict"];
    let tight = ["--set", "verdict.lateness_p99_us=0.000001"];
    let tight = [&load[..], &tight, &["--set", "verdict.lateness_gap_share=1e-12"]].concat();
    bench.run(&mock.url(), &tight).exits(5);
    let (status, reasons) = verdict(&bench.result());
    assert_eq!(status, "invalid");
    assert!(reasons.iter().any(|name| name == "lateness_p99_us"), "{reasons:?}");
    // `takt report` judges by the limits of the run.
    let report = bench.takt(&["report", "out", "--format", "json"]).exits(0);
    let again: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(again["verdict"], bench.result()["verdict"]);
}

/// For a machine that does nothing else: `cargo test -p takt --test cli left_alone -- --ignored`.
#[test]
#[ignore = "needs a machine that does nothing else"]
fn a_run_that_is_left_alone_is_valid() {
    let bench = Bench::new();
    let mock = Mock::quick(&bench);
    let core = core();
    let load = ["--rate", "50", "--duration", "3s", "--core", &core];
    bench.run(&mock.url(), &load).exits(0);
    let (status, reasons) = verdict(&bench.result());
    assert_eq!(status, "valid", "{reasons:?}");
}
