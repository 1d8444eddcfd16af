//! Microseconds as they stand in a trace, to whole nanoseconds.
//!
//! A time stamp of 2026 in microseconds has 16 digits before the point and three after it: more than a
//! `f64` holds. So the digits are read, not a number.

/// Nanoseconds of a decimal number of microseconds; digits below a nanosecond are rounded. `None` for
/// what is negative, no number or too large.
pub(super) fn nanos(text: &str) -> Option<u64> {
    let text = text.trim_matches('"');
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return with_exponent(text);
    }
    let whole: u64 = whole.parse().ok()?;
    let digit = |at: usize| fraction.as_bytes().get(at).map_or(0, |byte| u64::from(byte - b'0'));
    let below = digit(0) * 100 + digit(1) * 10 + digit(2) + u64::from(digit(3) >= 5);
    whole.checked_mul(1000)?.checked_add(below)
}

/// The rare `1.5e3`.
fn with_exponent(text: &str) -> Option<u64> {
    let value = text.parse::<f64>().ok()? * 1000.0;
    (value.is_finite() && (0.0..u64::MAX as f64).contains(&value)).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digit_counts() {
        for (text, ns) in [
            ("5126353669498.969", 5_126_353_669_498_969),
            // An absolute stamp: as a f64 its last digits would be lost.
            ("1790857026123456.789", 1_790_857_026_123_456_789),
            ("1682725898236567", 1_682_725_898_236_567_000),
            ("68.0", 68_000),
            ("1.76", 1_760),
            ("0.0005", 1),
            ("0.00049", 0),
            ("1.5e3", 1_500_000),
            ("\"12.5\"", 12_500),
            ("0", 0),
        ] {
            assert_eq!(nanos(text), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["-1", "", "x", "null", "1e300", "99999999999999999999", "NaN", "."] {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
