//! Numbers in running text, compared as decimals: `$1,234.50` is `1234.5`, whatever a float makes of it.
//!
//! What counts as a number is what a person would read as one:
//!
//! * digits, with a decimal point if a digit follows it (`18.` is 18, `.5` is one half);
//! * groups of three behind commas, no-break spaces or TeX's `{,}` and `\,`: `1,234`, but `1,2,3` is three;
//! * an exponent, `1.5e3`;
//! * a sign directly before it or before its currency sign, unless something stands before the sign that
//!   makes it a minus or a hyphen (`16-3`, `COVID-19`);
//! * not digits that belong to a name (`x2`, `H2O`) or are an exponent or an index (`m^2`, `a_1`).
//!
//! A percent sign is not looked at: `25%` is 25. The decimal mark is a point; in `1.234,56` it is not the
//! comma.

/// A decimal number of any length. Equal ones are written alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    /// Without zeros at its start and end; empty for zero.
    digits: String,
    /// The value is `0.digits` times ten to this.
    scale: i64,
}

/// The first number of `text`, and its spelling.
pub(crate) fn first(text: &str) -> Option<(Decimal, &str)> {
    let mut at = 0;
    next(text, &mut at)
}

/// The last number of `text`, and its spelling.
pub(crate) fn last(text: &str) -> Option<(Decimal, &str)> {
    let (mut at, mut found) = (0, None);
    while let Some(number) = next(text, &mut at) {
        found = Some(number);
    }
    found
}

/// The next number from `at` on, which is moved behind it.
fn next<'t>(text: &'t str, at: &mut usize) -> Option<(Decimal, &'t str)> {
    let bytes = text.as_bytes();
    loop {
        let start = *at + bytes[*at..].iter().position(u8::is_ascii_digit)?;
        let point = start > *at && bytes[start - 1] == b'.' && !behind_a_word(text, start - 1);
        let begin = if point { start - 1 } else { start };
        let (digits, fraction, exponent, end) = spelled(text, begin);
        *at = end;
        if !point && is_part_of_a_name(text, begin) {
            // The rest of the same run of digits is part of the name, too.
            continue;
        }
        let (negative, from) = sign(text, begin);
        let number = Decimal::new(negative, &digits, fraction, exponent);
        return Some((number, &text[from..end]));
    }
}

/// Reads a number that begins at `begin` with a digit or a point: its digits, how many of them are behind
/// the point, its exponent, and where it ends.
fn spelled(text: &str, begin: usize) -> (String, usize, i64, usize) {
    let bytes = text.as_bytes();
    let mut digits = String::new();
    let mut at = run(bytes, begin, &mut digits);
    if (1..=3).contains(&digits.len()) {
        while let Some(behind) = group(text, at) {
            let from = behind - 3;
            digits.push_str(&text[from..behind]);
            at = behind;
        }
    }
    let mut fraction = 0;
    if bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        let whole = digits.len();
        at = run(bytes, at + 1, &mut digits);
        fraction = digits.len() - whole;
    }
    let (exponent, at) = exponent(bytes, at);
    (digits, fraction, exponent, at)
}

/// Appends the digits at `at`, and says where they end.
fn run(bytes: &[u8], at: usize, digits: &mut String) -> usize {
    let len = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits.extend(bytes[at..at + len].iter().map(|&byte| char::from(byte)));
    at + len
}

/// Where a separator at `at` and exactly three digits behind it end.
fn group(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let separator = SEPARATORS.iter().find(|separator| rest.starts_with(**separator))?;
    let bytes = &rest.as_bytes()[separator.len()..];
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits == 3).then_some(at + separator.len() + 3)
}

/// An exponent at `at` and where it ends; none is zero. One that no number of this world has is capped.
fn exponent(bytes: &[u8], at: usize) -> (i64, usize) {
    if !matches!(bytes.get(at), Some(b'e' | b'E')) {
        return (0, at);
    }
    let (negative, from) = match bytes.get(at + 1) {
        Some(b'-') => (true, at + 2),
        Some(b'+') => (false, at + 2),
        _ => (false, at + 1),
    };
    let mut digits = String::new();
    let end = if from < bytes.len() { run(bytes, from, &mut digits) } else { from };
    let behind = bytes.get(end).is_some_and(u8::is_ascii_alphabetic);
    match digits.parse::<i64>() {
        _ if digits.is_empty() || behind => (0, at),
        Ok(power) => {
            (if negative { -power.min(EXPONENT_MAX) } else { power.min(EXPONENT_MAX) }, end)
        }
        Err(_) => (if negative { -EXPONENT_MAX } else { EXPONENT_MAX }, end),
    }
}

/// The sign before a number that begins at `begin`, and where the spelling begins with it.
fn sign(text: &str, begin: usize) -> (bool, usize) {
    let before = text[..begin].trim_end_matches(CURRENCIES);
    let Some(sign) = before.chars().next_back().filter(|c| matches!(c, '-' | '−' | '+')) else {
        return (false, begin);
    };
    let from = before.len() - sign.len_utf8();
    // `-$5` and `$-5` are signs; `16-3`, `x-1` and `)-2` are not.
    let joins = |c: char| c.is_alphanumeric() || matches!(c, ')' | ']' | '}' | '%');
    if before[..from].chars().next_back().is_some_and(joins) {
        return (false, begin);
    }
    (sign != '+', from)
}

