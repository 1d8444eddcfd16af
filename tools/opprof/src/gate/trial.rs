//! The gate tried on runs whose true cost is known.
//!
//! Runs are drawn with noise of several shapes around a known cost, the gate judges them, and its verdicts
//! are counted. With a true cost at the limit it should pass once in forty times and fail once in forty.

use rand::SeedableRng as _;
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Arm, Beside, GateLimits, GateRun, GateVerdict, gate};

/// How runs vary around their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialShape {
    /// Normally.
    Normal,
    /// With a long tail on the slow side.
    Skewed,
    /// Normally, and whoever runs second is 4 % slower.
    OrderEffect,
    /// Normally, while the machine gets slower by 0.5 % each run.
    Drift,
}

/// Every shape.
pub const TRIAL_SHAPES: [TrialShape; 4] =
    [TrialShape::Normal, TrialShape::Skewed, TrialShape::OrderEffect, TrialShape::Drift];

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The true cost of `on` as a share: 0.03 is 3 %.
    pub cost: f64,
    /// How runs vary.
    pub shape: TrialShape,
    /// Standard deviation of a run, as a share.
    pub spread: f64,
    /// Pairs.
    pub pairs: usize,
}

/// How often each verdict came, as shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorRates {
    /// PASS.
    pub pass: f64,
    /// FAIL.
    pub fail: f64,
    /// INCONCLUSIVE.
    pub inconclusive: f64,
}

/// Judges `trials` sets of runs of one metric.
#[must_use]
pub fn error_rates(effect: Effect, trials: u32, seed: u64) -> ErrorRates {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    // What decides is the t interval; the bootstrap is for the record.
    let limits = GateLimits { seed: None, ..GateLimits::default() };
    let mut count = [0_u32; 3];
    for _ in 0..trials {
        let runs = draw(effect, &mut random);
        let verdict = gate(&runs, limits).map(|report| report.verdict);
        count[match verdict {
            Ok(GateVerdict::Pass) => 0,
            Ok(GateVerdict::Fail) => 1,
            Ok(GateVerdict::Inconclusive) | Err(_) => 2,
        }] += 1;
    }
    let [pass, fail, inconclusive] = count.map(|n| f64::from(n) / f64::from(trials));
    ErrorRates { pass, fail, inconclusive }
}

/// Pairs in the orders AB, BA, AB, …, one metric each.
fn draw(effect: Effect, random: &mut Xoshiro256PlusPlus) -> Vec<GateRun> {
    let mut runs = Vec::new();
    for pair in 0..effect.pairs {
        let arms = if pair % 2 == 0 { [Arm::Off, Arm::On] } else { [Arm::On, Arm::Off] };
        for (place, arm) in arms.into_iter().enumerate() {
            let noise: f64 = match effect.shape {
                TrialShape::Skewed => {
                    let tail: f64 = Exp1.sample(random);
                    tail - 1.0
                }
                TrialShape::Normal | TrialShape::OrderEffect | TrialShape::Drift => {
                    StandardNormal.sample(random)
                }
            };
            let known = match effect.shape {
                TrialShape::OrderEffect => SECOND * place as f64,
                TrialShape::Drift => DRIFT * runs.len() as f64,
                TrialShape::Normal | TrialShape::Skewed => 0.0,
            };
            let cost = if arm == Arm::On { effect.cost.ln_1p() } else { 0.0 };
            let latency = 50.0 * (cost + known + noise * effect.spread).exp();
            let figures = [None, Some(latency), None, None, None];
            runs.push(GateRun { pair: pair.to_string(), arm, figures, beside: Beside::default() });
        }
    }
    runs
}

/// What it costs to run second, as a logarithm.
const SECOND: f64 = 0.04;

/// What each run costs the next, as a logarithm.
const DRIFT: f64 = 0.005;
