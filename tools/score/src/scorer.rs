//! Scorers: one rule each, an answer and a truth in, a mark out.

use std::borrow::Cow;

use regex::Regex;
use thiserror::Error;

use crate::choice::Letters;
use crate::decimal::{self, Decimal};
use crate::inline::InlineTruth;
use crate::responses::Response;

/// How an answer is compared with the truth of its row.
#[derive(Clone, Debug)]
pub enum Rule {
    /// The whole answer is the truth, white space around both left out.
    Exact {
        /// Capitals and small letters are the same.
        ignore_case: bool,
    },
    /// The truth stands somewhere in the answer.
    Contains {
        /// Capitals and small letters are the same.
        ignore_case: bool,
    },
    /// What a pattern finds in the answer is the truth: its group `answer`, else its first group, else all
    /// that it matches.
    Regex {
        /// The pattern.
        pattern: Regex,
        /// Which match counts.
        take: Take,
        /// Capitals and small letters of the found text and the truth are the same.
        ignore_case: bool,
    },
    /// The letter that the answer gives, one of the first so many, is the truth.
    MultipleChoice {
        /// 2 to [`CHOICES_MAX`].
        choices: u8,
    },
    /// The number that the answer gives has the value of the truth's.
    Numeric,
    /// A turn of an agent comes to what was recorded in its place; see [`crate::InlineTruth`].
    Inline,
}

/// Which of several matches counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// The first.
    First,
    /// The last: a model that corrects itself does so forwards.
    Last,
}

/// What of a response is its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// What it says to the user.
    Content,
    /// Its reasoning, and below it what it says.
    Reasoning,
    /// Both, and below them its tool calls as JSON: what the reference implementation scores.
    All,
}

/// A rule, ready to judge.
#[derive(Clone, Debug)]
pub struct Scorer {
    matcher: Matcher,
    after: Option<Box<str>>,
    of: Of,
}

#[derive(Clone, Debug)]
enum Matcher {
    Exact { ignore_case: bool },
    Contains { ignore_case: bool },
    Regex { pattern: Regex, take: Take, ignore_case: bool },
    Letters(Box<Letters>),
    Numeric,
    Inline,
}

/// The truth of a row as its scorer compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth(Value);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(Box<str>),
    Letter(char),
    Number(Decimal),
    Inline(InlineTruth),
}

/// The judgement on one answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// 1 for right, 0 for wrong.
    pub score: f64,
    /// What was taken out of the answer and compared. `None` when there was nothing of the kind; rules that
    /// compare the answer itself take nothing out either.
    pub extracted: Option<String>,
}

/// A rule that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadRule {
    /// A number of choices without letters.
    #[error("there are letters for 2 to {CHOICES_MAX} choices, not for {0}")]
    Choices(u8),
    /// A marker of nothing.
    #[error("a marker of white space is none")]
    Marker,
}

/// A truth that no answer could be compared with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadTruth {
    /// The marker is not there.
    #[error("the truth has no `{marker}`")]
    NoMarker {
        /// The marker.
        marker: String,
    },
    /// Nothing is left of it.
    #[error("the truth is empty")]
    Empty,
    /// It holds no number.
    #[error("the truth `{text}` holds no number")]
    NoNumber {
        /// Its start.
        text: String,
    },
    /// It is no recorded turn.
    #[error("`{text}` is no recorded turn")]
    NotRecorded {
        /// Its start.
        text: String,
    },
    /// It names no choice.
    #[error("the truth `{text}` is none of the letters A to {last}; write the letter, or choice1")]
    NoLetter {
        /// Its start.
        text: String,
        /// The last letter.
        last: char,
    },
}

impl Scorer {
    /// A scorer by `rule` of the part `of` a response. With a marker `after`, the truth is what stands behind
    /// the last one in its column; a number is looked for behind the last one of the answer, too, if it has
    /// one.
    ///
    /// # Errors
    /// A rule that cannot be used.
    pub fn new(rule: Rule, of: Of, after: Option<&str>) -> Result<Self, BadRule> {
        if after.is_some_and(|marker| marker.trim().is_empty()) {
            return Err(BadRule::Marker);
        }
        let matcher = match rule {
            Rule::Exact { ignore_case } => Matcher::Exact { ignore_case },
            Rule::Contains { ignore_case } => Matcher::Contains { ignore_case },
            Rule::Regex { pattern, take, ignore_case } => {
                Matcher::Regex { pattern, take, ignore_case }
            }
            Rule::MultipleChoice { choices } if (2..=CHOICES_MAX).contains(&choices) => {
                Matcher::Letters(Box::new(Letters::new(choices)))
            }
            Rule::MultipleChoice { choices } => return Err(BadRule::Choices(choices)),
            Rule::Numeric => Matcher::Numeric,
            Rule::Inline => Matcher::Inline,
        };
        Ok(Self { matcher, after: after.map(Into::into), of })
    }

