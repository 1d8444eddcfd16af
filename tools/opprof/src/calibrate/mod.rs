//! Kernel time from composition: fitted on some windows, judged on others.
//!
//! ```text
//! windows --two in three--> fit per graph mode and family (costs not negative)
//!         --one in three--> predict, compare: MAPE and R2 held out
//! ```
//!
//! A fit is good for what it saw. Outside the range of any feature, or for a mode of graphs that it never
//! met, it refuses to predict. Steps that compute again what a preemption threw away are left out: their
//! tokens are counted as decodes and cost as prompts.

mod features;
mod json;
mod nnls;
#[cfg(test)]
mod tests;
mod text;

pub use features::{FEATURE_COUNT, FEATURES, features};

use crate::attribute::Window;
use crate::families::FamilyId;
use crate::steps::{GraphMode, StepFacts};

/// One step whose kernel time is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its window.
    pub window: usize,
    /// What it was made of.
    pub facts: StepFacts,
    /// Time of each family on the slowest rank, nanoseconds.
    pub families: Vec<(FamilyId, f64)>,
    /// Time that all kernels cover.
    pub union_ns: f64,
}

/// A fit of one graph mode.
#[derive(Clone, Debug, PartialEq)]
pub struct ModeFit {
    /// The mode.
    pub mode: GraphMode,
    /// Steps that it was fitted on.
    pub steps: usize,
    /// Costs of each family by feature, nanoseconds.
    pub families: Vec<(FamilyId, [f64; FEATURE_COUNT])>,
    /// Costs of the union of all families.
    pub union: [f64; FEATURE_COUNT],
    /// The least and the greatest of each feature.
    pub range: [(f64, f64); FEATURE_COUNT],
}

/// All modes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibration {
    /// In order of modes.
    pub modes: Vec<ModeFit>,
}

/// A predicted step.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Each family, nanoseconds.
    pub families: Vec<(FamilyId, f64)>,
    /// All kernels.
    pub union_ns: f64,
}

/// Why nothing is predicted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OutOfRange {
    /// No step of this mode was seen.
    #[error("no step with {} was seen", .0.name())]
    Mode(GraphMode),
    /// A feature lies where no step was.
    #[error("{feature} {value} lies outside of what was seen, {low} to {high}")]
    Feature {
        /// Which.
        feature: &'static str,
        /// Its value.
        value: f64,
        /// The least seen.
        low: f64,
        /// The greatest seen.
        high: f64,
    },
}

/// Why there is no calibration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrateError {
    /// Nothing can be held out.
    #[error(
        "{0} windows with kernels and records: three are needed, two to fit and one to hold out"
    )]
    TooFewWindows(usize),
    /// No mode has enough steps.
    #[error("no graph mode has the {STEPS_MIN} steps that a fit needs; the most is {0}")]
    TooFewSteps(usize),
}

/// How well a quantity is predicted on windows that were held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Steps.
    pub steps: usize,
    /// Their mean, nanoseconds.
    pub mean_ns: f64,
    /// Mean absolute error as a share of the value.
    pub mape: f64,
    /// Share of the variance that is explained; `None` when there is none.
    pub r2: Option<f64>,
}

/// A calibration and its trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// The fit, on the windows that were not held out.
    pub calibration: Calibration,
    /// Windows fitted on and held out.
    pub windows: (usize, usize),
    /// Steps left out for their recomputed tokens.
    pub resumed: usize,
    /// Held-out steps that it refused to predict.
    pub refused: usize,
    /// All kernels.
    pub union: Option<Score>,
    /// Each family.
    pub families: Vec<(FamilyId, Score)>,
    /// Mean of span less covered time over the fitted steps, nanoseconds: what no kernel explains.
    pub residual_ns: Option<f64>,
}

/// The samples of attributed windows; steps without record or kernels have none.
#[must_use]
pub fn samples(windows: &[Window]) -> Vec<Sample> {
    let of = |(window, w): (usize, &Window)| {
        w.steps
            .iter()
            .filter_map(|step| {
                let facts = step.record.filter(|_| step.cover.count > 0)?;
                let families = step.cover.families.iter();
                let families = families.map(|f| (f.family, f.union_ns as f64)).collect();
                Some(Sample { window, facts, families, union_ns: step.cover.union_ns as f64 })
            })
            .collect::<Vec<_>>()
    };
    windows.iter().enumerate().flat_map(of).collect()
}

/// Fits on two windows of three and judges on the third.
///
/// # Errors
/// Too little to fit or to hold out.
pub fn calibrate(samples: &[Sample]) -> Result<Calibrated, CalibrateError> {
    let mut windows: Vec<usize> = samples.iter().map(|sample| sample.window).collect();
    windows.dedup();
    if windows.len() < HELD_OUT_EVERY {
        return Err(CalibrateError::TooFewWindows(windows.len()));
    }
    let usable = || samples.iter().filter(|sample| sample.facts.resumed_tokens == 0);
    let held_out = |sample: &&Sample| {
        let place = windows.iter().position(|window| *window == sample.window).unwrap_or(0);
        place % HELD_OUT_EVERY == HELD_OUT_EVERY - 1
    };
    let fitted: Vec<&Sample> = usable().filter(|sample| !held_out(sample)).collect();
    let calibration = Calibration::fit(&fitted)?;
    let tried: Vec<&Sample> = usable().filter(held_out).collect();
    let predicted: Vec<(&Sample, Prediction)> = tried
        .iter()
        .filter_map(|sample| Some((*sample, calibration.predict(&sample.facts).ok()?)))
        .collect();
    let residuals: Vec<f64> =
        fitted.iter().map(|s| s.facts.span_ns() as f64 - s.union_ns).collect();
    let held = windows.len() / HELD_OUT_EVERY;
    Ok(Calibrated {
        windows: (windows.len() - held, held),
        resumed: samples.len() - usable().count(),
        refused: tried.len() - predicted.len(),
        union: Score::of(predicted.iter().map(|(s, p)| (s.union_ns, p.union_ns))),
        families: family_scores(&predicted),
        residual_ns: (!residuals.is_empty())
            .then(|| residuals.iter().sum::<f64>() / residuals.len() as f64),
        calibration,
    })
}

