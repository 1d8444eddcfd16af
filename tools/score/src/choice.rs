//! The letter that an answer to a multiple-choice question gives.
//!
//! Models answer with a bare letter, a sentence, a boxed letter, the option written out, or all options
//! weighed one by one. The ways are tried from the clearest to the vaguest, and of one way the last match
//! counts, since people and models correct themselves forwards:
//!
//! | | such as |
//! | --- | --- |
//! | boxed | `\boxed{B}`, `\boxed{\text{(B)}}` |
//! | said | `The correct answer is **B**`, `Answer: (b).`, `Antwort: B` |
//! | judged | `Option B is correct`, `(B) is the best answer` |
//! | chosen | `I would choose B` |
//! | alone | a line with nothing but the letter |
//! | first on its line | `B) Paris`, `(B) Paris`, when all such lines of the answer name one letter |
//! | mentioned | `… so (B)`, when the last line, or all of the answer, mentions one letter only |
//!
//! What hedges (`A or B`) and what is a word (`a`, `C++`, `D-glucose`) is no letter. Small letters count
//! where nothing but a letter can stand. An answer in none of these ways has none: a guess would be scored
//! as if the model had made it.

use std::ops::Range;

use regex::{Captures, Regex};

use crate::scorer::CHOICES_MAX;

/// Finds letters of the first so many choices.
#[derive(Clone, Debug)]
pub(crate) struct Letters {
    choices: u8,
    boxed: Regex,
    said: Regex,
    judged: Regex,
    chosen: Regex,
    alone: Regex,
    leading: Regex,
    mentioned: Regex,
}

impl Letters {
    /// Of `choices` choices, 2 to 26.
    pub(crate) fn new(choices: u8) -> Self {
        let choices = choices.clamp(2, CHOICES_MAX);
        let last = char::from(b'A' + choices - 1);
        let pattern = |text: &str| {
            let small = last.to_ascii_lowercase();
            let text = text
                .replace("<L>", &format!("([A-{last}a-{small}])"))
                .replace("<C>", &format!("([A-{last}])"))
                .replace("<open>", OPEN)
                .replace("<noun>", "(?i:answer|choice|option|letter|antwort|réponse|respuesta)");
            // The patterns are the constants below; a test builds them for every number of choices.
            Regex::new(&text).expect("a pattern of this file is well formed")
        };
        Self {
            choices,
            boxed: pattern(BOXED),
            said: pattern(SAID),
            judged: pattern(JUDGED),
            chosen: pattern(CHOSEN),
            alone: pattern(ALONE),
            leading: pattern(LEADING),
            mentioned: pattern(MENTIONED),
        }
    }

    /// The letter that `answer` gives, as a capital.
    pub(crate) fn find(&self, answer: &str) -> Option<char> {
        let last = |pattern: &Regex| {
            pattern.captures_iter(answer).filter_map(|found| self.clear(answer, &found)).last()
        };
        last(&self.boxed)
            .or_else(|| last(&self.said))
            .or_else(|| last(&self.judged))
            .or_else(|| last(&self.chosen))
            .or_else(|| last(&self.alone))
            .or_else(|| self.only(&self.leading, answer))
            .or_else(|| self.only(&self.mentioned, answer.trim_end().lines().last()?))
            .or_else(|| self.only(&self.mentioned, answer))
    }

    /// The letter of a truth: `B`, `(b)`, `B.`, or `choice2`, counted from 1.
    pub(crate) fn truth(&self, text: &str) -> Option<char> {
        let bare = text.trim().trim_matches(['(', ')', '[', ']', '.', ':', '"', '\'']);
        let mut chars = bare.chars();
        if let (Some(letter), None) = (chars.next(), chars.next()) {
            let letter = letter.to_ascii_uppercase();
            return self.letters().any(|known| known == letter).then_some(letter);
        }
        let number: u8 = bare.strip_prefix("choice")?.parse().ok()?;
        self.letters().nth(usize::from(number).checked_sub(1)?)
    }

    /// The last of the letters.
    pub(crate) fn last(&self) -> char {
        char::from(b'A' + self.choices - 1)
    }

    fn letters(&self) -> impl Iterator<Item = char> + use<> {
        (0..self.choices).map(|n| char::from(b'A' + n))
    }

