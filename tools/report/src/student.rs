//! Quantiles of Student's t and of the normal distribution.

use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// The value below which a share `p` of Student's t with `df` degrees of freedom lies.
pub(crate) fn t_quantile(p: f64, df: usize) -> f64 {
    StudentsT::new(0.0, 1.0, df as f64).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// The value below which a share `p` of the standard normal distribution lies.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// The share of the standard normal distribution below `z`.
pub(crate) fn normal_share(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_those_of_the_printed_tables() {
        // Two-sided 95 % and 80 % columns of the usual table (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
        let table = [
            (1, 12.706, 3.078),
            (2, 4.303, 1.886),
            (3, 3.182, 1.638),
            (4, 2.776, 1.533),
            (5, 2.571, 1.476),
            (8, 2.306, 1.397),
            (10, 2.228, 1.372),
            (30, 2.042, 1.310),
            (100, 1.984, 1.290),
        ];
        for (df, t975, t90) in table {
            assert!((t_quantile(0.975, df) - t975).abs() < 6e-4, "{df}");
            assert!((t_quantile(0.9, df) - t90).abs() < 6e-4, "{df}");
            assert!((t_quantile(0.025, df) + t975).abs() < 6e-4, "{df}");
        }
    }

    #[test]
    fn normal_quantiles_are_those_of_the_printed_tables() {
        assert!((normal_quantile(0.975) - 1.959_964).abs() < 1e-6);
        assert!((normal_share(1.959_964) - 0.975).abs() < 1e-6);
    }
}
