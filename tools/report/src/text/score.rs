//! The score of a phase in the printed report.

use takt_record::Score;

use super::figure::{clean, figure, wrap};
use super::{WIDTH, line};

/// Prints the score, and what it is made of.
pub(super) fn render(out: &mut String, score: &Score) {
    let by = match &score.of {
        Some(of) => format!("by {} of {of}", score.by),
        None => format!("by {}", score.by),
    };
    if let Some(error) = &score.error {
        return wrap(out, &format!("score none {by}: {}", clean(error)), 2, WIDTH);
    }
    let Some(value) = score.value else {
        return line(out, &format!("  score none {by}: nothing was issued"));
    };
    let mut parts = vec![format!("score {value:.4} {by}")];
    let rest = [
        ("scored", score.scored),
        ("with nothing to compare", score.unextracted),
        ("empty", score.empty),
        ("failed", score.failed),
        ("missing", score.missing),
        ("without a truth", score.excluded),
    ];
    parts.extend(rest.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} {n}")));
    line(out, &format!("  {}", parts.join("   ")));
    if let Some(spread) = &score.spread {
        let each: Vec<String> =
            score.repeats.iter().take(REPEATS).map(|r| format!("{:.4}", r.value)).collect();
        let more = if score.repeats.len() > REPEATS { " …" } else { "" };
        let deviation = figure(spread.stddev);
        line(
            out,
            &format!(
                "  {} repeats: {}{more}   deviation {deviation}",
                score.repeats.len(),
                each.join(" ")
            ),
        );
    }
}

/// Repeats on the screen.
const REPEATS: usize = 8;

#[cfg(test)]
mod tests {
    use takt_record::{RepeatScore, Spread};

    use super::*;

    fn score() -> Score {
        let repeat = |sum: f64| RepeatScore { issued: 4, sum, value: sum / 4.0 };
        Score {
            by: "numeric".into(),
            of: Some("content".into()),
            truth: Some("answer".into()),
            value: Some(0.625),
            sum: Some(5.0),
            issued: 8,
            scored: 6,
            unextracted: 1,
            empty: 0,
            failed: 2,
            missing: 0,
            excluded: 0,
            repeats: vec![repeat(2.0), repeat(3.0)],
            spread: Some(Spread { min: 0.5, max: 0.75, stddev: 0.25 }),
            error: None,
        }
    }

    fn check(score: &Score, expected: &str) {
        let mut out = String::new();
        render(&mut out, score);
        assert_eq!(out, expected);
    }

    #[test]
    fn a_score_says_what_it_is_made_of() {
        check(
            &score(),
            "  score 0.6250 by numeric of content   scored 6   with nothing to compare 1   failed 2\n  \
             2 repeats: 0.5000 0.7500   deviation 0.25\n",
        );
        let once = Score { of: None, unextracted: 0, spread: None, ..score() };
        check(&once, "  score 0.6250 by numeric   scored 6   failed 2\n");
    }

    #[test]
    fn no_score_says_why() {
        let none = Score { value: None, spread: None, ..score() };
        check(&none, "  score none by numeric of content: nothing was issued\n");
        let failed = Score { error: Some("judge\u{7} failed".into()), ..none };
        check(&failed, "  score none by numeric of content: judge failed\n");
    }
}
