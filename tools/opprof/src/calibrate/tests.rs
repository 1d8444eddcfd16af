use super::*;
use crate::families::Families;
use crate::testing::facts;

/// Steps whose times follow a law with a little noise: windows of ten steps of several sizes.
fn lawful(windows: usize) -> Vec<Sample> {
    let mut samples = Vec::new();
    for window in 0..windows {
        for at in 0..10_u64 {
            let n = window as u64 * 10 + at;
            let (prefill, decode) = (n * 37 % 400, 1 + n * 13 % 60);
            let mut step = facts(n, 0, 9_000_000, prefill, decode);
            step.context_hist = [0; 12];
            step.context_hist[(n % 5) as usize] = decode + u64::from(prefill > 0);
            let noise = 1.0 + 0.02 * ((n * 7919 % 101) as f64 / 50.0 - 1.0);
            let f = features(&step);
            let attention = (20_000.0 + 8_000.0 * f[5]) * noise;
            let dense = (300_000.0 + 900.0 * (f[1] + f[2] + f[6])) * noise;
            samples.push(Sample {
                window,
                facts: step,
                families: vec![(FamilyId(2), attention), (Families::DENSE, dense)],
                union_ns: attention + dense,
            });
        }
    }
    samples
}

#[test]
fn a_law_is_found_and_holds_on_windows_held_out() {
    let found = calibrate(&lawful(9)).unwrap();
    assert_eq!(found.windows, (6, 3));
    let union = found.union.unwrap();
    assert!(union.mape < 0.05 && union.r2.unwrap() > 0.95, "{union:?}");
    for (family, score) in &found.families {
        assert!(score.mape < 0.05, "{family:?} {score:?}");
    }
    let dense = found.calibration.modes[0].families.iter().find(|(id, _)| *id == Families::DENSE);
    let costs = dense.unwrap().1;
    assert!((costs[1] - 900.0).abs() < 60.0, "{costs:?}: a prompt token costs 0.9 us");
    let text = found.render(&Families::standard().unwrap());
    assert!(text.contains("fitted on 6 windows, judged on 3 held out"), "{text}");
    assert!(found.residual_ns.unwrap() > 0.0);
}

#[test]
fn what_was_not_seen_is_not_predicted() {
    let calibration = calibrate(&lawful(9)).unwrap().calibration;
    let mut step = facts(0, 0, 1, 5_000, 10);
    let error = calibration.predict(&step).unwrap_err();
    assert!(
        error.to_string().starts_with("prompt token 5000 lies outside of what was seen, 0 to 3"),
        "{error}"
    );
    step = facts(0, 0, 1, 100, 10);
    assert!(calibration.predict(&step).is_ok());
    step.mode = GraphMode::Piecewise;
    assert_eq!(
        calibration.predict(&step).unwrap_err().to_string(),
        "no step with piecewise graph was seen"
    );
}

#[test]
fn recomputed_prompts_are_left_out() {
    let mut samples = lawful(9);
    for sample in samples.iter_mut().step_by(3) {
        sample.facts.resumed_tokens = 128;
        sample.families.iter_mut().for_each(|(_, ns)| *ns *= 50.0);
        sample.union_ns *= 50.0;
    }
    let found = calibrate(&samples).unwrap();
    assert_eq!(found.resumed, 30);
    assert!(found.union.unwrap().mape < 0.05);
}

#[test]
fn too_little_is_refused() {
    assert_eq!(calibrate(&lawful(2)), Err(CalibrateError::TooFewWindows(2)));
    let few: Vec<Sample> = lawful(4).into_iter().step_by(4).collect();
    assert!(matches!(calibrate(&few), Err(CalibrateError::TooFewSteps(_))));
}
