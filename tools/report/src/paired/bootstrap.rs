//! Bootstrap intervals of a mean of few values.
//!
//! Up to six values every resample is looked at, 6^6 = 46,656 of them, so no chance is involved; beyond,
//! a fixed number is drawn from a seed. Resamples of one value repeated have no spread and no
//! studentised mean: they are left out there.

use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{mean, squares_about};
use crate::student::{normal_quantile, normal_share};

/// Two-sided 95 % intervals of a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Studentised (bootstrap-t).
    pub studentised: (f64, f64),
    /// Bias-corrected and accelerated.
    pub bca: (f64, f64),
    /// How the resamples came about.
    pub resamples: Resamples,
}

/// How resamples came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resamples {
    /// All there are.
    All(usize),
    /// Drawn from this seed.
    Drawn {
        /// How many.
        count: usize,
        /// The seed.
        seed: u64,
    },
}

/// The intervals; `None` of fewer than three values, or when they do not differ at all.
#[must_use]
pub fn bootstrap(values: &[f64], seed: u64) -> Option<Bootstrap> {
    let n = values.len();
    let centre = mean(values);
    let error = standard_error(values);
    if n < 3 || error <= 0.0 {
        return None;
    }
    let (mut means, mut ts) = (Vec::new(), Vec::new());
    let mut take = |resample: &[f64]| {
        let at = mean(resample);
        means.push(at);
        let error = standard_error(resample);
        if error > 0.0 {
            ts.push((at - centre) / error);
        }
    };
    let resamples = if n <= ALL_UP_TO {
        Resamples::All(every_resample(values, &mut take))
    } else {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut resample = vec![0.0; n];
        for _ in 0..DRAWN {
            resample.fill_with(|| values[random.random_range(0..n)]);
            take(&resample);
        }
        Resamples::Drawn { count: DRAWN, seed }
    };
    means.sort_by(f64::total_cmp);
    ts.sort_by(f64::total_cmp);
    let studentised =
        (centre - quantile(&ts, 0.975) * error, centre - quantile(&ts, 0.025) * error);
    Some(Bootstrap { studentised, bca: bca(values, centre, &means), resamples })
}

/// Hands over every sequence of as many of `values` as there are, and says how many that were.
fn every_resample(values: &[f64], take: &mut impl FnMut(&[f64])) -> usize {
    let n = values.len();
    let mut places = vec![0; n];
    let mut count = 0;
    loop {
        let resample: Vec<f64> = places.iter().map(|&place: &usize| values[place]).collect();
        take(&resample);
        count += 1;
        let Some(digit) = places.iter().position(|&place| place + 1 < n) else { return count };
        places[digit] += 1;
        places[..digit].fill(0);
    }
}

fn bca(values: &[f64], centre: f64, means: &[f64]) -> (f64, f64) {
    // Means that are equal but for rounding count half.
    let tolerance = 1e-12 * centre.abs().max(standard_error(values));
    let below = means.iter().filter(|&&m| m < centre - tolerance).count() as f64;
    let equal = means.iter().filter(|&&m| (m - centre).abs() <= tolerance).count() as f64;
    let bias = normal_quantile((below + equal / 2.0) / means.len() as f64);
    let total: f64 = values.iter().sum();
    let others = (values.len() - 1) as f64;
    let left_out: Vec<f64> = values.iter().map(|value| (total - value) / others).collect();
    let middle = mean(&left_out);
    let cubes: f64 = left_out.iter().map(|m| (middle - m).powi(3)).sum();
    let acceleration = cubes / (6.0 * squares_about(&left_out, middle).powf(1.5));
    let end = |share: f64| {
        let z = bias + normal_quantile(share);
        quantile(means, normal_share(bias + z / (1.0 - acceleration * z)))
    };
    (end(0.025), end(0.975))
}

/// The value at the nearest rank of sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

fn standard_error(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    (squares_about(values, mean(values)) / (n - 1.0) / n).sqrt()
}

/// Up to so many values all resamples are looked at.
const ALL_UP_TO: usize = 6;

/// Resamples that are drawn.
const DRAWN: usize = 20_000;
