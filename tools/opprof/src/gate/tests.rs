use serde_json::json;
use takt_report::paired::percent;

use super::*;

const FIXTURE: &[u8] = include_bytes!("../../tests/fixtures/gate_runs.jsonl");

fn fixture() -> Vec<GateRun> {
    read_runs(FIXTURE).unwrap()
}

fn judge(runs: &[GateRun]) -> Result<GateReport, Vec<String>> {
    gate(runs, GateLimits::default())
}

/// Six pairs in which `on` costs so many percent, give or take a tenth of one.
fn runs(cost: f64) -> Vec<GateRun> {
    let wobble = [0.1, -0.1, 0.05, -0.05, 0.0, 0.08];
    let mut runs = fixture();
    for (at, run) in runs.iter_mut().enumerate() {
        let worse = if run.arm == Arm::On { cost + wobble[at / 2] } else { 0.0 } / 100.0;
        run.figures = [80.0 / (1.0 + worse), 20.0 * (1.0 + worse), 30.0, 4.0, 5.0].map(Some);
        for figure in &mut run.figures[2..] {
            *figure = figure.map(|figure| figure * (1.0 + worse));
        }
    }
    runs
}

#[test]
fn the_noisy_runs_are_inconclusive() {
    let report = judge(&fixture()).unwrap();
    assert_eq!(
        (report.verdict, report.pairs, report.metrics.len()),
        (GateVerdict::Inconclusive, 6, 5)
    );
    assert!(report.pairs_to_decide().is_none_or(|pairs| pairs > 6));
    let throughput = report.metrics[0].compared.pairs[0];
    assert!(
        (percent(throughput.difference) - (33.962_167_918 / 71.440_719_368 - 1.0) * 100.0).abs()
            < 1e-6
    );
    assert!(
        report.warnings.iter().any(|w| w.starts_with("pair 1 stands out")),
        "{:?}",
        report.warnings
    );
    assert_eq!(
        report.not_checked,
        ["dropped records", "same outputs", "same configuration", "errors", "busy host"]
    );
    let text = report.render();
    assert!(text.starts_with("INCONCLUSIVE: 6 pairs, limit 3.000 %"), "{text}");
    assert!(text.contains("all 46656 resamples") && text.contains("df 4"), "{text}");
}

#[test]
fn small_costs_pass_and_large_ones_fail() {
    for (cost, verdict) in [
        (0.0, GateVerdict::Pass),
        (2.0, GateVerdict::Pass),
        (5.0, GateVerdict::Fail),
        (3.0, GateVerdict::Inconclusive),
    ] {
        let report = judge(&runs(cost)).unwrap();
        assert_eq!(report.verdict, verdict, "{cost} %: {}", report.render());
    }
}

#[test]
fn one_metric_above_the_limit_is_enough_to_fail() {
    let mut runs = runs(0.0);
    for run in runs.iter_mut().filter(|run| run.arm == Arm::On) {
        run.figures[4] = run.figures[4].map(|figure| figure * 1.1);
    }
    assert_eq!(judge(&runs).unwrap().verdict, GateVerdict::Fail);
}

#[test]
fn an_order_effect_is_kept_out_and_said() {
    let mut runs = runs(1.0);
    for run in runs.iter_mut().skip(1).step_by(2) {
        run.figures = run.figures.map(|figure| figure.map(|figure| figure * 1.1));
        run.figures[0] = run.figures[0].map(|figure| figure / 1.21);
    }
    let report = judge(&runs).unwrap();
    assert_eq!(report.verdict, GateVerdict::Pass, "{}", report.render());
    assert!(
        report.warnings.iter().any(|w| w.contains("order effect in TTFT p50: +10.0 %")),
        "{:?}",
        report.warnings
    );
    assert!(percent(report.metrics[1].compared.plain.high) > 3.0, "the plain t cannot tell");
}

#[test]
fn a_drift_is_said() {
    let mut runs = runs(0.0);
    for (at, run) in runs.iter_mut().enumerate().filter(|(_, run)| run.arm == Arm::On) {
        run.figures[1] = run.figures[1].map(|figure| figure * (1.0 + 0.004 * (at / 2) as f64));
    }
    let report = judge(&runs).unwrap();
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.starts_with("drift in TTFT p50: the cost moves by +0.4 %")),
        "{:?}",
        report.warnings
    );
}

