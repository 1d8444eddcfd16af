//! Answers against truths, purely: what an answer says, whether it is right, what a phase scores.
//!
//! ```text
//! records --fold--> Responses --each Response--> Scorer::judge --Judged--> Tally --> Score
//!                   (texts joined)               (extract, compare)        (count)
//! ```
//!
//! [`Responses`] joins the pieces of kept text to whole answers, as they end; it holds those that are under
//! way and no others, so a journal of any length can be scored. A [`Scorer`] takes an answer apart by one
//! rule and compares it with the row's [`Truth`]. A [`Tally`] counts; every issued request is in exactly one
//! of scored, empty, failed and missing, and only scored ones can add to the sum.
//!
//! Scoring by a program from outside is the caller's: its marks enter the tally like any others. Nothing
//! here reads a file, a clock or a socket. What the rules are for whoever configures them is in
//! `docs/GUIDE.md`; why they are so, in `docs/DESIGN.md`.
#![forbid(unsafe_code)]

mod choice;
mod decimal;
mod inline;
mod responses;
mod scorer;
mod tally;
mod tool_calls;

pub use inline::InlineTruth;
pub use responses::{Keep, Response, Responses, Sink};
pub use scorer::{BadRule, BadTruth, CHOICES_MAX, Judged, Of, Rule, Scorer, Take, Truth};
pub use tally::{Answer, Tally};
pub use tool_calls::joined as joined_tool_calls;
