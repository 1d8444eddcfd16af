//! The overhead gate: does what is switched on cost more than is allowed?
//!
//! ```text
//! off/on pairs --refusals--> per metric: cost d = ln ratio --t interval--> below, above or across the limit
//! ```
//!
//! The gate passes when every primary metric's whole interval lies below the limit, and fails when one
//! lies above it. All must pass, so there is nothing to correct for in asking several. Between the two it
//! is inconclusive, and says how many pairs would decide.

mod refusal;
mod run;
#[cfg(test)]
mod tests;
mod text;
mod trial;
mod warning;

pub use run::{Arm, Beside, GateRun, RunsError, read_runs};
pub use trial::{Effect, ErrorRates, TRIAL_SHAPES, TrialShape, error_rates};

use takt_report::paired::{Compared, Metric, PAIRS_MIN, Pair};

/// What is allowed and how it is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateLimits {
    /// The allowed cost as a ratio: 1.03 is 3 %.
    pub ratio: f64,
    /// Seed of the resamples that are drawn beyond six pairs; `None` for no bootstrap.
    pub seed: Option<u64>,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self { ratio: 1.03, seed: Some(0) }
    }
}

/// The judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Every interval lies below the limit.
    Pass,
    /// An interval lies above it.
    Fail,
    /// Neither.
    Inconclusive,
}

/// One metric's judgement.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricGate {
    /// What the pairs say.
    pub compared: Compared,
    /// Its own verdict.
    pub verdict: GateVerdict,
    /// Pairs with which it would probably be decided; `None` when it is, or when it takes too many.
    pub pairs_to_decide: Option<usize>,
}

/// What the gate says.
#[derive(Clone, Debug, PartialEq)]
pub struct GateReport {
    /// What was allowed.
    pub limits: GateLimits,
    /// Pairs.
    pub pairs: usize,
    /// Of all metrics.
    pub verdict: GateVerdict,
    /// Each one.
    pub metrics: Vec<MetricGate>,
    /// Metrics that no run has.
    pub not_measured: Vec<Metric>,
    /// What the runs do not show.
    pub not_checked: Vec<&'static str>,
    /// What should make the reader careful.
    pub warnings: Vec<String>,
    /// Means of what is known besides, off and on.
    pub beside: [ArmMeans; 2],
}

/// What an arm took besides; `None` where no run tells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArmMeans {
    /// Mean processor time, seconds.
    pub cpu_s: Option<f64>,
    /// Mean bytes of records a step.
    pub log_bytes_per_step: Option<f64>,
    /// The most records that ever waited at once.
    pub queue_high_watermark: Option<u64>,
    /// Records lost, all runs together.
    pub dropped: Option<u64>,
}

/// Two runs of one pair, in order of their places in the file.
pub(crate) struct Matched<'a> {
    off: &'a GateRun,
    on: &'a GateRun,
    off_first: bool,
}

/// Judges runs, given in the order in which they ran.
///
/// # Errors
/// Every reason for which no judgement may be had.
pub fn gate(runs: &[GateRun], limits: GateLimits) -> Result<GateReport, Vec<String>> {
    let pairs = refusal::pairs(runs)?;
    let mut reasons = refusal::of_runs(&pairs);
    let mut metrics = Vec::new();
    let mut not_measured = Vec::new();
    for (at, metric) in Metric::ALL.into_iter().enumerate() {
        let values: Vec<Option<(f64, f64)>> =
            pairs.iter().map(|p| p.off.figures[at].zip(p.on.figures[at])).collect();
        if runs.iter().all(|run| run.figures[at].is_none()) {
            not_measured.push(metric);
            continue;
        }
        let Some(values) = values.into_iter().collect::<Option<Vec<_>>>() else {
            reasons.push(format!("{}: some runs have no value", metric.name()));
            continue;
        };
        let differences = values.iter().zip(&pairs).map(|(&(off, on), pair)| Pair {
            difference: metric.cost(off, on),
            base_first: pair.off_first,
        });
        match Compared::new(metric, differences.collect(), limits.seed) {
            Some(mut compared) if pairs.len() < PAIRS_MIN || compared.balanced.is_some() => {
                // Two runs of one order and three of the other tell nothing about orders.
                compared.balanced = compared.balanced.filter(|_| pairs.len() >= PAIRS_MIN);
                metrics.push(MetricGate::new(compared, pairs.len(), limits));
            }
            _ => {
                let name = metric.name();
                reasons.push(format!("{name}: no variance over the pairs: copied runs?"));
            }
        }
    }
    if metrics.is_empty() && reasons.is_empty() {
        reasons.push("no run has a primary metric".to_owned());
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    Ok(GateReport {
        limits,
        pairs: pairs.len(),
        verdict: of_all(&metrics),
        warnings: warning::all(&pairs, &metrics),
        not_checked: refusal::not_checked(&pairs),
        metrics,
        not_measured,
        beside: [ArmMeans::of(&pairs, |p| p.off), ArmMeans::of(&pairs, |p| p.on)],
    })
}

fn of_all(metrics: &[MetricGate]) -> GateVerdict {
    if metrics.iter().any(|m| m.verdict == GateVerdict::Fail) {
        GateVerdict::Fail
    } else if metrics.iter().all(|m| m.verdict == GateVerdict::Pass) {
        GateVerdict::Pass
    } else {
        GateVerdict::Inconclusive
    }
}

impl GateReport {
    /// Pairs with which all metrics would probably be decided; `None` when some take too many.
    #[must_use]
    pub fn pairs_to_decide(&self) -> Option<usize> {
        let open = self.metrics.iter().filter(|m| m.verdict == GateVerdict::Inconclusive);
        open.map(|m| m.pairs_to_decide).try_fold(0, |most, pairs| Some(most.max(pairs?)))
    }
}

impl MetricGate {
    fn new(compared: Compared, pairs: usize, limits: GateLimits) -> Self {
        let limit = limits.ratio.ln();
        let estimate = compared.estimate();
        let verdict = if estimate.high < limit {
            GateVerdict::Pass
        } else if estimate.low > limit {
            GateVerdict::Fail
        } else {
            GateVerdict::Inconclusive
        };
        let open = verdict == GateVerdict::Inconclusive;
        let pairs_to_decide = open.then(|| estimate.pairs_to_decide(pairs, limit)).flatten();
        Self { compared, verdict, pairs_to_decide }
    }
}

impl ArmMeans {
    fn of<'a>(pairs: &'a [Matched<'a>], arm: impl Fn(&Matched<'a>) -> &'a GateRun) -> Self {
        let beside = || pairs.iter().map(|pair| &arm(pair).beside);
        let mean = |value: fn(&Beside) -> Option<f64>| {
            let values: Option<Vec<f64>> = beside().map(value).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        };
        Self {
            cpu_s: mean(|b| b.cpu_s),
            log_bytes_per_step: mean(|b| b.log_bytes_per_step),
            queue_high_watermark: beside().filter_map(|b| b.queue_high_watermark).max(),
            dropped: beside().map(|b| b.dropped).sum(),
        }
    }
}
