//! The figures of a run that are compared, and the scale on which they are.
//!
//! Effects are ratios, so differences are taken of logarithms, and turned so that more is worse for every
//! metric: 0.0296 is 3 % less throughput, or 3 % more latency, whichever it is.

use takt_record::{Distribution, PhaseResult};

use super::{Balanced, Bootstrap, Estimate, Pair, balanced, bootstrap, plain};

/// A primary figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Answers a second.
    Throughput,
    /// Median time to first token.
    TtftP50,
    /// 95th percentile of the time to first token.
    TtftP95,
    /// Median time per output token.
    TpotP50,
    /// 95th percentile of the time per output token.
    TpotP95,
}

impl Metric {
    /// Every one, in the order of reports.
    pub const ALL: [Self; 5] =
        [Self::Throughput, Self::TtftP50, Self::TtftP95, Self::TpotP50, Self::TpotP95];

    /// What it is called in a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::TtftP50 => "TTFT p50",
            Self::TtftP95 => "TTFT p95",
            Self::TpotP50 => "TPOT p50",
            Self::TpotP95 => "TPOT p95",
        }
    }

    /// Its value in the result of a phase; `None` when it was not had. Latencies are in milliseconds, from
    /// schedule where there is one.
    #[must_use]
    pub fn of(self, phase: &PhaseResult) -> Option<f64> {
        let ttft = || phase.ttft_ms.from_schedule.or(phase.ttft_ms.from_send);
        let p50 = |d: Distribution| d.p.p50;
        let p95 = |d: Distribution| d.p.p95;
        let value = match self {
            Self::Throughput => phase.successful_per_s,
            Self::TtftP50 => ttft().map(p50),
            Self::TtftP95 => ttft().map(p95),
            Self::TpotP50 => phase.tpot_ms.map(p50),
            Self::TpotP95 => phase.tpot_ms.map(p95),
        };
        value.filter(|value| *value > 0.0)
    }

    /// What `other` costs against `base`, as a logarithm: above 0 is worse. Both are positive.
    #[must_use]
    pub fn cost(self, base: f64, other: f64) -> f64 {
        match self {
            Self::Throughput => (base / other).ln(),
            Self::TtftP50 | Self::TtftP95 | Self::TpotP50 | Self::TpotP95 => (other / base).ln(),
        }
    }
}

/// One metric over pairs of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Which.
    pub metric: Metric,
    /// The pairs in the order in which they ran.
    pub pairs: Vec<Pair>,
    /// By the order-balanced model, when both orders are there.
    pub balanced: Option<Balanced>,
    /// By the plain paired t.
    pub plain: Estimate,
    /// By the bootstrap, with the order effect taken out where it is known.
    pub bootstrap: Option<Bootstrap>,
    /// The worst pair.
    pub max: f64,
}

impl Compared {
    /// Compares, with a bootstrap when it gets a seed; `None` when there are fewer than two pairs or no
    /// spread to judge by.
    #[must_use]
    pub fn new(metric: Metric, pairs: Vec<Pair>, seed: Option<u64>) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|pair| pair.difference).collect();
        let plain = plain(&differences)?;
        let balanced = balanced(&pairs);
        let order = balanced.map_or(0.0, |found| found.order.effect);
        let side = |pair: &Pair| if pair.base_first { order } else { -order };
        let freed: Vec<f64> = pairs.iter().map(|pair| pair.difference - side(pair)).collect();
        let max = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let bootstrap = seed.and_then(|seed| bootstrap(&freed, seed));
        Some(Self { metric, pairs, balanced, plain, bootstrap, max })
    }

    /// The estimate that decides: order-balanced if there is one.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.balanced.map_or(self.plain, |found| found.effect)
    }
}

/// A logarithm of a ratio as a change in percent.
#[must_use]
pub fn percent(log_ratio: f64) -> f64 {
    log_ratio.exp_m1() * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_worse_for_every_metric() {
        assert!((Metric::Throughput.cost(100.0, 97.0) - (100.0_f64 / 97.0).ln()).abs() < 1e-12);
        assert!((Metric::TpotP95.cost(100.0, 103.0) - 1.03_f64.ln()).abs() < 1e-12);
        for metric in Metric::ALL {
            assert_eq!(metric.cost(5.0, 5.0), 0.0, "{}", metric.name());
        }
        assert!((percent(1.03_f64.ln()) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_order_effect_is_taken_out_before_the_bootstrap() {
        let pair = |difference, base_first| Pair { difference, base_first };
        let pairs: Vec<Pair> = [(10.1, true), (-9.9, false), (10.3, true), (-9.7, false)]
            .into_iter()
            .chain([(9.9, true), (-10.1, false)])
            .map(|(d, first)| pair(d, first))
            .collect();
        let found = Compared::new(Metric::TtftP50, pairs, Some(0)).unwrap();
        let (low, high) = found.bootstrap.unwrap().studentised;
        assert!(high - low < 1.0 && (found.estimate().effect - 0.1).abs() < 1e-9);
        assert!(found.plain.high - found.plain.low > 10.0, "the plain t drowns in the order");
        assert!((found.max - 10.3).abs() < 1e-12);
    }
}
