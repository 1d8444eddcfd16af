//! Spans as people write them: `60s`, `500ms`, `1.5h`, `1m 30s`.
//!
//! A number needs its unit, so that nobody has to guess whether 60 is seconds or milliseconds; only `0` is
//! the same in all of them. Reading is exact to the nanosecond and [`Span::exact`] is its inverse. There is
//! no other reader of spans in takt.

use std::fmt;
use std::str::FromStr;

use crate::Span;

/// Text that is no span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanError {
    /// Nothing but blanks.
    Empty,
    /// A number without a unit.
    NoUnit {
        /// The number, as it was written.
        number: String,
    },
    /// Letters after the number that are no unit.
    UnknownUnit {
        /// The letters, as they were written.
        unit: String,
    },
    /// Something where a number should begin, or a number that is none.
    NotANumber,
    /// Longer than a span can be: some 584 years.
    TooLong,
}

impl FromStr for Span {
    type Err = SpanError;

    /// Reads a sum of numbers with units, blanks between them or not.
    fn from_str(text: &str) -> Result<Self, SpanError> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(SpanError::Empty);
        }
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.');
            let (unit, after) = split(after.trim_start(), char::is_alphabetic);
            let ns = part(number, unit)?;
            total = total.checked_add(ns).ok_or(SpanError::TooLong)?;
            rest = after.trim_start();
        }
        Ok(Self::from_nanos(total))
    }
}

impl Span {
    /// The span in the largest unit that needs no fraction: `90s`, `1500ms`. Reads back as the same span.
    #[must_use]
    pub fn exact(self) -> String {
        let ns = self.as_nanos();
        let whole = [("s", NS_PER_S), ("ms", 1_000_000), ("us", 1_000)];
        match whole.into_iter().find(|(_, size)| ns.is_multiple_of(*size)) {
            Some((unit, size)) => format!("{}{unit}", ns / size),
            None => format!("{ns}ns"),
        }
    }
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty; write a duration such as 60s, 500ms or 2m"),
            Self::NoUnit { number } => {
                write!(f, "needs a unit: write {number}s, {number}ms or {number}m")
            }
            Self::UnknownUnit { unit } => {
                write!(f, "has the unit `{unit}`, which is none of ns, us, ms, s, m, h, d")
            }
            Self::NotANumber => f.write_str("is no duration; write 60s, 500ms, 1.5h or 1m 30s"),
            Self::TooLong => f.write_str("is longer than any run can be"),
        }
    }
}

impl std::error::Error for SpanError {}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// Nanoseconds of a number and its unit; what is finer than a nanosecond is rounded down.
fn part(number: &str, unit: &str) -> Result<u64, SpanError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(fraction) || (number.contains('.') && fraction.is_empty()) {
        return Err(SpanError::NotANumber);
    }
    let size = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "sec" => NS_PER_S,
        "m" | "min" => 60 * NS_PER_S,
        "h" => 3_600 * NS_PER_S,
        "d" => 86_400 * NS_PER_S,
        "" => return Err(SpanError::NoUnit { number: number.to_owned() }),
        _ => return Err(SpanError::UnknownUnit { unit: unit.to_owned() }),
    };
    let whole: u64 = whole.parse().map_err(|_| SpanError::TooLong)?;
    // Units are below 10^14 ns, so further digits are less than a nanosecond.
    let fraction = &fraction[..fraction.len().min(FINEST)];
    // Digits alone, or nothing, which is none.
    let parts: u128 = fraction.parse().unwrap_or(0);
    let below = u128::from(size) * parts / 10u128.pow(fraction.len() as u32);
    // Below one unit, since the fraction is below one.
    let below = u64::try_from(below).unwrap_or(u64::MAX);
    whole.checked_mul(size).and_then(|ns| ns.checked_add(below)).ok_or(SpanError::TooLong)
}

const NS_PER_S: u64 = 1_000_000_000;
/// Digits of a fraction that are looked at.
const FINEST: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_write_them_to_the_nanosecond() {
        for (text, ns) in [
            ("60s", 60_000_000_000),
            (" 500ms ", 500_000_000),
            ("2m", 120_000_000_000),
            ("1m 30s", 90_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("0.3s", 300_000_000),
            ("7 us", 7_000),
            ("7µs", 7_000),
            ("1.0000000019s", 1_000_000_001),
            ("1d", 86_400_000_000_000),
            ("0", 0),
            ("0ms", 0),
        ] {
            assert_eq!(text.parse(), Ok(Span::from_nanos(ns)), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_says_what_is_wrong_with_it() {
        for (text, expected) in [
            ("", "is empty"),
            ("60", "needs a unit: write 60s"),
            ("1m 30", "write 30s"),
            ("5 parsecs", "`parsecs`, which is none of"),
            ("5M", "`M`"),
            ("soon", "is no duration"),
            ("-1s", "is no duration"),
            ("1e3ms", "`e`"),
            ("1..5s", "is no duration"),
            ("1.s", "is no duration"),
            (".5s", "is no duration"),
            ("nanms", "is no duration"),
            ("600000000000h", "longer than any run"),
            ("99999999999999999999s", "longer than any run"),
            ("18446744073s 18446744073s", "longer than any run"),
        ] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn exact_text_reads_back_as_the_same_span() {
        for (ns, text) in
            [(0, "0s"), (90_000_000_000, "90s"), (1_500_000_000, "1500ms"), (1_001, "1001ns")]
        {
            assert_eq!(Span::from_nanos(ns).exact(), text);
            assert_eq!(text.parse(), Ok(Span::from_nanos(ns)));
        }
    }
}
