//! Numbers and foreign text on a terminal.

/// Four significant digits above 0.1, four decimals below, no exponent.
pub(super) fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        v if v == 0.0 || v >= 1_000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    // 0.5 and 3 rather than 0.5000 and 3.000.
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// The same with all its digits, for columns that should line up.
pub(super) fn column(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 1_000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 1.0 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// Text from outside on one line and without control characters: a server cannot move our cursor.
pub(super) fn clean(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `width` characters; a cut is marked.
pub(super) fn fit(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect(),
    }
}

/// Words in lines of at most `width` characters behind an indent.
pub(super) fn wrap(out: &mut String, text: &str, indent: usize, width: usize) {
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && indent + used + 1 + length > width {
            out.push('\n');
            used = 0;
        }
        if used == 0 {
            out.extend(std::iter::repeat_n(' ', indent));
        } else {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits_and_no_tail() {
        let shown = [0.0, 0.000_04, 0.012_34, 0.5, 3.0, 9.876_54, 12.345, 123.45, 98_765.4];
        let want = ["0", "0", "0.0123", "0.5", "3", "9.877", "12.35", "123.5", "98765"];
        for (value, want) in shown.into_iter().zip(want) {
            // 12.345 is stored a little above or below: either neighbour is right.
            let got = figure(value);
            assert!(got == want || (value == 12.345 && got == "12.34"), "{value}: {got}");
        }
    }

    #[test]
    fn a_server_cannot_write_on_the_terminal() {
        assert_eq!(clean("bad\u{1b}[2J\r\nnews\u{7}"), "bad [2J news");
    }

    #[test]
    fn text_is_cut_and_wrapped_by_characters() {
        assert_eq!(fit("\u{e9}\u{e9}\u{e9}\u{e9}", 3), "\u{e9}\u{e9}\u{2026}");
        let mut out = String::new();
        wrap(&mut out, "one two three", 2, 9);
        assert_eq!(out, "  one two\n  three\n");
    }
}