    /// Reads the truth of a row from its column.
    ///
    /// # Errors
    /// One that no answer could ever equal: the row is wrong, or the rule is.
    pub fn truth(&self, column: &str) -> Result<Truth, BadTruth> {
        let text = match self.after.as_deref() {
            Some(marker) => behind_last(column, marker)
                .ok_or_else(|| BadTruth::NoMarker { marker: marker.to_owned() })?,
            None => column,
        };
        let text = text.trim();
        if text.is_empty() {
            return Err(BadTruth::Empty);
        }
        let shown = || text.chars().take(SHOWN).collect();
        Ok(Truth(match &self.matcher {
            Matcher::Exact { .. } | Matcher::Contains { .. } | Matcher::Regex { .. } => {
                Value::Text(text.into())
            }
            Matcher::Inline => match InlineTruth::from_text(text) {
                Some(truth) => Value::Inline(truth),
                None => return Err(BadTruth::NotRecorded { text: shown() }),
            },
            Matcher::Letters(letters) => match letters.truth(text) {
                Some(letter) => Value::Letter(letter),
                None => return Err(BadTruth::NoLetter { text: shown(), last: letters.last() }),
            },
            Matcher::Numeric => {
                let number =
                    if self.after.is_some() { decimal::first(text) } else { decimal::last(text) };
                match number {
                    Some((number, _)) => Value::Number(number),
                    None => return Err(BadTruth::NoNumber { text: shown() }),
                }
            }
        }))
    }

    /// What of `response` is its answer, without white space around it.
    #[must_use]
    pub fn answer<'r>(&self, response: &'r Response) -> Cow<'r, str> {
        let calls = || crate::joined_tool_calls(&response.tool_calls);
        let parts: [Cow<'r, str>; 3] = match self.of {
            Of::Content => return response.content.trim().into(),
            Of::Reasoning => [(&response.reasoning).into(), (&response.content).into(), "".into()],
            Of::All => [
                (&response.reasoning).into(),
                (&response.content).into(),
                match calls() {
                    calls if calls.is_empty() => "".into(),
                    calls => serde_json::Value::Array(calls).to_string().into(),
                },
            ],
        };
        let parts: Vec<&str> = parts.iter().map(|p| p.trim()).filter(|p| !p.is_empty()).collect();
        parts.join("\n").into()
    }

    /// Judges what of `response` is its answer; `None` when that is empty.
    #[must_use]
    pub fn judge_response(&self, response: &Response, truth: &Truth) -> Option<Judged> {
        if let Value::Inline(truth) = &truth.0 {
            return truth.judge(response);
        }
        let answer = self.answer(response);
        (!answer.is_empty()).then(|| self.judge(&answer, truth))
    }

    /// Judges an answer.
    #[must_use]
    pub fn judge(&self, answer: &str, truth: &Truth) -> Judged {
        let (right, extracted) = match (&self.matcher, &truth.0) {
            (Matcher::Exact { ignore_case }, Value::Text(truth)) => {
                (equal(answer.trim(), truth, *ignore_case), None)
            }
            (Matcher::Contains { ignore_case: false }, Value::Text(truth)) => {
                (answer.contains(&**truth), None)
            }
            (Matcher::Contains { ignore_case: true }, Value::Text(truth)) => {
                (answer.to_lowercase().contains(&truth.to_lowercase()), None)
            }
            (Matcher::Regex { pattern, take, ignore_case }, Value::Text(truth)) => {
                let found = matched(pattern, *take, answer).map(str::trim);
                (found.is_some_and(|f| equal(f, truth, *ignore_case)), found.map(str::to_owned))
            }
            (Matcher::Letters(letters), Value::Letter(truth)) => {
                let found = letters.find(answer);
                (found == Some(*truth), found.map(String::from))
            }
            (Matcher::Numeric, Value::Number(truth)) => {
                let found = self.number(answer);
                let right = found.as_ref().is_some_and(|(number, _)| number == truth);
                (right, found.map(|(_, spelling)| spelling.to_owned()))
            }
            // A truth of another scorer.
            _ => (false, None),
        };
        Judged { score: if right { 1.0 } else { 0.0 }, extracted }
    }

    /// Whether something is taken out of an answer before it is compared.
    #[must_use]
    pub fn extracts(&self) -> bool {
        !matches!(self.matcher, Matcher::Exact { .. } | Matcher::Contains { .. })
    }

    /// The number that `answer` gives: the first behind its last marker, else the last of all.
    fn number<'a>(&self, answer: &'a str) -> Option<(Decimal, &'a str)> {
        let behind = self.after.as_deref().and_then(|marker| behind_last(answer, marker));
        behind.map_or_else(|| decimal::last(answer), decimal::first)
    }
}

