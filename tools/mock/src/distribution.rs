//! Distributions of spans and of counts, read from text.
//!
//! | text | meaning |
//! | --- | --- |
//! | `20ms` | always this |
//! | `uniform:10ms..30ms` | uniform between the two; counts include both ends |
//! | `exp:20ms` | exponential, by its mean |
//! | `lognormal:20ms,0.5` | log-normal, by its median and the standard deviation of its logarithm |
//!
//! Spans are written as everywhere in takt (`20ms`, `1.5s`, a bare `0`); counts are bare numbers.
//! The generator is pinned (xoshiro256++, ziggurats of rand_distr), so a seed means the same everywhere.

use std::fmt;
use std::str::FromStr;

use rand::RngExt;
use rand_distr::{Distribution, Exp1, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use takt_time::Span;

/// A distribution of spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpanDistribution(Shape);

/// A distribution of counts of tokens: at least 1, at most [`CountDistribution::MOST`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountDistribution(Shape);

/// The text does not describe a distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no distribution: {why}; write {example}")]
pub struct DistributionError {
    text: String,
    why: String,
    example: &'static str,
}

/// A shape over nanoseconds or over counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Fixed(f64),
    Uniform { low: f64, high: f64 },
    Exponential { mean: f64 },
    LogNormal { median: f64, sigma: f64, drawn: LogNormal<f64> },
}

impl SpanDistribution {
    /// Always `span`.
    #[must_use]
    pub fn fixed(span: Span) -> Self {
        Self(Shape::Fixed(span.as_nanos() as f64))
    }

    /// Draws one, to the nanosecond.
    pub(crate) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> Span {
        // Negative draws do not occur, and the cast saturates.
        Span::from_nanos(self.0.draw(rng).round() as u64)
    }
}

impl CountDistribution {
    /// More tokens than this are never drawn.
    pub const MOST: u32 = 1_000_000;

    /// Always `count`.
    #[must_use]
    pub fn fixed(count: u32) -> Self {
        Self(Shape::Fixed(f64::from(count)))
    }

    /// Draws one.
    pub(crate) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let count = match self.0 {
            // Each whole number from end to end is as likely as the next.
            Shape::Uniform { low, high } => {
                (low + (high - low + 1.0) * rng.random::<f64>()).floor().min(high)
            }
            shape => shape.draw(rng).round(),
        };
        (count as u32).clamp(1, Self::MOST)
    }
}

impl Shape {
    fn draw(self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        match self {
            Self::Fixed(value) => value,
            Self::Uniform { low, high } => low + (high - low) * rng.random::<f64>(),
            Self::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Self::LogNormal { drawn, .. } => drawn.sample(rng),
        }
    }

    fn parse(text: &str, number: fn(&str) -> Result<f64, String>) -> Result<Self, String> {
        let amount = |text: &str| number(text.trim()).map_err(|why| format!("{text:?} {why}"));
        let Some((name, rest)) = text.split_once(':') else {
            return Ok(Self::Fixed(amount(text)?));
        };
        match name.trim() {
            "uniform" => {
                let (low, high) = rest.split_once("..").ok_or("a range has two ends")?;
                let (low, high) = (amount(low)?, amount(high)?);
                if low > high {
                    Err("the range is upside down".to_owned())
                } else {
                    Ok(Self::Uniform { low, high })
                }
            }
            "exp" => Ok(Self::Exponential { mean: amount(rest)? }),
            "lognormal" => {
                let (median, sigma) =
                    rest.split_once(',').ok_or("a log-normal has a median and a sigma")?;
                let median = amount(median)?;
                let sigma = count(sigma.trim()).map_err(|why| format!("sigma {why}"))?;
                if median == 0.0 {
                    return Err("the median of a log-normal is above zero".to_owned());
                }
                let drawn = LogNormal::new(median.ln(), sigma).map_err(|_| "sigma is too large")?;
                Ok(Self::LogNormal { median, sigma, drawn })
            }
            _ => Err("the kinds are uniform, exp and lognormal".to_owned()),
        }
    }

    fn show(self, f: &mut fmt::Formatter<'_>, value: fn(f64) -> String) -> fmt::Result {
        match self {
            Self::Fixed(v) => f.write_str(&value(v)),
            Self::Uniform { low, high } => write!(f, "uniform:{}..{}", value(low), value(high)),
            Self::Exponential { mean } => write!(f, "exp:{}", value(mean)),
            Self::LogNormal { median, sigma, .. } => {
                write!(f, "lognormal:{},{sigma}", value(median))
            }
        }
    }
}

