//! From marks to a score: every issued request counted once.

use takt_record::{RepeatScore, Score, Spread};

/// What became of one issued request, as far as its score goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// It was answered and judged.
    Scored {
        /// Its mark.
        score: f64,
        /// A rule that takes something out of the answer found something.
        extracted: bool,
    },
    /// It was answered, with nothing that could be judged.
    Empty,
    /// It failed.
    Failed,
    /// It was given up, or its end was never written.
    Missing,
    /// There is nothing to compare it with: it is in no count of the score.
    Excluded,
}

/// Counts of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    scored: u64,
    unextracted: u64,
    empty: u64,
    failed: u64,
    missing: u64,
    excluded: u64,
    sum: f64,
    repeats: Vec<Repeat>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Repeat {
    issued: u64,
    sum: f64,
}

impl Tally {
    /// Takes in the `repeat`-th asking of a sample.
    pub fn add(&mut self, repeat: u32, answer: Answer) {
        if answer == Answer::Excluded {
            return self.excluded += 1;
        }
        let place = repeat as usize;
        if self.repeats.len() <= place {
            self.repeats.resize(place + 1, Repeat::default());
        }
        let repeat = &mut self.repeats[place];
        repeat.issued += 1;
        match answer {
            Answer::Scored { score, extracted } => {
                self.scored += 1;
                self.unextracted += u64::from(!extracted);
                self.sum += score;
                repeat.sum += score;
            }
            Answer::Empty => self.empty += 1,
            Answer::Failed => self.failed += 1,
            Answer::Missing => self.missing += 1,
            Answer::Excluded => {}
        }
    }

    /// The score of a phase that issued `issued` requests, by the rule of this name. What was issued and not
    /// taken in is missing.
    #[must_use]
    pub fn score(&self, by: &str, of: Option<&str>, truth: Option<&str>, issued: u64) -> Score {
        let seen = self.scored + self.empty + self.failed + self.missing;
        let issued = issued.saturating_sub(self.excluded).max(seen);
        let mean = |sum: f64, of: u64| (of > 0).then(|| sum / of as f64);
        let repeats: Vec<RepeatScore> = self
            .repeats
            .iter()
            .filter(|repeat| repeat.issued > 0)
            .map(|r| RepeatScore { issued: r.issued, sum: r.sum, value: r.sum / r.issued as f64 })
            .collect();
        Score {
            by: by.to_owned(),
            of: of.map(str::to_owned),
            truth: truth.map(str::to_owned),
            value: mean(self.sum, issued),
            sum: Some(self.sum),
            issued,
            scored: self.scored,
            unextracted: self.unextracted,
            empty: self.empty,
            failed: self.failed,
            missing: self.missing + (issued - seen),
            excluded: self.excluded,
            spread: spread(&repeats),
            repeats,
            error: None,
        }
    }
}

/// How far the scores of the repeats lie apart; of one alone nothing can be said.
fn spread(repeats: &[RepeatScore]) -> Option<Spread> {
    if repeats.len() < 2 {
        return None;
    }
    let values = || repeats.iter().map(|repeat| repeat.value);
    let count = repeats.len() as f64;
    let mean = values().sum::<f64>() / count;
    let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(Spread {
        min: values().fold(f64::INFINITY, f64::min),
        max: values().fold(f64::NEG_INFINITY, f64::max),
        stddev: variance.sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: Answer = Answer::Scored { score: 1.0, extracted: true };
    const WRONG: Answer = Answer::Scored { score: 0.0, extracted: false };

    fn tally(answers: &[(u32, Answer)]) -> Tally {
        let mut tally = Tally::default();
        answers.iter().for_each(|&(repeat, answer)| tally.add(repeat, answer));
        tally
    }

    #[test]
    fn what_has_no_answer_scores_nothing_and_is_counted() {
        let answers = [
            (0, RIGHT),
            (0, WRONG),
            (0, RIGHT),
            (0, Answer::Empty),
            (0, Answer::Failed),
            (0, Answer::Missing),
        ];
        // Two more were issued whose records are lost.
        let score = tally(&answers).score("numeric", Some("content"), Some("answer"), 8);
        assert_eq!(score.value, Some(2.0 / 8.0));
        assert_eq!((score.issued, score.scored, score.unextracted), (8, 3, 1));
        assert_eq!((score.empty, score.failed, score.missing), (1, 1, 3));
        assert_eq!(score.issued, score.scored + score.empty + score.failed + score.missing);
        assert_eq!(score.spread, None);
    }

    #[test]
    fn nothing_issued_has_no_score_and_nothing_answered_has_zero() {
        assert_eq!(tally(&[]).score("exact", None, None, 0).value, None);
        assert_eq!(tally(&[(0, Answer::Failed)]).score("exact", None, None, 1).value, Some(0.0));
    }

    #[test]
    fn repeats_have_scores_of_their_own_and_a_spread() {
        let answers =
            [(0, RIGHT), (0, RIGHT), (1, RIGHT), (1, WRONG), (2, WRONG), (2, Answer::Failed)];
        let score = tally(&answers).score("exact", None, None, 6);
        let values: Vec<f64> = score.repeats.iter().map(|repeat| repeat.value).collect();
        assert_eq!(values, [1.0, 0.5, 0.0]);
        // The sample's deviation of 1, 0.5 and 0.
        assert_eq!(score.spread, Some(Spread { min: 0.0, max: 1.0, stddev: 0.5 }));
        assert_eq!(score.value, Some(0.5));
    }
}
