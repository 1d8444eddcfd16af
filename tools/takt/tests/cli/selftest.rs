//! `takt selftest` through the binary. What it measures depends on the machine; that it ends, says why a row
//! is empty, and leaves nothing behind does not.

use serde_json::Value;

use crate::bench::{Bench, Running};

#[test]
fn a_quick_test_has_a_figure_or_a_reason_in_every_row() {
    let bench = Bench::new();
    let temporary = bench.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command =
        bench.command(&["selftest", "--quick", "--format", "json", "--anyway", "--quiet"]);
    let done = command.env("TMPDIR", &temporary).output().unwrap();
    let code = done.status.code();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(matches!(code, Some(0 | 6)), "{code:?}: {said}");
    let doc: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(doc["schema"], "takt-selftest-1");
    let tables =
        ["lateness_us", "errors_us", "pacers_us"].map(|table| doc[table].as_array().unwrap());
    let [lateness, errors, pacers] = tables;
    assert_eq!((lateness.len(), errors.len(), pacers.len()), (4, 1, 3));
    let greatest = [&doc["greatest_valid"]["rate"], &doc["greatest_valid"]["streams"]];
    let rows = lateness.iter().chain(errors).chain(pacers).chain(greatest);
    for row in rows {
        let (figures, absent) = (&row["figures"], &row["absent"]);
        assert!(figures.is_null() != absent.is_null(), "a figure or a reason: {row}");
        // The machine may disturb a run and time may run out; a run that fails is a fault.
        assert!(absent.as_str().is_none_or(|why| !why.is_empty()), "{row}");
        assert!(absent.as_str().is_none_or(|why| !why.contains("the run failed")), "{row}");
    }
    for figures in errors.iter().map(|row| &row["figures"]).filter(|figures| !figures.is_null()) {
        assert!(figures["requests"].as_u64().unwrap() > 0, "{figures}");
        assert!(figures["ttft"]["p50"].as_f64().unwrap() >= 0.0, "{figures}");
        let (written, planned) = (&figures["ttft"]["p50"], &figures["ttft_planned"]["p50"]);
        assert!(written.as_f64() <= planned.as_f64(), "the server is never early: {figures}");
    }
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_stop_ends_it_at_once_and_leaves_nothing_behind() {
    let bench = Bench::new();
    let mut running = Running::start(&bench, &["selftest"]);
    running.wait_for("lateness by rate");
    running.signal("INT");
    running.done().exits(130).says("nothing is left running");
}

#[test]
fn a_core_that_is_not_there_is_refused() {
    let bench = Bench::new();
    bench.takt(&["selftest", "--core", "4000"]).exits(2).says("--core 4000");
}