impl Of {
    /// All of them, with their words in the configuration.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("content", Self::Content),
        ("reasoning+content", Self::Reasoning),
        ("reasoning+content+tool_calls", Self::All),
    ];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, of)| *of == self).map_or("", |(word, _)| word)
    }
}

impl Take {
    /// All of them, with their words in the configuration.
    pub const WORDS: [(&'static str, Self); 2] = [("first", Self::First), ("last", Self::Last)];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

fn behind_last<'t>(text: &'t str, marker: &str) -> Option<&'t str> {
    text.rfind(marker).map(|at| &text[at + marker.len()..])
}

fn equal(a: &str, b: &str, ignore_case: bool) -> bool {
    a == b || ignore_case && a.to_lowercase() == b.to_lowercase()
}

fn matched<'a>(pattern: &Regex, take: Take, answer: &'a str) -> Option<&'a str> {
    let mut all = pattern.captures_iter(answer);
    let found = match take {
        Take::First => all.next(),
        Take::Last => all.last(),
    }?;
    let group = found.name("answer").or_else(|| found.iter().skip(1).flatten().next());
    group.or_else(|| found.get(0)).map(|found| found.as_str())
}

/// Letters there are.
pub const CHOICES_MAX: u8 = 26;
/// Characters of a truth in an error.
const SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    /// A score and what was extracted (`-` for nothing), for each answer.
    fn check(scorer: &Scorer, truth: &str, cases: &[(&str, f64, &str)]) {
        let truth = scorer.truth(truth).unwrap();
        for (answer, score, extracted) in cases {
            let judged = scorer.judge(answer, &truth);
            let found = judged.extracted.as_deref().unwrap_or("-");
            assert_eq!((judged.score, found), (*score, *extracted), "{answer}");
        }
    }

    fn scorer(rule: Rule, after: Option<&str>) -> Scorer {
        Scorer::new(rule, Of::Content, after).unwrap()
    }

    const GSM8K: &str =
        "She makes 9 * 2 = $<<9*2=18>>18 every day at the farmer’s market.\n#### 18";

    #[test]
    fn numbers_behind_the_marker_or_else_the_last() {
        check(
            &scorer(Rule::Numeric, Some("####")),
            GSM8K,
            &[
                ("9 eggs at $2 make $18.\n#### 18", 1.0, "18"),
                ("#### $18.00", 1.0, "18.00"),
                ("####18", 1.0, "18"),
                ("She makes $18 every day.", 1.0, "18"),
                ("So the answer is **18**.", 1.0, "18"),
                ("The answer is \\boxed{18}", 1.0, "18"),
                ("18 dollars a day, that is 126 a week.", 0.0, "126"),
                ("#### 18\nThat is 126 a week.", 1.0, "18"),
                ("#### 17\nWait, no.\n#### 18", 1.0, "18"),
                ("#### -18", 0.0, "-18"),
                ("16 - 3 - 4 = 9", 0.0, "9"),
                ("#### 18.5", 0.0, "18.5"),
                ("#### 1,8", 0.0, "1"),
                ("#### eighteen", 0.0, "-"),
                ("I do not know.", 0.0, "-"),
            ],
        );
        check(
            &scorer(Rule::Numeric, None),
            "1,234.50",
            &[
                ("It costs $1,234.5 in all.", 1.0, "1,234.5"),
                ("1234.50.", 1.0, "1234.50"),
                ("-1234.5", 0.0, "-1234.5"),
            ],
        );
        check(
            &scorer(Rule::Numeric, None),
            "25%",
            &[("about 25 %", 1.0, "25"), ("25%", 1.0, "25")],
        );
    }

    #[test]
    fn whole_answers() {
        check(
            &scorer(Rule::Exact { ignore_case: false }, None),
            " Paris\n",
            &[
                ("Paris", 1.0, "-"),
                ("\nParis ", 1.0, "-"),
                ("paris", 0.0, "-"),
                ("Paris.", 0.0, "-"),
            ],
        );
        check(
            &scorer(Rule::Exact { ignore_case: true }, None),
            "ÉCOLE",
            &[("école", 1.0, "-"), ("ecole", 0.0, "-")],
        );
        check(
            &scorer(Rule::Contains { ignore_case: false }, None),
            "Paris",
            &[("It is Paris, of course.", 1.0, "-"), ("paris", 0.0, "-"), ("Lyon", 0.0, "-")],
        );
        check(
            &scorer(Rule::Contains { ignore_case: true }, None),
            "Paris",
            &[("PARIS!", 1.0, "-")],
        );
    }

    #[test]
    fn patterns_give_their_group_or_all_that_they_match() {
        let rule = |pattern: &str, take, ignore_case| Rule::Regex {
            pattern: Regex::new(pattern).unwrap(),
            take,
            ignore_case,
        };
        let answer = "Capital: Lyon. No: capital: Paris .";
        for (pattern, take, ignore_case, truth, score, extracted) in [
            (r"apital: (\w+)", Take::Last, false, "Paris", 1.0, "Paris"),
            (r"apital: (\w+)", Take::First, false, "Paris", 0.0, "Lyon"),
            (r"(No): capital: (?<answer>\w+)", Take::Last, false, "Paris", 1.0, "Paris"),
            (r"(?:Lyon|Nice)|capital: (\w+) ", Take::Last, true, "PARIS", 1.0, "Paris"),
            (r"P\w+ ", Take::Last, false, "Paris", 1.0, "Paris"),
            (r"Bern", Take::Last, false, "Paris", 0.0, "-"),
        ] {
            let scorer = scorer(rule(pattern, take, ignore_case), None);
            check(&scorer, truth, &[(answer, score, extracted)]);
        }
    }

    #[test]
    fn letters_are_compared_as_letters() {
        let scorer = scorer(Rule::MultipleChoice { choices: 4 }, None);
        check(
            &scorer,
            "(b)",
            &[("The answer is B.", 1.0, "B"), ("C", 0.0, "C"), ("No idea.", 0.0, "-")],
        );
    }

    #[test]
    fn truths_that_no_answer_could_equal_are_refused() {
        let numeric = scorer(Rule::Numeric, Some("####"));
        let letters = scorer(Rule::MultipleChoice { choices: 5 }, None);
        let exact = scorer(Rule::Exact { ignore_case: false }, Some("####"));
        for (scorer, truth, says) in [
            (&numeric, "18", "the truth has no `####`"),
            (&numeric, "#### many", "the truth `many` holds no number"),
            (&exact, "#### ", "the truth is empty"),
            (
                &letters,
                "7",
                "the truth `7` is none of the letters A to E; write the letter, or choice1",
            ),
        ] {
            assert_eq!(scorer.truth(truth).unwrap_err().to_string(), says);
        }
        let of_none = Scorer::new(Rule::MultipleChoice { choices: 27 }, Of::Content, None);
        assert_eq!(of_none.unwrap_err(), BadRule::Choices(27));
        let blank = Scorer::new(Rule::Numeric, Of::Content, Some(" "));
        assert_eq!(blank.unwrap_err(), BadRule::Marker);
    }

    #[test]
    fn what_of_a_response_is_scored_is_asked_for() {
        let response = Response {
            content: " 18 ".into(),
            reasoning: "9 * 2\n".into(),
            tool_calls: "{\"index\":0,\"id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"}\n".into(),
            ..Response::default()
        };
        let call = r#"[{"arguments":"{}","id":"c","index":0,"name":"f"}]"#;
        for (of, expected) in [
            (Of::Content, "18".to_owned()),
            (Of::Reasoning, "9 * 2\n18".to_owned()),
            (Of::All, format!("9 * 2\n18\n{call}")),
        ] {
            let scorer = Scorer::new(Rule::Numeric, of, None).unwrap();
            assert_eq!(scorer.answer(&response), expected);
        }
    }
}