impl FromStr for SpanDistribution {
    type Err = DistributionError;
    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let example = "20ms, uniform:10ms..30ms, exp:20ms or lognormal:20ms,0.5";
        Shape::parse(text, span_ns).map(Self).map_err(|why| DistributionError {
            text: text.to_owned(),
            why,
            example,
        })
    }
}

impl FromStr for CountDistribution {
    type Err = DistributionError;
    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let example = "32, uniform:16..64, exp:32 or lognormal:64,0.7";
        Shape::parse(text, count).map(Self).map_err(|why| DistributionError {
            text: text.to_owned(),
            why,
            example,
        })
    }
}

impl fmt::Display for SpanDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f, |ns| Span::from_nanos(ns as u64).to_string())
    }
}

impl fmt::Display for CountDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.show(f, |count| count.to_string())
    }
}

/// A span in nanoseconds.
fn span_ns(text: &str) -> Result<f64, String> {
    text.parse::<Span>().map(|span| span.as_nanos() as f64).map_err(|error| error.to_string())
}

/// A number that is not negative, and not so large that a sum of them overflows.
fn count(text: &str) -> Result<f64, String> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number = text.parse::<f64>().ok().filter(|n| plain && *n < 1e9);
    number.ok_or_else(|| "is no number from 0 to 1e9".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    /// Mean and extremes of 20,000 draws in nanoseconds, sorted draws' middle last.
    fn draws(text: &str) -> (f64, f64, f64, f64) {
        let shape: SpanDistribution = text.parse().unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut all: Vec<f64> =
            (0..20_000).map(|_| shape.draw(&mut rng).as_nanos() as f64).collect();
        all.sort_unstable_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        (mean, all[0], all[all.len() - 1], all[all.len() / 2])
    }

    fn near(value: f64, expect: f64, part: f64) -> bool {
        (value / expect - 1.0).abs() < part
    }

    #[test]
    fn draws_have_the_moments_that_the_text_says() {
        assert_eq!(draws("20ms"), (2e7, 2e7, 2e7, 2e7));
        let (mean, low, high, _) = draws("uniform:10ms..30ms");
        assert!(near(mean, 2e7, 0.01) && low >= 1e7 && high <= 3e7);
        let (mean, _, _, median) = draws("exp:20ms");
        // The median of an exponential is ln 2 of its mean.
        assert!(near(mean, 2e7, 0.03) && near(median, 2e7 * 2f64.ln(), 0.03));
        let (mean, _, _, median) = draws("lognormal:20ms,0.5");
        // The mean of a log-normal is exp(sigma^2 / 2) of its median.
        assert!(near(median, 2e7, 0.03) && near(mean, 2e7 * 0.125f64.exp(), 0.03));
    }

    #[test]
    fn counts_are_whole_include_both_ends_and_are_at_least_one() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let shape: CountDistribution = "uniform:2..4".parse().unwrap();
        let mut seen = [0; 5];
        (0..3_000).for_each(|_| seen[shape.draw(&mut rng) as usize] += 1);
        assert_eq!(seen[..2], [0, 0]);
        assert!(seen[2..].iter().all(|&n| n > 900), "{seen:?}");
        assert_eq!(CountDistribution::fixed(0).draw(&mut rng), 1);
    }

    #[test]
    fn text_comes_back_as_it_was() {
        for text in ["20ms", "0ns", "uniform:10ms..1.5s", "exp:7us", "lognormal:20ms,0.5"] {
            assert_eq!(text.parse::<SpanDistribution>().unwrap().to_string(), text);
        }
        for text in ["32", "uniform:16..64", "exp:32", "lognormal:64,0.7"] {
            assert_eq!(text.parse::<CountDistribution>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "20",
            "20mm",
            "-1ms",
            "1e3ms",
            "nanms",
            "infs",
            "uniform:1ms",
            "uniform:3ms..1ms",
            "lognormal:0ms,1",
            "lognormal:1ms",
            "lognormal:1ms,-1",
            "normal:1ms",
            "exp:",
            "..",
        ] {
            assert!(text.parse::<SpanDistribution>().is_err(), "{text}");
        }
        assert!("5ms".parse::<CountDistribution>().is_err());
        let error = "uniform:5..9ms".parse::<SpanDistribution>().unwrap_err().to_string();
        assert!(error.contains("\"5\" needs a unit: write 5s"), "{error}");
    }
}