/// Digits at `at` that follow a letter belong to its word; those behind `^` and `_` to its term.
fn is_part_of_a_name(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    let before = before
        .strip_suffix(b"{")
        .filter(|b| b.ends_with(b"^") || b.ends_with(b"_"))
        .unwrap_or(before);
    before.last().is_some_and(|&byte| byte.is_ascii_alphabetic() || byte == b'^' || byte == b'_')
}

/// A point at `at` that follows a word or a number is its full stop.
fn behind_a_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '.')
}

impl Decimal {
    /// The number with these digits, the last `fraction` of them behind the point, times ten to `exponent`.
    fn new(negative: bool, digits: &str, fraction: usize, exponent: i64) -> Self {
        let whole = digits.len() - fraction;
        let significant = digits.trim_start_matches('0');
        let zeros = digits.len() - significant.len();
        let scale = whole as i64 - zeros as i64 + exponent;
        let digits = significant.trim_end_matches('0').to_owned();
        if digits.is_empty() {
            return Self { negative: false, digits, scale: 0 };
        }
        Self { negative, digits, scale }
    }
}

/// What stands between groups of three digits.
const SEPARATORS: [&str; 6] = [",", "{,}", "\\,", "\\!,", "\u{a0}", "\u{202f}"];
/// Signs that may stand between a number and its sign. TeX writes a dollar with a backslash.
const CURRENCIES: [char; 6] = ['$', '€', '£', '¥', '₹', '\\'];
/// Larger powers of ten are all the same to a scorer.
const EXPONENT_MAX: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// All numbers of `text`, as plain decimals.
    fn all(text: &str) -> Vec<String> {
        let mut at = 0;
        std::iter::from_fn(|| next(text, &mut at)).map(|(number, _)| plain(&number)).collect()
    }

    fn plain(number: &Decimal) -> String {
        let mut out = if number.negative { "-".to_owned() } else { String::new() };
        let (len, scale) = (number.digits.len() as i64, number.scale);
        if len == 0 {
            return "0".into();
        }
        if scale <= 0 {
            out += &format!("0.{}{}", "0".repeat(-scale as usize), number.digits);
        } else if scale >= len {
            out += &format!("{}{}", number.digits, "0".repeat((scale - len) as usize));
        } else {
            out += &format!(
                "{}.{}",
                &number.digits[..scale as usize],
                &number.digits[scale as usize..]
            );
        }
        out
    }

    #[test]
    fn numbers_are_what_a_person_reads_as_numbers() {
        for (text, expected) in [
            ("18", "18"),
            ("18.", "18"),
            ("18.50", "18.5"),
            ("It is .5 of it.", "0.5"),
            ("0018.0", "18"),
            ("-0.0", "0"),
            ("$1,234.50!", "1234.5"),
            ("-$5", "-5"),
            ("$-5", "-5"),
            ("-\\$5", "-5"),
            ("\u{2212}7 degrees", "-7"),
            ("+7", "7"),
            ("16-3", "16 3"),
            ("10–12", "10 12"),
            ("(x)-2", "2"),
            ("COVID-19", "19"),
            ("x2 and H2O and m^2 and a_1 and 10^{6}", "10"),
            ("1,2,3", "1 2 3"),
            ("1,234,567 and 12,34", "1234567 12 34"),
            ("1234,567", "1234 567"),
            ("1{,}000 or 1\\,000 or 1\u{202f}000 or 1\u{a0}000", "1000 1000 1000 1000"),
            ("25%", "25"),
            ("1.5e3 2E-2 3e 4ever", "1500 0.02 3 4"),
            ("**18**", "18"),
            ("\\boxed{18}", "18"),
            ("<<16-3-4=9>>9", "16 3 4 9 9"),
            ("v1.2.3", "3"),
            ("答案是18。", "18"),
            ("total:$18", "18"),
            ("1. First\n2. Then 3.", "1 2 3"),
            ("eighteen", ""),
            ("", ""),
            ("0.1000000000000000055", "0.1000000000000000055"),
        ] {
            assert_eq!(all(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_spelling_is_a_piece_of_the_text() {
        assert_eq!(last("so -$1,234.50.").map(|(_, spelling)| spelling), Some("-$1,234.50"));
        assert_eq!(first("a 7 b 8").map(|(_, spelling)| spelling), Some("7"));
    }

    #[test]
    fn values_decide_and_not_spellings() {
        let number = |text| first(text).unwrap().0;
        for (a, b) in [("18", "18.00"), ("1,000", "1e3"), ("-0", "0"), (".50", "0.5")] {
            assert_eq!(number(a), number(b), "{a} {b}");
        }
        // 0.1 and 0.1 + 2^-58 are one float.
        assert_ne!(number("0.1"), number("0.1000000000000000055"));
        for (a, b) in [("18", "-18"), ("18", "180"), ("18", "1.8"), ("0", "0.001"), ("1e3", "1e4")]
        {
            assert_ne!(number(a), number(b), "{a} {b}");
        }
    }

    #[test]
    fn no_bytes_make_it_stumble() {
        let pieces = ["1", ",", ".", "e", "-", "$", "é", "{,}", "\u{a0}", "000", "^", " ", "−"];
        // Every text of four pieces.
        for code in 0..pieces.len().pow(4) {
            let text: String =
                (0..4).map(|place| pieces[code / pieces.len().pow(place) % pieces.len()]).collect();
            let mut at = 0;
            while let Some((number, spelling)) = next(&text, &mut at) {
                assert!(text.contains(spelling) && !spelling.is_empty(), "{text}");
                assert_eq!(first(spelling).map(|(again, _)| again), Some(number), "{text}");
            }
        }
    }
}