/// The one reason for which these runs are refused.
#[track_caller]
fn refused(runs: &[GateRun]) -> String {
    let reasons = judge(runs).unwrap_err();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.into_iter().next().unwrap_or_default()
}

#[test]
fn runs_that_may_not_be_compared_are_refused() {
    let mut copies = runs(1.0);
    for run in &mut copies {
        run.figures = [Some(1.0), Some(2.0), Some(2.0), Some(2.0), Some(2.0)];
    }
    assert_eq!(judge(&copies).unwrap_err().len(), 5, "no variance in any of the five");
    let mut some = runs(1.0);
    some[3].beside.dropped = Some(4);
    assert_eq!(judge(&some).unwrap().verdict, GateVerdict::Pass, "the off arm has no recorder");
    some[2].beside.dropped = Some(4);
    assert!(refused(&some).starts_with("pair 2: 4 step records were dropped"));
    let mut some = runs(1.0);
    some.iter_mut().for_each(|run| run.beside.errors = Some(0));
    assert_eq!(judge(&some).unwrap().verdict, GateVerdict::Pass);
    some[1].beside.errors = Some(2);
    assert_eq!(refused(&some), "errors in one arm only: 0 off, 2 on");
    let mut some = runs(1.0);
    some.iter_mut().for_each(|run| run.beside.outputs = Some("ab".into()));
    some[4].beside.outputs = Some("cd".into());
    assert_eq!(refused(&some), "outputs differ: ab in pair 1 off, cd in pair 3 off");
    let mut some = runs(1.0);
    some.iter_mut()
        .for_each(|run| run.beside.config = Some(json!({"seed": 1, "load": {"rate": 5}})));
    some[5].beside.config = Some(json!({"seed": 1, "load": {"rate": 6}}));
    assert_eq!(
        refused(&some),
        "configurations differ between pair 1 off and pair 3 on: load.rate is 5 and 6"
    );
    let mut some = runs(1.0);
    some[0].figures[2] = None;
    assert_eq!(refused(&some), "TTFT p95: some runs have no value");
}

#[test]
fn too_few_odd_or_unbalanced_pairs_are_refused() {
    let all = runs(1.0);
    assert!(refused(&all[..8]).starts_with("4 pairs: too few"));
    let mut seven = all.clone();
    seven.extend(all[..2].iter().cloned().map(|run| GateRun { pair: "7".into(), ..run }));
    assert!(refused(&seven).starts_with("7 pairs: orders cannot be balanced"));
    let mut unbalanced = all.clone();
    unbalanced.swap(2, 3);
    assert_eq!(refused(&unbalanced), "off ran first in 4 pairs and on in 2: balance them");
    let mut twice = all.clone();
    twice[1].arm = Arm::Off;
    assert!(judge(&twice).unwrap_err()[0].contains("pair 1: has runs off, off"));
}

#[test]
fn five_pairs_are_judged_by_the_plain_t_with_a_warning() {
    let report = judge(&runs(1.0)[..10]).unwrap();
    assert_eq!(report.metrics[0].compared.estimate().df, 4, "the order is not looked at");
    assert!(report.warnings[0].starts_with("5 pairs: orders are not balanced"));
}

#[test]
fn metrics_that_nobody_measured_are_said_and_not_required() {
    let mut some = runs(1.0);
    some.iter_mut().for_each(|run| run.figures[4] = None);
    let report = judge(&some).unwrap();
    assert_eq!((report.verdict, report.not_measured), (GateVerdict::Pass, vec![Metric::TpotP95]));
}

#[test]
fn verdicts_go_wrong_as_seldom_as_they_claim() {
    let rates = |cost, shape| error_rates(Effect { cost, shape, spread: 0.01, pairs: 10 }, 600, 7);
    for shape in TRIAL_SHAPES {
        let at = rates(0.03, shape);
        // 2.5 % nominal; 600 trials scatter by 0.6 points, so 5 % is four of them away.
        assert!(at.pass < 0.05 && at.fail < 0.05, "{shape:?} {at:?}");
        let none = rates(0.0, shape);
        assert!(none.fail == 0.0 && none.pass > 0.9, "{shape:?} {none:?}");
        let much = rates(0.05, shape);
        assert!(much.pass < 0.005 && much.fail > 0.5, "{shape:?} {much:?}");
    }
}