    /// The letter of a match, unless it is the start of a word or one of several.
    fn clear(&self, text: &str, found: &Captures<'_>) -> Option<char> {
        let place = found.iter().skip(1).flatten().next()?.range();
        let letter = text[place.clone()].chars().next()?;
        let behind = &text[place.end..];
        if is_word(behind) || self.hedges(behind) {
            return None;
        }
        // A small letter is a word (`a`) as soon as words follow.
        let ends = behind.is_empty() || behind.starts_with(CLOSERS) || behind.starts_with('\n');
        (letter.is_ascii_uppercase() || ends).then(|| letter.to_ascii_uppercase())
    }

    /// Whether another letter follows as an alternative.
    fn hedges(&self, behind: &str) -> bool {
        let behind = behind.trim_start_matches([' ', ')', '*', '.']);
        let Some(rest) =
            ["or ", "and ", "/", "& ", ","].iter().find_map(|w| behind.strip_prefix(w))
        else {
            return false;
        };
        let rest = rest.trim_start_matches(|c: char| c == ' ' || OPENERS.contains(c));
        let other = rest.chars().next();
        other.is_some_and(|c| self.letters().any(|letter| letter == c))
            && !is_word(&rest[1..])
            && !rest[1..].starts_with(' ')
    }

    /// The letter that all matches in `text` agree on.
    fn only(&self, pattern: &Regex, text: &str) -> Option<char> {
        let mut letters = pattern.captures_iter(text).filter_map(|found| {
            let place: Range<usize> = found.iter().skip(1).flatten().next()?.range();
            if is_word(&text[place.end..]) {
                return None;
            }
            text[place].chars().next().map(|letter| letter.to_ascii_uppercase())
        });
        let first = letters.next()?;
        letters.all(|letter| letter == first).then_some(first)
    }
}

/// Whether a letter goes on into a word or a name: `As`, `C++`, `D-glucose`, `A's`.
fn is_word(behind: &str) -> bool {
    let mut chars = behind.chars();
    match chars.next() {
        None => false,
        Some('-' | '\'' | '’' | '/') => chars.next().is_some_and(char::is_alphanumeric),
        Some(c) => c.is_alphanumeric() || matches!(c, '_' | '+' | '#'),
    }
}

/// What may stand before a letter that is meant: brackets, quotes, emphasis, TeX.
const OPEN: &str = r#"(?:[\s*_`"'“‘(\[{$:]|\\\(|\\(?:text|mathrm|textbf|mathbf|boxed)\s*\{)*"#;
const OPENERS: &str = "*_`\"'“‘([{$";
/// What may follow a small letter that is meant.
const CLOSERS: [char; 12] = [')', ']', '}', '.', ':', ',', '*', '"', '\'', '`', '$', '\\'];

const BOXED: &str = r"\\boxed\s*\{<open><L>[\s).}\]]*\}";
const SAID: &str = r"<noun>(?i:\s+(?:choice|option|letter))?[*_`\x22]*\s*(?i:is|would be|must be|should be|ist|est|es|=|:|->|→|⇒)<open>(?i:(?:option|choice|letter|answer|the)\s+)*<open><L>";
const JUDGED: &str = r"(?:^|[^\w])<C>[)\].*]*\s+(?i:is|seems|looks)\s+(?i:(?:the|most|likely|clearly|therefore|thus)\s+)*(?i:correct|right|best|true|answer)\b";
const CHOSEN: &str = r"(?i:choose|chose|pick|select|selected|go with|going with|opt for)\s+(?i:(?:option|choice|answer|letter|the)\s+)*<open><L>";
const ALONE: &str = r"(?m)^[\s*_`#>(\[\x22']*<L>[\s*_`)\].:\x22']*$";
const LEADING: &str =
    r"(?m)^[\s*_`#>-]*(?:[(\[]<C>[)\]][*_`:.]*\s*(?:[^a-z\s]|$)|<C>(?:[*_`]*[).:\]]|\s+[-–—:]))";
