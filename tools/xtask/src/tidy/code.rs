//! Rust source without its comments and literals, for rules about what the code says.
//!
//! Not a parser: one pass that knows where comments, strings and characters begin and end. Lines stay
//! where they were.

/// `text` with comments, strings and character literals blanked out, line by line as before.
pub(super) fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Whether `word` stands in `line` with no letter, digit or underscore beside it.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Where the comment or literal that begins at `at` ends; `at` itself when none begins there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => find(chars, at, |c| c == '\n'),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => string_end(chars, at),
        'r' if !continues_word(chars, at) => raw_string_end(chars, at),
        '\'' => char_end(chars, at),
        _ => at,
    }
}

/// The first index at or after `from` for which `stop` holds, or the end.
fn find(chars: &[char], from: usize, stop: impl Fn(char) -> bool) -> usize {
    chars[from..].iter().position(|&c| stop(c)).map_or(chars.len(), |n| from + n)
}

/// An `r` inside a name opens no raw string. One after a lone `b` or `c` does.
fn continues_word(chars: &[char], at: usize) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let before = |n: usize| at.checked_sub(n).map(|i| chars[i]);
    match before(1) {
        Some('b' | 'c') => before(2).is_some_and(part_of_word),
        Some(c) => part_of_word(c),
        None => false,
    }
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                i += 1;
                continue;
            }
        }
        i += 2;
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], at: usize) -> usize {
    let quote = find(chars, at + 1, |c| c != '#');
    if chars.get(quote) != Some(&'"') {
        return at;
    }
    let hashes = quote - at - 1;
    let mut i = quote + 1;
    while i < chars.len() {
        let closing = chars[i] == '"'
            && chars.len() - i > hashes
            && chars[i + 1..=i + hashes].iter().all(|&c| c == '#');
        if closing {
            return i + 1 + hashes;
        }
        i += 1;
    }
    chars.len()
}

/// A quote opens a character when the character closes again; otherwise it is a lifetime.
fn char_end(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), Some(_)) => (find(chars, at + 3, |c| c == '\'') + 1).min(chars.len()),
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Vec<String> {
        code_only(text).split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        assert_eq!(kept("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(kept(r#"a("b \" c") d"#), ["a(", ")", "d"]);
        assert_eq!(kept(r###"r#"b " c"# d"###), ["d"]);
        assert_eq!(kept(r###"br"b" e"###), ["b", "e"]);
        assert_eq!(kept(r"a '\'' 'b' '\u{7f}' c"), ["a", "c"]);
    }

    #[test]
    fn lifetimes_and_names_stay() {
        assert_eq!(kept("fn f<'a>(x: &'a str)"), ["fn", "f<'a>(x:", "&'a", "str)"]);
        assert_eq!(kept("for r in r#type"), ["for", "r", "in", "r#type"]);
    }

    #[test]
    fn lines_stay_where_they_were() {
        let text = "a\n/* b\nc */\n\"d\ne\"\nf";
        assert_eq!(code_only(text).lines().count(), text.lines().count());
        assert_eq!(code_only(text).lines().last(), Some("f"));
    }

    #[test]
    fn a_word_stands_alone() {
        assert!(has_word("x(todo!())", "todo!"));
        assert!(!has_word("forbid(unsafe_code)", "unsafe"));
        assert!(!has_word("not_unsafe {", "unsafe"));
        assert!(has_word("unsafe {", "unsafe"));
    }
}
