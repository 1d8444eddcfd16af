//! What must hold of every run, whatever was drawn: each file one subject, on records and final state.

mod answers;
mod cap;
mod end_state;
mod exact;
mod lives;
mod loss;
mod patience;
mod phases;
mod report;
mod requests;
mod schedule;
mod silence;
mod talks;

use std::fmt::Debug;

use super::run::Ran;
use lives::Lives;

/// Every rule that the run breaks, in words.
pub(super) fn all(ran: &Ran) -> Vec<String> {
    let mut found = Found::default();
    if ran.published.lost > 0 {
        // The rest of the story has holes, rightly.
        loss::check(ran, &mut found);
        return found.words();
    }
    let lives = Lives::of(ran);
    requests::check(ran, &lives, &mut found);
    phases::check(ran, &lives, &mut found);
    patience::check(ran, &mut found);
    silence::check(ran, &mut found);
    cap::check(ran, &mut found);
    schedule::check(ran, &lives, &mut found);
    talks::check(ran, &mut found);
    answers::check(ran, &lives, &mut found);
    exact::check(ran, &lives, &mut found);
    report::check(ran, &lives, &mut found);
    end_state::check(ran, &mut found);
    found.words()
}

/// What was found.
#[derive(Default)]
struct Found {
    words: Vec<String>,
    more: usize,
}

impl Found {
    fn say(&mut self, words: impl FnOnce() -> String) {
        if self.words.len() < MOST {
            self.words.push(words());
        } else {
            self.more += 1;
        }
    }

    /// `what` holds, or is found not to.
    fn holds(&mut self, what: bool, words: impl FnOnce() -> String) {
        if !what {
            self.say(words);
        }
    }

    /// Both are the same.
    #[allow(clippy::needless_pass_by_value, reason = "most callers have nothing to borrow from")]
    fn same<T: PartialEq + Debug>(&mut self, is: T, should: T, of: impl FnOnce() -> String) {
        if is != should {
            self.say(|| format!("{}: {is:?}, and it should be {should:?}", of()));
        }
    }

    fn words(mut self) -> Vec<String> {
        if self.more > 0 {
            self.words.push(format!("and {} more", self.more));
        }
        self.words
    }
}

/// Broken rules that are told in words.
const MOST: usize = 12;