const MENTIONED: &str = r"(?:\(<C>\)|\[<C>\]|(?i:option|choice)\s+<C>)";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(choices: u8, cases: &[(&str, &str)]) {
        let letters = Letters::new(choices);
        for (answer, expected) in cases {
            let found = letters.find(answer).map(String::from).unwrap_or_default();
            assert_eq!(&found, expected, "{answer}");
        }
    }

    #[test]
    fn bare_letters() {
        check(
            4,
            &[
                ("B", "B"),
                ("b", "B"),
                (" (C) ", "C"),
                ("**D**", "D"),
                ("A.", "A"),
                ("`C`", "C"),
                ("\"B\"", "B"),
                ("E", ""),
                ("", ""),
                ("AB", ""),
                ("Let me think.\n\nB\n", "B"),
                ("### C", "C"),
            ],
        );
    }

    #[test]
    fn sentences() {
        check(
            4,
            &[
                ("The answer is B.", "B"),
                ("The correct answer is (C) because the cell wall is rigid.", "C"),
                ("The correct answer is: **D) Mitochondria**", "D"),
                ("Answer: A", "A"),
                ("**Answer:** C", "C"),
                ("**Answer**: (b)", "B"),
                ("answer is b", "B"),
                ("The answer is a matter of taste.", ""),
                ("The answer is a.", "A"),
                ("The best choice would be option D.", "D"),
                ("The final answer is $\\boxed{C}$.", "C"),
                ("The right option is\n\nB", "B"),
                ("Therefore, the answer is \\(\\text{B}\\).", "B"),
                ("Option B is correct.", "B"),
                ("(A) is the most likely answer here.", "A"),
                ("B is not correct. C is correct.", "C"),
                ("A is incorrect", ""),
                ("I would choose C here.", "C"),
                ("I'll go with option (D).", "D"),
                ("Die Antwort ist B.", "B"),
                ("La réponse est C.", "C"),
                ("Correct option: A) Paris", "A"),
            ],
        );
    }

    #[test]
    fn the_clearest_way_goes_before_the_last_word() {
        check(
            4,
            &[
                ("\\boxed{B}. I would not choose C.", "B"),
                ("At first the answer is A. But no: the answer is D.", "D"),
                ("The answer is B, because (A) and (C) are wrong.", "B"),
                ("A) wrong\nB) wrong\nC) right\nThe answer is C", "C"),
                ("\\boxed{\\text{(D)}}", "D"),
            ],
        );
    }

    #[test]
    fn options_written_out() {
        check(
            4,
            &[
                ("C) Paris is the capital.", "C"),
                ("B. 42", "B"),
                ("**A.** The heart", "A"),
                ("D: none of these", "D"),
                ("C - it is larger", "C"),
                ("A) Rome\nB) Paris\nC) Bern", ""),
                ("Of all these it must be (C)", "C"),
                ("(A) is too large and (B) too small.\nSo what is left is (D).", "D"),
                ("Both (A) and (B) look fine.", ""),
            ],
        );
    }

    #[test]
    fn words_and_hedges_are_no_letters() {
        check(
            4,
            &[
                ("The answer is A or B.", ""),
                ("Answer: A/B", ""),
                ("Answer: B, C", ""),
                ("The answer is C++.", ""),
                ("The answer is D-glucose.", ""),
                ("A dog barks.", ""),
                ("I cannot answer that.", ""),
                ("The answer is Albania", ""),
                ("The answer is A and it is easy to see why.", "A"),
                ("The answer is B, clearly.", "B"),
            ],
        );
    }

    #[test]
    fn so_many_choices_so_many_letters() {
        check(2, &[("The answer is B", "B"), ("The answer is C", "")]);
        check(10, &[("The answer is J.", "J"), ("(j)", "J"), ("The answer is K.", "")]);
        for choices in 2..=CHOICES_MAX {
            assert_eq!(Letters::new(choices).letters().count(), usize::from(choices));
        }
    }

    #[test]
    fn truths_are_letters_however_they_are_written() {
        let letters = Letters::new(4);
        for (text, expected) in [
            ("B", Some('B')),
            (" b ", Some('B')),
            ("(C)", Some('C')),
            ("D.", Some('D')),
            ("choice1", Some('A')),
            ("choice4", Some('D')),
            ("choice5", None),
            ("choice0", None),
            ("2", None),
            ("E", None),
            ("Paris", None),
        ] {
            assert_eq!(letters.truth(text), expected, "{text}");
        }
    }
}