impl Calibration {
    /// Fits each mode that has steps enough.
    fn fit(samples: &[&Sample]) -> Result<Self, CalibrateError> {
        let mut modes: Vec<GraphMode> = samples.iter().map(|sample| sample.facts.mode).collect();
        modes.sort_unstable();
        modes.dedup();
        let of = |mode| -> Vec<&Sample> {
            samples.iter().copied().filter(|sample| sample.facts.mode == mode).collect()
        };
        let most = modes.iter().map(|&mode| of(mode).len()).max().unwrap_or(0);
        let fits: Vec<ModeFit> = modes
            .into_iter()
            .map(|mode| (mode, of(mode)))
            .filter(|(_, samples)| samples.len() >= STEPS_MIN)
            .map(|(mode, samples)| ModeFit::new(mode, &samples))
            .collect();
        if fits.is_empty() {
            Err(CalibrateError::TooFewSteps(most))
        } else {
            Ok(Self { modes: fits })
        }
    }

    /// Predicts the kernel time of a step.
    ///
    /// # Errors
    /// The step is not like those that were seen.
    pub fn predict(&self, facts: &StepFacts) -> Result<Prediction, OutOfRange> {
        let fit = self.modes.iter().find(|fit| fit.mode == facts.mode);
        let fit = fit.ok_or(OutOfRange::Mode(facts.mode))?;
        let values = features(facts);
        for (at, (&value, &(low, high))) in values.iter().zip(&fit.range).enumerate() {
            if !(low..=high).contains(&value) {
                return Err(OutOfRange::Feature { feature: FEATURES[at], value, low, high });
            }
        }
        let cost =
            |costs: &[f64; FEATURE_COUNT]| costs.iter().zip(&values).map(|(c, v)| c * v).sum();
        Ok(Prediction {
            families: fit.families.iter().map(|(family, costs)| (*family, cost(costs))).collect(),
            union_ns: cost(&fit.union),
        })
    }
}

impl ModeFit {
    fn new(mode: GraphMode, samples: &[&Sample]) -> Self {
        let rows: Vec<Vec<f64>> = samples.iter().map(|s| features(&s.facts).to_vec()).collect();
        let costs = |of: &dyn Fn(&Sample) -> f64| {
            let values: Vec<f64> = samples.iter().map(|sample| of(sample)).collect();
            let mut costs = [0.0; FEATURE_COUNT];
            costs.copy_from_slice(&nnls::nnls(&rows, &values));
            costs
        };
        let mut ids: Vec<FamilyId> =
            samples.iter().flat_map(|s| s.families.iter().map(|(id, _)| *id)).collect();
        ids.sort_unstable();
        ids.dedup();
        let range = |at: usize| {
            let values = rows.iter().map(|row| row[at]);
            (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
        };
        Self {
            mode,
            steps: samples.len(),
            families: ids.into_iter().map(|id| (id, costs(&|sample| sample.family(id)))).collect(),
            union: costs(&|sample| sample.union_ns),
            range: std::array::from_fn(range),
        }
    }
}

impl Sample {
    fn family(&self, id: FamilyId) -> f64 {
        self.families.iter().find(|(family, _)| *family == id).map_or(0.0, |(_, ns)| *ns)
    }
}

impl Score {
    /// Of pairs of what was and what was predicted; `None` of none.
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = pairs.filter(|(was, _)| *was > 0.0).collect();
        if pairs.is_empty() {
            return None;
        }
        let n = pairs.len() as f64;
        let mean = pairs.iter().map(|(was, _)| was).sum::<f64>() / n;
        let missed: f64 = pairs.iter().map(|(was, said)| (was - said).powi(2)).sum();
        let spread: f64 = pairs.iter().map(|(was, _)| (was - mean).powi(2)).sum();
        Some(Self {
            steps: pairs.len(),
            mean_ns: mean,
            mape: pairs.iter().map(|(was, said)| (was - said).abs() / was).sum::<f64>() / n,
            r2: (spread > 0.0).then(|| 1.0 - missed / spread),
        })
    }
}

fn family_scores(predicted: &[(&Sample, Prediction)]) -> Vec<(FamilyId, Score)> {
    let mut ids: Vec<FamilyId> =
        predicted.iter().flat_map(|(_, p)| p.families.iter().map(|(id, _)| *id)).collect();
    ids.sort_unstable();
    ids.dedup();
    let score = |id: FamilyId| {
        let pairs = predicted.iter().filter_map(|(sample, prediction)| {
            let said = prediction.families.iter().find(|(family, _)| *family == id)?.1;
            Some((sample.family(id), said))
        });
        Some((id, Score::of(pairs)?))
    };
    ids.into_iter().filter_map(score).collect()
}

/// Of so many windows one is held out.
const HELD_OUT_EVERY: usize = 3;

/// The fewest steps that a mode is fitted on: twice the features.
const STEPS_MIN: usize = 2 * FEATURE_COUNT;
