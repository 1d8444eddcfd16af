//! Two arms compared over pairs of runs.
//!
//! Each pair gives one difference; requests are never pooled over runs, since those of one run share its
//! luck. Within a pair one arm runs first, and being first may matter, so the model is
//! `d = tau + pi * s` with `s = +1` when the base arm ran first and `-1` when it ran second. `tau`, what
//! is wanted, is the mean of the two order means; one degree of freedom goes to each mean.
//!
//! The interval that decides is Student's. The bootstrap is there for comparison: with the few pairs
//! that anyone runs it covers less than it claims, and `docs/DESIGN.md` has the figures.

mod bootstrap;
mod metric;
#[cfg(test)]
mod tests;

pub use bootstrap::{Bootstrap, Resamples, bootstrap};
pub use metric::{Compared, Metric, percent};

use crate::student::t_quantile;

/// What one pair of runs shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The difference between its arms, on the scale on which effects add up.
    pub difference: f64,
    /// The base arm ran first.
    pub base_first: bool,
}

/// An estimate with its two-sided 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The effect.
    pub effect: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom.
    pub df: usize,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Effect and order effect of pairs in both orders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balanced {
    /// `tau`, free of the order effect.
    pub effect: Estimate,
    /// `pi`: half of what it costs an arm to run second.
    pub order: Estimate,
}

/// The effect by the order-balanced model; `None` with fewer than two pairs of an order, or when the
/// pairs of an order do not differ at all.
#[must_use]
pub fn balanced(pairs: &[Pair]) -> Option<Balanced> {
    let of = |first: bool| -> Vec<f64> {
        pairs.iter().filter(|p| p.base_first == first).map(|p| p.difference).collect()
    };
    let (first, second) = (of(true), of(false));
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    let (mean_first, mean_second) = (mean(&first), mean(&second));
    let df = pairs.len() - 2;
    let squares = squares_about(&first, mean_first) + squares_about(&second, mean_second);
    let variance = squares / df as f64;
    let counts = 1.0 / first.len() as f64 + 1.0 / second.len() as f64;
    let error = 0.5 * (variance * counts).sqrt();
    (error > 0.0).then(|| Balanced {
        effect: Estimate::new(f64::midpoint(mean_first, mean_second), error, df),
        order: Estimate::new((mean_first - mean_second) / 2.0, error, df),
    })
}

/// The mean difference by the paired t of the textbooks, which takes no notice of the order; `None`
/// of fewer than two, or when they do not differ at all.
#[must_use]
pub fn plain(differences: &[f64]) -> Option<Estimate> {
    let n = differences.len();
    if n < 2 {
        return None;
    }
    let effect = mean(differences);
    let variance = squares_about(differences, effect) / (n - 1) as f64;
    let error = (variance / n as f64).sqrt();
    (error > 0.0).then(|| Estimate::new(effect, error, n - 1))
}

/// The difference of the means of two samples that are not paired, second less first, by Welch's t with
/// degrees of freedom rounded down; `None` with fewer than two values on a side, or without spread.
#[must_use]
pub fn welch(first: &[f64], second: &[f64]) -> Option<Estimate> {
    let (n, m) = (first.len() as f64, second.len() as f64);
    if n < 2.0 || m < 2.0 {
        return None;
    }
    let (a, b) = (mean(first), mean(second));
    let of_first = squares_about(first, a) / (n - 1.0) / n;
    let of_second = squares_about(second, b) / (m - 1.0) / m;
    let variance = of_first + of_second;
    let df = variance.powi(2) / (of_first.powi(2) / (n - 1.0) + of_second.powi(2) / (m - 1.0));
    (variance > 0.0).then(|| Estimate::new(b - a, variance.sqrt(), (df as usize).max(1)))
}

/// The slope of `values` over their places `0, 1, …`; `None` of fewer than three, or without spread.
#[must_use]
pub fn slope(values: &[f64]) -> Option<Estimate> {
    let n = values.len();
    if n < 3 {
        return None;
    }
    let middle = (n - 1) as f64 / 2.0;
    let level = mean(values);
    let places = (0..n).map(|at| at as f64 - middle);
    let across: f64 = places.clone().map(|x| x * x).sum();
    let slope = places.clone().zip(values).map(|(x, y)| x * (y - level)).sum::<f64>() / across;
    let squares: f64 = places.zip(values).map(|(x, y)| (y - level - slope * x).powi(2)).sum();
    let error = (squares / (n - 2) as f64 / across).sqrt();
    (error > 0.0).then(|| Estimate::new(slope, error, n - 2))
}

impl Estimate {
    fn new(effect: f64, error: f64, df: usize) -> Self {
        let half = t_quantile(0.975, df) * error;
        Self { effect, error, df, low: effect - half, high: effect + half }
    }

    /// Whether the interval leaves zero out.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The even number of pairs with which the interval would leave `limit` out four times in five, when
    /// effect and spread are what they look like now; `None` when that takes more than [`PAIRS_MAX`].
    #[must_use]
    pub fn pairs_to_decide(&self, pairs: usize, limit: f64) -> Option<usize> {
        let distance = (self.effect - limit).abs();
        let spread = self.error * (pairs as f64).sqrt();
        let enough = |n: usize| {
            let df = n - 2;
            let quantiles = t_quantile(0.975, df) + t_quantile(0.8, df);
            quantiles * spread / (n as f64).sqrt() <= distance
        };
        // The more pairs the narrower, so halving the range finds the first.
        if !enough(PAIRS_MAX) {
            return None;
        }
        let (mut low, mut high) = (PAIRS_MIN / 2, PAIRS_MAX / 2);
        while low < high {
            let middle = usize::midpoint(low, high);
            if enough(2 * middle) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(2 * high)
    }
}

/// The least even number of pairs with a degree of freedom to spare in each order.
pub const PAIRS_MIN: usize = 6;

/// More pairs than anybody runs.
pub const PAIRS_MAX: usize = 1000;

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares_about(values: &[f64], centre: f64) -> f64 {
    values.iter().map(|value| (value - centre).powi(2)).sum()
}
